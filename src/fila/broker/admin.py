"""Planning changes of queues."""

from dataclasses import replace
from functools import partial

from fila.broker.admission import check_queue_name
from fila.broker.commands import CreateQueue, DeleteQueue, UpdateQueue
from fila.broker.queue import QueueState, dead_letter_name
from fila.broker.scripts import SCRIPT_SETTINGS
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core.errors import InvalidArgument, LimitExceeded, NotNow, QueueAlreadyExists, QueueNotFound, quoted
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.codec import QueueRecord

DEAD_LETTER_SETTINGS = {"visibility_timeout_ms", "quantum"}
"""What can be set of a dead-letter queue, besides pausing it."""


def plan_create(state: BrokerState, tick: Tick, command: CreateQueue) -> None:
    """Make a queue and its dead-letter queue. Raises InvalidArgument, QueueAlreadyExists or LimitExceeded."""
    record = command.record
    check_queue_name(record.name, state.limits)
    if record.name in state.queues:
        raise QueueAlreadyExists(record.name)
    if sum(1 for queue in state.queues.values() if not queue.record.source) >= state.limits.max_queues:
        raise LimitExceeded(f"there are {state.limits.max_queues} queues already, which is the limit")
    graves = QueueRecord(
        name=dead_letter_name(record.name),
        created_at=record.created_at,
        visibility_timeout_ms=record.visibility_timeout_ms,
        quantum=record.quantum,
        dedup_window_ms=0,
        source=record.name,
    )
    state.scripts.check_limits(record, SCRIPT_SETTINGS)
    state.scripts.check_memory(record)
    hooks = state.scripts.compile(record)
    for made in (QueueState(record, state.throttles, hooks), QueueState(graves, state.throttles)):
        tick.batch.put(Family.QUEUES, made.prefix, codec.queue(made.record))
        tick.on_commit.append(partial(state.add, made))


def plan_update(state: BrokerState, tick: Tick, command: UpdateQueue) -> QueueRecord:
    """Raises QueueNotFound, InvalidArgument for a script that cannot be used or what a dead-letter queue has not, or
    LimitExceeded.
    """
    queue = state.queue(command.name)
    if queue.record.source and not command.changes.keys() <= {*DEAD_LETTER_SETTINGS, "paused"}:
        raise InvalidArgument(f"of a dead-letter queue only {' and '.join(sorted(DEAD_LETTER_SETTINGS))} can change")
    record = replace(queue.record, **command.changes)
    changed = SCRIPT_SETTINGS & command.changes.keys()
    state.scripts.check_limits(record, changed)
    state.scripts.check_memory(record, queue.record)
    hooks = state.scripts.compile(record) if changed else queue.hooks
    tick.batch.put(Family.QUEUES, queue.prefix, codec.queue(record))
    tick.on_commit.append(partial(state.configure, queue, record, hooks))
    return record


def plan_delete(state: BrokerState, tick: Tick, command: DeleteQueue) -> int:
    """Remove a queue with all that belongs to it. Returns how many messages that were.

    Raises QueueNotFound, InvalidArgument for a dead-letter queue, or NotNow when there are dead letters.
    """
    queue = state.queue(command.name)
    if queue.record.source:
        raise InvalidArgument(
            f"{quoted(queue.name)} is the dead-letter queue of {quoted(queue.record.source)} and goes with it"
        )
    graves = state.dead_letters_of(queue)
    leaving = [queue] if graves is None else [queue, graves]
    if graves is not None and graves.held and not command.force:
        raise NotNow(
            f"queue {quoted(graves.name)} holds {graves.held} dead letters, which would go with it: "
            "settle or redrive them first, or delete by force"
        )
    for each in leaving:
        _plan_removal(tick, each)
        tick.on_commit.append(partial(_forget, state, each))
    return sum(each.held for each in leaving)


def _plan_removal(tick: Tick, queue: QueueState) -> None:
    batch, prefix = tick.batch, queue.prefix
    batch.delete(Family.QUEUES, prefix)
    for family in (Family.MESSAGES, Family.LEASES, Family.ATTEMPTS, Family.CLAIMS):
        batch.delete_range(family, prefix, keys.after(prefix))
    batch.delete_range(Family.DEDUP, keys.KEY_MARK + prefix, keys.after(keys.KEY_MARK + prefix))
    for grant in queue.leases.grants():
        batch.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number))
    for due, seq, _, _ in queue.schedule.all():
        batch.delete(Family.SCHEDULED, keys.scheduled(due, queue.name, seq))


def _forget(state: BrokerState, queue: QueueState) -> None:
    state.remove(queue)
    queue.close()
    for consumer in queue.consumers.all():
        consumer.end(QueueNotFound(queue.name))
