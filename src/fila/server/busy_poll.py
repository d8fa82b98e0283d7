"""Busy-polling: the event loop does not sleep for a moment after work.

Whoever was just answered often asks again at once, and a process that sleeps meanwhile has to be woken, which takes
longer than to answer: most of all on a virtual machine, whose idle processors are handed back to the host. So after a
tick for few messages the event loop looks for more without waiting. An idle server sleeps. A busy one has larger
batches to work on, and is better off when more of the next one is there.
"""

import asyncio
import os
from collections.abc import Callable
from time import perf_counter
from typing import Final

FEW: Final = 8
"""Messages of a tick after which it is worth to stay awake."""


class BusyPoll:
    """Keeps an event loop from sleeping for so many seconds after the last tick."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._until = 0.0
        self._polling = False

    def begin(self, messages: int) -> None:
        """After a tick for which so many messages were sent or settled. Nobody was answered by one for none."""
        if not 0 < messages <= FEW:
            return
        self._until = perf_counter() + self._seconds
        if not self._polling:
            self._polling = True
            self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        """Be called again after the event loop has looked for what is there, unless the time is over."""
        if perf_counter() < self._until:
            _yield_processor()
            self._loop.call_soon(self._poll)
        else:
            self._polling = False


def _nothing() -> None:
    pass


_yield_processor: Callable[[], None] = getattr(os, "sched_yield", _nothing)
"""Where there are fewer processors than busy processes, none waits for a server that does nothing."""
