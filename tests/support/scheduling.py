"""A scheduler with keys that can be filled, for tests of fairness."""

from collections import Counter
from typing import Any

from fila.core.drr import Drr
from fila.core.pending import FairKey, Lane, Taken

NORMAL = 5


class Rings:
    """A Drr and its keys by name. Sequence numbers are given out in the order of pushing."""

    def __init__(self, quantum: int = 4) -> None:
        self.drr = Drr(quantum)
        self.keys: dict[str, FairKey] = {}
        self._last = 0

    def push(
        self, name: str, count: int = 1, *, weight: int | None = None, cost: int = 1, priority: int = NORMAL
    ) -> int:
        """Add messages to a key. Returns the sequence number of the last one."""
        key = self.keys.setdefault(name, FairKey(name))
        if weight is not None:
            key.weight = weight
        lane = key.lanes.get(priority) or Lane(key, priority, f"{name}/{priority}".encode())
        new = list(range(self._last + 1, self._last + count + 1))
        self._last += count
        if cost == 1:
            key.push_new(lane, new)
        else:
            for seq in new:
                key.push(lane, seq, cost)
        self.drr.activate(key)
        return self._last

    def take(self, count: int) -> list[str]:
        """Select messages and say whose they were."""
        return names(self.drr.select(count).messages)

    def settle(self) -> None:
        """Deliver until every key that has messages is backlogged."""
        while self.drr._sparse:
            self.take(1)

    def shares(self, count: int) -> Counter[str]:
        return Counter(self.take(count))

    def snapshot(self) -> dict[str, Any]:
        """Everything that a rollback must restore."""
        return {
            "sparse": [key.name for key in self.drr._sparse],
            "backlogged": [key.name for key in self.drr._backlogged],
            "round": (self.drr.round, self.drr._turns_left, self.drr._sparse_run),
            "keys": {
                key.name: (
                    key.deficit,
                    key.place,
                    key.weight,
                    key.ready,
                    dict(key.costs),
                    key.head and key.head.priority,
                )
                for key in self.keys.values()
            },
            "lanes": {
                key.name: [(priority, lane.waiting()) for priority, lane in key.lanes.items()]
                for key in self.keys.values()
            },
        }


def names(messages: list[Taken]) -> list[str]:
    return [lane.key.name for lane, _, _ in messages]


def seqs(messages: list[Taken]) -> list[int]:
    return [seq for _, seq, _ in messages]
