"""Planning what consumers say of the messages they hold, and what happens when they say nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import cast

from fila.broker.admission import check_delay, check_settle_size
from fila.broker.commands import AckGroup, ExtendGroup, Failure, Nack, Parting, ReturnGrants, Settle
from fila.broker.failure import FailedAttempt, ask, drop_history, plan_failure
from fila.broker.queue import QueueState, stored
from fila.broker.state import BrokerState
from fila.broker.tick import Acked, Tick
from fila.core.errors import (
    ECHO,
    BrokerError,
    InvalidArgument,
    MessageNotFound,
    Overloaded,
    quoted,
)
from fila.core.ids import NS_PER_MS
from fila.core.leases import Grant
from fila.core.policy import Verdict
from fila.storage import codec, keys
from fila.storage.base import Family, Storage
from fila.storage.codec import Failed

RETURNED_AT_ONCE = 400
"""Messages of a consumer that has gone which one tick gives back: 10 ms, and three times as long if all are buried"""

_Move = tuple[QueueState, Grant, int]
"""A message's queue, the grant that holds it, and when its lease ends from now on."""


def token_text(token: int) -> str:
    """A lease's token as clients see it."""
    return f"{token:016x}"


def plan_settle(state: BrokerState, store: Storage, tick: Tick, command: Settle) -> list[Failure]:
    """Acks, then nacks; each message succeeds or fails by itself. Extensions are left to `plan_extensions`, and whether
    a message that nobody holds still exists to `Lookup`.

    Raises LimitExceeded for a batch that is too large.
    """
    check_settle_size(command.size, state.limits)
    failures: list[Failure] = []
    for acks in command.acks:
        failures += _plan_acks(state, tick, acks)
    for nack in command.nacks:
        try:
            _plan_nack(state, store, tick, nack, command.answers)
        except BrokerError as error:
            failures.append(Failure(nack.queue, nack.message_id, error))
    tick.extensions += [(group, failures) for group in command.extends]
    return failures


def rewrite_grants(tick: Tick) -> None:
    """Write down what remains of the leases from which messages were released.

    A message that comes back otherwise counts an attempt, by which recovery tells it from one that is still held. A
    lease that was extended has several grants, and the records of the earlier ones may still name the message.
    """
    for (_, consumer, token), queue in tick.thinned.items():
        for grant in queue.leases.of_consumer(consumer):
            remaining = {seq: message for seq, message in grant.members.items() if seq not in tick.gone}
            if grant.token == token and remaining and tick.left.get(grant, 1):
                put_grant(tick, queue, Grant(grant.number, token, consumer, grant.expires_at, remaining))


def plan_extensions(state: BrokerState, tick: Tick) -> None:
    """Extensions come last in a tick: whoever acks a message meanwhile is not refused because its lease moved.

    Of several extensions of one message the last one holds. Messages that share lease and new end share a new grant.
    """
    moves: dict[int, _Move] = {}
    for group, failures in tick.extensions:
        failures.extend(_plan_extend(state, tick, group, moves))
    grants: dict[tuple[str, int, int, int], Grant] = {}
    for seq, (queue, grant, expires_at) in moves.items():
        lease = (queue.name, grant.token, grant.consumer, expires_at)
        if lease not in grants:
            number = state.sequence.reserve(tick.now, 1)
            grants[lease] = Grant(number, grant.token, grant.consumer, expires_at)
            tick.extended.append((queue, grants[lease]))
        grants[lease].members[seq] = grant.members[seq]
        tick.drop_members(queue, grant, 1)
    for queue, grant in tick.extended:
        put_grant(tick, queue, grant)


