"""Returns: messages that go back from their consumers to their queue, at once or after a delay."""

from dataclasses import dataclass, field
from typing import ClassVar

from fila.broker.attempts import HISTORY, EndedLease, put_attempt
from fila.broker.queue import QueueState
from fila.broker.tick import Effect, Order, Tick
from fila.core.ids import NS_PER_MS
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import LeaseEnd


@dataclass(slots=True)
class Returned:
    """A message that goes back."""

    queue: QueueState
    seq: int
    attempts: int
    """That have failed by now"""
    due: int
    """When it is ready again; 0 for at once"""
    kind: LeaseEnd
    suspect: bool
    """Whether it is to be delivered alone although no attempt is counted"""


@dataclass(slots=True)
class Returns(Effect):
    """All messages that go back in a tick."""

    order: ClassVar[Order] = Order.RETURN

    messages: list[Returned] = field(default_factory=list)

    def commit(self, tick: Tick) -> None:
        wakeups = tick.state.wakeups
        for back in self.messages:
            queue = back.queue
            grant, (lane, _, cost) = queue.leases.release(back.seq)
            if back.attempts:
                queue.attempts[back.seq] = back.attempts
            queue.note_suspicion(back.seq, back.kind, uncounted=back.suspect)
            queue.ledger.came_back(back.seq, grant.token, back.due or tick.now)
            if back.due:
                wakeups.delay(queue, (back.due, back.seq, lane, cost))
            else:
                lane.key.outside_lanes -= 1
                queue.come_back(lane, back.seq, cost)
            queue.counters.count_failure(back.kind)
            wakeups.free_credit(queue, grant.consumer, 1)
            if queue.capacity.limits is not None:
                wakeups.note_overfull(queue)


def plan_release(tick: Tick, failed: EndedLease) -> None:
    """Give a message back as if it had never been delivered."""
    due = tick.now + failed.delay_ms * NS_PER_MS if failed.delay_ms else 0
    tick.leases.note_release(failed.queue, failed.grant)
    _plan(tick, failed, failed.attempts, due)


def plan_retry(tick: Tick, failed: EndedLease, delay_ms: int) -> None:
    """Give a message back after a failed attempt."""
    queue, seq, attempts = failed.queue, failed.seq, failed.attempts + 1
    put_attempt(tick, queue.name, failed, attempts)
    if attempts > HISTORY:
        tick.batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, attempts - HISTORY))
    _plan(tick, failed, attempts, tick.now + delay_ms * NS_PER_MS if delay_ms else 0)


def _plan(tick: Tick, failed: EndedLease, attempts: int, due: int) -> None:
    queue, seq = failed.queue, failed.seq
    if due:
        tick.batch.put(Family.SCHEDULED, keys.scheduled(due, queue.name, seq), codec.scheduled())
    tick.leases.end(queue, failed.grant, seq)
    tick.one(Returns).messages.append(Returned(queue, seq, attempts, due, failed.kind, failed.suspect))
