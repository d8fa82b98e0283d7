"""Leaves a hook alone that fails again and again."""

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

    def open_until(self, now_ns: int) -> int:
        """Until when the hook is left alone; 0 when it is called."""
        return 0 if self.allows(now_ns) else self._until_ns

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, now_ns: int) -> bool:
        """Count a failure. True if the breaker opened by it."""
        self._failures += 1
        if self._failures < self._threshold:
            return False
        self._until_ns = now_ns + self._cooldown_ns
        return True
