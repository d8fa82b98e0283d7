"""Queues: made, changed and deleted. Each of these commands has a tick to itself."""

from dataclasses import dataclass, replace

from fila.auth.allowance import QUEUES
from fila.broker.admission import check_queue_name
from fila.broker.commands import CreateQueue, DeleteQueue, UpdateQueue
from fila.broker.measuring import Measuring
from fila.broker.queue import QueueState, dead_letter_name
from fila.broker.scripts import SCRIPT_SETTINGS
from fila.broker.state import BrokerState
from fila.broker.tick import Effect, Tick
from fila.core.errors import InvalidArgument, LimitReached, NotNow, QueueAlreadyExists, QueueNotFound, quoted
from fila.lua.hooks import Hooks
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import QueueRecord

DEAD_LETTER_SETTINGS = {"visibility_timeout_ms", "quantum", "max_depth", "max_bytes", "overflow"}
"""What can be set of a dead-letter queue, besides pausing it."""


@dataclass(slots=True)
class Creation(Effect):
    queue: QueueState

    def commit(self, tick: Tick) -> None:
        tick.state.add(self.queue)


def plan_create(tick: Tick, command: CreateQueue) -> None:
    """Make a queue and its dead-letter queue. Raises InvalidArgument, QueueAlreadyExists or LimitReached."""
    state, record = tick.state, command.record
    _check_new(state, record)
    dead_letters = QueueRecord(
        name=dead_letter_name(record.name),
        created_at=record.created_at,
        visibility_timeout_ms=record.visibility_timeout_ms,
        quantum=record.quantum,
        dedup_window_ms=0,
        source=record.name,
        owner=record.owner,
    )
    hooks = state.scripts.compile(record)
    for made in (QueueState(record, state.throttles, hooks), QueueState(dead_letters, state.throttles)):
        tick.batch.put(Family.QUEUES, made.prefix, codec.queue(made.record))
        tick.add(Creation(made))


def _check_new(state: BrokerState, record: QueueRecord) -> None:
    check_queue_name(record.name, state.limits)
    if record.name in state.queues:
        raise QueueAlreadyExists(record.name)
    if sum(1 for queue in state.queues.values() if not queue.record.source) >= state.limits.max_queues:
        raise LimitReached(f"there are {state.limits.max_queues} queues already, which is the limit")
    _check_owner(state, record.owner)
    state.scripts.check_limits(record, SCRIPT_SETTINGS)
    state.scripts.check_memory(record)


def _check_owner(state: BrokerState, owner: str) -> None:
    """Raises LimitReached when a principal has created as many queues as it may."""
    known = state.access.principals.get(owner)
    most = known.limits.get(QUEUES) if known is not None else None
    if most is None:
        return
    owned = sum(1 for queue in state.queues.values() if queue.record.owner == owner and not queue.record.source)
    if owned >= most:
        raise LimitReached(f"{quoted(owner)} owns {owned} queues, its limit is {QUEUES}={most}; delete one first")


def limit_anew(tick: Tick, queue: QueueState) -> None:
    """A queue's limits may have changed. What is over them stays, or is dropped after the next message."""
    if tick.state.limit(queue):
        tick.chores.append(Measuring(queue))


@dataclass(slots=True)
class Configuration(Effect):
    """Settings and hooks that a queue goes by from now on."""

    queue: QueueState
    record: QueueRecord
    hooks: Hooks | None

    def commit(self, tick: Tick) -> None:
        tick.state.configure(self.queue, self.record, self.hooks)
        limit_anew(tick, self.queue)
        tick.state.wakeups.wanted[self.queue.name] = None  # it may deliver again


def plan_update(tick: Tick, command: UpdateQueue) -> QueueRecord:
    """Raises QueueNotFound, InvalidArgument for a script that cannot be used or what a dead-letter queue has not, or
    LimitReached.
    """
    state = tick.state
    queue = state.queue(command.name)
    if queue.record.source and not command.changes.keys() <= {*DEAD_LETTER_SETTINGS, "paused"}:
        raise InvalidArgument(f"only {', '.join(sorted(DEAD_LETTER_SETTINGS))} can be changed on a dead-letter queue")
    record = replace(queue.record, **command.changes)
    changed = SCRIPT_SETTINGS & command.changes.keys()
    state.scripts.check_limits(record, changed)
    state.scripts.check_memory(record, queue.record)
    hooks = state.scripts.compile(record) if changed else queue.hooks
    tick.batch.put(Family.QUEUES, queue.prefix, codec.queue(record))
    tick.add(Configuration(queue, record, hooks))
    return record


@dataclass(slots=True)
class Deletion(Effect):
    queue: QueueState

    def commit(self, tick: Tick) -> None:
        tick.state.remove(self.queue)
        self.queue.close()
        for consumer in self.queue.consumers.all():
            consumer.end(QueueNotFound(self.queue.name))


def plan_delete(tick: Tick, command: DeleteQueue) -> int:
    """Remove a queue with all that belongs to it. Returns how many messages that were.

    Raises QueueNotFound, InvalidArgument for a dead-letter queue, or NotNow when there are dead letters.
    """
    queue = tick.state.queue(command.name)
    if queue.record.source:
        raise InvalidArgument(
            f"{quoted(queue.name)} is the dead-letter queue of {quoted(queue.record.source)}: "
            "it is deleted together with that queue"
        )
    dead_letters = queue.dead_letters
    leaving = [queue] if dead_letters is None else [queue, dead_letters]
    if dead_letters is not None and dead_letters.size and not command.force:
        raise NotNow(
            f"queue {quoted(dead_letters.name)} holds {dead_letters.size} dead letters, which would be deleted too; "
            "settle or redrive them first, or delete with force"
        )
    for each in leaving:
        _plan_removal(tick, each)
        tick.add(Deletion(each))
    return sum(each.size for each in leaving)


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
