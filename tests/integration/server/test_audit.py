"""The audit on a real server in the test's own loop: sweeps of several calls, pages, waiting, floods of refusals."""

import asyncio

import grpc
import pytest

from fila.broker import operators
from fila.client.enums import name_of
from fila.server.refusals import MOST
from fila.v1 import admin_pb2 as pb
from fila.v1 import auth_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub

from .conftest import eventually, refusal


async def entries(peer, metadata=(), **request):
    return (await peer.admin.ReadAudit(pb.ReadAuditRequest(**request), metadata=metadata)).entries


async def stages(peer, metadata=()):
    return [
        (name_of(pb.AuditStage, each.stage), each.outcome, each.count)
        for each in await entries(peer, metadata, action="Purge")
    ]


async def filled(peer, count=1_000):
    await peer.create()
    await peer.send_many(count)


def purge(count, cursor="", **more):
    return pb.PurgeRequest(queue="q", count=count, cursor=cursor, bounded=True, any_queue=True, **more)


async def key(peer, principal, role, metadata=()):
    request = auth_pb2.CreateKeyRequest(principal=principal, roles=[role])
    made = await FilaAuthStub(peer.channel).CreateKey(request, metadata=metadata)
    return [("authorization", f"Bearer {made.token}")]


class TestSweeps:
    async def test_calls_that_go_on_with_each_other_are_one(self, serve):
        async with serve() as peer:
            await filled(peer)
            cursor, calls = "", 0
            while cursor or not calls:
                cursor = (await peer.admin.Purge(purge(100, cursor))).cursor
                calls += 1
            assert calls >= 10
            assert await stages(peer) == [("begin", "ok", 0), ("end", "ok", 1_000)]

    async def test_one_that_no_call_goes_on_with_has_ended(self, serve, monkeypatch):
        monkeypatch.setattr(operators, "SWEEP_PAUSE", 1)
        async with serve() as peer:
            await filled(peer)
            cursor = (await peer.admin.Purge(purge(100))).cursor

            async def ended():
                return len(await stages(peer)) == 2

            await eventually(ended)
            await peer.admin.Purge(purge(100, cursor, final=True))
            assert await stages(peer) == [("begin", "ok", 0), ("end", "ok", 100)] * 2

    async def test_the_last_call_for_so_many_ends_it(self, serve):
        async with serve() as peer:
            await filled(peer)
            cursor = (await peer.admin.Purge(purge(100))).cursor
            await peer.admin.Purge(purge(50, cursor, final=True))
            assert await stages(peer) == [("begin", "ok", 0), ("end", "ok", 150)]

    async def test_when_too_many_wait_for_a_call_none_more_do(self, serve, monkeypatch):
        monkeypatch.setattr(operators, "MAX_SWEEPS", 2)
        async with serve() as peer:
            await filled(peer)
            for _ in range(5):
                await peer.admin.Purge(purge(10))
            assert len(peer.server._broker.state.audit.sweeps) == 2
            assert sum(count for _, _, count in await stages(peer)) == 30

    async def test_nobody_goes_on_with_that_of_another(self, serve):
        async with serve() as peer:
            await filled(peer)
            one = await key(peer, "one", "admin")
            two = await key(peer, "two", "admin", one)
            cursor = (await peer.admin.Purge(purge(100), metadata=one)).cursor
            await peer.admin.Purge(purge(50, cursor, final=True), metadata=two)
            told = [
                (each.principal, name_of(pb.AuditStage, each.stage), each.count)
                for each in await entries(peer, one, action="Purge")
            ]
            assert told == [("one", "begin", 0), ("two", "begin", 0), ("two", "end", 50)]

    async def test_nobody_goes_on_with_one_that_asked_for_other_messages(self, serve):
        async with serve() as peer:
            await filled(peer)
            cursor = (await peer.admin.Purge(purge(100))).cursor
            other = pb.MessageFilter(max_age_ms=3_600_000)
            await peer.admin.Purge(purge(50, cursor, final=True, filter=other))
            assert await stages(peer) == [("begin", "ok", 0), ("begin", "ok", 0), ("end", "ok", 50)]

    async def test_a_call_that_is_cancelled_is_told_with_what_it_has_done(self, serve):
        async with serve() as peer:
            await filled(peer, 5_000)
            call = peer.admin.Purge(pb.PurgeRequest(queue="q", any_queue=True))

            async def begun():
                return (await peer.summary()).depth < 5_000

            await eventually(begun)
            call.cancel()

            async def ended():
                return len(await stages(peer)) == 2

            await eventually(ended)
            gone = 5_000 - (await peer.summary()).depth
            assert (await stages(peer))[1] in [("end", "interrupted", gone), ("end", "ok", 5_000)]

    async def test_a_dry_run_is_no_change(self, serve):
        async with serve() as peer:
            await filled(peer)
            assert (await peer.admin.Purge(purge(0, dry_run=True))).purged == 1_000
            assert await stages(peer) == []


