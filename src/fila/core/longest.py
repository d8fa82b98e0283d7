"""Which fairness key of a queue has most messages, for queues that drop their oldest ones.

A heap of keys by their length. Lengths shrink with every ack and nobody says so; only growth is told (`grew`). So an
entry may be too long but never too short, and the first one that is still right is the longest key. Keys of the same
length go by their names.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from fila.core.fair_key import FairKey

MANY_OLD = 64
"""So many entries more than keys are always tolerated before the heap is built anew."""


class LongestKeys:
    """The keys of one queue by how many messages each has there, leased and delayed ones too."""

    __slots__ = ("_grown", "_heap", "_keys")

    def __init__(self, keys: Mapping[str, FairKey]) -> None:
        self._keys = keys
        self._heap: list[tuple[int, str]] | None = None
        """Length, negated, and name; None until somebody asks"""
        self._grown: set[str] = set()

    def grew(self, keys: Iterable[FairKey]) -> None:
        """There are more messages of these keys."""
        if self._heap is not None:
            self._grown.update([key.name for key in keys])

    def pop(self, taken: Mapping[str, int]) -> tuple[FairKey, int] | None:
        """The longest key and its length, of which so much is counted as gone; None when there is none. It comes again
        when it is pushed.
        """
        heap = self._refreshed()
        while heap:
            length, name = heappop(heap)
            key = self._keys.get(name)
            now = key.live - taken.get(name, 0) if key is not None else 0
            if key is not None and now == -length:
                return key, now
            if 0 < now < -length:
                heappush(heap, (-now, name))
        return None

    def peek(self, taken: Mapping[str, int]) -> tuple[int, str] | None:
        """Length and name of the longest key, as `pop`."""
        found = self.pop(taken)
        if found is None:
            return None
        key, length = found
        self.push(key.name, length)
        return length, key.name

    def push(self, name: str, length: int) -> None:
        """Have a key be found again."""
        if length and self._heap is not None:
            heappush(self._heap, (-length, name))

    def _refreshed(self) -> list[tuple[int, str]]:
        heap, keys = self._heap, self._keys
        if heap is None or len(heap) + len(self._grown) > 2 * len(keys) + MANY_OLD:
            heap = self._heap = [(-key.live, name) for name, key in keys.items()]
            heapify(heap)
        else:
            for name in self._grown:
                if name in keys:
                    heappush(heap, (-keys[name].live, name))
        self._grown.clear()
        return heap