def plan_return(state: BrokerState, store: Storage, tick: Tick, command: ReturnGrants) -> bool:
    """Give back what a consumer that has gone was holding, as much as fits into one tick. Returns whether that was all.

    - What its application was never handed goes back as if it had never been delivered.
    - What it was handed counts an attempt. It dies of that only if it was the only one: of several nobody knows which
      was the cause, so they go back and are delivered alone. So are all that were in the hands of a lost consumer.
    - If nothing is known to have been handed when a consumer was lost, the next message may have been: reports come
      late. It is delivered alone as well, and counts no attempt.
    """
    queue = state.queues.get(command.queue)
    if queue is None:
        return True
    queue.ledger.idle.set(queue.record.paused or not queue.consumers.with_credit(), tick.now)
    in_hands, first = command.in_hands, command.next_to_be_handed
    lost = command.parting is Parting.LOST
    if in_hands is None:
        in_hands = _in_hands(tick, queue, command.consumer)
        first = _next_to_be_handed(tick, queue, command.consumer) if lost and not in_hands else None
        tick.on_commit.append(partial(setattr, command, "in_hands", in_hands))
        tick.on_commit.append(partial(setattr, command, "next_to_be_handed", first))
    alone = len(in_hands) == 1
    room = RETURNED_AT_ONCE
    for grant in queue.leases.of_consumer(command.consumer):
        for seq in grant.members:
            if seq in tick.gone or (seq in in_hands and command.parting is Parting.PAUSED):
                continue
            if not room:
                return False
            room -= 1
            failed = FailedAttempt(queue, grant, seq, Failed.RELEASED, suspect=seq == first)
            if seq in in_hands:
                exhausted = queue.retry.exhausted(queue.attempts.get(seq, 0) + 1)
                failed.spared = not alone
                failed.kind = Failed.LOST if exhausted and not alone else Failed.RETURNED
                if lost:
                    failed.kind = Failed.LOST_ALONE if alone else Failed.LOST
            try:
                plan_failure(state, store, tick, failed)
            except Overloaded:
                return False
    tick.on_commit.append(partial(queue.consumers.forget, command.consumer))
    return True


def _in_hands(tick: Tick, queue: QueueState, number: int) -> set[int]:
    """What the application of a consumer was handed and has not settled."""
    hands = queue.consumers.hands_of(number)
    found: set[int] = set()
    for grant in queue.leases.of_consumer(number):
        found |= set(grant.members) if hands is None else hands.among(grant.token, grant.members)
    return found - tick.gone


def _next_to_be_handed(tick: Tick, queue: QueueState, number: int) -> int | None:
    hands = queue.consumers.hands_of(number)
    for seq in hands.waiting() if hands is not None else ():
        grant = queue.leases.find(seq)
        if grant is not None and grant.consumer == number and seq not in tick.gone:
            return seq
    return None


def plan_expiry(state: BrokerState, store: Storage, tick: Tick, queue: QueueState, limit: int) -> int:
    """Give back what was held for too long, until about `limit` messages. Returns how many.

    It counts an attempt, but for what an application was never handed. Of what was delivered before the broker was
    started nobody knows that: it counts an attempt, but does not die of it.
    """
    count = 0
    for grant in queue.leases.expired(tick.now, limit):
        if grant.claim is None or not grant.claim.acked:
            hands = queue.consumers.hands_of(grant.consumer)
            handed = None if hands is None else hands.among(grant.token, grant.members)
            count += _expire(state, store, tick, queue, grant, handed)
    return count


def plan_promotion(tick: Tick, queue: QueueState, limit: int) -> int:
    """Make messages ready whose delay is over. Returns how many."""
    due = queue.schedule.take_due(tick.now, limit)
    if due:
        tick.promoted.append((queue, due))
        for at, seq, _, _ in due:
            tick.batch.delete(Family.SCHEDULED, keys.scheduled(at, queue.name, seq))
    return len(due)


def _plan_acks(state: BrokerState, tick: Tick, group: AckGroup) -> list[Failure]:
    try:
        queue = state.queue(group.queue)
    except BrokerError as error:
        return [Failure(group.queue, message_id, error) for message_id in group.message_ids]
    seqs = cast("list[int]", state.ids.seqs(group.message_ids))  # None is in no grant
    grant = queue.leases.find_all(seqs, _read_token(group.token))
    if grant is not None and grant.claim is None and tick.gone.isdisjoint(seqs):
        plan_done(tick, queue, grant, seqs)
        return []
    failures: list[Failure] = []
    done: dict[Grant, list[int]] = {}
    for message_id, seq, held in _held(state, tick, queue, group):
        if held is None:
            failures.append(Failure(queue.name, message_id, MessageNotFound(message_id, queue.name)))
        else:
            tick.gone.add(seq)
            done.setdefault(held, []).append(seq)
    for held, members in done.items():
        plan_done(tick, queue, held, members)
    return failures


def plan_done(tick: Tick, queue: QueueState, grant: Grant, seqs: list[int]) -> None:
    """Remove messages for good that a grant holds."""
    messages = [grant.members[seq] for seq in seqs]
    tick.batch.delete_many(Family.MESSAGES, sorted(stored(messages)))  # the store takes in fastest what is in its order
    for seq in queue.attempts.keys() & seqs if queue.attempts else ():
        drop_history(tick, queue, seq)
    tick.gone.update(seqs)
    tick.drop_members(queue, grant, len(seqs))
    tick.acked.append(Acked(queue, seqs))


