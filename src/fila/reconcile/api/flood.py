"""How many reports an affiliate may send: a bucket each, refilled with time."""

import threading
from collections import OrderedDict
from collections.abc import Mapping

KEPT = 100_000
"""Buckets in memory. A bucket that nobody used for longest is forgotten, which makes it full again."""


class FloodGuard:
    """Takes from the buckets of all affiliates of a request, or from none. One process's view; time is an argument."""

    def __init__(self, per_minute: int, burst: int) -> None:
        self._per_second = per_minute / 60
        self._burst = burst
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, wanted: Mapping[str, int], now: float) -> tuple[str, float] | None:
        """None if everybody may send. Else who may not, and for how many seconds; nothing is taken then."""
        with self._lock:
            left = {affiliate: self._level(affiliate, now) - count for affiliate, count in wanted.items()}
            worst = min(left, key=lambda affiliate: left[affiliate])
            if left[worst] < 0:
                return worst, -left[worst] / self._per_second
            for affiliate, level in left.items():
                self._buckets[affiliate] = level, now
                self._buckets.move_to_end(affiliate)
            while len(self._buckets) > KEPT:
                self._buckets.popitem(last=False)
            return None

    def _level(self, affiliate: str, now: float) -> float:
        level, at = self._buckets.get(affiliate, (float(self._burst), now))
        return min(self._burst, level + max(0.0, now - at) * self._per_second)
