"""Publishing: a committed transaction's messages are enqueued, one staged call in a tick, as a chore."""

from dataclasses import dataclass, replace

from fila.broker.arrival import Arrival, find_dedup, put_dedup
from fila.broker.state import BrokerState
from fila.broker.tick import Chore, Effect, Tick
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane
from fila.core.transactions import Producer, StagedBatch
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import CommitRecord, StagedRecord, StagedRun, StagedTarget


@dataclass(slots=True)
class Published(Effect):
    """One staged call is enqueued."""

    producer: Producer
    staged: StagedBatch

    def commit(self, tick: Tick) -> None:
        self.producer.publishing.popleft()
        tick.state.transactions.size -= self.staged.size
        tick.state.hold(self.staged, -1)


@dataclass(slots=True)
class Publishing(Chore):
    """Enqueues what a producer has committed."""

    producer: Producer

    def plan(self, tick: Tick) -> bool:
        producer = self.producer
        key, staged = producer.publishing[0]
        place = keys.staged(producer.name, producer.last, *key)
        value = tick.store.get(Family.STAGED, place)
        if value is not None:
            record = codec.read_staged(value)
            if key[0] in producer.moved:
                record = _plan_move(tick, record)
                plan_unstage(tick, staged)
            _plan_arrivals(tick, record)
        tick.batch.delete(Family.STAGED, place)
        last = len(producer.publishing) == 1
        if last:
            done = CommitRecord(producer.last, producer.heard_at, [], [])
            tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(done))
        tick.add(Published(producer, staged))
        return last


def unfinished_publishing(state: BrokerState) -> list[Chore]:
    """Of commits whose messages were not all enqueued when the broker was stopped."""
    return [Publishing(producer) for producer in state.transactions.producers.values() if producer.publishing]


def plan_unstage(tick: Tick, staged: StagedBatch) -> None:
    """Remove messages that a call staged. No others stand between them."""
    for share in staged.shares:
        start, end = (keys.message((keys.name(share.queue), b""), seq) for seq in (staged.first, staged.end))
        tick.batch.delete_range(Family.MESSAGES, start, end)


def _plan_move(tick: Tick, record: StagedRecord) -> StagedRecord:
    """Give messages the next sequence numbers."""
    lanes = [record.targets[run.target].lane for run in record.runs for _ in run.sizes]
    parts = [keys.parted(lane) for lane in lanes]
    stored = [keys.message(each, seq) for seq, each in enumerate(parts, record.first)]
    first = tick.state.sequence.reserve(tick.now, len(parts))
    messages = tick.store.get_many(Family.MESSAGES, stored)
    for seq, (each, message) in enumerate(zip(parts, messages, strict=True), first):
        if message is not None:  # else its queue was deleted
            tick.batch.put(Family.MESSAGES, keys.message(each, seq), message)
    return replace(record, first=first)


def _plan_arrivals(tick: Tick, record: StagedRecord) -> None:
    """Enqueue what was judged before. Messages of a queue that is gone have gone with it."""
    targets = [_find_target(tick, target) for target in record.targets]
    behind = record.first
    for run in record.runs:
        seqs = range(behind, behind + len(run.sizes))
        behind = seqs.stop
        target = targets[run.target]
        if target is not None:
            _plan_run(tick, run, seqs, target)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where messages arrive."""

    arrival: Arrival
    lane: Lane
    weight: int
    cost: int


def _find_target(tick: Tick, target: StagedTarget) -> _Target | None:
    name, fairness_key, priority = keys.read_lane(target.lane)
    queue = tick.state.queues.get(name)
    if queue is None or queue.record.created_at != target.created_at:
        return None
    weight, cost, throttle_keys = codec.read_head(target.head)
    arrival = tick.of(Arrival, queue)
    return _Target(arrival, arrival.lane(fairness_key, priority, throttle_keys), weight, cost)


def _plan_run(tick: Tick, run: StagedRun, seqs: range, target: _Target) -> None:
    arrival, lane, cost = target.arrival, target.lane, target.cost
    queue = arrival.queue
    in_window = bool(run.dedup_key and queue.record.dedup_window_ms)
    if in_window and find_dedup(tick, arrival, run.dedup_key) is not None:
        tick.batch.delete(Family.MESSAGES, keys.message(lane.key_parts, seqs[0]))
        return
    if in_window:
        put_dedup(tick, arrival, run.dedup_key, seqs[0])
    if arrival.room is not None and arrival.room.measures:
        arrival.bodies.update(zip(seqs, run.bodies, strict=True))
    if seqs[-1] > lane.key.newest:
        arrival.weights[lane.key] = target.weight
    if run.large:
        arrival.large += seqs
    if run.delay_ms:
        due = tick.now + run.delay_ms * NS_PER_MS
        for seq in seqs:
            tick.batch.put(Family.SCHEDULED, keys.scheduled(due, queue.name, seq), codec.scheduled())
            arrival.delayed.append((due, seq, lane, cost))
        arrival.delayed_sizes += run.sizes
        return
    arrival.seqs += seqs
    arrival.sizes += run.sizes
    arrival.lanes += [lane] * len(seqs)
    if cost != 1:
        arrival.costs.update(dict.fromkeys(seqs, cost))
    arrival.staged.append(seqs)
