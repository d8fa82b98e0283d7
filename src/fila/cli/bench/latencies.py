"""Measured times in bounded memory, and their percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST = 100_000
"""Kept at a time. Beyond it every second one is dropped, and from then on half as many are taken."""


class Latencies:
    """Every n-th of the times that are added, n growing with their number."""

    def __init__(self) -> None:
        self.kept: list[float] = []
        self._stride = 1
        self._seen = 0

    def add(self, seconds: float) -> None:
        if self._seen % self._stride == 0:
            self.kept.append(seconds)
            if len(self.kept) > MOST:
                del self.kept[1::2]
                self._stride *= 2
        self._seen += 1


@dataclass(frozen=True, slots=True)
class Spread:
    """Half of all times are up to `p50`, 99 % up to `p99`: seconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, times: Iterable[Sequence[float]]) -> Spread | None:
        """None when nothing was measured."""
        ordered = sorted(each for part in times for each in part)
        return cls(_percentile(ordered, 50), _percentile(ordered, 99)) if ordered else None


def _percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest that at least so many do not exceed: always one that was measured."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
