"""Leaves a hook alone that fails again and again, or that takes too long though it stays within its limit."""

import time

NS_PER_MS = 1_000_000


class Breaker:
    """Opens after a number of failures in a row, for a while. Then one call decides if it closes or opens again."""

    __slots__ = ("_cooldown_ns", "_failures", "_threshold", "_until_ns")

    def __init__(self, threshold: int, cooldown_ms: int) -> None:
        self._threshold = threshold
        self._cooldown_ns = cooldown_ms * NS_PER_MS
        self._failures = 0
        self._until_ns = 0

    def allows(self, now_ns: int) -> bool:
        """Whether the hook is to be called."""
        return self._failures < self._threshold or now_ns >= self._until_ns

    def succeeded(self) -> None:
        self._failures = 0

    def open(self, now_ns: int) -> None:
        """Leave the hook alone for a while at once."""
        self._failures = self._threshold
        self._until_ns = now_ns + self._cooldown_ns

    def failed(self, now_ns: int) -> bool:
        """Count a failure. True if the breaker opened by it."""
        self._failures += 1
        if self._failures < self._threshold:
            return False
        self._until_ns = now_ns + self._cooldown_ns
        return True


class Watch:
    """Finds a hook that takes long on every message. One such call does no harm, but a batch of thousands does.

    Looking at the processor's clock costs as much as a good hook does, so a hook is watched only after a call that took
    long by the clock on the wall, which may have been somebody else's doing.
    """

    SUSPICIOUS_NS = 1_000_000
    SLOW_NS = 500_000
    """On the processor, on average of the calls that are watched."""
    CALLS = 8

    __slots__ = ("_left", "_spent")

    def __init__(self) -> None:
        self._left = 0
        self._spent = 0

    def begin(self) -> int:
        """Before a call. Returns what `end` wants to know."""
        return time.thread_time_ns() if self._left else 0

    def end(self, began: int, wall_ns: int) -> bool:
        """After a call. True when the hook was found to be slow."""
        if not self._left:
            if wall_ns > self.SUSPICIOUS_NS:
                self._left, self._spent = self.CALLS, 0
            return False
        self._spent += time.thread_time_ns() - began
        self._left -= 1
        return not self._left and self._spent > self.CALLS * self.SLOW_NS
