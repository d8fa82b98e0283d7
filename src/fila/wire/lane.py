"""A fair share of the event loop for peers that send much that means little.

A frame costs the server about the same however small it is, and a call far more than its headers: a quarter of a
megabyte of frames of nine bytes keeps the loop busy for a tenth of a second. So each connection has a turn of so many
units of work; what it sent beyond that waits, its socket is not read meanwhile, and all such connections together have
one turn of the loop after the other. Whoever sends as others do never comes here; whoever floods only waits for itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_UNITS: Final = 300
"""A frame is one unit, about 3 us, and a call is `CALL_UNITS`: a turn is about a millisecond."""
CALL_UNITS: Final = 20


class SlowLane:
    """Connections that have more to do than a turn allows. They have turns one after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turns: deque[Callable[[], bool]] = deque()
        self._waiting = False

    def add(self, turn: Callable[[], bool]) -> None:
        """Have it called in turn, until it returns that there is no more to do."""
        self._turns.append(turn)
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        if self._turns and not self._waiting:
            self._waiting = True
            self._loop.call_soon(self._go_on)  # the loop looks for what others want in between

    def _go_on(self) -> None:
        self._waiting = False
        turn = self._turns.popleft()
        if turn():
            self._turns.append(turn)
        self._go_on_soon()
