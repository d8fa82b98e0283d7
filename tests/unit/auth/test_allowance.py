"""Limits per second of a principal."""

from hypothesis import given
from hypothesis import strategies as st

from fila.auth.allowance import BYTES, MESSAGES, Allowance

SECOND = 1_000_000_000


def test_without_limits_everything_is_taken():
    allowance = Allowance({}, 0)
    assert all(allowance.take(1_000_000, 1 << 40, 0) is None for _ in range(100))


def test_the_limit_that_is_exhausted_is_named_and_nothing_is_taken():
    allowance = Allowance({MESSAGES: 10, BYTES: 100}, 0)
    assert allowance.take(1, 100, 0) is None
    assert allowance.take(1, 1, 0) == BYTES
    assert allowance.take(1, 1, SECOND // 10) is None


def test_a_batch_larger_than_the_rate_passes_and_what_follows_waits_for_it():
    allowance = Allowance({MESSAGES: 10}, 0)
    assert allowance.take(100, 0, 0) is None
    assert allowance.take(1, 0, 9 * SECOND) == MESSAGES
    assert allowance.take(1, 0, 9 * SECOND + SECOND // 100) is None


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(1, 20), st.integers(0, SECOND)), min_size=1, max_size=200))
def test_no_more_is_taken_than_the_rate_a_second_of_burst_and_one_batch(rate, batches):
    allowance, now, taken = Allowance({MESSAGES: rate}, 0), 0, 0
    for size, pause in batches:
        now += pause
        if allowance.take(size, 0, now) is None:
            taken += size
    assert taken <= rate + rate * now / SECOND + 20


@given(st.lists(st.integers(-SECOND, SECOND), max_size=50))
def test_a_clock_that_goes_back_gives_nothing(steps):
    allowance, now = Allowance({MESSAGES: 1}, SECOND), SECOND
    assert allowance.take(1, 0, now) is None
    highest = now
    for step in steps:
        now += step
        if now <= highest:
            before = dict(allowance._left)
            allowance.take(0, 0, now)
            assert allowance._left == before
        else:
            highest = now
            allowance.take(0, 0, now)
