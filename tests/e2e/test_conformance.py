"""The conformance suite can fail: a driver that lies about one thing is found out, and an honest one passes.

So is an example that does not do what it prints.
"""

import sys

import pytest

from fila import Client
from fila.testing import ServerProcess
from sdks.conformance import examples
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


@pytest.fixture(scope="module")
def server():
    with ServerProcess(config=examples.CONFIG) as server:
        yield server


@pytest.mark.parametrize(
    "program, fault",
    [
        ("cat printed", "journal tells"),
        ("cat printed; exit 3", "exit code 3"),
        ("echo nothing", "it printed\nnothing"),
        ("", "No such file"),
    ],
)
def test_an_example_that_does_not_do_what_it_prints_is_found_out(server, monkeypatch, tmp_path, program, fault):
    monkeypatch.setattr(examples, "SDKS", tmp_path)
    (tmp_path / "go").mkdir()
    if program:
        (tmp_path / "go/printed").write_text(examples.EXAMPLES["throttling"].printed)
        (tmp_path / "go/example").write_text(f'#!/bin/sh\ncd "$(dirname "$0")"\n{program}\n')
        (tmp_path / "go/example").chmod(0o755)
    with Client(server.addr) as client:
        assert fault in examples.failure("go", "throttling", server, client)


def test_an_example_that_leaves_something_behind_is_found_out(server):
    with Client(server.addr) as client:
        client.create_queue("left")
        assert "left" in examples.left_behind(client)
        client.delete_queue("left")
        assert not examples.left_behind(client)
        client.set_config("throttle.a", "rate=1,burst=1")
        assert "throttle.a" in examples.left_behind(client)
