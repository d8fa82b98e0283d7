"""Backoff of writes: when a tick is tried again after its write failed, or came while the store stalled.

- A write that failed was answered to whoever asked for it. Work that nobody waits for (leases that expire, deliveries,
  chores) pauses for `RETRY_AFTER_FAILURE`.
- A write stall means that the store is behind with its files. Nothing is lost and nobody is answered: the tick is tried
  again, after a pause that doubles, until `STALL_PATIENCE` is over. Then it counts as a failed write.
"""

from dataclasses import dataclass

from fila.core.ids import NS_PER_MS

RETRY_AFTER_FAILURE = 1000 * NS_PER_MS
"""How long work that nobody waits for pauses after a failed write."""
STALL_PAUSE = 1 * NS_PER_MS
"""The pause after the first try of a write during a stall. It doubles with each try."""
LONGEST_STALL_PAUSE = 64 * NS_PER_MS
"""The longest pause between two tries during a stall"""
STALL_PATIENCE = 10_000 * NS_PER_MS
"""How long commands wait for a stalled store before they are answered that it is busy."""


@dataclass(slots=True)
class _Stall:
    since: int
    pause: int
    until: int
    """No write is tried before this."""


class WriteBackoff:
    """What is to be waited for before the next write."""

    __slots__ = ("_failed_until", "_stall", "failures", "stalls")

    def __init__(self) -> None:
        self._failed_until = 0
        self._stall: _Stall | None = None
        self.failures = 0
        """Ticks whose write failed"""
        self.stalls = 0
        """Ticks that were put off because the store stalled"""

    def succeeded(self) -> None:
        self._stall = None

    def failed(self, now: int) -> None:
        self.failures += 1
        self._failed_until = now + RETRY_AFTER_FAILURE

    def stalled(self, now: int) -> bool:
        """The store said that it is busy. Returns whether the tick is tried again; else it has failed."""
        if self._stall is None:
            self._stall = _Stall(now, STALL_PAUSE, now)
        stall = self._stall
        if now - stall.since >= STALL_PATIENCE:
            return False
        self.stalls += 1
        stall.until = now + stall.pause
        stall.pause = min(2 * stall.pause, LONGEST_STALL_PAUSE)
        return True

    def is_stalled(self, now: int) -> bool:
        """Whether no write is tried now."""
        return self._stall is not None and now < self._stall.until

    def is_paused(self, now: int) -> bool:
        """Whether work that nobody waits for is not tried now."""
        return now < self._failed_until

    def stalled_until(self) -> int:
        """Before this, no write is tried again, also if somebody waits for it."""
        return self._stall.until if self._stall is not None else 0

    def until(self) -> int:
        """Before this, work that nobody waits for is not tried again."""
        return max(self._failed_until, self.stalled_until())
