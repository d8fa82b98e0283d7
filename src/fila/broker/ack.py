"""Acks: messages that are done leave the store for good."""

from dataclasses import dataclass
from typing import ClassVar, cast

from fila.broker.attempts import drop_history
from fila.broker.commands import AckGroup, Failure
from fila.broker.grants import read_token
from fila.broker.queue import QueueState, store_keys
from fila.broker.tick import Effect, Order, Tick
from fila.core.errors import BrokerError, MessageNotFound
from fila.core.leases import Grant
from fila.storage.base import Family


@dataclass(slots=True)
class Ack(Effect):
    """Messages of one queue that are done."""

    order: ClassVar[Order] = Order.ACK

    queue: QueueState
    seqs: list[int]

    def commit(self, tick: Tick) -> None:
        queue, seqs = self.queue, self.seqs
        attempts, suspicion = queue.attempts, queue.suspicion
        for consumer, messages in queue.leases.release_many(seqs):
            for lane, seq, _ in messages:
                if attempts:
                    attempts.pop(seq, None)
                if suspicion:
                    suspicion.pop(seq, None)
                key = lane.key
                key.outside_lanes -= 1
                if not key.outside_lanes:
                    queue.forget_if_gone(key)
            tick.state.wakeups.free_credit(queue, consumer, len(messages))
        queue.lane_cache.bound()
        if queue.large:
            queue.large.difference_update(seqs)
        queue.counters.acked += len(seqs)
        queue.capacity.leave(seqs)


def plan_acks(tick: Tick, group: AckGroup) -> list[Failure]:
    """Each message succeeds or fails by itself. Returns what failed."""
    state, gone = tick.state, tick.leases.gone
    try:
        queue = state.queue(group.queue)
    except BrokerError as error:
        return [Failure(group.queue, message_id, error) for message_id in group.message_ids]
    seqs = cast("list[int]", state.ids.seqs(group.message_ids))  # None is in no grant
    grant = queue.leases.find_all(seqs, read_token(group.token))
    if grant is not None and grant.claim is None and gone.isdisjoint(seqs):
        plan_done(tick, queue, grant, seqs)
        return []
    failures: list[Failure] = []
    done: dict[Grant, list[int]] = {}
    for message_id, seq, holder in tick.leases.holders(state.ids, queue, group):
        if holder is None:
            failures.append(Failure(queue.name, message_id, MessageNotFound(message_id, queue.name)))
        else:
            gone.add(seq)
            done.setdefault(holder, []).append(seq)
    for holder, members in done.items():
        plan_done(tick, queue, holder, members)
    return failures


def plan_done(tick: Tick, queue: QueueState, grant: Grant, seqs: list[int]) -> None:
    """Remove messages for good that a grant holds."""
    messages = [grant.members[seq] for seq in seqs]
    tick.batch.delete_many(Family.MESSAGES, sorted(store_keys(messages)))  # the store takes in fastest what is in order
    for seq in queue.attempts.keys() & seqs if queue.attempts else ():
        drop_history(tick, queue, seq)
    tick.leases.gone.update(seqs)
    tick.leases.drop(queue, grant, len(seqs))
    tick.add(Ack(queue, seqs))
