"""Planning transactions: messages that are kept until they are committed, and then enqueued once.

Staging is where a message is judged: it is checked and placed as at an enqueue, and a call with one that is refused is
refused whole. So a commit has nothing left to refuse but what is missing.

Staged messages are written once, where they will be, under sequence numbers of their own. What hides them is the record
of the call that staged them: as long as there is one, nobody knows of them, also after a restart.

A commit is one write of bounded size, however much was staged: the number of the transaction and the parts that belong
to it. From then on it holds. Its messages are enqueued after it, one staged call in a tick, as a chore, which goes on
after a restart: making all of a large transaction known in one tick would make everybody else wait for it. So consumers
see it grow, as they see any producer's batches; nobody sees anything of it before the commit, and all of it is there
when the commit is answered.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from fila.broker.admission import check_batch_size, check_name
from fila.broker.commands import CommitTransaction, Incoming, StageEnqueue
from fila.broker.enqueue import Answers, judge, plan_dedup, queue_of
from fila.broker.queue import LARGE_BYTES
from fila.broker.state import BrokerState
from fila.broker.tick import Arrivals, Tick
from fila.config import LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument, LimitExceeded, NotStaged, QueueNotFound, TooFarAhead, quoted
from fila.core.ids import NS_PER_MS
from fila.core.pending import Lane
from fila.core.transactions import Producer, Staged, StagedBatch, Transaction, in_turn, out_of_order
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

DEFAULT_TTL_MS = 3_600_000
MAX_BATCHES = 100_000
"""Calls that stage for one transaction"""
MAX_OPEN = 10_000
"""Transactions that are staged for and not committed"""
SILENT_AFTER = 90 * 86_400_000 * NS_PER_MS
"""How long a producer's last transaction is remembered when nothing is heard of it."""
SWEPT = 1_000
"""Calls that staged in vain, and producers, that are forgotten in one tick"""


@dataclass(frozen=True, slots=True)
class Committing:
    """How far a commit is."""

    before: bool
    """It, or a later one, was committed before."""
    done: bool
    """Nothing of the producer is left to be enqueued."""
    decided: bool = True
    """False when an earlier one has to be finished first."""


def plan_stage(state: BrokerState, tick: Tick, command: StageEnqueue) -> bool:
    """Keep messages for a transaction. Returns whether it was committed before: then nothing is kept.

    Raises InvalidArgument, LimitExceeded, or why a message is refused.
    """
    limits = state.limits
    _check_stage(command, limits)
    known = state.transactions
    producer = known.find(command.producer)
    if command.transaction <= producer.last:
        return True
    _check_new(state, producer)
    _check_jump(producer, command.transaction, tick.now)
    expires_at = tick.now + (command.ttl_ms or min(DEFAULT_TTL_MS, limits.max_transaction_ttl_ms)) * NS_PER_MS
    record, stored = _judge_all(state, tick, command, expires_at)
    held = producer.open.get(command.transaction)
    if held is None and sum(len(one.open) for one in known.producers.values()) >= MAX_OPEN:
        raise LimitExceeded(f"{MAX_OPEN} transactions are staged for and not committed, which is the limit")
    transaction = held or Transaction(command.transaction, 0)
    key = (command.part, command.sequence)
    staged = batch_of(record)
    before = transaction.batches.get(key)
    _check_room(state, transaction, before, staged)
    if before is not None:
        _plan_removal(tick, before)
    tick.batch.put_many(Family.MESSAGES, stored)
    tick.batch.put(Family.STAGED, keys.staged(producer.name, transaction.number, *key), codec.staged(record))

    def commit() -> None:
        known.producers[producer.name] = producer
        producer.open[transaction.number] = transaction
        known.size -= transaction.size
        transaction.add(key, staged, expires_at)
        known.size += transaction.size
        producer.heard_at = tick.now

    tick.on_commit.append(commit)
    return False


def _check_stage(command: StageEnqueue, limits: LimitsConfig) -> None:
    check_name("producer", command.producer, limits)
    check_name("part", command.part, limits)
    if not command.sequence:
        raise InvalidArgument("sequence counts from 1")
    if not 0 <= command.ttl_ms <= limits.max_transaction_ttl_ms:
        raise InvalidArgument(f"ttl_ms must be from 0 to {limits.max_transaction_ttl_ms}")
    if not command.messages:
        raise InvalidArgument("there is nothing to stage")
    check_batch_size(len(command.messages), limits)


