"""A broker's state without a store, and how what happened changes it.

Everything here is planned and committed by the broker's own operations: an entry becomes the effect that the command
behind it had. What the effects want to write goes nowhere.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

from fila.broker.ack import plan_done
from fila.broker.arrival import Arrival
from fila.broker.attempts import EndedLease
from fila.broker.burial import Burials, DeadLetter
from fila.broker.commands import Location
from fila.broker.overflow import Dropped
from fila.broker.queue import DEAD_LETTERS, QueueState
from fila.broker.queues import Configuration, Creation, Deletion
from fila.broker.removal import Purged, Redriven
from fila.broker.returns import plan_release, plan_retry
from fila.broker.scripts import Scripting
from fila.broker.settings import Setting
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.config import LimitsConfig
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane, Overflow
from fila.core.leases import Grant
from fila.core.lifecycle import State
from fila.pipelines.errors import BadInput
from fila.pipelines.whatif.entries import DELAYED, READY, THROTTLE, Entry, Hold, limit, whole
from fila.storage.base import Storage
from fila.storage.records import LeaseEnd, QueueRecord

NOBODY = cast("Storage", None)
"""No operation that is used here reads the store."""
_ENDS = {
    "nacked": LeaseEnd.NACKED,
    "expired": LeaseEnd.EXPIRED,
    "returned": LeaseEnd.RETURNED,
    "released": LeaseEnd.RELEASED,
}
_SUSPECT_ENDS = {1: LeaseEnd.LOST, 2: LeaseEnd.LOST_ALONE}
FAILED = frozenset(_ENDS)
_EVER = 1 << 62
_EVER_MS = 1 << 40
"""When leases end that are ended by what happened."""


class World:
    """The queues of one replay, and what belongs to none of them."""

    def __init__(self) -> None:
        self.state = BrokerState(0, LimitsConfig(), Scripting())
        self._buried: dict[int, tuple[str, ...]] = {}
        """The throttle keys of dead letters, which have them again when they are sent back"""
        self.unknown = 0
        """Entries of messages that were not where they must have been"""

    def tick(self, now: int) -> Tick:
        return Tick(self.state, NOBODY, deque(), now)

    def queue(self, entry: Entry, name: str | None = None) -> QueueState:
        """Raises BadInput for a queue of which the journal does not say how it delivers."""
        name = name or entry.queue
        found = self.state.queues.get(name)
        if found is None:
            raise BadInput(
                f"entry {entry.seq} of the journal is of queue {name!r}, of which no entry says how it is set"
            )
        return found

    # Settings

    def define(self, tick: Tick, entry: Entry, settings: Callable[[QueueRecord], QueueRecord]) -> None:
        """A queue is made, changed or told about. `settings` may make it another one than it was."""
        known = self.state.queues.get(entry.queue)
        if entry.kind == "updated" and known is None:
            return
        source = entry.note.get("source", "")
        if known is not None:
            record = _updated(known.record, entry)
        else:
            above = self.state.queues.get(source) if isinstance(source, str) else None
            quantum = above.record.quantum if above is not None else max(1, whole(entry, "quantum"))
            record = QueueRecord(entry.queue, 0, _EVER_MS, quantum, 0, source=source or _source_of(entry.queue))
            record = _updated(record, entry)
        record = settings(record)
        if known is None:
            tick.add(Creation(QueueState(record, self.state.throttles)))
        elif record != known.record:
            tick.add(Configuration(known, record, None))

    def delete(self, tick: Tick, entry: Entry) -> list[int]:
        """A queue is deleted. Returns its messages."""
        queue = self.state.queues.get(entry.queue)
        if queue is None:
            return []
        tick.add(Deletion(queue))
        ready = [seq for key in queue.keys.values() for lane in key.lanes.values() for seq in lane.waiting()]
        ready += [seq for seq, _, _ in queue.suspects.all()]
        delayed = [seq for _, seq, _, _ in queue.schedule.all()]
        return ready + delayed + [seq for grant in queue.leases.grants() for seq in grant.members]

    def configure(self, tick: Tick, entry: Entry) -> None:
        found = limit(entry)
        if found is not None and self.state.config.get(THROTTLE + found[0]) != entry.note["value"]:
            tick.add(Setting(THROTTLE + found[0], entry.note["value"]))

    # Messages come

    def arrive(self, tick: Tick, entry: Entry, weight: int) -> Lane:
        arrival = tick.of(Arrival, self.queue(entry))
        lane = arrival.lane(entry.key, entry.priority, entry.throttles)
        if arrival.weights or lane.key.weight != weight:
            arrival.weights[lane.key] = weight
        if entry.until:
            arrival.delayed.append((entry.until, entry.message, lane, entry.cost))
            return lane
        arrival.seqs.append(entry.message)
        arrival.lanes.append(lane)
        if entry.cost != 1:
            arrival.costs[entry.message] = entry.cost
        return lane

    def carry(self, entry: Entry, weight: int, consumer: int) -> Lane:
        """Put a message where it was before the first entry."""
        queue, seq = self.queue(entry), entry.message
        lane = queue.lane_cache.lane(entry.key, entry.priority, entry.throttles)
        queue.lane_cache.end_tick()
        lane.key.weight = weight
        queue.know(lane.key)
        if entry.attempt:
            queue.attempts[seq] = entry.attempt
        if entry.number:
            queue.note_suspicion(seq, _SUSPECT_ENDS[min(entry.number, 2)])
        if entry.cause == READY:
            queue.come_back(lane, seq, entry.cost)
            return lane
        lane.key.outside_lanes += 1
        if entry.cause == DELAYED:
            self.state.wakeups.delay(queue, (entry.until, seq, lane, entry.cost))
            return lane
        for throttle in lane.throttles:
            throttle.charge(1, 0)
        number = self.state.sequence.reserve(entry.at, 1)
        queue.leases.add(Grant(number, number, consumer, _EVER, {seq: (lane, seq, entry.cost)}))
        holder = queue.consumers.find(consumer)
        if holder is not None:
            holder.in_flight += 1
        return lane

    # Messages are settled

    def end_leases(self, tick: Tick, kind: str, queue: QueueState, messages: Iterable[tuple[int, Hold, str]]) -> None:
        """Leases end in one way: for each message how, and the queue that it goes to if it dies."""
        done: dict[Grant, list[int]] = {}
        for seq, hold, target in messages:
            grant = queue.leases.find(seq)
            if grant is None or seq in tick.leases.gone:
                self.unknown += 1
            elif kind == "acked":
                done.setdefault(grant, []).append(seq)
            elif kind == "dead":
                self._bury(tick, queue, grant, seq, target)
            else:
                end = _SUSPECT_ENDS.get(hold.alone, _ENDS[kind]) if kind == "returned" else _ENDS[kind]
                failed = EndedLease(queue, grant, seq, end, delay_ms=hold.delay_ns // NS_PER_MS, suspect=hold.alone > 0)
                if end is LeaseEnd.RELEASED:
                    plan_release(tick, failed)
                else:
                    plan_retry(tick, failed, failed.delay_ms)
        for grant, seqs in done.items():
            plan_done(tick, queue, grant, seqs)

    def _bury(self, tick: Tick, queue: QueueState, grant: Grant, seq: int, target: str) -> None:
        graves = self.state.queues.get(target)
        if graves is None:
            self.unknown += 1
            return
        lane, _, cost = grant.members[seq]
        arrival = tick.of(Arrival, graves)
        there = arrival.lane(lane.key.name, lane.priority)
        arrival.weights[there.key] = lane.key.weight
        attempts = queue.attempts.get(seq, 0) + 1
        self._buried[seq] = tuple(throttle.name for throttle in lane.throttles)
        tick.leases.end(queue, grant, seq)
        letter = DeadLetter(queue, graves, seq, there, cost, attempts, LeaseEnd.NACKED, 0)
        tick.one(Burials).letters.append(letter)

    # Messages that wait are taken away

    def take_away(self, tick: Tick, entries: list[Entry]) -> list[int]:
        """Waiting messages of one queue are purged, dropped or sent back, all in one way. Returns those that waited."""
        first = entries[0]
        queue, target = self.queue(first), self.state.queues.get(first.target)
        removal: Purged | Redriven | Dropped
        if target is None:
            removal = Purged(queue)
        elif first.kind == "redriven":
            removal = Redriven(queue, source=target)
        else:
            removal = Dropped(queue, target=target)
        delays: dict[int, tuple[int, int]] | None = None
        for entry in entries:
            lane, seq, cost = self.lane_of(queue, entry), entry.message, 0
            if lane is not None:
                cost, throttles = lane.key.cost(seq), lane.throttles_of(seq)
                removal.lanes.setdefault(lane, set()).add(seq)
            else:
                if delays is None:
                    delays = {held: (due, price) for due, held, _, price in queue.schedule.all()}
                if seq not in delays:
                    continue
                due, cost = delays[seq]
                removal.delayed.append((queue.keys[entry.key], due, seq))
                throttles = ()
            removal.locations.append(Location(seq, entry.key, entry.priority, State.READY, 0))
            if isinstance(removal, Redriven) and target is not None:
                back = tick.of(Arrival, target).lane(entry.key, entry.priority, self._buried.pop(seq, ()))
                removal.arrived.append((back, seq, cost, False))
            elif isinstance(removal, Dropped) and target is not None:
                there = tick.of(Arrival, target).lane(entry.key, entry.priority)
                removal.moved.append((there, seq, cost, queue.attempts.get(seq, 0), 0, False))
                self._buried[seq] = tuple(throttle.name for throttle in throttles)
        if removal.locations:
            tick.add(removal)
        return [found.seq for found in removal.locations]

    def lane_of(self, queue: QueueState, entry: Entry) -> Lane | None:
        """Where a message waits, if it is ready."""
        key = queue.keys.get(entry.key)
        found = key.lane_of(entry.message, entry.priority) if key is not None else None
        return found if found is not None else queue.suspects.lane_of(entry.message)

    # A new start

    def restart(self) -> "World":
        """What a broker makes of its store when it starts: all rounds begin anew, buckets are full, nobody consumes."""
        new = World()
        new.unknown, new._buried = self.unknown, self._buried
        for key, value in self.state.config.items():
            new.state.apply_setting(key, value, 0)
        for queue in self.state.queues.values():
            new.state.add(QueueState(queue.record, new.state.throttles))
        for name, queue in self.state.queues.items():
            _move(queue, new.state.queues[name])
        new.state.sequence.last = self.state.sequence.last
        new.state.wakeups.look_up_due(new.state.queues.values())
        return new


def _move(old: QueueState, new: QueueState) -> None:
    """As recovery reads it: in the order of the store, lane by lane."""

    def lane(home: Lane) -> Lane:
        throttles = tuple(throttle.name for throttle in home.throttles)
        found = new.lane_cache.lane(home.key.name, home.priority, throttles)
        new.lane_cache.end_tick()
        new.know(found.key)
        found.key.weight = home.key.weight
        return found

    new.attempts.update(old.attempts)
    new.suspicion.update(old.suspicion)
    ready: list[tuple[bytes, int, bytes, Lane, int]] = []
    for key in old.keys.values():
        for held in key.lanes.values():
            for seq in held.waiting():
                home = held.lanes[seq] if isinstance(held, Overflow) else held
                ready.append((home.before, seq, home.behind, home, key.cost(seq)))
    groups: dict[tuple[bytes, bytes], list[tuple[Lane, int, int]]] = {}
    for before, seq, behind, home, cost in sorted(ready, key=lambda each: each[:3]):
        groups.setdefault((before, behind), []).append((home, seq, cost))
    for messages in groups.values():
        for home, seq, cost in messages:
            new.make_ready(lane(home), seq, cost)
    for seq, home, cost in old.suspects.all():
        new.come_back(lane(home), seq, cost)
    for due, seq, home, cost in old.schedule.all():
        there = lane(home)
        there.key.outside_lanes += 1
        new.schedule.add((due, seq, there, cost))
    for grant in old.leases.grants():
        members = {seq: (lane(home), seq, cost) for home, seq, cost in grant.members.values()}
        for there, _, _ in members.values():
            there.key.outside_lanes += 1
            for throttle in there.throttles:
                throttle.charge(1, 0)
        new.leases.add(Grant(grant.number, grant.token, 0, grant.expires_at, members))
    new.capacity.messages = new.size


def _updated(record: QueueRecord, entry: Entry) -> QueueRecord:
    """With the settings that an entry tells: as they are, or as they were and are."""
    note, changed = entry.note, entry.kind == "updated"
    told = {name: note[name] for name in ("quantum", "paused") if name in note}
    if changed:
        told = {name: values[1] for name, values in told.items() if isinstance(values, list) and len(values) == 2}
    quantum = told.get("quantum", record.quantum)
    if isinstance(quantum, bool) or not isinstance(quantum, int) or not 1 <= quantum < 1 << 31:
        raise BadInput(f"entry {entry.seq} of the journal has a quantum that cannot be: {quantum!r}")
    return replace(record, quantum=quantum, paused=bool(told.get("paused", record.paused)))


def _source_of(name: str) -> str:
    return name.removesuffix(DEAD_LETTERS) if name.endswith(DEAD_LETTERS) else ""
