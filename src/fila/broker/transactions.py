"""Planning transactions: messages that are kept until they are committed, and then enqueued once.

Staging is where a message is judged: it is checked and placed as at an enqueue, and a call with one that is refused is
refused whole. So a commit has nothing left to refuse but what is missing.

A commit is one write of bounded size, however much was staged: the number of the transaction and the parts that belong
to it. From then on it holds. Its messages are enqueued after it, one staged call in a tick, as a chore, which goes on
after a restart: rewriting all of a large transaction in one tick would make everybody else wait for it. So consumers
see it grow, as they see any producer's batches; nobody sees anything of it before the commit, and all of it is there
when the commit is answered.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from fila.broker.commands import CommitTransaction, Incoming, StageEnqueue
from fila.broker.enqueue import judge, plan_dedup
from fila.broker.queue import LARGE_BYTES
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.config import LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument, LimitExceeded, NotStaged, QueueNotFound, quoted
from fila.core.ids import NS_PER_MS
from fila.core.transactions import BatchKey, Producer, StagedBatch, Transaction
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

DEFAULT_TTL_MS = 3_600_000
MAX_BATCHES = 100_000
"""Calls that stage for one transaction"""
MAX_OPEN = 10_000
"""Transactions that are staged for and not committed"""
SILENT_AFTER = 90 * 86_400_000 * NS_PER_MS
"""How long a producer's last transaction is remembered when nothing is heard of it."""
SWEPT = 100
"""Transactions and producers that are forgotten in one tick"""


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
    batch = _pack(state, tick, command.messages)
    held = producer.open.get(command.transaction)
    if held is None and sum(len(one.open) for one in known.producers.values()) >= MAX_OPEN:
        raise LimitExceeded(f"{MAX_OPEN} transactions are staged for and not committed, which is the limit")
    transaction = held or Transaction(command.transaction, 0)
    key = (command.part, command.sequence)
    staged = StagedBatch(len(command.messages), len(batch))
    _check_room(state, transaction, key, staged)
    expires_at = tick.now + (command.ttl_ms or min(DEFAULT_TTL_MS, limits.max_transaction_ttl_ms)) * NS_PER_MS
    info = codec.StagedRecord(staged.messages, staged.size, expires_at)
    place = (producer.name, transaction.number, *key)
    tick.batch.put(Family.STAGED, keys.staged(keys.STAGED_BATCH, *place), batch)
    tick.batch.put(Family.STAGED, keys.staged(keys.STAGED_INFO, *place), codec.staged(info))

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
    for field, name in (("producer", command.producer), ("part", command.part)):
        if not name:
            raise InvalidArgument(f"{field} must not be empty")
        if len(name.encode()) > limits.max_name_bytes:
            raise InvalidArgument(f"{field} must not exceed {limits.max_name_bytes} bytes")
    if not command.sequence:
        raise InvalidArgument("sequence counts from 1")
    if not 0 <= command.ttl_ms <= limits.max_transaction_ttl_ms:
        raise InvalidArgument(f"ttl_ms must be from 0 to {limits.max_transaction_ttl_ms}")
    if not command.messages:
        raise InvalidArgument("there is nothing to stage")
    if len(command.messages) > limits.max_batch_messages:
        raise LimitExceeded(f"the batch has {len(command.messages)} messages, {limits.max_batch_messages} are allowed")


def _check_new(state: BrokerState, producer: Producer) -> None:
    most = state.limits.max_transaction_producers
    if producer.name not in state.transactions.producers and len(state.transactions.producers) >= most:
        raise LimitExceeded(f"{most} producers have transactions, which is the limit")


def _check_room(state: BrokerState, transaction: Transaction, key: BatchKey, staged: StagedBatch) -> None:
    limits = state.limits
    if transaction.messages + staged.messages > limits.max_transaction_messages:
        raise LimitExceeded(f"a transaction must not exceed {limits.max_transaction_messages} messages")
    if transaction.size + staged.size > limits.max_transaction_bytes:
        raise LimitExceeded(f"a transaction must not exceed {limits.max_transaction_bytes} bytes")
    if key not in transaction.batches and len(transaction.batches) >= MAX_BATCHES:
        raise LimitExceeded(f"a transaction must not have more than {MAX_BATCHES} batches: stage more at a time")
    if state.transactions.size + staged.size > limits.max_staged_bytes:
        raise LimitExceeded(f"more than {limits.max_staged_bytes} bytes are staged in all, try again later")