def judge_nacks_ahead(state: BrokerState, store: Storage, command: Settle, clock: Callable[[], int]) -> Iterator[None]:
    """Have hooks judge messages that are given back before that is planned. Yields before each call of a hook."""
    answers, changed = command.answers, -1
    while changed != state.hooks_changed:
        changed = state.hooks_changed
        for nack in command.nacks:
            queue = state.queues.get(nack.queue)
            if queue is None or queue.hooks is None or nack.release or nack.dead_letter:
                continue
            seq = state.ids.seq(nack.message_id)
            grant = queue.leases.find(seq, _read_token(nack.token)) if seq is not None else None
            if seq is None or grant is None or (nack in answers and answers[nack][0] is queue.hooks):
                continue
            yield
            grant = queue.leases.find(seq, _read_token(nack.token))  # time may have passed
            if grant is None:
                continue
            verdict = ask(state, store, FailedAttempt(queue, grant, seq, Failed.NACKED, nack.error), clock())
            if verdict is not None:
                answers[nack] = (queue.hooks, verdict)


def _plan_nack(
    state: BrokerState, store: Storage, tick: Tick, nack: Nack, answers: Mapping[Nack, tuple[object, Verdict]]
) -> None:
    queue = state.queue(nack.queue)
    check_delay(nack.delay_ms, state.limits)
    ((message_id, seq, grant),) = _held(state, tick, queue, AckGroup(nack.queue, [nack.message_id], nack.token))
    if grant is None:
        raise MessageNotFound(message_id, queue.name)
    if nack.release and nack.dead_letter:
        raise InvalidArgument("release and dead_letter contradict each other")
    kind = Failed.RELEASED if nack.release else Failed.NACKED
    failed = FailedAttempt(queue, grant, seq, kind, nack.error, nack.delay_ms, nack.dead_letter)
    if nack in answers and answers[nack][0] is queue.hooks:
        failed.verdict = answers[nack][1]
    plan_failure(state, store, tick, failed)


def _plan_extend(state: BrokerState, tick: Tick, group: ExtendGroup, moves: dict[int, _Move]) -> list[Failure]:
    try:
        queue = state.queue(group.queue)
        check_delay(group.extend_ms, state.limits, "extend_ms")
    except BrokerError as error:
        return [Failure(group.queue, message_id, error) for message_id in group.message_ids]
    failures: list[Failure] = []
    expires_at = tick.now + (group.extend_ms * NS_PER_MS or queue.visibility_ns)
    for message_id, seq, grant in _held(state, tick, queue, group):
        if grant is None:
            failures.append(Failure(queue.name, message_id, MessageNotFound(message_id, queue.name)))
        elif grant.claim is not None:
            of = f"claim {grant.claim.number} of group {quoted(grant.claim.group.name)}"
            refusal = InvalidArgument(f"message {message_id[:ECHO]} is held by {of}: extend the claims of the group")
            failures.append(Failure(queue.name, message_id, refusal))
        else:
            moves[seq] = (queue, grant, expires_at)
    return failures


def put_grant(tick: Tick, queue: QueueState, grant: Grant) -> None:
    """Write a grant's two records."""
    attempts = queue.attempts
    tried = {seq: attempts[seq] for seq in grant.members if seq in attempts} if attempts else {}
    record = codec.grant(codec.GrantRecord(grant.token, grant.expires_at, list(grant.members), tried))
    tick.batch.put(Family.LEASES, keys.grant(queue.name, grant.number), record)
    tick.batch.put(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number), b"")


def _held(
    state: BrokerState, tick: Tick, queue: QueueState, group: AckGroup | ExtendGroup
) -> Iterator[tuple[str, int, Grant | None]]:
    """For each message of a group its sequence number and the grant that holds it, None when none does."""
    token = _read_token(group.token)
    to_seq, find, gone = state.ids.seq, queue.leases.find, tick.gone
    for message_id in group.message_ids:
        seq = to_seq(message_id)
        if seq is None or seq in gone:
            yield message_id, seq or 0, None
        else:
            grant = find(seq, token)
            if grant is not None and grant.claim is not None and grant.claim.acked:
                grant = None
            yield message_id, seq, grant


def _read_token(text: str) -> int | None:
    """The token in a text; None for no text; one that no lease has for any other text."""
    if not text:
        return None
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _expire(
    state: BrokerState, store: Storage, tick: Tick, queue: QueueState, grant: Grant, handed: set[int] | None
) -> int:
    """Returns how many came back. The others have to wait for another tick."""
    count = 0
    with suppress(Overloaded):
        for seq in grant.members:
            if seq not in tick.gone:
                kind = Failed.EXPIRED if handed is None or seq in handed else Failed.RELEASED
                spared = not grant.consumer and grant.claim is None
                plan_failure(state, store, tick, FailedAttempt(queue, grant, seq, kind, spared=spared))
                count += 1
    return count
