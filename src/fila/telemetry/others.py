"""Sums of all that have no series of their own, under the label `other`."""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)
Figure = TypeVar("Figure", bound=Hashable)


class OtherSeries(Generic[Owner, Figure]):
    """Sums the counts and the levels of many owners.

    A count stays in its sum when its owner goes, so that no sum goes down.
    """

    def __init__(self, adds_up: Callable[[Figure], bool] = lambda _: True) -> None:
        """Of levels that do not add up the greatest counts."""
        self.counts: dict[Figure, float] = {}
        self.levels: dict[Figure, float] = {}
        self._adds_up = adds_up
        self._last: dict[Owner, Mapping[Figure, float]] = {}

    def begin(self, owners: set[Owner]) -> None:
        """Begin a look. `owners` are all that exist."""
        self.levels = {}
        self._last = {owner: counts for owner, counts in self._last.items() if owner in owners}

    def add(self, owner: Owner, counts: Mapping[Figure, float], levels: Mapping[Figure, float]) -> None:
        before = self._last.get(owner, {})
        for figure, count in counts.items():
            self.counts[figure] = self.counts.get(figure, 0) + count - before.get(figure, 0)
        self._last[owner] = counts
        for figure, level in levels.items():
            known = self.levels.get(figure, 0)
            self.levels[figure] = known + level if self._adds_up(figure) else max(known, level)
