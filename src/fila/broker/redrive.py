"""Planning what operators do with messages that wait: send dead letters back to their queue, or remove messages.

Both take what a search has found, some at a time and each time in one write. What was leased, settled or moved since it
was found stays as it is. A message that is sent back keeps its id, body and place (fairness key, weight, priority,
throttle keys, cost); its attempts and what was said of them are forgotten, and so is a delay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fila.broker.commands import Place, Purge, Redrive, Swept
from fila.broker.failure import drop_history
from fila.broker.queue import QueueState
from fila.broker.settle import put_grant
from fila.broker.state import BrokerState
from fila.broker.tick import Removed, Tick
from fila.core.errors import InvalidArgument, NotNow, quoted
from fila.core.leases import Grant
from fila.core.lifecycle import State
from fila.core.pending import FairKey, Lane
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

MOVED_BYTES = 8 << 20
"""About how much one tick moves."""


@dataclass(slots=True)
class _Leaving:
    """Messages that leave a queue."""

    queue: QueueState
    lanes: dict[Lane, set[int]] = field(default_factory=dict)
    """Those that are ready"""
    delayed: list[tuple[FairKey, int, int]] = field(default_factory=list)
    """Key, due time and sequence number of the others"""

    def commit(self) -> None:
        self.queue.remove(self.lanes, self.delayed)


def source_of(state: BrokerState, queue: QueueState) -> QueueState:
    """Where the messages of a dead-letter queue go back to. Raises InvalidArgument or NotNow."""
    name = queue.record.source
    if not name:
        raise InvalidArgument(f"{quoted(queue.name)} is not a dead-letter queue")
    source = state.queues.get(name)
    if source is None:
        raise NotNow(f"queue {quoted(name)}, where the messages of {quoted(queue.name)} came from, is gone")
    return source


def plan_redrive(state: BrokerState, store: Storage, tick: Tick, command: Redrive) -> Swept:
    """Move messages to the queue that they came from. Raises QueueNotFound, or as `source_of`."""
    queue = state.queue(command.queue)
    source = source_of(state, queue)
    # All is read before anything is planned: what cannot be read changes nothing.
    moving: list[tuple[Place, Lane | None, bytes]] = []
    size, last = 0, command.places[-1].seq
    for place, lane in _waiting(store, queue, command.places):
        record = store.get(Family.MESSAGES, _key(queue, place))
        if record is not None:
            codec.read_head(codec.head_of(record))
            moving.append((place, lane, record))
            size += len(record)
            if size >= MOVED_BYTES:
                last = place.seq
                break
    leaving, arrived = _Leaving(queue), []
    arrivals = tick.arrivals_of(source)
    for place, old, record in moving:
        weight, cost, throttle_keys = codec.read_head(codec.head_of(record))
        lane = arrivals.lane(place.key, place.priority, throttle_keys)
        if not lane.key.live:  # else its weight is that of a message that came later, or about then
            arrivals.weights[lane.key] = weight
        _plan_removal(tick, leaving, place, old)
        tick.batch.put(Family.MESSAGES, keys.message(lane.place, place.seq), record)
        arrived.append((lane, place.seq, cost, place.seq in queue.large))
    renewed = [(each, grant) for each in (queue, source) for grant in each.leases.outdated()] if arrived else []
    for each, grant in renewed:
        put_grant(tick, each, grant)
    tick.removed = Removed(queue, [place for place, _, _ in moving], [lane for lane, _, _, _ in arrived])
    tick.on_commit.append(lambda: _commit_redrive(leaving, source, arrived, renewed, tick.now))
    return Swept(len(arrived), last)


def plan_purge(state: BrokerState, store: Storage, tick: Tick, command: Purge) -> Swept:
    """Remove messages. Raises QueueNotFound."""
    leaving = _Leaving(state.queue(command.queue))
    waiting = list(_waiting(store, leaving.queue, command.places))
    for place, lane in waiting:
        _plan_removal(tick, leaving, place, lane)
    tick.removed = Removed(leaving.queue, [place for place, _ in waiting])
    tick.on_commit.append(lambda: _commit_purge(leaving, len(waiting)))
    return Swept(len(waiting), command.places[-1].seq)


def _waiting(store: Storage, queue: QueueState, places: list[Place]) -> Iterator[tuple[Place, Lane | None]]:
    """Those messages that are still ready, each with its lane, and those that are still delayed, with none."""
    for place in places:
        if place.state is State.DELAYED and store.get(Family.SCHEDULED, _due_key(queue, place)) is not None:
            yield place, None
            continue
        key = queue.keys.get(place.key)
        lane = key.lane_of(place.seq, place.priority) if key is not None else None
        if lane is None:
            lane = queue.suspects.lane_of(place.seq)
        if lane is not None:
            yield place, lane


def _plan_removal(tick: Tick, leaving: _Leaving, place: Place, lane: Lane | None) -> None:
    queue, seq = leaving.queue, place.seq
    tick.batch.delete(Family.MESSAGES, _key(queue, place))
    if seq in queue.attempts:
        drop_history(tick, queue, seq)
    if lane is None:
        tick.batch.delete(Family.SCHEDULED, _due_key(queue, place))
        leaving.delayed.append((queue.keys[place.key], place.until, seq))
    else:
        leaving.lanes.setdefault(lane, set()).add(seq)


def _commit_redrive(
    leaving: _Leaving,
    source: QueueState,
    arrived: list[tuple[Lane, int, int, bool]],
    renewed: list[tuple[QueueState, Grant]],
    now: int,
) -> None:
    leaving.commit()
    leaving.queue.counters.redriven += len(arrived)
    source.counters.redriven += len(arrived)
    for lane, seq, cost, large in arrived:
        source.know(lane.key)
        source.make_ready(lane, seq, cost)
        source.ledger.came_back(seq, now, now)
        if large:
            source.large.add(seq)
    for _, grant in renewed:
        grant.listed = len(grant.members)


def _commit_purge(leaving: _Leaving, count: int) -> None:
    leaving.commit()
    leaving.queue.counters.purged += count


def _key(queue: QueueState, place: Place) -> bytes:
    return keys.message(keys.lane(queue.name, place.key, place.priority), place.seq)


def _due_key(queue: QueueState, place: Place) -> bytes:
    return keys.scheduled(place.until, queue.name, place.seq)
