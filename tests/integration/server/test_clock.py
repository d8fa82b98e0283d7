"""The wall clock is set while a server runs, or between two runs: delays and leases end as they should."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from fila.server import clock
from tests.integration.server.conftest import eventually, take

HOUR = 3_600_000_000_000


@pytest.fixture
def wall(monkeypatch):
    """Sets the wall clock of the server by so many nanoseconds."""
    offset = [0]
    monkeypatch.setattr(clock, "wall_ns", lambda: time.time_ns() + offset[0])

    def put(ns):
        offset[0] = ns

    return put


async def test_a_clock_that_is_set_back_holds_up_neither_delays_nor_leases(serve, wall):
    with capture_logs() as logs:
        async with serve() as peer:
            await peer.create(visibility_timeout_ms=500)
            delayed = await peer.send(delay_ms=500)
            wall(-HOUR)
            at_once = await peer.send()
            got = [message.id for message in await take(peer.lease(), 4)]
            assert got[0] == at_once
            assert set(got) == {at_once, delayed}  # and some came again, because their leases have ended

            async def noticed():
                return any("wall clock was set" in entry["event"] for entry in logs)

            await eventually(noticed)


async def test_a_clock_that_is_set_forward_ends_no_lease_and_no_delay_early(serve, wall):
    async with serve() as peer:
        await peer.create(visibility_timeout_ms=600_000)
        await peer.send()
        delayed = await peer.send(delay_ms=600_000)
        stream = peer.lease()
        (held,) = await take(stream, 1)
        wall(2 * HOUR)
        await asyncio.sleep(0.6)  # two looks at the wall clock
        sent = await peer.send()
        assert sent > held.id
        assert [message.id for message in await take(stream, 1)] == [sent]
        assert (await peer.summary()).in_flight == 2
        assert (await peer.summary()).delayed == 1
        assert delayed < sent


async def test_a_clock_that_was_set_back_between_two_runs_prolongs_no_lease(serve, wall):
    async with serve() as peer:
        await peer.create(visibility_timeout_ms=500)
        sent = await peer.send()
        await take(peer.lease(), 1)
    wall(-HOUR)
    async with serve() as peer:
        (message,) = await take(peer.lease(), 1)
        assert message.id == sent
