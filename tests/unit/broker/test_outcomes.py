"""The table of what follows from each way in which an attempt can end."""

from dataclasses import fields

import pytest

from fila.broker.outcomes import OUTCOMES, OnSuspicion
from fila.broker.queue import Counters
from fila.core.lifecycle import COUNTS_AN_ATTEMPT, TRANSITIONS, State
from fila.storage.records import LeaseEnd

EVENT = {
    LeaseEnd.NACKED: "nack",
    LeaseEnd.EXPIRED: "expire",
    LeaseEnd.RETURNED: "consumer lost",
    LeaseEnd.RELEASED: "release",
    LeaseEnd.LOST: "consumer lost",
    LeaseEnd.LOST_ALONE: "consumer lost",
}
"""What the lifecycle calls each"""


def test_every_way_has_a_row():
    assert set(OUTCOMES) == set(LeaseEnd)


@pytest.mark.parametrize("kind", LeaseEnd)
def test_every_way_is_counted_once(kind):
    counters = Counters()
    counters.count_failure(kind)
    assert sum(getattr(counters, each.name) for each in fields(counters)) == 1


def test_every_way_is_an_event_of_the_lifecycle_that_counts_an_attempt_where_the_row_says_so():
    assert set(EVENT) == set(LeaseEnd)
    assert all((State.LEASED, event) in TRANSITIONS for event in EVENT.values())
    assert {kind for kind in LeaseEnd if OUTCOMES[kind].counts} == {
        kind for kind in LeaseEnd if EVENT[kind] in COUNTS_AN_ATTEMPT
    }


def test_what_counts_no_attempt_leaves_the_suspicion_as_it_was():
    """The message was not tried: nothing is known of it that was not known before."""
    assert {outcome.suspicion for outcome in OUTCOMES.values() if not outcome.counts} == {OnSuspicion.KEEPS}
