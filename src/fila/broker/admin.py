"""Planning changes of queues, and looking at them."""

from dataclasses import dataclass, replace
from heapq import nlargest

from fila.broker.admission import check_queue_name
from fila.broker.commands import CreateQueue, DeleteQueue
from fila.broker.queue import Counters, QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core.errors import LimitExceeded, QueueAlreadyExists, QueueNotFound
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.codec import QueueRecord


def plan_create(state: BrokerState, tick: Tick, command: CreateQueue) -> None:
    """Raises InvalidArgument, QueueAlreadyExists or LimitExceeded."""
    record = command.record
    check_queue_name(record.name, state.limits)
    if record.name in state.queues:
        raise QueueAlreadyExists(record.name)
    if len(state.queues) >= state.limits.max_queues:
        raise LimitExceeded(f"there are {state.limits.max_queues} queues already, which is the limit")
    tick.batch.put(Family.QUEUES, keys.name(record.name), codec.queue(record))
    tick.on_commit.append(lambda: state.queues.__setitem__(record.name, QueueState(record)))


def plan_delete(state: BrokerState, tick: Tick, command: DeleteQueue) -> int:
    """Remove a queue with all that belongs to it. Returns how many messages that were. Raises QueueNotFound."""
    queue = state.queue(command.name)
    batch, prefix = tick.batch, queue.prefix
    batch.delete(Family.QUEUES, prefix)
    for family in (Family.MESSAGES, Family.LEASES, Family.ATTEMPTS):
        batch.delete_range(family, prefix, keys.after(prefix))
    batch.delete_range(Family.DEDUP, keys.KEY_MARK + prefix, keys.after(keys.KEY_MARK + prefix))
    for grant in queue.leases.grants():
        batch.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number))
    for due, seq, _, _ in queue.schedule.all():
        batch.delete(Family.SCHEDULED, keys.scheduled(due, queue.name, seq))
    tick.on_commit.append(lambda: _forget(state, queue))
    return queue.depth + len(queue.leases)


def _forget(state: BrokerState, queue: QueueState) -> None:
    del state.queues[queue.name]
    for consumer in queue.consumers.all():
        consumer.end(QueueNotFound(queue.name))


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """The figures that tell at a glance how a queue is doing."""

    name: str
    depth: int
    in_flight: int
    delayed: int
    active_keys: int
    consumers: int


@dataclass(frozen=True, slots=True)
class KeyStats:
    """One fairness key of a queue."""

    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue in detail."""

    summary: QueueSummary
    record: QueueRecord
    round: int
    keys: list[KeyStats]
    counters: Counters


def summarize(queue: QueueState) -> QueueSummary:
    return QueueSummary(
        name=queue.name,
        depth=queue.depth,
        in_flight=len(queue.leases),
        delayed=len(queue.schedule),
        active_keys=queue.active_keys,
        consumers=len(queue.consumers),
    )


def stats(queue: QueueState, max_keys: int) -> QueueStats:
    """A queue in detail, with the `max_keys` fairness keys that have the most messages waiting."""
    busiest = nlargest(max_keys, queue.keys.values(), key=lambda key: (key.ready, key.delivered))
    return QueueStats(
        summary=summarize(queue),
        record=queue.record,
        round=queue.drr.round,
        keys=[KeyStats(key.name, key.weight, key.ready, key.delivered, key.deficit) for key in busiest],
        counters=replace(queue.counters),
    )