def _check_new(state: BrokerState, producer: Producer) -> None:
    most = state.limits.max_transaction_producers
    if producer.name not in state.transactions.producers and len(state.transactions.producers) >= most:
        raise LimitExceeded(f"{most} producers have transactions, which is the limit")


def _check_jump(producer: Producer, number: int, now: int) -> None:
    """Raises TooFarAhead for a number after which the producer's own would count as committed before."""
    most = producer.furthest(now)
    if number > most:
        raise TooFarAhead(
            f"transaction {number} of {quoted(producer.name)} is too far ahead: its last one is "
            f"{producer.last if producer.last >= 0 else 'none'}, so the next is at most {most}"
        )


def _check_room(state: BrokerState, transaction: Transaction, before: StagedBatch | None, staged: StagedBatch) -> None:
    """Raises LimitExceeded. What was staged before under the same part and sequence makes room for what is staged."""
    limits = state.limits
    more = staged.messages - (before.messages if before is not None else 0)
    larger = staged.size - (before.size if before is not None else 0)
    if transaction.messages + more > limits.max_transaction_messages:
        raise LimitExceeded(f"a transaction must not exceed {limits.max_transaction_messages} messages")
    if transaction.size + larger > limits.max_transaction_bytes:
        raise LimitExceeded(f"a transaction must not exceed {limits.max_transaction_bytes} bytes")
    if before is None and len(transaction.batches) >= MAX_BATCHES:
        raise LimitExceeded(f"a transaction must not have more than {MAX_BATCHES} batches: stage more at a time")
    if state.transactions.size + larger > limits.max_staged_bytes:
        raise LimitExceeded(f"more than {limits.max_staged_bytes} bytes are staged in all, try again later")


class _Spot(NamedTuple):
    """Where messages of the same kind, queue and priority go."""

    queue: str
    priority: int
    """That the messages were sent with"""
    number: int
    """Among those of the call"""
    place: keys.Place
    delay_ms: int
    head: bytes
    """What their records begin with"""


def _judge_all(
    state: BrokerState, tick: Tick, command: StageEnqueue, expires_at: int
) -> tuple[codec.StagedRecord, list[tuple[bytes, bytes]]]:
    """What is to be known of messages at their commit, and where to store them. Raises why one of them is refused."""
    messages = command.messages
    first = state.sequence.reserve(tick.now, len(messages))
    spots: list[codec.StagedSpot] = []
    runs: list[codec.StagedRun] = []
    stored: list[tuple[bytes, bytes]] = []
    known: dict[bytes | None, _Spot] = {}
    sizes: list[int] = []
    last: _Spot | None = None
    last_large = False
    most_bytes, put_u64 = state.limits.max_payload_bytes, keys.u64
    for seq, message in enumerate(messages, first):
        spot = known.get(message.kind)
        if (
            spot is None
            or message.delay_ms
            or message.dedup_key
            or message.queue != spot.queue
            or message.priority != spot.priority
            or message.payload_bytes > most_bytes
        ):
            try:
                spot, is_shared = _find_spot(state, tick, message, spots, command.answers)
            except QueueNotFound:
                raise
            except BrokerError as error:
                error.args = (f"message {seq - first} of the batch: {error}",)
                raise
            if is_shared:
                known[message.kind] = spot
        _, _, number, (before, behind), delay_ms, head = spot
        record = head + message.body
        stored.append((before + put_u64(seq) + behind, record))
        large = len(record) > LARGE_BYTES
        if spot is not last or large is not last_large:
            sizes = []
            runs.append(codec.StagedRun(number, delay_ms, large, message.dedup_key, sizes))
            last, last_large = spot, large
        sizes.append(message.payload_bytes)
    size = sum([len(place) + len(record) for place, record in stored])
    return codec.StagedRecord(first, size, expires_at, spots, runs), stored


def _find_spot(
    state: BrokerState, tick: Tick, message: Incoming, spots: list[codec.StagedSpot], answers: Answers
) -> tuple[_Spot, bool]:
    """Where a message goes, and whether that holds for all that have its headers and priority, and no delay."""
    queue = queue_of(state, message)
    placed, priority, delay_ms = judge(queue, message, state.limits, tick.now, answers)
    head = codec.message_head(placed.weight, placed.cost, placed.throttle_keys)
    place = keys.lane(queue.name, placed.fairness_key, priority)
    spots.append(codec.StagedSpot(keys.joined(place), queue.record.created_at, head))
    spot = _Spot(message.queue, message.priority, len(spots) - 1, place, delay_ms, head)
    special = message.kind is None or message.delay_ms or message.dedup_key or queue.hooks is not None
    return spot, not special