class TestReading:
    async def test_pages_follow_each_other(self, serve):
        async with serve() as peer:
            for number in range(25):
                await peer.admin.SetConfig(pb.SetConfigRequest(key=f"{'even' if number % 2 else 'odd'}{number}"))
            found, position = [], 0
            while True:
                page = await peer.admin.ReadAudit(pb.ReadAuditRequest(from_seq=position, limit=4, resource="even*"))
                assert len(page.entries) <= 4
                found += [each.resource for each in page.entries]
                position = page.position
                if position == page.next_seq:
                    break
            assert found == [f"even{number}" for number in range(1, 25, 2)]

    async def test_the_last_ones_are_those_that_match(self, serve):
        async with serve() as peer:
            await peer.create("first")
            for number in range(450):
                await peer.admin.SetConfig(pb.SetConfigRequest(key=f"k{number}"))
            assert [each.resource for each in await entries(peer, last=2, resource="queue:**")] == ["first"]
            assert [each.resource for each in await entries(peer, last=3)] == ["k447", "k448", "k449"]
            assert len(await entries(peer, last=1_000)) == 451

    async def test_a_reader_that_waits_gets_the_next_entry(self, serve):
        async with serve() as peer:
            waiting = asyncio.create_task(entries(peer, wait_ms=10_000))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            await peer.create()
            assert [each.action for each in await waiting] == ["CreateQueue"]
            assert list(await entries(peer, from_seq=2, wait_ms=1)) == []

    async def test_a_server_that_stops_lets_readers_go(self, serve):
        async with serve() as peer:
            waiting = asyncio.create_task(refusal(peer.admin.ReadAudit(pb.ReadAuditRequest(wait_ms=10_000))))
            await asyncio.sleep(0.2)
            await peer.server._broker.stop()
            code, _ = await waiting
        assert code is grpc.StatusCode.UNAVAILABLE

    @pytest.mark.parametrize("wrong", [{"wait_ms": 10_001}, {"from_seq": 1, "last": 1}, {"who": "**x"}])
    async def test_what_cannot_be_asked_is_refused(self, serve, wrong):
        async with serve() as peer:
            code, _ = await refusal(peer.admin.ReadAudit(pb.ReadAuditRequest(**wrong)))
            assert code is grpc.StatusCode.INVALID_ARGUMENT

    async def test_a_pattern_with_many_stars_holds_up_nobody(self, serve):
        async with serve() as peer:
            await peer.create("a" * 200)
            assert list(await entries(peer, resource="*a" * 100 + "*b")) == []


async def test_a_flood_of_refused_calls_is_counted(serve):
    async with serve() as peer:
        root = await key(peer, "root", "admin")
        eve = await key(peer, "eve", "producer", root)
        first = len(await entries(peer, root))
        for number in range(3 * MOST):
            code, _ = await refusal(peer.admin.DeleteQueue(pb.DeleteQueueRequest(queue=f"q{number}"), metadata=eve))
            assert code is grpc.StatusCode.PERMISSION_DENIED
        assert len(await entries(peer, root)) == first + MOST
        peer.server._refusals.write()
        await asyncio.sleep(0.1)
        found = await entries(peer, root, refused=True)
        assert sum(each.times for each in found) == 3 * MOST
        assert (found[-1].action, found[-1].times) == ("various", 2 * MOST)
