"""Burials: messages that move from their consumers to the dead-letter queue of their queue.

A dead letter moves in one write, with its id, its fairness key, its priority and the history of its attempts. It stays
until somebody settles it, sends it back (redrive) or purges it.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from fila.broker.arrival import Arrival
from fila.broker.attempts import HISTORY, EndedLease, put_attempt
from fila.broker.queue import QueueState
from fila.broker.tick import Effect, Order, Tick
from fila.core.errors import Overloaded
from fila.core.lane import Lane
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import DeathReason, DeathRecord, LeaseEnd

MOVED_BYTES = 64 << 20
"""About how much one tick moves to dead-letter queues."""


@dataclass(slots=True)
class Remains:
    """What is read of a message before it is buried."""

    dead_letters: QueueState
    """Where it goes"""
    record: bytes
    past: list[tuple[int, bytes]]
    """The records of its attempts"""
    reason: DeathReason


@dataclass(slots=True)
class DeadLetter:
    """A message that moves."""

    queue: QueueState
    dead_letters: QueueState
    seq: int
    lane: Lane
    """Where it waits among the dead letters"""
    cost: int
    attempts: int
    kind: LeaseEnd
    size: int
    """Of headers and payload"""


@dataclass(slots=True)
class Burials(Effect):
    """All messages that die in a tick."""

    order: ClassVar[Order] = Order.BURIAL

    letters: list[DeadLetter] = field(default_factory=list)
    bytes: int = 0
    """Of their records"""

    def commit(self, tick: Tick) -> None:
        wakeups = tick.state.wakeups
        for dead in self.letters:
            queue, dead_letters = dead.queue, dead.dead_letters
            grant, (lane, seq, _) = queue.leases.release(dead.seq)
            queue.attempts.pop(seq, None)
            queue.suspicion.pop(seq, None)
            lane.key.outside_lanes -= 1
            queue.forget_if_gone(lane.key)
            if seq in queue.large:
                queue.large.remove(seq)
                dead_letters.large.add(seq)
            queue.counters.count_failure(dead.kind)
            queue.counters.dead_lettered += 1
            queue.capacity.leave((seq,))
            dead_letters.capacity.enter((dead.lane.key,), 1, {seq: dead.size})
            wakeups.note_overfull(dead_letters)
            wakeups.free_credit(queue, grant.consumer, 1)
            dead_letters.attempts[seq] = dead.attempts
            dead_letters.know(dead.lane.key)
            dead_letters.note_suspicion(seq, dead.kind)
            dead_letters.come_back(dead.lane, seq, dead.cost)
            wakeups.want(dead_letters)


def plan_burial(tick: Tick, failed: EndedLease, remains: Remains) -> None:
    """Raises Overloaded when the tick has moved too much already: the message stays as it is."""
    burials = tick.one(Burials)
    size = len(remains.record)
    if burials.bytes and burials.bytes + size > MOVED_BYTES:
        raise Overloaded("too many large messages are being dead-lettered at once; retry later")
    burials.bytes += size
    queue, seq, attempts, batch = failed.queue, failed.seq, failed.attempts + 1, tick.batch
    dead_letters = remains.dead_letters
    lane, _, cost = failed.grant.members[seq]
    arrival = tick.of(Arrival, dead_letters)
    target = arrival.lane(lane.key.name, lane.priority)
    arrival.weights[target.key], _, _ = codec.read_head(codec.head_of(remains.record))
    batch.delete(Family.MESSAGES, keys.message(lane.key_parts, seq))
    batch.put(Family.MESSAGES, keys.message(target.key_parts, seq), remains.record)
    for number, value in remains.past:
        batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, number))
        if number > attempts - HISTORY:
            batch.put(Family.ATTEMPTS, keys.attempt(dead_letters.name, seq, number), value)
    put_attempt(tick, dead_letters.name, failed, attempts)
    death = codec.death(DeathRecord(queue.name, tick.now, remains.reason))
    batch.put(Family.ATTEMPTS, keys.attempt(dead_letters.name, seq, 0), death)
    tick.leases.end(queue, failed.grant, seq)
    body_bytes = codec.body_bytes(remains.record)
    burials.letters.append(DeadLetter(queue, dead_letters, seq, target, cost, attempts, failed.kind, body_bytes))


def has_room(tick: Tick, dead_letters: QueueState, size: int) -> bool:
    """Whether a dead-letter queue takes one more message of so many bytes. If so, its place is set aside."""
    room = tick.of(Arrival, dead_letters).room
    return room is None or room.take(size) is None
