"""What follows from each way in which an attempt can end: one row for each `Failed`.

To add a way: a member of `Failed` (`storage/records.py`), a row here, and whoever decides that it happened (`settle.py`
for what consumers say, `expiry.py`, `departure.py`). A test holds the table complete.
"""

from enum import Enum
from typing import NamedTuple

from fila.storage.journal import Kind
from fila.storage.records import Failed


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


class Outcome(NamedTuple):
    counts: bool
    """Whether it is an attempt, which may be the last"""
    counter: str
    """The field of `Counters`"""
    journal: Kind
    suspicion: OnSuspicion
    by_choice: bool = False
    """Whether the consumer chose it: then the hook `on_failure` is asked, and a retry delay applies."""


OUTCOMES: dict[Failed, Outcome] = {
    Failed.NACKED: Outcome(True, "nacked", Kind.NACKED, OnSuspicion.CLEARS, by_choice=True),
    Failed.EXPIRED: Outcome(True, "expired", Kind.EXPIRED, OnSuspicion.CLEARS),
    Failed.RETURNED: Outcome(True, "returned", Kind.RETURNED, OnSuspicion.CLEARS),
    Failed.RELEASED: Outcome(False, "returned", Kind.RELEASED, OnSuspicion.KEEPS),
    Failed.LOST: Outcome(True, "returned", Kind.RETURNED, OnSuspicion.SUSPECTS),
    Failed.LOST_ALONE: Outcome(True, "returned", Kind.RETURNED, OnSuspicion.CONFIRMS),
}