def batch_of(record: codec.StagedRecord) -> StagedBatch:
    """What is kept in memory of what a call staged."""
    queues = {keys.name(keys.read_lane(spot.lane)[0]) for spot in record.spots}
    return StagedBatch(record.first, record.messages, record.size, tuple(queues))


def _plan_removal(tick: Tick, staged: StagedBatch) -> None:
    """Remove messages that a call staged. No others stand between them."""
    for queue in staged.queues:
        start, end = (keys.message((queue, b""), seq) for seq in (staged.first, staged.end))
        tick.batch.delete_range(Family.MESSAGES, start, end)


def check_parts(count: int) -> None:
    """Raises LimitExceeded for a commit of more parts than a transaction can have: each took a call to stage."""
    if count > MAX_BATCHES:
        raise LimitExceeded(f"a transaction must not have more than {MAX_BATCHES} parts")


def plan_commit(state: BrokerState, store: Storage, tick: Tick, command: CommitTransaction) -> Committing:
    """Decide that a transaction is committed, unless that is so already. Raises InvalidArgument or NotStaged."""
    known = state.transactions
    producer = known.find(command.producer)
    number = command.transaction
    if number <= producer.last:
        return Committing(before=True, done=not producer.publishing)
    check_name("producer", command.producer, state.limits)
    _check_new(state, producer)
    _check_jump(producer, number, tick.now)
    if producer.publishing:
        return Committing(before=False, done=False, decided=False)
    names = [name for name, _ in command.parts]
    if len(set(names)) < len(names):
        raise InvalidArgument("a part is named twice")
    transaction = producer.open.get(number) or Transaction(number, 0)
    parts = transaction.parts()
    for name, count in command.parts:
        _check_whole(producer, number, name, count, parts.get(name, []))
    moved = [name for name in names if out_of_order(parts[name])]
    publishing = in_turn(parts, names, moved)
    _plan_drops(tick, producer, number, set(names))
    record = codec.CommitRecord(number, tick.now, names, moved)
    tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(record))

    def commit() -> None:
        known.producers[producer.name] = producer
        producer.last, producer.heard_at = number, tick.now
        for passed in [one for one in producer.open if one <= number]:
            known.drop(producer, passed)
        known.size += sum(batch.size for _, batch in publishing)
        producer.publishing, producer.moved = deque(publishing), frozenset(moved)
        if publishing:
            state.chores.append(publisher(state, store, producer))

    tick.on_commit.append(commit)
    return Committing(before=False, done=not publishing)


def _check_whole(producer: Producer, number: int, name: str, count: int, staged: list[Staged]) -> None:
    """Raises NotStaged."""
    there = sum(batch.messages for _, batch in staged)
    if not count or there != count or [key[1] for key, _ in staged] != list(range(1, len(staged) + 1)):
        raise NotStaged(
            f"part {quoted(name)} of transaction {number} of {quoted(producer.name)} should have {count} "
            f"messages, {there} are staged: it was not staged whole, or too long ago. Stage it again"
        )


def _plan_drops(tick: Tick, producer: Producer, number: int, names: set[str]) -> None:
    """Remove what was staged for earlier transactions, and by parts that are not named."""
    for passed, transaction in producer.open.items():
        if passed < number:
            _plan_drop(tick, producer, transaction)
        elif passed == number:
            for key, staged in transaction.batches.items():
                if key[0] not in names:
                    _plan_removal(tick, staged)
                    tick.batch.delete(Family.STAGED, keys.staged(producer.name, number, *key))


def _plan_drop(tick: Tick, producer: Producer, transaction: Transaction) -> None:
    """Remove all that was staged for a transaction."""
    for staged in transaction.batches.values():
        _plan_removal(tick, staged)
    start = keys.transaction(producer.name, transaction.number)
    tick.batch.delete_range(Family.STAGED, start, keys.after(start))


def publisher(state: BrokerState, store: Storage, producer: Producer) -> Callable[[Tick], bool]:
    """The chore that enqueues what a producer has committed."""
    return partial(_plan_publishing, state, store, producer)


