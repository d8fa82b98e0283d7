"""What becomes of a message whose attempt failed, when no script decides."""

from typing import NamedTuple

_SPREAD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: neighbours land far apart


class RetryPolicy(NamedTuple):
    """The settings of a queue. The defaults are: try again at once, for ever."""

    max_attempts: int = 0
    """0 means no limit."""
    delay_ms: int = 0
    backoff: float = 1.0
    max_delay_ms: int = 0
    """0 means no limit."""
    jitter: float = 0.0

    def exhausted(self, attempts: int) -> bool:
        """Whether a message that failed so often is dead."""
        return 0 < self.max_attempts <= attempts

    def backoff_ms(self, attempts: int, seq: int, limit_ms: int) -> int:
        """How long a message is delayed after its `attempts`-th failure, never more than `limit_ms`.

        Jitter takes off a part that depends on the message and the attempt alone, so that the same events always have
        the same result.
        """
        limit_ms = min(limit_ms, self.max_delay_ms or limit_ms)
        try:
            delay = min(self.delay_ms * self.backoff ** (attempts - 1), limit_ms)
        except OverflowError:
            delay = limit_ms
        part = ((seq + attempts) * _SPREAD % 2**64) / 2**64
        return int(delay * (1 - self.jitter * part))
