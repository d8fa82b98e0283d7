"""Transactions: messages that are staged, and enqueued once when their transaction is committed.

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
from dataclasses import dataclass

from fila.broker.admission import check_batch_size, check_name
from fila.broker.arrival import Arrival, find_lane, place, queue_of
from fila.broker.commands import CommitTransaction, Incoming, StageEnqueue
from fila.broker.lane_cache import USUAL, Terms
from fila.broker.publishing import Publishing, plan_unstage
from fila.broker.queue import LARGE_BYTES
from fila.broker.state import BrokerState
from fila.broker.tick import Effect, Tick
from fila.config import LimitsConfig
from fila.core.errors import (
    BrokerError,
    InvalidArgument,
    LimitExceeded,
    LimitReached,
    NotStaged,
    QueueNotFound,
    TooFarAhead,
    quoted,
)
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane
from fila.core.transactions import (
    BatchKey,
    Producer,
    Share,
    Staged,
    StagedBatch,
    Transaction,
    Transactions,
    in_turn,
    out_of_order,
)
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import CommitRecord, StagedRecord, StagedRun, StagedTarget

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


@dataclass(slots=True)
class Staging(Effect):
    """What one call has staged."""

    producer: Producer
    transaction: Transaction
    key: BatchKey
    staged: StagedBatch
    expires_at: int

    def commit(self, tick: Tick) -> None:
        known, producer, transaction = tick.state.transactions, self.producer, self.transaction
        known.producers[producer.name] = producer
        producer.open[transaction.number] = transaction
        known.size -= transaction.size
        before = transaction.batches.get(self.key)
        if before is not None:
            tick.state.hold(before, -1)
        transaction.add(self.key, self.staged, self.expires_at)
        tick.state.hold(self.staged, 1)
        known.size += transaction.size
        producer.heard_at = tick.now


def plan_stage(tick: Tick, command: StageEnqueue) -> bool:
    """Keep messages for a transaction. Returns whether it was committed before: then nothing is kept.

    Raises InvalidArgument, LimitExceeded, or why a message is refused.
    """
    state, limits = tick.state, tick.state.limits
    _check_stage(command, limits)
    producer = state.transactions.find(command.producer)
    if command.transaction <= producer.last:
        return True
    _check_new(state, producer)
    _check_jump(producer, command.transaction, tick.now)
    expires_at = tick.now + (command.ttl_ms or min(DEFAULT_TTL_MS, limits.max_transaction_ttl_ms)) * NS_PER_MS
    record, stored = _judge_all(tick, command, expires_at)
    transaction = producer.open.get(command.transaction)
    if transaction is None:
        _check_open(state.transactions)
        transaction = Transaction(command.transaction, 0)
    key = (command.part, command.sequence)
    staged = batch_of(record)
    before = transaction.batches.get(key)
    _check_room(state, transaction, before, staged)
    _check_queues(state, before, staged)
    if before is not None:
        plan_unstage(tick, before)
    tick.batch.put_many(Family.MESSAGES, stored)
    tick.batch.put(Family.STAGED, keys.staged(producer.name, transaction.number, *key), codec.staged(record))
    tick.add(Staging(producer, transaction, key, staged, expires_at))
    return False


def _check_stage(command: StageEnqueue, limits: LimitsConfig) -> None:
    check_name("producer", command.producer, limits)
    check_name("part", command.part, limits)
    if not command.sequence:
        raise InvalidArgument("sequence must be at least 1")
    if not 0 <= command.ttl_ms <= limits.max_transaction_ttl_ms:
        raise InvalidArgument(f"ttl_ms must be from 0 to {limits.max_transaction_ttl_ms}, not {command.ttl_ms}")
    if not command.messages:
        raise InvalidArgument("a staged call must contain at least one message")
    check_batch_size(len(command.messages), limits)


def _check_new(state: BrokerState, producer: Producer) -> None:
    most = state.limits.max_transaction_producers
    if producer.name not in state.transactions.producers and len(state.transactions.producers) >= most:
        raise LimitReached(f"{most} producers have transactions, which is the limit (limits.max_transaction_producers)")


def _check_open(known: Transactions) -> None:
    if sum(len(producer.open) for producer in known.producers.values()) >= MAX_OPEN:
        raise LimitReached(
            f"{MAX_OPEN} transactions are open, which is the limit; commit some, or wait until they expire"
        )


def _check_jump(producer: Producer, number: int, now: int) -> None:
    """Raises TooFarAhead for a number after which the producer's own would count as committed before."""
    most = producer.furthest(now)
    if number > most:
        raise TooFarAhead(
            f"transaction {number} of {quoted(producer.name)} is too far ahead: its last one is "
            f"{producer.last if producer.last >= 0 else 'none'}, so the next is at most {most}"
        )


