"""Sums of all that have no series of their own, under the label `other`."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)
Figure = TypeVar("Figure", bound=Hashable)


class OtherSeries(Generic[Owner, Figure]):
    """Sums the counts and the levels of many owners.

    A count stays in its sum when its owner goes, so that no sum goes down.
    """

    def __init__(self, maxima: frozenset[Figure] = frozenset()) -> None:
        """Of the levels named by `maxima` the greatest counts and not the sum."""
        self.counts: dict[Figure, int] = {}
        self.levels: dict[Figure, float] = {}
        self._maxima = maxima
        self._last: dict[Owner, Mapping[Figure, int]] = {}

    def begin(self, owners: set[Owner]) -> None:
        """Begin a look. `owners` are all that exist."""
        self.levels = {}
        self._last = {owner: counts for owner, counts in self._last.items() if owner in owners}

    def add(self, owner: Owner, counts: Mapping[Figure, int], levels: Mapping[Figure, float]) -> None:
        before = self._last.get(owner, {})
        for figure, count in counts.items():
            self.counts[figure] = self.counts.get(figure, 0) + count - before.get(figure, 0)
        self._last[owner] = counts
        for figure, level in levels.items():
            known = self.levels.get(figure, 0)
            self.levels[figure] = max(known, level) if figure in self._maxima else known + level
