"""What becomes of a message whose attempt failed: it is tried again, at once or later (`returns.py`), or it is dead
(`burial.py`).

A message dies when, in this order:
1. its consumer rejects it;
2. its attempts are used up, unless others may be the cause of this failure;
3. the hook `on_failure` of its queue says so. Only a nack asks the hook.

What cannot be read cannot be moved, and a full dead-letter queue takes nothing: such a message is tried again.
"""

from fila.broker.attempts import EndedLease, history
from fila.broker.burial import Remains, has_room, plan_burial
from fila.broker.outcomes import OUTCOMES
from fila.broker.returns import plan_release, plan_retry
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core.errors import StoreFailed
from fila.core.policy import Verdict
from fila.storage import codec, keys
from fila.storage.base import Family, Storage
from fila.storage.records import DeathReason

MAX_ERROR = 1000
"""How much of what a consumer says a script sees."""


def plan_lease_end(tick: Tick, failed: EndedLease) -> None:
    """Give a message back to its queue, or move it to the dead-letter queue.

    Raises Overloaded when the tick has moved too much already: the message stays as it is.
    """
    outcome = OUTCOMES[failed.kind]
    if not outcome.counts:
        plan_release(tick, failed)
        return
    state, queue, attempts = tick.state, failed.queue, failed.attempts + 1
    scripted = outcome.by_choice and queue.hooks is not None and queue.hooks.has_on_failure
    exhausted = queue.retry.exhausted(attempts) and not failed.spared
    reason = DeathReason.REJECTED if failed.rejected else DeathReason.MAX_ATTEMPTS if exhausted else None
    verdict = Verdict(dead=reason is not None)
    if reason is not None or scripted:
        record = _read(tick.store, failed)
        if scripted and reason is None and record is not None:
            verdict = failed.verdict or _ask(state, failed, record, tick.now)
        dead_letters = queue.dead_letters if verdict.dead else None
        past = _read_past(tick.store, failed) if dead_letters is not None else None
        if (
            dead_letters is not None
            and record is not None
            and past is not None
            and has_room(tick, dead_letters, codec.body_bytes(record))
        ):
            plan_burial(tick, failed, Remains(dead_letters, record, past, reason or DeathReason.ON_FAILURE))
            return
    plan_retry(tick, failed, _retry_delay_ms(state, failed, attempts, verdict))


def ask(state: BrokerState, store: Storage, failed: EndedLease, now: int) -> Verdict | None:
    """What the queue's script says, ahead of planning; None where it is not asked."""
    queue = failed.queue
    if queue.hooks is None or not queue.hooks.has_on_failure or queue.retry.exhausted(failed.attempts + 1):
        return None
    record = _read(store, failed)
    return _ask(state, failed, record, now) if record is not None else None


def _ask(state: BrokerState, failed: EndedLease, record: bytes, now: int) -> Verdict:
    """What the queue's script says."""
    hooks = failed.queue.hooks
    assert hooks is not None
    headers, _ = state.scripts.read_body(record[len(codec.head_of(record)) :])
    message_id = state.ids.text(failed.seq)
    return hooks.on_failure(headers, message_id, failed.attempts + 1, failed.error[:MAX_ERROR], now)


def _retry_delay_ms(state: BrokerState, failed: EndedLease, attempts: int, verdict: Verdict) -> int:
    """Precedence: 1. script, 2. nack, 3. queue setting. Only a nack delays a message: an expired lease has been a delay
    already, and a lost consumer says nothing about the message.
    """
    if not OUTCOMES[failed.kind].by_choice:
        return 0
    if verdict.delay_ms is not None:
        return verdict.delay_ms
    return failed.delay_ms or failed.queue.retry.backoff_ms(attempts, failed.seq, state.limits.max_delay_ms)


def _read(store: Storage, failed: EndedLease) -> bytes | None:
    lane = failed.grant.members[failed.seq][0]
    try:
        return store.get(Family.MESSAGES, keys.message(lane.key_parts, failed.seq))
    except StoreFailed:
        return None


def _read_past(store: Storage, failed: EndedLease) -> list[tuple[int, bytes]] | None:
    try:
        return history(store, failed.queue.name, failed.seq)
    except StoreFailed:
        return None