class _Spot(NamedTuple):
    """Where messages of the same headers and priority go."""

    headers: Mapping[str, str]
    """Kept, so that no other headers come to stand in their place in memory"""
    lane: bytes
    delay_ms: int
    head: bytes
    """What their records begin with"""


def _pack(state: BrokerState, tick: Tick, messages: list[Incoming]) -> bytes:
    """The messages as they will be enqueued. Raises why one of them is refused."""
    entries: list[codec.StagedMessage] = []
    spots: dict[tuple[str, int, int], _Spot] = {}
    most_bytes = state.limits.max_payload_bytes
    for index, message in enumerate(messages):
        kind = (message.queue, id(message.headers), message.priority)
        spot = spots.get(kind)
        if spot is None or message.delay_ms or message.dedup_key or message.payload_bytes > most_bytes:
            try:
                spot, is_shared = _find_spot(state, tick, message)
            except QueueNotFound:
                raise
            except BrokerError as error:
                error.args = (f"message {index} of the batch: {error}",)
                raise
            if is_shared:
                spots[kind] = spot
        _, lane, delay_ms, head = spot
        entries.append((lane, delay_ms, message.dedup_key, message.payload_bytes, head + message.body))
    return codec.staged_messages(entries)


def _find_spot(state: BrokerState, tick: Tick, message: Incoming) -> tuple[_Spot, bool]:
    """Where a message goes, and whether that holds for all that have its headers and priority, and no delay."""
    queue = state.queue(message.queue)
    placed, priority, delay_ms, head = judge(queue, message, state.limits, tick.now)
    spot = _Spot(message.headers, keys.joined(keys.lane(queue.name, placed.fairness_key, priority)), delay_ms, head)
    return spot, queue.hooks is None and not message.delay_ms


def plan_commit(state: BrokerState, store: Storage, tick: Tick, command: CommitTransaction) -> Committing:
    """Decide that a transaction is committed, unless that is so already. Raises InvalidArgument or NotStaged."""
    known = state.transactions
    producer = known.find(command.producer)
    number = command.transaction
    if number <= producer.last:
        return Committing(before=True, done=not producer.publishing)
    if not command.producer:
        raise InvalidArgument("producer must not be empty")
    _check_new(state, producer)
    if producer.publishing:
        return Committing(before=False, done=False, decided=False)
    names = [name for name, _ in command.parts]
    if len(set(names)) < len(names):
        raise InvalidArgument("a part is named twice")
    transaction = producer.open.get(number) or Transaction(number, 0)
    publishing = [entry for name, count in command.parts for entry in _whole_part(producer, transaction, name, count)]
    _plan_drops(tick, producer, number, set(names))
    record = codec.CommitRecord(number, tick.now, names if publishing else [])
    tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(record))

    def commit() -> None:
        known.producers[producer.name] = producer
        producer.last, producer.heard_at = number, tick.now
        for passed in [one for one in producer.open if one <= number]:
            known.drop(producer, passed)
        known.size += sum(batch.size for _, batch in publishing)
        producer.publishing, producer.parts = deque(publishing), names
        if publishing:
            state.chores.append(publisher(state, store, producer))

    tick.on_commit.append(commit)
    return Committing(before=False, done=not publishing)


def _whole_part(
    producer: Producer, transaction: Transaction, name: str, count: int
) -> list[tuple[BatchKey, StagedBatch]]:
    staged = transaction.part(name)
    there = sum(batch.messages for _, batch in staged)
    if not count or there != count or [key[1] for key, _ in staged] != list(range(1, len(staged) + 1)):
        raise NotStaged(
            f"part {quoted(name)} of transaction {transaction.number} of {quoted(producer.name)} should have {count} "
            f"messages, {there} are staged: it was not staged whole, or too long ago. Stage it again"
        )
    return staged


