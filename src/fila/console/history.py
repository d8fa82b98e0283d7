"""What was seen of a queue: its last samples, and what follows from two of them. Pure: times are arguments.

Counters begin at 0 when the broker starts. A counter that is smaller than before is a restart: nothing is known of the
time between the two samples.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from fila.client import QueueStats
from fila.console.limits import MAX_SAMPLES

#: Rates are means over this many of the last samples.
_RATE_SAMPLES = 3


class KeyPoint(NamedTuple):
    """One fairness key in a sample."""

    delivered: int
    pending: int
    entitlement: float


@dataclass(frozen=True, slots=True)
class Point:
    """One sample."""

    at: float
    enqueued: int
    delivered: int
    acked: int
    dead_lettered: int
    depth: int
    keys: dict[str, KeyPoint]


class Rates(NamedTuple):
    """Messages a second."""

    enqueued: float
    delivered: float
    acked: float


@dataclass(slots=True)
class History:
    """The last samples, oldest first."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))

    def add(self, at: float, stats: QueueStats, *, with_keys: bool) -> None:
        counters = stats.counters
        keys = {
            key.fairness_key: KeyPoint(key.delivered, key.pending, key.entitlement) for key in stats.keys if with_keys
        }
        self.points.append(
            Point(
                at,
                counters.enqueued,
                counters.delivered,
                counters.acked,
                counters.dead_lettered,
                stats.summary.depth,
                keys,
            )
        )

    def steps(self, every: int = 1) -> Iterator[Rates | None]:
        """The rates between samples that are `every` apart, oldest first; None over a restart."""
        points = list(self.points)[::-1][::every][::-1]
        for before, after in pairwise(points):
            yield _rates(before, after)

    def rates(self) -> Rates | None:
        """The mean over the last samples; None before there are two."""
        recent: Sequence[Point] = list(self.points)[-_RATE_SAMPLES:]
        return _rates(recent[0], recent[-1]) if len(recent) > 1 else None


def _rates(before: Point, after: Point) -> Rates | None:
    grown = (
        after.enqueued - before.enqueued,
        after.delivered - before.delivered,
        after.acked - before.acked,
    )
    seconds = after.at - before.at
    if seconds <= 0 or min(grown) < 0:
        return None
    return Rates(*(number / seconds for number in grown))
