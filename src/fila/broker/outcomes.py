"""What follows from each way in which a lease can end without an ack: one row for each `LeaseEnd`.

To add a way: a member of `LeaseEnd` (`storage/records.py`), a row here, and whoever decides that it happened
(`settle.py` for what consumers say, `expiry.py`, `departure.py`). A test holds the table complete.
"""

from enum import Enum
from typing import NamedTuple

from fila.storage.journal import Kind
from fila.storage.records import LeaseEnd


class OnSuspicion(Enum):
    """What becomes of the suspicion that a message kills its consumers."""

    CLEARS = "clears"
    """Its consumer lived: there is none."""
    KEEPS = "keeps"
    """It was not tried."""
    SUSPECTS = "suspects"
    """Its consumer was lost with this and other messages."""
    CONFIRMS = "confirms"
    """Its consumer was lost with this message alone."""


class LeaseEndRule(NamedTuple):
    counts: bool
    """Whether it is an attempt, which may be the last"""
    counter: str
    """The field of `Counters`"""
    journal: Kind
    suspicion: OnSuspicion
    by_choice: bool = False
    """Whether the consumer chose it: then the hook `on_failure` is asked, and a retry delay applies."""


OUTCOMES: dict[LeaseEnd, LeaseEndRule] = {
    LeaseEnd.NACKED: LeaseEndRule(True, "nacked", Kind.NACKED, OnSuspicion.CLEARS, by_choice=True),
    LeaseEnd.EXPIRED: LeaseEndRule(True, "expired", Kind.EXPIRED, OnSuspicion.CLEARS),
    LeaseEnd.RETURNED: LeaseEndRule(True, "returned", Kind.RETURNED, OnSuspicion.CLEARS),
    LeaseEnd.RELEASED: LeaseEndRule(False, "returned", Kind.RELEASED, OnSuspicion.KEEPS),
    LeaseEnd.LOST: LeaseEndRule(True, "returned", Kind.RETURNED, OnSuspicion.SUSPECTS),
    LeaseEnd.LOST_ALONE: LeaseEndRule(True, "returned", Kind.RETURNED, OnSuspicion.CONFIRMS),
}
