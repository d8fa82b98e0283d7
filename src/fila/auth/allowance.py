"""What a principal may send a second. Time is an argument, in nanoseconds.

Each limit is a bucket that gains its rate a second and holds what one second brings. A batch is taken while there is
anything in the bucket, and may leave it in debt: so a batch larger than the rate passes, and what follows waits for it.
"""

from collections.abc import Mapping
from typing import Final

MESSAGES: Final = "messages_per_second"
BYTES: Final = "bytes_per_second"
CALLS: Final = "open_calls"
CONNECTIONS: Final = "connections"
QUEUES: Final = "queues"
QUEUE_DEPTH: Final = "queue_max_depth"
QUEUE_BYTES: Final = "queue_max_bytes"
LIMITS: Final = (CONNECTIONS, CALLS, MESSAGES, BYTES, QUEUES, QUEUE_DEPTH, QUEUE_BYTES)
"""What can be limited of a principal."""

_NS_PER_S: Final = 1_000_000_000


class Allowance:
    """The buckets of one principal. They begin full."""

    __slots__ = ("_at", "_left", "_rates")

    def __init__(self, limits: Mapping[str, int], now: int) -> None:
        self._rates = {name: limits[name] for name in (MESSAGES, BYTES) if name in limits}
        self._left: dict[str, float] = dict(self._rates)
        self._at = now

    def take(self, messages: int, size: int, now: int) -> str | None:
        """Take a batch, or name the limit that does not allow it: then nothing is taken."""
        passed_s, self._at = max(0, now - self._at) / _NS_PER_S, max(now, self._at)
        for name, rate in self._rates.items():
            self._left[name] = min(rate, self._left[name] + rate * passed_s)
        exhausted = next((name for name, left in self._left.items() if left <= 0), None)
        if exhausted is None:
            for name, amount in ((MESSAGES, messages), (BYTES, size)):
                if name in self._left:
                    self._left[name] -= amount
        return exhausted
