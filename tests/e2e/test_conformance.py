"""The conformance suite can fail: a driver that lies about one thing is found out, and an honest one passes."""

import sys

import pytest

from sdks.conformance.lies import FOUND_BY
from sdks.conformance.pool import DriverPool
from sdks.conformance.runner import Failed, run
from sdks.conformance.scenario import load
from sdks.conformance.world import World

SCENARIOS = {scenario.name: scenario for scenario in load()}
HONEST = [sys.executable, "-m", "sdks.python.driver"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.mark.parametrize("lie", FOUND_BY, ids=lambda lie: lie.__name__)
def test_a_lie_is_found_out(lie, world, tmp_path):
    command = [sys.executable, "-m", "sdks.conformance.lies", lie.__name__]
    with DriverPool(command, tmp_path) as pool, pytest.raises(Failed, match="step"):
        run(SCENARIOS[FOUND_BY[lie]], pool, world)


@pytest.mark.parametrize("name", sorted(set(FOUND_BY.values())))
def test_the_truth_passes(name, world, tmp_path):
    with DriverPool(HONEST, tmp_path) as pool:
        run(SCENARIOS[name], pool, world)


def test_a_driver_that_says_nothing_sensible_is_a_failure(world, tmp_path):
    with DriverPool(["/bin/echo", "hello"], tmp_path) as pool, pytest.raises(Failed):
        run(SCENARIOS["lifecycle"], pool, world)
