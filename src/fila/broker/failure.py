"""Planning what becomes of a message whose attempt failed: it is tried again, at once or later, or it is dead.

Every failure counts an attempt, and the last `HISTORY` of them are kept with what was said about them. A dead letter
moves to its queue's dead-letter queue in the same write, with its id, its place (fairness key, priority) and its
history; it stays there until somebody settles it or sends it back.
"""

from dataclasses import dataclass

from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Dead, Returned, Tick
from fila.core.errors import Overloaded, StoreFailed
from fila.core.ids import NS_PER_MS
from fila.core.leases import Grant
from fila.core.pending import Lane
from fila.core.policy import Verdict
from fila.storage import codec, keys
from fila.storage.base import Family, Storage
from fila.storage.codec import AttemptRecord, DeathRecord, Failed

HISTORY = 16
"""How many failed attempts of a message are remembered."""

MAX_ERROR = 1000
"""How much of what a consumer says a script sees."""

MOVED_BYTES = 64 << 20
"""About how much one tick moves to dead-letter queues."""


@dataclass(slots=True)
class FailedAttempt:
    """A message that its consumer did not finish."""

    queue: QueueState
    grant: Grant
    seq: int
    kind: Failed
    error: str = ""
    delay_ms: int = 0
    """What the consumer asks for."""
    rejected: bool = False
    """Whether the consumer says that it is hopeless."""
    verdict: Verdict | None = None
    """What the queue's script says, if it was asked ahead."""
    spared: bool = False
    """Whether it does not die of this attempt, since others may be the cause."""
    suspect: bool = False
    """Whether it is to be delivered alone although no attempt is counted."""


@dataclass(slots=True)
class Grave:
    """Where a dead letter goes, what goes there, and why."""

    queue: QueueState
    record: bytes
    past: list[tuple[int, bytes]]
    """The records of its attempts"""
    reason: str


def plan_failure(state: BrokerState, store: Storage, tick: Tick, failed: FailedAttempt) -> None:
    """Give a message back to its queue, or move it to the dead-letter queue.

    Raises Overloaded when the tick has moved too much already: the message stays as it is.
    """
    queue, seq = failed.queue, failed.seq
    if failed.kind is Failed.RELEASED:
        _release(tick, failed)
        return
    attempts = queue.attempts.get(seq, 0) + 1
    scripted = failed.kind is Failed.NACKED and queue.hooks is not None and queue.hooks.has_on_failure
    exhausted = queue.retry.exhausted(attempts) and not failed.spared
    reason = "rejected" if failed.rejected else "max_attempts" if exhausted else ""
    verdict = Verdict(dead=bool(reason))
    if reason or scripted:
        record = _read(store, failed.grant.members[seq][0], seq)
        if scripted and not reason and record is not None:
            verdict = failed.verdict or _ask(state, failed, attempts, record, tick.now)
        graves = state.dead_letters_of(queue) if verdict.dead else None
        past = _read_past(store, queue.name, seq) if graves is not None else None
        if graves is not None and record is not None and past is not None:
            _check_room(tick, len(record))
            _bury(tick, failed, attempts, Grave(graves, record, past, reason or "on_failure"))
            return
    rest_ms = _rest_ms(state, failed, attempts, verdict)
    _give_back(tick, failed, attempts, tick.now + rest_ms * NS_PER_MS if rest_ms else 0)


def ask(state: BrokerState, store: Storage, failed: FailedAttempt, now: int) -> Verdict | None:
    """What the queue's script says, ahead of planning; None where it is not asked."""
    queue, seq = failed.queue, failed.seq
    attempts = queue.attempts.get(seq, 0) + 1
    if queue.hooks is None or not queue.hooks.has_on_failure or queue.retry.exhausted(attempts):
        return None
    record = _read(store, failed.grant.members[seq][0], seq)
    return _ask(state, failed, attempts, record, now) if record is not None else None


def _ask(state: BrokerState, failed: FailedAttempt, attempts: int, record: bytes, now: int) -> Verdict:
    """What the queue's script says."""
    hooks = failed.queue.hooks
    assert hooks is not None
    headers, _ = state.scripts.read_body(record[len(codec.head_of(record)) :])
    message_id = state.ids.text(failed.seq)
    return hooks.on_failure(headers, message_id, attempts, failed.error[:MAX_ERROR], now)


def _rest_ms(state: BrokerState, failed: FailedAttempt, attempts: int, verdict: Verdict) -> int:
    """The script's word goes before the consumer's, and that before the queue's. Only a nack makes a message rest:
    an expired lease has been a rest already, and a lost consumer says nothing about the message.
    """
    if failed.kind is not Failed.NACKED:
        return 0
    if verdict.delay_ms is not None:
        return verdict.delay_ms
    return failed.delay_ms or failed.queue.retry.rest_ms(attempts, failed.seq, state.limits.max_delay_ms)


def _release(tick: Tick, failed: FailedAttempt) -> None:
    """Give a message back as if it had never been delivered."""
    due = tick.now + failed.delay_ms * NS_PER_MS if failed.delay_ms else 0
    tick.thinned[failed.queue.name, failed.grant.consumer, failed.grant.token] = failed.queue
    _put_back(tick, failed, failed.queue.attempts.get(failed.seq, 0), due)


