"""Removals: messages that wait leave their queue. Operators purge them or send dead letters back (redrive), and a full
queue drops them (`overflow.py`). Each kind of removal says what is counted and what the journal says of it.

Purge and redrive take what a search has found, some at a time and each time in one write. What was leased, settled or
moved since it was found stays as it is. A message that is sent back keeps its id, its body, its fairness key, weight,
priority, throttle keys and cost; its attempts and what was said of them are forgotten, and so is a delay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fila.broker.arrival import Arrival
from fila.broker.attempts import drop_history
from fila.broker.commands import Location, Purge, Redrive, Swept
from fila.broker.grants import put_grant
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Effect, Tick
from fila.core.errors import InvalidArgument, NotNow, quoted
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.leases import Grant
from fila.core.lifecycle import State
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.journal import Kind

MOVED_BYTES = 8 << 20
"""About how much one tick moves."""


@dataclass(slots=True)
class Removal(Effect):
    """Waiting messages that leave a queue."""

    queue: QueueState
    locations: list[Location] = field(default_factory=list)
    """Where each was found"""
    lanes: dict[Lane, set[int]] = field(default_factory=dict)
    """Those that are ready"""
    delayed: list[tuple[FairKey, int, int]] = field(default_factory=list)
    """Key, due time and sequence number of the others"""

    @property
    def journal(self) -> tuple[Kind, Kind | None]:
        """What the journal calls it; of dead letters also the cause."""
        raise NotImplementedError

    @property
    def targets(self) -> list[Lane]:
        """Where each message goes; none when they are gone."""
        raise NotImplementedError

    def count(self) -> None:
        """Count the messages, once they are gone."""
        raise NotImplementedError

    def plan(self, tick: Tick, location: Location, lane: Lane | None) -> None:
        """One more: it is in this lane, or delayed if it is in none."""
        queue, seq = self.queue, location.seq
        self.locations.append(location)
        tick.batch.delete(Family.MESSAGES, _key(queue, location))
        if seq in queue.attempts:
            drop_history(tick, queue, seq)
        if lane is None:
            tick.batch.delete(Family.SCHEDULED, _due_key(queue, location))
            self.delayed.append((queue.keys[location.key], location.until, seq))
        else:
            self.lanes.setdefault(lane, set()).add(seq)

    def commit(self, tick: Tick) -> None:
        self.queue.remove(self.lanes, self.delayed)
        self.count()
        tick.state.wakeups.wanted[self.queue.name] = None  # others may come to their throttles now


@dataclass(slots=True)
class Purged(Removal):
    """Messages that are gone because an operator said so."""

    @property
    def journal(self) -> tuple[Kind, Kind | None]:
        return Kind.DROPPED, None

    @property
    def targets(self) -> list[Lane]:
        return []

    def count(self) -> None:
        self.queue.counters.purged += len(self.locations)


@dataclass(slots=True)
class Redriven(Removal):
    """Dead letters that go back to their queue."""

    source: QueueState = field(kw_only=True)
    arrived: list[tuple[Lane, int, int, bool]] = field(default_factory=list)
    """Lane, sequence number, cost, and whether it is large"""
    sizes: dict[int, int] = field(default_factory=dict)
    """Bytes of headers and payload"""
    renewed: list[Grant] = field(default_factory=list)
    """Grants whose records are rewritten without the messages that have left them: recovery would take such a message
    for leased, now that its attempts are reset."""

    @property
    def journal(self) -> tuple[Kind, Kind | None]:
        return Kind.REDRIVEN, None

    @property
    def targets(self) -> list[Lane]:
        return [lane for lane, _, _, _ in self.arrived]

    def count(self) -> None:
        for queue in (self.queue, self.source):
            queue.counters.redriven += len(self.arrived)

    def commit(self, tick: Tick) -> None:
        queue, source = self.queue, self.source
        queue.remove(self.lanes, self.delayed)
        self.count()
        for lane, seq, cost, large in self.arrived:
            source.know(lane.key)
            source.make_ready(lane, seq, cost)
            source.ledger.came_back(seq, tick.now, tick.now)
            if large:
                source.large.add(seq)
        source.capacity.enter([lane.key for lane in self.targets], len(self.arrived), self.sizes)
        for grant in self.renewed:
            grant.listed = len(grant.members)
        tick.state.wakeups.want(source)


def source_of(state: BrokerState, queue: QueueState) -> QueueState:
    """Where the messages of a dead-letter queue go back to. Raises InvalidArgument or NotNow."""
    name = queue.record.source
    if not name:
        raise InvalidArgument(f"{quoted(queue.name)} is not a dead-letter queue")
    source = state.queues.get(name)
    if source is None:
        raise NotNow(f"queue {quoted(name)}, from which the messages of {quoted(queue.name)} came, was deleted")
    return source


def plan_redrive(tick: Tick, command: Redrive) -> Swept:
    """Move messages to the queue that they came from. What it has no room for stays where it is.

    Raises QueueNotFound, QueueFull when there is no room at all, or as `source_of`.
    """
    queue = tick.state.queue(command.queue)
    source = source_of(tick.state, queue)
    # All is read before anything is planned: what cannot be read changes nothing.
    moving, last = _read(tick, queue, source, command.locations)
    redriven = Redriven(queue, source=source)
    arrival = tick.of(Arrival, source)
    for location, old, record in moving:
        weight, cost, throttle_keys = codec.read_head(codec.head_of(record))
        lane = arrival.lane(location.key, location.priority, throttle_keys)
        if not lane.key.live:  # else its weight is that of a message that came later, or about then
            arrival.weights[lane.key] = weight
        redriven.plan(tick, location, old)
        tick.batch.put(Family.MESSAGES, keys.message(lane.key_parts, location.seq), record)
        redriven.arrived.append((lane, location.seq, cost, location.seq in queue.large))
        redriven.sizes[location.seq] = codec.body_bytes(record)
    for each in (queue, source) if moving else ():
        for grant in each.leases.outdated():
            put_grant(tick.batch, each, grant)
            redriven.renewed.append(grant)
    tick.add(redriven)
    return Swept(len(moving), last)


def plan_purge(tick: Tick, command: Purge) -> Swept:
    """Remove messages. Raises QueueNotFound."""
    removal = Purged(tick.state.queue(command.queue))
    for location, lane in list(_waiting(tick, removal.queue, command.locations)):
        removal.plan(tick, location, lane)
    tick.add(removal)
    return Swept(len(removal.locations), command.locations[-1].seq)


def _read(
    tick: Tick, queue: QueueState, source: QueueState, locations: list[Location]
) -> tuple[list[tuple[Location, Lane | None, bytes]], int]:
    """Those that still wait, with their records, as many as one tick moves and the source has room for; and the message
    up to which was tried. Raises QueueFull when there is no room for the first one.

    What a queue that drops its oldest messages has no room for would come back at once.
    """
    found: list[tuple[Location, Lane | None, bytes]] = []
    size, room, last = 0, source.capacity.room(), 0
    for location, lane in _waiting(tick, queue, locations):
        record = tick.store.get(Family.MESSAGES, _key(queue, location))
        if record is not None:
            codec.read_head(codec.head_of(record))
            full = room.take(codec.body_bytes(record)) if room is not None else None
            if full is not None and not found:
                raise full
            if full is not None:
                return found, last
            found.append((location, lane, record))
            size += len(record)
            last = location.seq
            if size >= MOVED_BYTES:
                return found, last
    return found, locations[-1].seq


def _waiting(tick: Tick, queue: QueueState, locations: list[Location]) -> Iterator[tuple[Location, Lane | None]]:
    """Those messages that are still ready, each with its lane, and those that are still delayed, with none."""
    for location in locations:
        if location.state is State.DELAYED and tick.store.get(Family.SCHEDULED, _due_key(queue, location)) is not None:
            yield location, None
            continue
        key = queue.keys.get(location.key)
        lane = key.lane_of(location.seq, location.priority) if key is not None else None
        if lane is None:
            lane = queue.suspects.lane_of(location.seq)
        if lane is not None:
            yield location, lane


def _key(queue: QueueState, location: Location) -> bytes:
    return keys.message(keys.lane(queue.name, location.key, location.priority), location.seq)


def _due_key(queue: QueueState, location: Location) -> bytes:
    return keys.scheduled(location.until, queue.name, location.seq)
