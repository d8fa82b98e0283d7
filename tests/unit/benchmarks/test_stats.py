"""The arithmetic behind the figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.stats import Spread, percentile, share_error_percent

NUMBERS = st.lists(st.floats(-1e9, 1e9), min_size=1)


def test_a_spread_is_the_middle_and_both_ends():
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(median=2.0, min=1.0, max=3.0)


@given(NUMBERS, st.integers(1, 100))
def test_a_percentile_is_a_measured_value_that_enough_do_not_exceed(values, percent):
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)


@given(NUMBERS)
def test_the_hundredth_percentile_is_the_largest(values):
    assert percentile(values, 100) == max(values)


def test_shares_in_proportion_to_weights_have_no_error():
    assert share_error_percent(["a"] * 10 + ["b"] * 30, {"a": 1, "b": 3}) == 0


def test_the_error_of_a_share_is_relative_to_the_entitlement():
    """A key that is owed a quarter and gets a fifth is a fifth short; the other is off by less."""
    assert share_error_percent(["a"] * 20 + ["b"] * 80, {"a": 1, "b": 3}) == pytest.approx(20)


def test_a_key_that_got_nothing_is_wholly_short():
    assert share_error_percent(["b"], {"a": 1, "b": 1}) == pytest.approx(100)
