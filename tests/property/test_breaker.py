"""The breaker in Redis takes the steps that the pure one takes."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.jobs.breaker import BreakerSettings, LocalStore, Op
from fila.jobs.redis.breaker import RedisBreakerStore
from fila.testing import RedisProcess
from tests.helpers.clock import ManualClock

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(list(Op)), st.integers(0, 2), st.sampled_from([0, 5, 100])),
        st.tuples(st.just("advance"), st.sampled_from([1, 10, 30, 100]), st.just(0)),
    ),
    max_size=60,
)

SETTINGS = BreakerSettings(
    failure_threshold=3, rate_limit_threshold=2, open_cooldown_seconds=30, half_open_probe_count=2
)


@pytest.fixture(scope="module")
def clock():
    return ManualClock()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, clock):
    with RedisProcess(tmp_path_factory.mktemp("redis")) as process:
        store = RedisBreakerStore(process.url, SETTINGS, clock=clock)
        yield store
        store.close()


@given(steps)
@settings(max_examples=100)
def test_redis_and_the_pure_rules_agree(shared, clock, script):
    local, name = LocalStore(SETTINGS, clock=clock), uuid.uuid4().hex
    for op, number, wait in script:
        if op == "advance":
            clock.advance(number)
            continue
        epoch = max(0, local.read(name).epoch - number)
        assert shared.step(name, op, epoch, wait) == local.step(name, op, epoch, wait)
        assert shared.read(name) == local.read(name)