def _check_room(state: BrokerState, transaction: Transaction, before: StagedBatch | None, staged: StagedBatch) -> None:
    """Raises LimitReached. What was staged before under the same part and sequence makes room for what is staged."""
    limits = state.limits
    more = staged.messages - (before.messages if before is not None else 0)
    larger = staged.size - (before.size if before is not None else 0)
    if transaction.messages + more > limits.max_transaction_messages:
        raise LimitReached(f"a transaction must not exceed {limits.max_transaction_messages} messages")
    if transaction.size + larger > limits.max_transaction_bytes:
        raise LimitReached(f"a transaction must not exceed {limits.max_transaction_bytes} bytes")
    if before is None and len(transaction.batches) >= MAX_BATCHES:
        raise LimitReached(f"a transaction must not have more than {MAX_BATCHES} batches: stage more at a time")
    if state.transactions.size + larger > limits.max_staged_bytes:
        raise LimitReached(
            f"all staged messages together must not exceed {limits.max_staged_bytes} bytes; commit some, or retry later"
        )


def _check_queues(state: BrokerState, before: StagedBatch | None, staged: StagedBatch) -> None:
    """Raises QueueFull. What is staged has its place in its queue, so that its commit is not refused."""
    earlier = {share.queue: share for share in before.shares} if before is not None else {}
    for share in staged.shares:
        known = earlier.get(share.queue)
        same = known is not None and known.created_at == share.created_at
        messages, size = (known.messages, known.size) if known is not None and same else (0, 0)
        state.queues[share.queue].capacity.check_staging(share.messages - messages, share.size - size)


def _judge_all(tick: Tick, command: StageEnqueue, expires_at: int) -> tuple[StagedRecord, list[tuple[bytes, bytes]]]:
    """What is to be known of messages at their commit, and where to store them. Raises why one of them is refused."""
    state, messages = tick.state, command.messages
    first = state.sequence.reserve(tick.now, len(messages))
    targets: dict[tuple[Lane, Terms], int] = {}
    """Where messages go, and the number of it among those of the call"""
    staged: list[StagedTarget] = []
    runs: list[StagedRun] = []
    stored: list[tuple[bytes, bytes]] = []
    sizes: list[int] = []
    bodies: list[int] = []
    last: tuple[int, bool] | None = None
    put_u64 = keys.u64
    name, arrival = None, None
    for seq, message in enumerate(messages, first):
        try:
            if arrival is None or message.queue != name:
                name, arrival = message.queue, tick.of(Arrival, queue_of(state, message))
            target = lane, on_terms = _route(tick, arrival, message, command)
        except QueueNotFound:
            raise
        except BrokerError as error:
            error.args = (f"message {seq - first} of the batch: {error}",)
            raise
        number = targets.setdefault(target, len(targets))
        if number == len(staged):
            parts = keys.joined(lane.key_parts)
            staged.append(StagedTarget(parts, arrival.queue.record.created_at, on_terms.head))
        record = on_terms.head + message.body
        stored.append((lane.before + put_u64(seq) + lane.behind, record))
        large = len(record) > LARGE_BYTES
        if (number, large) != last or message.dedup_key:
            sizes, bodies = [], []
            runs.append(StagedRun(number, on_terms.delay_ms, large, message.dedup_key, sizes, bodies))
            last = None if message.dedup_key else (number, large)
        sizes.append(message.payload_bytes)
        bodies.append(len(message.body))
    size = sum([len(key) + len(record) for key, record in stored])
    return StagedRecord(first, size, expires_at, staged, runs), stored


def _route(tick: Tick, arrival: Arrival, message: Incoming, command: StageEnqueue) -> tuple[Lane, Terms]:
    """Where a message goes and on which terms. Raises BrokerError for one that is refused."""
    cache, limits = arrival.queue.lane_cache, tick.state.limits
    lane = cache.lanes.get(message.header_bytes)
    if (
        lane is None
        or message.delay_ms
        or message.dedup_key
        or message.priority != lane.priority
        or message.payload_bytes > limits.max_payload_bytes
    ):
        return find_lane(arrival, message, place(arrival.queue, message, limits, tick.now, command.answers))
    return lane, cache.special.get(message.header_bytes, USUAL)


def batch_of(record: StagedRecord) -> StagedBatch:
    """What is kept in memory of what a call staged."""
    counted: dict[tuple[str, int], list[int]] = {}
    places = [(keys.read_lane(target.lane)[0], target.created_at) for target in record.targets]
    for run in record.runs:
        share = counted.setdefault(places[run.target], [0, 0])
        share[0] += len(run.sizes)
        share[1] += sum(run.bodies)
    shares = tuple(Share(*place, *share) for place, share in counted.items())
    return StagedBatch(record.first, record.messages, record.size, shares)


