"""Breakers that processes share through Redis."""

import contextlib
import math
import threading

import pytest

from fila.jobs import BreakerSettings, CircuitBreaker, CircuitOpen, RedisBreakerStore
from fila.jobs.breaker import State
from fila.jobs.intake import MAX_DELAY_SECONDS

SETTINGS = BreakerSettings(failure_threshold=3, open_cooldown_seconds=60, half_open_probe_count=2)


@pytest.fixture
def make_breaker(redis_server):
    stores = []

    def make(settings=SETTINGS):
        stores.append(RedisBreakerStore(redis_server.url, settings, timeout=10))
        return CircuitBreaker("platform", store=stores[-1])

    yield make
    for store in stores:
        store.close()


def test_what_one_process_sees_all_know(make_breaker):
    one, other = make_breaker(), make_breaker()
    for breaker in (one, other, one):
        breaker.acquire().failure()
    assert other.state is State.OPEN
    with pytest.raises(CircuitOpen) as refused:
        other.acquire()
    assert 0 < refused.value.delay_seconds <= 60


@pytest.mark.parametrize("asked", [math.inf, math.nan, -math.inf, 1e300])
def test_a_rate_limit_may_ask_for_a_time_that_cannot_be(make_breaker, asked):
    one, other = make_breaker(), make_breaker()
    for _ in range(3):
        one.acquire().rate_limited(asked)
    with pytest.raises(CircuitOpen) as refused:
        other.acquire()
    longest = MAX_DELAY_SECONDS if asked > 0 else SETTINGS.open_cooldown_seconds
    assert 0 < refused.value.delay_seconds <= longest


def test_no_more_probes_pass_than_were_allowed_however_many_ask(make_breaker):
    quick = BreakerSettings(failure_threshold=1, open_cooldown_seconds=0.2, half_open_probe_count=2)
    breakers = [make_breaker(quick) for _ in range(8)]
    breakers[0].acquire().failure()
    threading.Event().wait(0.3)
    passed, barrier = [], threading.Barrier(len(breakers))

    def ask(breaker):
        barrier.wait()
        with contextlib.suppress(CircuitOpen):
            passed.append(breaker.acquire())

    threads = [threading.Thread(target=ask, args=(breaker,)) for breaker in breakers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 2


def test_without_redis_each_process_guards_itself(make_breaker, redis_server):
    one, other = make_breaker(), make_breaker()
    one.acquire().success()
    redis_server.kill()
    for _ in range(3):
        one.acquire().failure()
    assert one.state is State.OPEN
    assert other.state is State.CLOSED
    redis_server.start()
    assert one.state is State.CLOSED
