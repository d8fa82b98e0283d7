"""Expiry: leases whose visibility timeout is over. What they hold goes back to its queue, or dies."""

from contextlib import suppress

from fila.broker.attempts import EndedLease
from fila.broker.lease_end import plan_lease_end
from fila.broker.queue import QueueState
from fila.broker.tick import Tick
from fila.core.errors import Overloaded
from fila.core.leases import Grant
from fila.storage.records import LeaseEnd


def plan_expiry(tick: Tick, queue: QueueState, limit: int) -> int:
    """Give back what was held for too long, until about `limit` messages. Returns how many.

    It counts an attempt, but for what an application was never handed. Of what was delivered before the broker was
    started nobody knows that: it counts an attempt, but does not die of it.
    """
    count = 0
    for grant in queue.leases.expired(tick.due_by, limit):
        if grant.claim is None or not grant.claim.acked:
            hands = queue.consumers.hands_of(grant.consumer)
            handed = None if hands is None else hands.among(grant.token, grant.members)
            count += _plan_grant(tick, queue, grant, handed)
    return count


def _plan_grant(tick: Tick, queue: QueueState, grant: Grant, handed: set[int] | None) -> int:
    """Returns how many came back. The others have to wait for another tick."""
    count = 0
    with suppress(Overloaded):
        for seq in grant.members:
            if seq not in tick.leases.gone:
                kind = LeaseEnd.EXPIRED if handed is None or seq in handed else LeaseEnd.RELEASED
                spared = not grant.consumer and grant.claim is None
                plan_lease_end(tick, EndedLease(queue, grant, seq, kind, spared=spared))
                count += 1
    return count
