"""A scheduler with keys that can be filled, for tests of fairness."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fila.core.drr import Drr, Selection
from fila.core.fair_key import FairKey
from fila.core.lane import Lane, Taken, new_lane
from fila.core.lines import Line, Lines
from fila.core.throttle import Limit, ThrottleManager

NORMAL = 5


class Rings:
    """A Drr and its keys by name. Sequence numbers are given out in the order of pushing, time moves when told to."""

    def __init__(self, quantum: int = 4, throttles: ThrottleManager | None = None, name: str = "q") -> None:
        self.throttles = throttles if throttles is not None else ThrottleManager()
        self.drr = Drr(quantum, Lines(name, self.throttles))
        self.keys: dict[str, FairKey] = {}
        self.now = 0
        self._last = 0

    def limit(self, **limits: str) -> None:
        """Set limits, written as in the configuration; an empty one takes it away."""
        for key, text in limits.items():
            if text:
                self.throttles.set(key, Limit.parse(text), self.now)
            else:
                self.throttles.remove(key)

    def push(
        self,
        name: str,
        count: int = 1,
        *,
        weight: int | None = None,
        cost: int = 1,
        priority: int = NORMAL,
        throttles: Iterable[str] = (),
    ) -> int:
        """Add messages to a key. Returns the sequence number of the last one."""
        lane = self._lane(name, weight, priority, throttles)
        key = lane.key
        new = list(range(self._last + 1, self._last + count + 1))
        self._last += count
        if cost == 1:
            key.push_many(lane, new)
        else:
            for seq in new:
                key.push(lane, seq, cost)
        self.drr.activate(key)
        return self._last

    def _lane(self, name: str, weight: int | None, priority: int, throttles: Iterable[str]) -> Lane:
        key = self.keys.setdefault(name, FairKey(name))
        if weight is not None:
            key.weight = weight
        found = self.throttles.find_all(sorted(throttles))
        return key.lanes.get((priority, found)) or new_lane(key, priority, (b"", f"{name}/{priority}".encode()), found)

    def make(self, name: str, weight: int, priority: int, throttles: Iterable[str]) -> tuple[int, Lane]:
        """A message that does not wait yet: its sequence number and its lane."""
        self._last += 1
        return self._last, self._lane(name, weight, priority, throttles)

    def put(self, lane: Lane, seq: int, cost: int) -> None:
        """Let a message wait in its lane."""
        lane.key.push(lane, seq, cost)
        self.drr.activate(lane.key)

    def put_back(self, message: Taken) -> None:
        """A message comes back from its consumer."""
        self.release(message)
        self.put(*message)

    def release(self, message: Taken) -> None:
        """A message is no longer in flight."""
        for throttle in message[0].throttles:
            throttle.release()

    def select(self, count: int) -> Selection:
        self.throttles.due(self.now)
        return self.drr.select(count, self.now)

    def take(self, count: int) -> list[str]:
        """Select messages and say whose they were."""
        return names(self.select(count).messages)

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
                    key.ring,
                    key.weight,
                    key.ready,
                    dict(key.special.costs or {}),
                    key.head and key.head.priority,
                )
                for key in self.keys.values()
            },
            "lanes": {
                key.name: [(*describe(lane), lane.waiting()) for lane in key.lanes.values()]
                for key in self.keys.values()
            },
            "parked": self.drr.parked,
            "waiting": {line.throttle.name: standing(line) for line in self.drr.lines.all()},
            "passed": {throttle.name: throttle.figures(self.now) for throttle in self.throttles._known.values()},
            "shut": {key.name: (key.special.shut, key.special.throttled) for key in self.keys.values()},
        }


def describe(lane: Lane) -> tuple[Any, ...]:
    """A lane in words: what it is, and where it waits."""
    throttles = None if lane.id[1] is None else [throttle.name for throttle in lane.throttles]
    return (lane.priority, throttles, lane.gate and (lane.gate.throttle.name, lane.need))


def standing(line: Line) -> tuple[Any, ...]:
    """Who stands in a line, in order, with what each needs, and how many were called."""
    in_order = sorted(line.keys.items(), key=lambda item: item[1][0])
    return ([(key.name, need) for key, (_, need) in in_order], line.called)


def names(messages: list[Taken]) -> list[str]:
    return [lane.key.name for lane, _, _ in messages]


def seqs(messages: list[Taken]) -> list[int]:
    return [seq for _, seq, _ in messages]
