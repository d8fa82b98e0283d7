"""The figures of a queue are told whole: what the broker knows, the contract has, and users of the SDK are shown."""

import asyncio
from dataclasses import asdict, fields, replace

import pytest

from fila.broker import stats as broker
from fila.broker.queue import Counters
from fila.cli import views
from fila.client import stats as client
from fila.server.stats_codec import write_stats
from fila.telemetry import catalog
from fila.v1 import admin_pb2 as pb
from tests.helpers.broker import Driver, stats_of


def names(of):
    return {field.name for field in (of.DESCRIPTOR.fields if hasattr(of, "DESCRIPTOR") else fields(of))}


@pytest.mark.parametrize("name", ["KeyStats", "ThrottleStats", "ConsumerStats", "GroupStats", "CapacityStats"])
def test_a_part_has_the_same_fields_everywhere(name):
    known = {"group" if name == "GroupStats" and one == "name" else one for one in names(getattr(broker, name))}
    assert known == names(getattr(pb, name)) == names(getattr(client, name))


def test_the_command_shows_all_figures_of_a_throttle():
    assert set(views._THROTTLE) == names(client.ThrottleStats)


def test_a_counter_is_told_everywhere():
    assert names(Counters) == names(pb.QueueCounters) == names(client.QueueCounters)
    assert names(Counters) == set(catalog.MESSAGES)
    assert names(Counters) == set(views._COUNTERS)


def other_than_default(kind):
    """A value of its own for every field."""
    values = {int: 7, str: "this", bool: True, float: 0.5}
    return kind(**{field.name: values.get(field.type, 0.25) for field in fields(kind)})


def test_every_figure_arrives():
    driver = Driver()
    driver.create("q")
    counters = Counters(*range(1, len(fields(Counters)) + 1))
    throttle, one = other_than_default(broker.ThrottleStats), other_than_default(broker.ConsumerStats)
    capacity = other_than_default(broker.CapacityStats)
    parts = {"counters": counters, "throttles": [throttle], "consumers": [one], "capacity": capacity}
    told = client._stats(asyncio.run(write_stats(replace(stats_of(driver.queue("q")), **parts))))
    assert asdict(told.counters) == asdict(counters)
    assert [asdict(each) for each in told.throttles] == [asdict(throttle)]
    assert [asdict(each) for each in told.consumers] == [asdict(one)]
    assert asdict(told.capacity) == asdict(capacity)