def _plan_publishing(state: BrokerState, store: Storage, producer: Producer, tick: Tick) -> bool:
    key, staged = producer.publishing[0]
    place = keys.staged(producer.name, producer.last, *key)
    value = store.get(Family.STAGED, place)
    if value is not None:
        record = codec.read_staged(value)
        if key[0] in producer.moved:
            record = _plan_move(state, store, tick, record)
            _plan_removal(tick, staged)
        _plan_arrivals(state, tick, record)
    tick.batch.delete(Family.STAGED, place)
    last = len(producer.publishing) == 1
    if last:
        done = codec.CommitRecord(producer.last, producer.heard_at, [], [])
        tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(done))

    def commit() -> None:
        producer.publishing.popleft()
        state.transactions.size -= staged.size

    tick.on_commit.append(commit)
    return last


def _plan_move(state: BrokerState, store: Storage, tick: Tick, record: codec.StagedRecord) -> codec.StagedRecord:
    """Give messages the next sequence numbers."""
    lanes = [record.spots[run.spot].lane for run in record.runs for _ in run.sizes]
    places = [keys.place(lane) for lane in lanes]
    stored = [keys.message(place, seq) for seq, place in enumerate(places, record.first)]
    first = state.sequence.reserve(tick.now, len(places))
    for seq, (place, message) in enumerate(zip(places, store.get_many(Family.MESSAGES, stored), strict=True), first):
        if message is not None:  # else its queue was deleted
            tick.batch.put(Family.MESSAGES, keys.message(place, seq), message)
    return replace(record, first=first)


class _Target(NamedTuple):
    """Where messages of one spot arrive."""

    arrivals: Arrivals
    lane: Lane
    weight: int
    cost: int


def _plan_arrivals(state: BrokerState, tick: Tick, record: codec.StagedRecord) -> None:
    """Enqueue what was judged before. Messages of a queue that is gone have gone with it."""
    targets = [_find_target(state, tick, spot) for spot in record.spots]
    behind = record.first
    for number, delay_ms, large, dedup_key, sizes in record.runs:
        seqs = range(behind, behind + len(sizes))
        behind = seqs.stop
        target = targets[number]
        if target is None:
            continue
        arrivals, lane, weight, cost = target
        queue = arrivals.queue
        in_window = bool(dedup_key and queue.record.dedup_window_ms)
        if in_window and plan_dedup(tick, arrivals, dedup_key, seqs[0]) is not None:
            tick.batch.delete(Family.MESSAGES, keys.message(lane.place, seqs[0]))
            continue
        if seqs[-1] > lane.key.newest:
            arrivals.weights[lane.key] = weight
        if large:
            arrivals.large += seqs
        if delay_ms:
            due = tick.now + delay_ms * NS_PER_MS
            for seq in seqs:
                tick.batch.put(Family.SCHEDULED, keys.scheduled(due, queue.name, seq), codec.scheduled())
                arrivals.delayed.append((due, seq, lane, cost))
            arrivals.delayed_sizes += sizes
            continue
        arrivals.seqs += seqs
        arrivals.sizes += sizes
        arrivals.lanes += [lane] * len(seqs)
        if cost != 1:
            arrivals.costs.update(dict.fromkeys(seqs, cost))
        arrivals.staged.append(seqs)


def _find_target(state: BrokerState, tick: Tick, spot: codec.StagedSpot) -> _Target | None:
    name, fairness_key, priority = keys.read_lane(spot.lane)
    queue = state.queues.get(name)
    if queue is None or queue.record.created_at != spot.created_at:
        return None
    weight, cost, throttle_keys = codec.read_head(spot.head)
    arrivals = tick.arrivals_of(queue)
    return _Target(arrivals, arrivals.lane(fairness_key, priority, throttle_keys), weight, cost)


def plan_staged_sweep(state: BrokerState, tick: Tick) -> None:
    """Remove what was not committed in time, and forget producers that were silent for very long."""
    known = state.transactions
    for producer, transaction in known.expired(tick.now, SWEPT):
        _plan_drop(tick, producer, transaction)
        tick.on_commit.append(partial(known.drop, producer, transaction.number))
    for producer in known.silent(tick.now - SILENT_AFTER, SWEPT):
        tick.batch.delete(Family.STAGED, keys.staging_producer(producer.name))
        tick.on_commit.append(partial(known.producers.pop, producer.name, None))