def _plan_drops(tick: Tick, producer: Producer, number: int, names: set[str]) -> None:
    """Remove what was staged for earlier transactions, and by parts that are not named."""
    for mark in (keys.STAGED_BATCH, keys.STAGED_INFO):
        for passed, transaction in producer.open.items():
            start = keys.transaction(mark, producer.name, passed)
            if passed < number:
                tick.batch.delete_range(Family.STAGED, start, keys.after(start))
            elif passed == number:
                for loser in {part for part, _ in transaction.batches} - names:
                    begin = start + keys.name(loser)
                    tick.batch.delete_range(Family.STAGED, begin, keys.after(begin))


def publisher(state: BrokerState, store: Storage, producer: Producer) -> Callable[[Tick], bool]:
    """The chore that enqueues what a producer has committed."""
    return partial(_plan_publishing, state, store, producer)


def _plan_publishing(state: BrokerState, store: Storage, producer: Producer, tick: Tick) -> bool:
    key, staged = producer.publishing[0]
    place = (producer.name, producer.last, *key)
    batch = store.get(Family.STAGED, keys.staged(keys.STAGED_BATCH, *place))
    if batch is not None:
        _plan_messages(state, tick, codec.read_staged_messages(batch))
    for mark in (keys.STAGED_BATCH, keys.STAGED_INFO):
        tick.batch.delete(Family.STAGED, keys.staged(mark, *place))
    last = len(producer.publishing) == 1
    if last:
        record = codec.CommitRecord(producer.last, producer.heard_at, [])
        tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(record))

    def commit() -> None:
        producer.publishing.popleft()
        state.transactions.size -= staged.size

    tick.on_commit.append(commit)
    return last


def _plan_messages(state: BrokerState, tick: Tick, messages: list[codec.StagedMessage]) -> None:
    """Enqueue what was judged before. Messages of a queue that is gone have gone with it.

    What lane and head of a record say is read once for all that follow each other and have the same.
    """
    first = state.sequence.reserve(tick.now, len(messages))
    put, put_u64 = tick.batch.put, keys.u64
    prefix, head, at_hand = b"", b"", False
    for seq, (its_lane, delay_ms, dedup_key, payload_bytes, record) in enumerate(messages, first):
        if its_lane != prefix:
            prefix, at_hand = its_lane, False
            name, fairness_key, priority = keys.read_lane(prefix)
            queue = state.queues.get(name)
            arrivals = None if queue is None else tick.arrivals_of(queue)
        if arrivals is None:
            continue
        if (
            dedup_key
            and arrivals.queue.record.dedup_window_ms
            and plan_dedup(tick, arrivals, dedup_key, seq) is not None
        ):
            continue
        if not at_hand or not record.startswith(head):
            head, at_hand = codec.head_of(record), True
            weight, cost, throttle_keys = codec.read_head(head)
            lane, ready = arrivals.lane(fairness_key, priority, throttle_keys)
        arrivals.weights[lane.key] = weight
        if len(record) > LARGE_BYTES:
            arrivals.large.append(seq)
        arrivals.sizes[seq] = payload_bytes
        before, behind = lane.place
        put(Family.MESSAGES, before + put_u64(seq) + behind, record)
        if delay_ms:
            due = tick.now + delay_ms * NS_PER_MS
            put(Family.SCHEDULED, keys.scheduled(due, name, seq), codec.scheduled())
            arrivals.delayed.append((due, seq, lane, cost))
            continue
        ready.append(seq)
        if cost != 1:
            arrivals.costs[seq] = cost
        if arrivals.awaited:
            arrivals.records.append((seq, record))


def plan_staged_sweep(state: BrokerState, tick: Tick) -> None:
    """Remove what was not committed in time, and forget producers that were silent for very long."""
    known = state.transactions
    for producer, transaction in known.expired(tick.now, SWEPT):
        for mark in (keys.STAGED_BATCH, keys.STAGED_INFO):
            start = keys.transaction(mark, producer.name, transaction.number)
            tick.batch.delete_range(Family.STAGED, start, keys.after(start))
        tick.on_commit.append(partial(known.drop, producer, transaction.number))
    for producer in known.silent(tick.now - SILENT_AFTER, SWEPT):
        tick.batch.delete(Family.STAGED, keys.staging_producer(producer.name))
        tick.on_commit.append(partial(known.producers.pop, producer.name, None))