def check_parts(count: int) -> None:
    """Raises LimitExceeded for a commit of more parts than a transaction can have: each took a call to stage."""
    if count > MAX_BATCHES:
        raise LimitExceeded(f"a transaction must not have more than {MAX_BATCHES} parts")


@dataclass(slots=True)
class Commit(Effect):
    """A transaction that is committed. Its messages are enqueued from now on, a staged call in a tick."""

    producer: Producer
    number: int
    publishing: list[Staged]
    moved: list[str]
    """Parts whose messages get new numbers"""

    def commit(self, tick: Tick) -> None:
        known, producer = tick.state.transactions, self.producer
        known.producers[producer.name] = producer
        producer.last, producer.heard_at = self.number, tick.now
        for passed in [one for one in producer.open if one <= self.number]:
            for staged in known.drop(producer, passed):
                tick.state.hold(staged, -1)
        for _, batch in self.publishing:
            known.size += batch.size
            tick.state.hold(batch, 1)
        producer.publishing, producer.moved = deque(self.publishing), frozenset(self.moved)
        if self.publishing:
            tick.chores.append(Publishing(producer))


def plan_commit(tick: Tick, command: CommitTransaction) -> Committing:
    """Decide that a transaction is committed, unless that is so already. Raises InvalidArgument or NotStaged."""
    state, number = tick.state, command.transaction
    producer = state.transactions.find(command.producer)
    if number <= producer.last:
        return Committing(before=True, done=not producer.publishing)
    check_name("producer", command.producer, state.limits)
    _check_new(state, producer)
    _check_jump(producer, number, tick.now)
    if producer.publishing:
        return Committing(before=False, done=False, decided=False)
    names = [name for name, _ in command.parts]
    if len(set(names)) < len(names):
        raise InvalidArgument("the commit names a part twice")
    transaction = producer.open.get(number) or Transaction(number, 0)
    parts = transaction.parts()
    for name, count in command.parts:
        _check_whole(producer, number, name, count, parts.get(name, []))
    moved = [name for name in names if out_of_order(parts[name])]
    publishing = in_turn(parts, names, moved)
    _plan_drops(tick, producer, number, set(names))
    record = CommitRecord(number, tick.now, names, moved)
    tick.batch.put(Family.STAGED, keys.staging_producer(producer.name), codec.commit(record))
    tick.add(Commit(producer, number, publishing, moved))
    return Committing(before=False, done=not publishing)


def _check_whole(producer: Producer, number: int, name: str, count: int, staged: list[Staged]) -> None:
    """Raises NotStaged."""
    there = sum(batch.messages for _, batch in staged)
    if not count or there != count or [key[1] for key, _ in staged] != list(range(1, len(staged) + 1)):
        raise NotStaged(
            f"part {quoted(name)} of transaction {number} of {quoted(producer.name)} should have {count} "
            f"messages, {there} are staged: staging is incomplete or has expired; stage the part again"
        )


def _plan_drops(tick: Tick, producer: Producer, number: int, names: set[str]) -> None:
    """Remove what was staged for earlier transactions, and by parts that are not named."""
    for passed, transaction in producer.open.items():
        if passed < number:
            _plan_drop(tick, producer, transaction)
        elif passed == number:
            for key, staged in transaction.batches.items():
                if key[0] not in names:
                    plan_unstage(tick, staged)
                    tick.batch.delete(Family.STAGED, keys.staged(producer.name, number, *key))


def _plan_drop(tick: Tick, producer: Producer, transaction: Transaction) -> None:
    """Remove all that was staged for a transaction."""
    for staged in transaction.batches.values():
        plan_unstage(tick, staged)
    start = keys.transaction(producer.name, transaction.number)
    tick.batch.delete_range(Family.STAGED, start, keys.after(start))


@dataclass(slots=True)
class Sweep(Effect):
    """Transactions that were not committed in time, and producers that were silent for very long."""

    expired: list[tuple[Producer, Transaction]]
    silent: list[Producer]

    def commit(self, tick: Tick) -> None:
        known = tick.state.transactions
        for producer, transaction in self.expired:
            for staged in known.drop(producer, transaction.number):
                tick.state.hold(staged, -1)
        for producer in self.silent:
            known.producers.pop(producer.name, None)


def plan_staged_sweep(tick: Tick) -> None:
    """Remove what was not committed in time, and forget producers that were silent for very long."""
    known = tick.state.transactions
    expired, silent = known.expired(tick.due_by, SWEPT), known.silent(tick.now - SILENT_AFTER, SWEPT)
    for producer, transaction in expired:
        _plan_drop(tick, producer, transaction)
    for producer in silent:
        tick.batch.delete(Family.STAGED, keys.staging_producer(producer.name))
    if expired or silent:
        tick.add(Sweep(expired, silent))
