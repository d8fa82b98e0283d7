"""Departures: a consumer has gone, and what it held goes back to its queue, some of it in each tick.

- What its application was never handed (prefetch) goes back as if it had never been delivered.
- What it was handed counts an attempt. It dies of that only if it was the only one: of several nobody knows which was
  the cause, so they go back and are delivered alone. So are all that were in the hands of a lost consumer.
- If nothing is known to have been handed when a consumer was lost, the next message may have been: reports come late.
  It is delivered alone as well, and counts no attempt.
- What was granted and never sent, since its consumer did not take it, was handed to nobody, also where the consumer
  does not say what it hands over.
- Of a consumer that the server ended (`Parting.KEPT`) only that goes back: its client settles or releases what it
  holds. Which of it was handed is remembered until the last of it is settled, released or expired.
"""

from dataclasses import dataclass

from fila.broker.attempts import EndedLease
from fila.broker.commands import Parting, ReturnGrants
from fila.broker.lease_end import plan_lease_end
from fila.broker.queue import QueueState
from fila.broker.tick import Effect, Tick
from fila.core.errors import Overloaded
from fila.core.leases import Grant
from fila.storage.records import LeaseEnd

RETURNED_AT_ONCE = 400
"""Messages of a consumer that has gone which one tick gives back: 10 ms, and three times as long if all are buried"""


@dataclass(slots=True)
class Departure(Effect):
    """How far a consumer's messages are back."""

    queue: QueueState
    command: ReturnGrants
    in_hands: set[int]
    next_to_be_handed: int | None
    done: bool = False

    def commit(self, _: Tick) -> None:
        self.command.in_hands = self.in_hands
        self.command.next_to_be_handed = self.next_to_be_handed
        kept = self.command.parting is Parting.KEPT and self.queue.leases.of_consumer(self.command.consumer)
        if self.done and not kept:
            self.queue.consumers.forget(self.command.consumer)


def plan_return(tick: Tick, command: ReturnGrants) -> None:
    """Give back what a consumer that has gone was holding, as much as fits into one tick."""
    queue = tick.state.queues.get(command.queue)
    if queue is None:
        return
    queue.ledger.idle.set(queue.record.paused or not queue.consumers.has_credit, tick.now)
    in_hands, first = command.in_hands, command.next_to_be_handed
    if in_hands is None:
        in_hands = _in_hands(tick, queue, command)
        lost = command.parting is Parting.LOST
        first = _next_to_be_handed(tick, queue, command.consumer) if lost and not in_hands else None
    departure = Departure(queue, command, in_hands, first)
    tick.add(departure)
    departure.done = _plan_messages(tick, departure)
    if not departure.done:
        tick.to_go_on.append(command)


def _plan_messages(tick: Tick, departure: Departure) -> bool:
    """Returns whether all are back."""
    queue, command, in_hands = departure.queue, departure.command, departure.in_hands
    room = RETURNED_AT_ONCE
    for grant in queue.leases.of_consumer(command.consumer):
        for seq in grant.members:
            if seq in tick.leases.gone or _stays(command, in_hands, seq):
                continue
            if not room:
                return False
            room -= 1
            try:
                plan_lease_end(tick, _attempt(departure, grant, seq))
            except Overloaded:
                return False
    return True


def _stays(command: ReturnGrants, in_hands: set[int], seq: int) -> bool:
    if command.parting is Parting.KEPT:
        return seq not in command.unsent
    return command.parting is Parting.PAUSED and seq in in_hands


def _attempt(departure: Departure, grant: Grant, seq: int) -> EndedLease:
    queue, in_hands = departure.queue, departure.in_hands
    failed = EndedLease(queue, grant, seq, LeaseEnd.RELEASED, suspect=seq == departure.next_to_be_handed)
    if seq in in_hands:
        alone = len(in_hands) == 1
        exhausted = queue.retry.exhausted(failed.attempts + 1)
        failed.spared = not alone
        failed.kind = LeaseEnd.LOST if exhausted and not alone else LeaseEnd.RETURNED
        if departure.command.parting is Parting.LOST:
            failed.kind = LeaseEnd.LOST_ALONE if alone else LeaseEnd.LOST
    return failed


def _in_hands(tick: Tick, queue: QueueState, command: ReturnGrants) -> set[int]:
    """What the application of a consumer was handed and has not settled."""
    hands = queue.consumers.hands_of(command.consumer)
    found: set[int] = set()
    for grant in queue.leases.of_consumer(command.consumer):
        found |= set(grant.members) if hands is None else hands.among(grant.token, grant.members)
    return found - tick.leases.gone - command.unsent


def _next_to_be_handed(tick: Tick, queue: QueueState, number: int) -> int | None:
    hands = queue.consumers.hands_of(number)
    for seq in hands.waiting() if hands is not None else ():
        grant = queue.leases.find(seq)
        if grant is not None and grant.consumer == number and seq not in tick.leases.gone:
            return seq
    return None
