"""Overflow: a queue that is over its limit and drops its oldest messages moves them to its dead-letter queue.

Which messages go:
- of the fairness key that has most messages in the queue, so that a tenant that floods pushes out its own messages and
  not those of others. Of keys that have as many, the one whose name comes first;
- of that key, the least urgent priority first, and of that the oldest message;
- only messages that are ready. Those that are leased, delayed or suspects count, but stay.

A dead-letter queue has none of its own: what it drops is gone. One that refuses to take more keeps its queue from
dropping anything, and then that refuses messages too.
"""

from dataclasses import dataclass, field

from fila.broker.arrival import Arrival
from fila.broker.attempts import history
from fila.broker.burial import has_room
from fila.broker.commands import DropOldest, Location
from fila.broker.queue import QueueState, store_keys
from fila.broker.removal import Removal
from fila.broker.tick import Tick
from fila.core.fair_key import FairKey
from fila.core.lane import Lane, Overflow, Taken
from fila.core.lifecycle import State
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.journal import Kind
from fila.storage.records import DeathReason, DeathRecord

DROPPED_AT_ONCE = 500
DROPPED_BYTES = 8 << 20
"""How many messages one tick drops, at most, and about how many bytes: 5 to 20 ms"""
EMPTY_KEYS = 1_000
"""Keys without a ready message that are passed over in one tick, at most"""
LAST = (1 << 64) - 1


@dataclass(slots=True)
class Dropped(Removal):
    """Messages that a full queue drops."""

    target: QueueState | None = None
    """Its dead-letter queue"""
    moved: list[tuple[Lane, int, int, int, int, bool]] = field(default_factory=list)
    """There: lane, sequence number, cost, attempts, bytes, and whether it is large"""

    @property
    def journal(self) -> tuple[Kind, Kind | None]:
        return (Kind.DROPPED, None) if self.target is None else (Kind.DEAD, Kind.DROPPED)

    @property
    def targets(self) -> list[Lane]:
        return [lane for lane, *_ in self.moved]

    def count(self) -> None:
        counters = self.queue.counters
        counters.dropped += len(self.locations)
        counters.dead_lettered += len(self.moved)

    def commit(self, tick: Tick) -> None:
        wakeups, target = tick.state.wakeups, self.target
        Removal.commit(self, tick)
        stuck = not self.locations  # there is no room for the next one, and trying again would not help
        self.queue.stuck = target.capacity.standing if stuck and target is not None else None
        if not stuck:
            wakeups.note_overfull(self.queue)
        if target is None:
            return
        for lane, seq, cost, attempts, size, large in self.moved:
            target.attempts[seq] = attempts
            target.know(lane.key)
            target.make_ready(lane, seq, cost)
            target.capacity.enter((lane.key,), 1, {seq: size})
            if large:
                target.large.add(seq)
        wakeups.want(target)
        wakeups.note_overfull(target)


def plan_drop(tick: Tick, command: DropOldest) -> None:
    """Drop what a queue has too much of, as much as fits into one tick. Raises StoreFailed: what was planned before
    holds.
    """
    queue = tick.state.queues.get(command.queue)
    if queue is None or not queue.overfull:
        return
    dropped, victims = Dropped(queue, target=queue.dead_letters), _Victims(queue)
    tick.add(dropped)
    try:
        _plan_all(tick, dropped, victims)
    finally:
        victims.end()


def _plan_all(tick: Tick, dropped: Dropped, victims: "_Victims") -> None:
    queue = dropped.queue
    messages, size = queue.capacity.excess
    too_many, too_large = (
        codec.death(DeathRecord(queue.name, tick.now, reason))
        for reason in (DeathReason.MAX_DEPTH, DeathReason.MAX_BYTES)
    )
    budget = DROPPED_BYTES
    while messages > 0 or size > 0:
        chosen = victims.next(max(messages, 1), DROPPED_AT_ONCE - len(dropped.locations))
        if not chosen:
            return
        records = tick.store.get_many(Family.MESSAGES, store_keys(chosen))
        for victim, record in zip(chosen, records, strict=True):
            death = too_many if messages > 0 else too_large
            if record is None or budget <= 0 or not _plan_move(tick, dropped, victim, record, death):
                return
            messages -= 1
            size -= queue.capacity.size_of(victim[1])
            budget -= len(record)


