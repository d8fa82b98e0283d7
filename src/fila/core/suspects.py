"""Messages that are suspected of killing their consumers, and wait to be delivered alone.

A message that was in the hands of a consumer that was lost may be the cause. It is tried alone: by a consumer that
holds nothing else and is given nothing else meanwhile. If that one is lost too, the message is the cause; if not, it is
cleared when it is settled.

Suspects wait apart from all others, in lanes and rings of their own, so that they are fair among themselves, obey their
throttles, and hold up nobody. For their fairness key they count as messages that are out. Those that are known to be
the cause take turns with the others of their key: one that kills every consumer keeps nobody from being tried.
"""

from collections.abc import Iterator
from enum import IntEnum

from fila.core.drr import IDLE, PARKED, Drr, Selection
from fila.core.fair_key import FairKey
from fila.core.lane import Lane, Taken, ThrottledLane
from fila.core.lines import Lines
from fila.core.throttle import ThrottleManager


class Suspicion(IntEnum):
    """What is known of a suspect. The numbers are those of `Isolation` in the contract."""

    SUSPECT = 1
    """It was lost together with others."""
    CONFIRMED = 2
    """It was lost alone."""


class SuspectLane(ThrottledLane):
    """Suspects of one lane."""

    __slots__ = ("home",)

    def __init__(self, key: FairKey, home: Lane) -> None:
        super().__init__(key, home.priority, home.key_parts, home.throttles)
        self.home = home
        """Where its messages belong otherwise"""


class Suspects:
    """The suspects of one queue that wait."""

    __slots__ = ("_keys", "_lanes", "drr")

    def __init__(self, queue: str, quantum: int, throttles: ThrottleManager) -> None:
        self.drr = Drr(quantum, Lines(queue, throttles))
        self._keys: dict[tuple[str, Suspicion], FairKey] = {}
        self._lanes: dict[int, SuspectLane] = {}
        """By message"""

    def __len__(self) -> int:
        return len(self._lanes)

    def __contains__(self, seq: int) -> bool:
        return seq in self._lanes

    def add(self, home: Lane, seq: int, cost: int, suspicion: Suspicion) -> None:
        kind = home.key.name, suspicion
        key = self._keys.get(kind)
        if key is None:
            key = self._keys[kind] = FairKey(home.key.name)
        key.weight = home.key.weight
        found = key.find(home.id)
        lane = found if isinstance(found, SuspectLane) else SuspectLane(key, home)
        key.push(lane, seq, cost)
        self._lanes[seq] = lane
        if key.ring <= PARKED:
            self.drr.activate(key)

    def lane_of(self, seq: int) -> SuspectLane | None:
        """Where a message waits, if it does."""
        return self._lanes.get(seq)

    def all(self) -> Iterator[tuple[int, Lane, int]]:
        """Sequence number, the lane that it belongs to otherwise, and cost of each."""
        for seq, lane in list(self._lanes.items()):
            yield seq, lane.home, lane.key.cost(seq)

    def count_of(self, key: str) -> int:
        """How many messages of a fairness key wait here."""
        return sum(each.ready for each in self._of_key(key))

    def oldest_of(self, key: str) -> int | None:
        """The oldest of them, if there is one."""
        return min((each.oldest for each in self._of_key(key)), default=None)

    def _of_key(self, name: str) -> list[FairKey]:
        found = (self._keys.get((name, suspicion)) for suspicion in Suspicion)
        return [key for key in found if key is not None and key.head is not None]

    def remove(self, seqs: set[int]) -> None:
        """Take messages away that wait here."""
        touched: set[FairKey] = set()
        for seq in seqs:
            lane = self._lanes.pop(seq)
            held = lane.key.lane_of(seq, lane.priority)
            assert held is not None
            lane.key.remove(held, {seq})
            touched.add(lane.key)
        emptied = {key for key in touched if key.head is None}
        self.drr.drop(emptied)
        for key in touched - emptied:
            if key.ring == PARKED:
                self.drr.activate(key)
        for key in emptied:
            self._forget_key(key)

    def select(self, limit: int, now: int) -> Selection:
        """Take the next ones out of their lanes, as `Drr.select`."""
        return self.drr.select(limit, now)

    def forget(self, selection: Selection) -> None:
        """Those of a selection wait no longer."""
        for _, seq, _ in selection.messages:
            del self._lanes[seq]
        if not self._lanes:  # debts among suspects end with the last of them
            self.drr.drop(set(self._keys.values()))
            self._keys.clear()
            return
        for key, _, _ in selection.before:
            if key.head is None and key.ring == IDLE:
                self._forget_key(key)

    def _forget_key(self, key: FairKey) -> None:
        for suspicion in Suspicion:
            if self._keys.get((key.name, suspicion)) is key:
                del self._keys[key.name, suspicion]

    def close(self) -> None:
        """Leave the throttles, which outlive the queue."""
        self.drr.lines.close()


def at_home(messages: list[Taken]) -> list[Taken]:
    """Suspects that were selected, in the lanes that they belong to otherwise."""
    return [(lane.home if isinstance(lane, SuspectLane) else lane, seq, cost) for lane, seq, cost in messages]
