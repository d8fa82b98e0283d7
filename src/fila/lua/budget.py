"""The time budget that the hooks of all queues share.

Rules:
- hooks take at most `tick_ms` of one tick, and at most `percent` of all time;
- a call is never cut short by this budget. What it takes beyond the budget is a debt, paid back before the next call;
- callers check `left` before each call of a hook.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NS_PER_MS = 1_000_000
RESUME_PART = 4
"""Calls resume when one part in this many of a tick's budget is there: resuming for less costs more than it gains."""


class HookBudget:
    """A token bucket of time: it gains `percent` of the time that passes and holds at most one tick's budget."""

    __slots__ = ("_at", "_clock_ns", "_left", "_most", "_percent", "exhausted", "spent_ns")

    def __init__(self, tick_ms: int, percent: int, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._most = self._left = tick_ms * NS_PER_MS
        self._percent = percent
        self._at = clock_ns()
        self.spent_ns = 0
        """Time spent since the start: calls of hooks, compiling and dry runs."""
        self.exhausted = 0
        """How many ticks ended with the budget spent and messages still waiting for a hook."""

    @property
    def left(self) -> bool:
        """Whether a hook may be called now."""
        return self._left > 0

    def begin(self) -> bool:
        """Refill the budget at the start of a tick. Returns whether there is enough of it to call hooks."""
        now = self._clock_ns()
        self._left = min(self._most, self._left + (now - self._at) * self._percent // 100)
        self._at = now
        return self._left >= self._most // RESUME_PART

    def wait_ns(self) -> int:
        """How long until there is enough to call hooks; 0 when there is."""
        missing = self._most // RESUME_PART - self._left
        return max(0, -(-missing * 100 // self._percent) - (self._clock_ns() - self._at)) if missing > 0 else 0

    def spend(self, ns: int) -> None:
        """Take this much time from the budget."""
        self._left -= ns
        self.spent_ns += ns

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Take the time that the `with` block needs from the budget."""
        began = self._clock_ns()
        try:
            yield
        finally:
            self.spend(self._clock_ns() - began)
