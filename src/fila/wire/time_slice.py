"""Time slices: a fair share of the event loop for peers that send many small frames.

A frame costs the server about the same however small it is, and a call far more than its headers: a quarter of a
megabyte of frames of nine bytes keeps the loop busy for a tenth of a second. So each connection has a slice of so many
units of work. What it sent beyond that waits, its socket is not read meanwhile, and all such connections are served
round robin, one slice in each turn of the loop. Whoever sends as others do never comes here; whoever floods only waits
for itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

SLICE_UNITS: Final = 300
"""A frame is one unit, about 3 us, and a call is `CALL_UNITS`: a slice is about a millisecond."""
CALL_UNITS: Final = 20


class RoundRobin:
    """Connections that have more to do than a slice allows."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Callable[[], bool]] = deque()
        self._scheduled = False

    def add(self, run_slice: Callable[[], bool]) -> None:
        """Have it called in turn, until it returns that there is no more to do."""
        self._queue.append(run_slice)
        self._schedule()

    def _schedule(self) -> None:
        if self._queue and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run_next)  # the loop looks for what others want in between

    def _run_next(self) -> None:
        self._scheduled = False
        run_slice = self._queue.popleft()
        if run_slice():
            self._queue.append(run_slice)
        self._schedule()
