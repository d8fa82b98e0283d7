"""Limits of throttle keys, as the SDK reads and writes them."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client.throttle_limit import ThrottleLimit
from fila.core.throttle import MAX_IN_FLIGHT, MAX_RATE, MIN_RATE, Limit

NAMES = [part.name for part in fields(ThrottleLimit) if part.name != "others"]


def test_a_limit_has_the_parts_that_the_broker_knows():
    known = [part.name for part in fields(Limit)]
    assert known == NAMES


@given(st.floats(MIN_RATE, MAX_RATE), st.floats(1, MAX_RATE) | st.none(), st.integers(1, MAX_IN_FLIGHT) | st.none())
def test_what_the_broker_says_is_written_in_the_same_words(rate, burst, cap):
    told = Limit(rate, burst, cap)
    limit = ThrottleLimit.parse(str(told))
    assert str(limit) == str(told)
    assert all(getattr(limit, name) == getattr(told, name) for name in NAMES)


def test_a_limit_may_be_written_by_hand():
    assert ThrottleLimit.parse(" rate = 50 , max_in_flight=20") == ThrottleLimit(50, None, 20)
    assert ThrottleLimit.parse("50.0,100.0") == ThrottleLimit(50, 100)
    assert str(ThrottleLimit(0.5, None, 3)) == "rate=0.5,max_in_flight=3"


@pytest.mark.parametrize("others", ["bytes_per_second=1e6", "per=minute,free", "max_in_flight=2.5", "unlimited"])
def test_what_only_a_later_version_knows_is_written_as_it_was_read(others):
    limit = ThrottleLimit.parse(f"rate=1234567,{others}")
    assert (limit.rate, limit.others) == (1234567, others)
    assert str(limit) == f"rate=1234567,{others}"


def test_the_bucket_is_the_burst_or_a_second_and_never_less_than_one_token():
    assert ThrottleLimit(50, 100).bucket == 100
    assert ThrottleLimit(50).bucket == 50
    assert ThrottleLimit(0.1).bucket == 1
    assert ThrottleLimit(max_in_flight=5).bucket is None
