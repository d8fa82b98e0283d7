"""What hooks of all queues together may take of the broker's time.

A tick has at most `tick_ms` for them, and over time they have at most so many percent. What was taken beyond it,
because a call is not cut short, is paid back before the next one. Whoever has hooks
to ask looks at `left` before each call.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NS_PER_MS = 1_000_000
PART = 4
"""Asking begins anew when this part of a tick's time is there: less would be spent on beginning."""


class HookBudget:
    """Time for hooks: gains a part of what passes, never holds more than a tick's."""

    __slots__ = ("_at", "_clock_ns", "_left", "_most", "_percent", "exhausted", "spent_ns")

    def __init__(self, tick_ms: int, percent: int, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._most = self._left = tick_ms * NS_PER_MS
        self._percent = percent
        self._at = clock_ns()
        self.spent_ns = 0
        """Since the start: calls of hooks, compiling, trials."""
        self.exhausted = 0
        """How often it was spent while something waited."""

    @property
    def left(self) -> bool:
        """Whether a hook may be called now."""
        return self._left > 0

    def begin(self) -> bool:
        """A tick begins: take in what has been gained. Returns whether there is enough to begin with."""
        now = self._clock_ns()
        self._left = min(self._most, self._left + (now - self._at) * self._percent // 100)
        self._at = now
        return self._left >= self._most // PART

    def wait_ns(self) -> int:
        """How long until there is enough to begin with; 0 for at once."""
        missing = self._most // PART - self._left
        return max(0, -(-missing * 100 // self._percent) - (self._clock_ns() - self._at)) if missing > 0 else 0

    def spend(self, ns: int) -> None:
        """Something took so long."""
        self._left -= ns
        self.spent_ns += ns

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Spend what the work takes."""
        began = self._clock_ns()
        try:
            yield
        finally:
            self.spend(self._clock_ns() - began)
