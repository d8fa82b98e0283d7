"""The table of what follows from each way in which an attempt can end."""

from dataclasses import fields

import pytest

from fila.broker.outcomes import OUTCOMES
from fila.broker.queue import Counters
from fila.core.lifecycle import COUNTS_AN_ATTEMPT
from fila.storage.records import LeaseEnd


def test_every_way_has_a_row():
    assert set(OUTCOMES) == set(LeaseEnd)


@pytest.mark.parametrize("kind", LeaseEnd)
def test_every_way_is_counted_once(kind):
    counters = Counters()
    counters.count_failure(kind)
    assert sum(getattr(counters, each.name) for each in fields(counters)) == 1


def test_what_counts_an_attempt_is_what_the_lifecycle_says():
    """By the names of the lifecycle: a nack, an expiry, a consumer that is lost or leaves."""
    assert {kind.name for kind, outcome in OUTCOMES.items() if not outcome.counts} == {"RELEASED"}
    assert "release" not in COUNTS_AN_ATTEMPT
