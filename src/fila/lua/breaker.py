"""A circuit breaker: bypasses a hook that keeps failing."""

NS_PER_MS = 1_000_000


class CircuitBreaker:
    """Opens after `threshold` failures in a row, for `cooldown_ms`. The next call then closes it or opens it again."""

    __slots__ = ("_cooldown_ns", "_failures", "_threshold", "_until_ns")

    def __init__(self, threshold: int, cooldown_ms: int) -> None:
        self._threshold = threshold
        self._cooldown_ns = cooldown_ms * NS_PER_MS
        self._failures = 0
        self._until_ns = 0

    def allows(self, now_ns: int) -> bool:
        """Whether the hook may be called."""
        return self._failures < self._threshold or now_ns >= self._until_ns

    def open_until(self, now_ns: int) -> int:
        """When the bypass ends; 0 when the hook is not bypassed."""
        return 0 if self.allows(now_ns) else self._until_ns

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, now_ns: int) -> bool:
        """Count a failure. Returns whether it opened the breaker."""
        self._failures += 1
        if self._failures < self._threshold:
            return False
        self._until_ns = now_ns + self._cooldown_ns
        return True
