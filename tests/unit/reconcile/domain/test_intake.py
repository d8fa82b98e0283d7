"""When a report counts as being of, given when it was received."""

import pytest

from fila.reconcile.domain.intake import counted_at_ms, newest_ms, oldest_ms
from fila.reconcile.domain.settings import Intake

LIMITS = Intake(max_age_ms=1_000, max_skew_ms=10)


def test_a_report_may_be_a_little_ahead_and_not_too_old():
    assert (oldest_ms(5_000, LIMITS), newest_ms(5_000, LIMITS)) == (4_000, 5_010)


@pytest.mark.parametrize("reported, counted", [(4_000, 4_000), (5_000, 5_000), (5_010, 5_000)])
def test_what_is_ahead_counts_as_of_its_receipt(reported, counted):
    assert counted_at_ms(reported, 5_000) == counted
