"""Refused calls are written, and a flood of them is counted."""

import asyncio

import pytest

from fila.broker.audit_commands import Origin, RecordRefusals
from fila.server.refusals import MAX_NAME, MOST, WINDOW_NS, Refusals
from fila.wire.status import StatusCode

DENIED = StatusCode.PERMISSION_DENIED


class Broker:
    """Writes everything at once."""

    def __init__(self):
        self.time = 1
        self.ready = True
        self.written = []

    def now(self):
        return self.time

    async def do(self, make):
        self.submit(make(lambda _: None))

    def submit(self, command):
        assert isinstance(command, RecordRefusals)
        self.written += command.records


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def refusals(broker):
    return Refusals(broker)


def refuse(refusals, name="q", principal="eve", port=1, code=DENIED, count=1):
    async def run():
        for _ in range(count):
            await refusals.add(Origin("Purge", principal, f"{principal}-k", f"10.0.0.1:{port}"), ("queue", name), code)

    asyncio.run(run())


def test_the_first_is_written_at_once_and_the_same_again_is_counted(broker, refusals):
    for port in range(100):
        refuse(refusals, port=port)
    (record,) = broker.written
    assert (record.action, record.principal, record.key_id, record.peer) == ("Purge", "eve", "eve-k", "10.0.0.1")
    assert (record.resource, record.outcome, record.times) == ("q", "PERMISSION_DENIED", 1)
    broker.time += WINDOW_NS
    refusals.look_after()
    assert [each.times for each in broker.written] == [1, 99]
    refusals.look_after()
    assert len(broker.written) == 2


def test_a_flood_of_different_ones_is_bounded(broker, refusals):
    for number in range(10_000):
        refuse(refusals, name=f"q{number}")
    assert len(broker.written) == MOST
    broker.time += WINDOW_NS
    refusals.look_after()
    assert len(broker.written) <= 2 * MOST + 1
    assert sum(record.times for record in broker.written) == 10_000
    assert broker.written[-1].action == "various"


def test_another_window_tells_them_again(broker, refusals):
    refuse(refusals)
    broker.time += WINDOW_NS
    refuse(refusals)
    assert [record.times for record in broker.written] == [1, 1]


def test_a_name_that_the_caller_made_up_is_cut(broker, refusals):
    refuse(refusals, name="x" * 100_000)
    assert len(broker.written[0].resource) == MAX_NAME


@pytest.mark.parametrize("code", [StatusCode.UNAUTHENTICATED, StatusCode.UNAVAILABLE, StatusCode.INTERNAL])
def test_failures_and_strangers_are_not_told(broker, refusals, code):
    refuse(refusals, code=code)
    assert broker.written == []


def test_what_is_counted_is_written_when_the_server_stops(broker, refusals):
    refuse(refusals, count=3)
    refusals.write()
    assert [record.times for record in broker.written] == [1, 2]
