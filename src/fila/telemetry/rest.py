"""Those without a name of their own, told as if they were one."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)
Figure = TypeVar("Figure", bound=Hashable)


class Rest(Generic[Owner, Figure]):
    """Adds up what many owners have counted, and how they stand.

    What was counted stays counted when its owner goes, so that no sum goes down.
    """

    def __init__(self, greatest: frozenset[Figure] = frozenset()) -> None:
        self.counts: dict[Figure, int] = {}
        self.levels: dict[Figure, float] = {}
        self._greatest = greatest
        """Levels of which the greatest counts and not the sum"""
        self._seen: dict[Owner, Mapping[Figure, int]] = {}

    def begin(self, owners: set[Owner]) -> None:
        """Begin a look. `owners` are all that exist."""
        self.levels = {}
        self._seen = {owner: counts for owner, counts in self._seen.items() if owner in owners}

    def add(self, owner: Owner, counts: Mapping[Figure, int], levels: Mapping[Figure, float]) -> None:
        before = self._seen.get(owner, {})
        for figure, count in counts.items():
            self.counts[figure] = self.counts.get(figure, 0) + count - before.get(figure, 0)
        self._seen[owner] = counts
        for figure, level in levels.items():
            known = self.levels.get(figure, 0)
            self.levels[figure] = max(known, level) if figure in self._greatest else known + level
