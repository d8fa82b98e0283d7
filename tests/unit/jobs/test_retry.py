"""What becomes of a failed job is decided by values alone."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.jobs import CircuitOpen, Defer, InvalidSettings, Reject, Retry, RetryPolicy
from fila.jobs.retry import DeferFor, GiveUp, RetryIn, describe

MIDDLE = lambda: 0.5  # noqa: E731  no jitter


def test_waits_grow_up_to_the_cap():
    policy = RetryPolicy(base_seconds=1, factor=2, cap_seconds=10)
    assert [policy.wait_seconds(n, MIDDLE) for n in (1, 2, 3, 4, 5, 5000)] == [1, 2, 4, 8, 10, 10]


@given(
    st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), st.floats(0, 1), st.floats(0, 100), st.floats(0, 1000)
)
def test_a_wait_is_never_negative_and_never_over_the_cap(attempt, random, jitter, base, cap):
    policy = RetryPolicy(base_seconds=base, cap_seconds=cap, jitter=jitter)
    assert 0 <= policy.wait_seconds(attempt, lambda: random) <= cap


@given(st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_a_wait_by_its_part(random):
    wait = RetryPolicy(base_seconds=10, jitter=0.2).wait_seconds(1, lambda: random)
    assert 8 - 1e-9 <= wait <= 12 + 1e-9


def test_the_last_attempt_is_given_up_with_its_reason():
    policy = RetryPolicy(max_attempts=3)
    assert isinstance(policy.decide(2, ValueError("x"), MIDDLE), RetryIn)
    assert policy.decide(3, ValueError("x"), MIDDLE) == GiveUp("ValueError: x (attempt 3 of 3)")


def test_some_errors_are_never_retried():
    policy = RetryPolicy(never=(KeyError,))
    assert isinstance(policy.decide(1, KeyError("x"), MIDDLE), GiveUp)
    assert policy.decide(1, Reject("bad"), MIDDLE) == GiveUp("Reject: bad")


def test_a_handler_may_choose_its_wait_but_not_more_attempts():
    policy = RetryPolicy(max_attempts=2)
    assert policy.decide(1, Retry(delay_seconds=7), MIDDLE) == RetryIn(7)
    assert policy.decide(1, Retry(), MIDDLE) == RetryIn(1)
    assert isinstance(policy.decide(2, Retry(delay_seconds=7), MIDDLE), GiveUp)


def test_a_deferred_job_uses_up_no_attempt_however_often():
    policy = RetryPolicy(max_attempts=1)
    assert policy.decide(1, Defer(delay_seconds=3), MIDDLE) == DeferFor(3)
    assert policy.decide(1, CircuitOpen("open", delay_seconds=9), MIDDLE) == DeferFor(9)


@pytest.mark.parametrize("kind", [Retry, Defer])
@pytest.mark.parametrize(
    "wrong", [timedelta(minutes=5), "5", float("nan"), float("inf"), 1e12, pytest.param(10**400, id="huge")]
)
def test_a_wait_that_cannot_be_is_refused_by_name(kind, wrong):
    with pytest.raises(InvalidSettings, match=rf"{kind.__name__}\(delay_seconds=.*: expected a number of seconds"):
        RetryPolicy().decide(1, kind(delay_seconds=wrong), MIDDLE)


@pytest.mark.parametrize("kind, decision", [(Retry, RetryIn(0)), (Defer, DeferFor(0))])
def test_a_wait_that_is_over_is_none(kind, decision):
    assert RetryPolicy().decide(1, kind(delay_seconds=-3), MIDDLE) == decision


def test_an_error_without_a_text_is_described_by_its_type():
    class Odd(Exception):
        def __str__(self):
            return self.args[1]

    assert describe(Odd("x")) == "Odd: (no text: its __str__ raised IndexError)"


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"jitter": 2}, {"base_seconds": -1}, {"factor": float("nan")}])
def test_a_policy_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidSettings, match=next(iter(wrong))):
        RetryPolicy(**wrong)