def _plan_move(tick: Tick, dropped: Dropped, victim: Taken, record: bytes, death: bytes) -> bool:
    """Returns whether there is room for it among the dead letters."""
    queue, target = dropped.queue, dropped.target
    lane, seq, cost = victim
    size = codec.body_bytes(record)
    attempts = queue.attempts.get(seq, 0)
    past = history(tick.store, queue.name, seq) if attempts and target is not None else []
    if target is not None:
        if not has_room(tick, target, size):
            return False
        arrival = tick.of(Arrival, target)
        there = arrival.lane(lane.key.name, lane.priority)
        arrival.weights[there.key], _, _ = codec.read_head(codec.head_of(record))
        tick.batch.put(Family.MESSAGES, keys.message(there.key_parts, seq), record)
        for number, value in past:
            tick.batch.put(Family.ATTEMPTS, keys.attempt(target.name, seq, number), value)
        tick.batch.put(Family.ATTEMPTS, keys.attempt(target.name, seq, 0), death)
        dropped.moved.append((there, seq, cost, attempts, size, seq in queue.large))
    held = lane.key.lane_of(seq, lane.priority)  # messages of many sets of throttles share a lane
    dropped.plan(tick, Location(seq, lane.key.name, lane.priority, State.READY, 0), held)
    return True


class _Victims:
    """The messages that a queue drops, in their order."""

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue
        self._taken: dict[str, int] = {}
        """How many of each key are to go"""
        self._after: dict[Lane, int] = {}
        """The last message of each lane that is to go"""

    def next(self, wanted: int, most: int) -> list[Taken]:
        """Some that follow; none when there are no more, or too many keys have none that could go."""
        longest = self._queue.capacity.longest
        aside: list[tuple[str, int]] = []
        chosen: list[Taken] = []
        while most > 0 and len(aside) < EMPTY_KEYS and (found := longest.pop(self._taken)) is not None:
            key, length = found
            chosen = self._of(key, min(wanted, most, self._lead(key, length)))
            if chosen:
                self._taken[key.name] = self._taken.get(key.name, 0) + len(chosen)
                longest.push(key.name, length - len(chosen))
                break
            aside.append((key.name, length))
        for name, length in aside:
            longest.push(name, length)
        return chosen

    def end(self) -> None:
        """Lengths were counted down ahead of the write, and may not have become so short."""
        known = self._queue.keys
        self._queue.capacity.longest.grew([known[name] for name in self._taken])

    def _lead(self, key: FairKey, length: int) -> int:
        """How many messages a key is to lose before it is another key's turn."""
        other = self._queue.capacity.longest.peek(self._taken)
        return length if other is None else length - other[0] + (key.name < other[1])

    def _of(self, key: FairKey, most: int) -> list[Taken]:
        """The next ones of a key."""
        lanes = list(key.lanes.values())
        for priority in sorted({lane.priority for lane in lanes}, reverse=True):
            found = sorted(
                (seq, at)
                for at, lane in enumerate(lanes)
                if lane.priority == priority
                for seq in lane.between(self._after.get(lane, 0) + 1, LAST, most)
            )[:most]
            for seq, at in found:
                self._after[lanes[at]] = seq
            if found:
                return [(_home(lanes[at], seq), seq, key.cost(seq)) for seq, at in found]
        return []


def _home(lane: Lane, seq: int) -> Lane:
    """The lane by which the store knows a message."""
    return lane.lanes[seq] if isinstance(lane, Overflow) else lane
