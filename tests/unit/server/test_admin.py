"""Queue settings as they are asked for, and as they are told."""

import asyncio

import pytest

from fila.broker.commands import SetConfig
from fila.broker.explain import explain, search
from fila.config import DAY_MS, LuaConfig, SchedulerConfig
from fila.core.errors import InvalidArgument
from fila.server.queue_settings import read_queue
from fila.server.stats_codec import write_explanation, write_stats
from fila.v1 import admin_pb2 as pb
from tests.helpers.broker import START, Driver, incoming, stats_of

DEFAULTS = SchedulerConfig(quantum=7, visibility_timeout_ms=8_000, dedup_window_ms=9_000)


def read(defaults=DEFAULTS, **config):
    return read_queue(pb.CreateQueueRequest(name="q", config=pb.QueueConfig(**config)), defaults, LuaConfig(), START)


def test_what_is_absent_takes_the_default_of_the_broker():
    record = read()
    assert (record.quantum, record.visibility_timeout_ms, record.dedup_window_ms) == (7, 8_000, 9_000)
    assert (record.fairness_header, record.weight_header) == ("", "")
    assert (record.name, record.created_at) == ("q", START)


def test_what_is_set_is_taken():
    record = read(visibility_timeout_ms=1, quantum=2, dedup_window_ms=3, fairness_header="f", weight_header="w")
    assert (record.visibility_timeout_ms, record.quantum, record.dedup_window_ms) == (1, 2, 3)
    assert (record.fairness_header, record.weight_header) == ("f", "w")


@pytest.mark.parametrize(
    "field, value",
    [
        ("visibility_timeout_ms", 0),
        ("visibility_timeout_ms", 2**64 - 1),
        ("quantum", 0),
        ("quantum", 2**32 - 1),
        ("dedup_window_ms", 2**64 - 1),
    ],
)
def test_a_number_out_of_range_is_refused_by_its_name(field, value):
    with pytest.raises(InvalidArgument, match=rf"^{field} must be from \d+ to \d+, not {value}$"):
        read(**{field: value})


@pytest.mark.parametrize("field", ["fairness_header", "weight_header"])
def test_a_header_name_that_is_too_long_is_refused_by_its_name(field):
    with pytest.raises(InvalidArgument, match=rf"^{field} must not exceed 255 bytes$"):
        read(**{field: "é" * 128})
    assert getattr(read(**{field: "e" * 255}), field) == "e" * 255


def test_whatever_the_configuration_allows_as_a_default_makes_a_queue():
    for field, values in {
        "quantum": (1, 1_000_000),
        "visibility_timeout_ms": (1, 365 * DAY_MS),
        "dedup_window_ms": (0, 365 * DAY_MS),
    }.items():
        for value in values:
            assert getattr(read(SchedulerConfig(**{field: value})), field) == value


def test_a_window_of_nothing_can_be_asked_for():
    assert read(dedup_window_ms=0).dedup_window_ms == 0


def test_stats_tell_settings_counters_and_keys():
    driver = Driver()
    driver.create("q", fairness_header="tenant", weight_header="weight", quantum=3)
    driver.enqueue(*[incoming("q", headers={"tenant": "a", "weight": "5"})] * 3, incoming("q", delay_ms=1000))
    consumer = driver.join("q", 1)
    driver.settle_down()
    driver.nack("q", consumer.got[0].id)
    told = asyncio.run(write_stats(stats_of(driver.queue("q"), 10)))
    assert told.config == pb.QueueConfig(
        visibility_timeout_ms=30_000,
        fairness_header="tenant",
        weight_header="weight",
        quantum=3,
        dedup_window_ms=60_000,
        throttle_headers=pb.HeaderNames(),
        cost_header="",
        max_attempts=0,
        retry_delay_ms=0,
        retry_backoff=1,
        retry_max_delay_ms=0,
        retry_jitter=0,
        script="",
        script_timeout_ms=10,
        script_memory_bytes=1 << 20,
        max_depth=0,
        max_bytes=0,
        overflow=pb.OVERFLOW_REJECT,
    )
    assert told.created_at.ToNanoseconds() == START
    assert told.summary == pb.QueueSummary(
        name="q", depth=4, in_flight=0, delayed=1, active_keys=1, consumers=1, dead_letter_queue="q.dlq", parts=1
    )
    assert told.counters == pb.QueueCounters(enqueued=4, delivered=1, nacked=1)
    assert [(key.fairness_key, key.weight, key.pending) for key in told.keys] == [("a", 5, 3), ("default", 1, 0)]
    assert told.scheduler.quantum == 3


def test_what_comes_after_all_that_can_be_told_comes_at_the_end_of_it():
    """A throttle with a very low rate, and a message of a very high cost, are ready in thousands of years."""
    driver = Driver()
    queue = driver.create("q", cost_header="cost", throttle_headers=("p",))
    driver.ask(lambda reply: SetConfig("throttle.p:x", "rate=0.001,burst=1", reply))
    driver.join("q")
    driver.send("q", headers={"cost": "1000000000", "p": "x"})
    driver.settle_down()
    seq = driver.send("q", headers={"p": "x"})
    driver.settle_down()
    found = next(one for one in search(queue, seq) if one is not None)
    told = write_explanation(explain(queue, found, driver.now), driver.id(seq))
    last = "9999-12-31T23:59:59.999999999Z"
    assert told.not_before.ToJsonString() == last
    assert [reason.until.ToJsonString() for reason in told.reasons if reason.code == pb.WAIT_CAUSE_THROTTLED] == [last]
