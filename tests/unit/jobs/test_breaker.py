"""The circuit breaker of one process, on a clock of ours."""

import pytest

from fila.jobs import (
    BreakerSettings,
    CircuitBreaker,
    CircuitOpen,
    InvalidSettings,
    LocalStore,
    RateLimited,
    Reject,
)
from fila.jobs.breaker import State
from fila.jobs.events import BreakerChanged
from fila.jobs.intake import MAX_DELAY_SECONDS
from tests.helpers.clock import ManualClock

SETTINGS = BreakerSettings(
    failure_threshold=3, rate_limit_threshold=2, open_cooldown_seconds=30, half_open_probe_count=2
)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def seen():
    return []


@pytest.fixture
def breaker(clock, seen):
    return CircuitBreaker("x", store=LocalStore(SETTINGS, clock=clock), hooks=[seen.append])


def fail(breaker, error=OSError, times=1):
    for _ in range(times):
        with pytest.raises(error), breaker.guard():
            raise error("down")


def test_failures_in_a_row_open_it(breaker):
    fail(breaker, times=2)
    assert breaker.state is State.CLOSED
    fail(breaker)
    assert breaker.state is State.OPEN
    with pytest.raises(CircuitOpen) as refused, breaker.guard():
        pytest.fail("let through")
    assert refused.value.delay_seconds == 30


def test_a_success_starts_the_count_over(breaker):
    fail(breaker, times=2)
    with breaker.guard():
        pass
    fail(breaker, times=2)
    assert breaker.state is State.CLOSED


def test_rate_limits_are_counted_apart_from_failures(breaker):
    fail(breaker, times=2)
    fail(breaker, RateLimited)
    assert breaker.state is State.CLOSED
    fail(breaker, RateLimited)
    assert breaker.state is State.OPEN


def test_a_rate_limit_keeps_it_open_for_as_long_as_was_asked(breaker, clock):
    for _ in range(2):
        breaker.acquire().rate_limited(retry_after_seconds=100)
    clock.advance(99)
    with pytest.raises(CircuitOpen):
        breaker.acquire()
    clock.advance(1)
    breaker.acquire()


@pytest.mark.parametrize("asked", [float("inf"), 1e300, 10**400], ids=["inf", "float", "int"])
def test_a_rate_limit_keeps_it_open_no_longer_than_a_job_can_wait(breaker, clock, asked):
    for _ in range(2):
        with pytest.raises(RateLimited), breaker.guard():
            raise RateLimited(delay_seconds=asked)
    with pytest.raises(CircuitOpen) as refused:
        breaker.acquire()
    assert refused.value.delay_seconds == MAX_DELAY_SECONDS
    clock.advance(MAX_DELAY_SECONDS)
    breaker.acquire()


@pytest.mark.parametrize("asked", [float("nan"), float("-inf"), -5])
def test_a_rate_limit_that_asked_for_no_time_is_the_cooldown(breaker, asked):
    for _ in range(2):
        breaker.acquire().rate_limited(asked)
    with pytest.raises(CircuitOpen) as refused:
        breaker.acquire()
    assert refused.value.delay_seconds == 30


def test_after_the_cooldown_a_few_may_try(breaker, clock):
    fail(breaker, times=3)
    clock.advance(30)
    breaker.acquire()
    breaker.acquire()
    assert breaker.state is State.HALF_OPEN
    with pytest.raises(CircuitOpen):
        breaker.acquire()


def test_when_all_tries_succeed_it_closes(breaker, clock, seen):
    fail(breaker, times=3)
    clock.advance(30)
    first, second = breaker.acquire(), breaker.acquire()
    first.success()
    assert breaker.state is State.HALF_OPEN
    second.success()
    assert breaker.state is State.CLOSED
    assert seen == [BreakerChanged("x", state) for state in ("closed", "open", "half_open", "closed")]


def test_when_one_try_fails_it_opens_for_another_cooldown(breaker, clock):
    fail(breaker, times=3)
    clock.advance(30)
    fail(breaker)
    assert breaker.state is State.OPEN
    clock.advance(29)
    with pytest.raises(CircuitOpen):
        breaker.acquire()


def test_tries_whose_worker_died_do_not_block_it_for_ever(breaker, clock):
    fail(breaker, times=3)
    clock.advance(30)
    breaker.acquire()
    breaker.acquire()
    clock.advance(30)
    with breaker.guard():
        pass
    with breaker.guard():
        pass
    assert breaker.state is State.CLOSED


def test_what_began_before_it_opened_is_not_counted_later(breaker, clock):
    old = [breaker.acquire() for _ in range(3)]
    fail(breaker, times=3)
    clock.advance(30)
    probe = breaker.acquire()
    old[0].failure()
    assert breaker.state is State.HALF_OPEN
    old[1].success()
    old[2].success()
    assert breaker.state is State.HALF_OPEN
    probe.success()
    breaker.acquire().success()
    assert breaker.state is State.CLOSED


def test_a_rejected_job_says_nothing_about_the_other_side(breaker, clock):
    fail(breaker, Reject, times=10)
    assert breaker.state is State.CLOSED
    fail(breaker, times=3)
    clock.advance(30)
    fail(breaker, Reject, times=5)
    assert breaker.state is State.HALF_OPEN
    for _ in range(2):
        with breaker.guard():
            pass
    assert breaker.state is State.CLOSED


def test_a_call_reports_once(breaker):
    permit = breaker.acquire()
    for _ in range(5):
        permit.failure()
    assert breaker.state is State.CLOSED


def test_breakers_of_other_names_are_not_touched(clock):
    store = LocalStore(SETTINGS, clock=clock)
    fail(CircuitBreaker("a", store=store), times=3)
    assert CircuitBreaker("a", store=store).state is State.OPEN
    assert CircuitBreaker("b", store=store).state is State.CLOSED


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidSettings):
        BreakerSettings(failure_threshold=0)
    with pytest.raises(InvalidSettings):
        BreakerSettings(open_cooldown_seconds=0)