def _give_back(tick: Tick, failed: FailedAttempt, attempts: int, due: int) -> None:
    queue, seq = failed.queue, failed.seq
    _put_attempt(tick, queue.name, failed, attempts)
    if attempts > HISTORY:
        tick.batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, attempts - HISTORY))
    _put_back(tick, failed, attempts, due)


def _put_back(tick: Tick, failed: FailedAttempt, attempts: int, due: int) -> None:
    queue, seq = failed.queue, failed.seq
    if due:
        tick.batch.put(Family.SCHEDULED, keys.scheduled(due, queue.name, seq), codec.scheduled())
    tick.gone.add(seq)
    tick.drop_members(queue, failed.grant, 1)
    tick.returned.append(Returned(queue, seq, attempts, due, failed.kind, failed.suspect))


def _check_room(tick: Tick, size: int) -> None:
    if tick.moved_bytes and tick.moved_bytes + size > MOVED_BYTES:
        raise Overloaded("too many large messages die at once, try again")
    tick.moved_bytes += size


def _bury(tick: Tick, failed: FailedAttempt, attempts: int, grave: Grave) -> None:
    queue, seq, batch = failed.queue, failed.seq, tick.batch
    graves = grave.queue
    lane, _, cost = failed.grant.members[seq]
    arrivals = tick.arrivals_of(graves)
    place = arrivals.lane(lane.key.name, lane.priority)
    arrivals.weights[place.key], _, _ = codec.read_head(codec.head_of(grave.record))
    batch.delete(Family.MESSAGES, keys.message(lane.place, seq))
    batch.put(Family.MESSAGES, keys.message(place.place, seq), grave.record)
    for number, value in grave.past:
        batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, number))
        if number > attempts - HISTORY:
            batch.put(Family.ATTEMPTS, keys.attempt(graves.name, seq, number), value)
    _put_attempt(tick, graves.name, failed, attempts)
    death = codec.death(DeathRecord(queue.name, tick.now, grave.reason))
    batch.put(Family.ATTEMPTS, keys.attempt(graves.name, seq, 0), death)
    tick.gone.add(seq)
    tick.drop_members(queue, failed.grant, 1)
    tick.dead.append(Dead(queue, graves, seq, place, cost, attempts, failed.kind))


def _put_attempt(tick: Tick, queue: str, failed: FailedAttempt, attempts: int) -> None:
    record = codec.attempt(AttemptRecord(tick.now, failed.kind, failed.error))
    tick.batch.put(Family.ATTEMPTS, keys.attempt(queue, failed.seq, attempts), record)


def drop_history(tick: Tick, queue: QueueState, seq: int) -> None:
    """Forget the attempts of a message that is no more."""
    numbers = _remembered(queue, seq)
    if queue.record.source:
        numbers.append(0)
    for number in numbers:
        tick.batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, number))


def failures_of(store: Storage, queue: QueueState, seq: int) -> list[tuple[int, AttemptRecord]]:
    """The failed attempts of a message that are remembered, each with its number, oldest first."""
    numbers = _remembered(queue, seq)
    values = store.get_many(Family.ATTEMPTS, [keys.attempt(queue.name, seq, number) for number in numbers])
    return [(number, codec.read_attempt(value)) for number, value in zip(numbers, values, strict=True) if value]


def _remembered(queue: QueueState, seq: int) -> list[int]:
    attempts = queue.attempts.get(seq, 0)
    return list(range(max(attempts - HISTORY, 0) + 1, attempts + 1))


def history(store: Storage, queue: str, seq: int) -> list[tuple[int, bytes]]:
    """The records of a message's attempts, oldest first."""
    first, end = keys.attempt(queue, seq, 1), keys.attempt(queue, seq + 1, 0)
    return [(keys.read_attempt(key)[2], value) for key, value in store.scan(Family.ATTEMPTS, first, end)]


@dataclass(frozen=True, slots=True)
class Death:
    """How a dead letter died, and the attempts that are remembered."""

    record: DeathRecord
    attempts: list[tuple[int, AttemptRecord]]


def death_of(store: Storage, queue: str, seq: int) -> Death | None:
    """None for a message that did not die: somebody enqueued it there."""
    record = store.get(Family.ATTEMPTS, keys.attempt(queue, seq, 0))
    if record is None:
        return None
    attempts = [(number, codec.read_attempt(value)) for number, value in history(store, queue, seq)]
    return Death(codec.read_death(record), attempts)


def _read(store: Storage, lane: Lane, seq: int) -> bytes | None:
    """None when the record cannot be had: then nothing may move, and the message is tried again."""
    try:
        return store.get(Family.MESSAGES, keys.message(lane.place, seq))
    except StoreFailed:
        return None


def _read_past(store: Storage, queue: str, seq: int) -> list[tuple[int, bytes]] | None:
    """The records of a message's attempts. None when they cannot be had, as for the message itself."""
    try:
        return history(store, queue, seq)
    except StoreFailed:
        return None
