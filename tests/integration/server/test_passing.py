"""A member that does not own the shard passes calls on to the one that does."""

import asyncio
from functools import partial

import pytest

from fila.cluster.connections import Connections
from fila.cluster.forwarding import MAP, OWNER
from fila.cluster.peers import Peers
from fila.server import passing
from fila.server.passing import PASSED, MemberForwarding, Passing
from fila.server.status import read_details
from fila.server.types import Method
from fila.v1 import errors_pb2
from fila.wire.channel import Channel
from fila.wire.server import Server
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import EOF

UNARY, GIVES, TALKS = (f"/fila.v1.FilaService/{name}" for name in ("Enqueue", "Lease", "EnqueueStream"))
HOST = "127.0.0.1"


async def greet(request, call):
    return b"%s, %d times passed on" % (request, len(list(call.metadata(PASSED.encode()))))


async def count(request, call):
    for number in range(3):
        await call.write(request + b"%d" % number)


async def talk(_, call):
    while (request := await call.read()) is not EOF:
        await call.write(request + b"!")


METHODS = {
    UNARY: Method(greet, bytes, bytes),
    GIVES: Method(count, bytes, bytes, gives_stream=True),
    TALKS: Method(talk, bytes, bytes, takes_stream=True, gives_stream=True),
}


class Asked:
    """Member `a`, which is asked, and member `b`, which may be the owner."""

    async def __aenter__(self):
        self.owner = None
        self.begins = False
        self._b = Server(METHODS)
        addresses = ["", f"{HOST}:{await self._b.listen(HOST, 0)}"]
        self._peers = Peers.of_members(addresses, 0, 1 << 20)
        forwarding = MemberForwarding(self._peers, ["a", "b"], addresses, lambda: 7)
        self.passing = Passing(forwarding, lambda: self.owner, lambda: self.begins)
        self._a = Server(self.passing.methods())
        self.channel = Channel(f"{HOST}:{await self._a.listen(HOST, 0)}")
        self.address = addresses[1]
        return self

    async def __aexit__(self, *_):
        await self.channel.close()
        await self._peers.close()
        await self._a.stop(0)
        await self._b.stop(0)

    async def ask(self, metadata=(), timeout=20):
        return await self.channel.unary_unary(UNARY)(b"hello", timeout=timeout, metadata=metadata)

    async def count(self):
        call = self.channel.unary_stream(GIVES)(b"n", timeout=20)
        return [response async for response in responses(call)]

    async def talk(self):
        call = self.channel.stream_stream(TALKS)(timeout=20)
        await call.write(b"one")
        await call.write(b"two")
        await call.done_writing()
        return [response async for response in responses(call)]


async def responses(call):
    while (response := await call.read()) is not EOF:
        yield bytes(response)


async def test_every_kind_of_call_is_passed_on():
    async with Asked() as asked:
        asked.owner = 1
        assert await asked.ask() == b"hello, 1 times passed on"
        assert await asked.count() == [b"n0", b"n1", b"n2"]
        assert await asked.talk() == [b"one!", b"two!"]


async def test_a_call_waits_for_an_owner():
    async with Asked() as asked:
        asking = asyncio.ensure_future(asked.ask())
        await asyncio.sleep(0.1)
        assert not asking.done()
        asked.owner = 1
        assert await asking == b"hello, 1 times passed on"


async def test_a_call_that_waited_is_served_here_when_this_member_becomes_the_owner():
    async with Asked() as asked:
        asking = [asyncio.ensure_future(each()) for each in (asked.ask, asked.count, asked.talk)]
        await asyncio.sleep(0.1)
        asked.passing.local = METHODS
        assert await asyncio.gather(*asking) == [
            b"hello, 0 times passed on",
            [b"n0", b"n1", b"n2"],
            [b"one!", b"two!"],
        ]


async def test_a_call_that_was_passed_on_goes_no_further_and_is_told_who_owns():
    async with Asked() as asked:
        asked.owner = 1
        with pytest.raises(RpcError) as refused:
            await asked.ask([(PASSED, "1")])
        assert refused.value.code() is StatusCode.UNAVAILABLE
        trailers = refused.value.trailing_metadata()
        assert read_details(trailers).kind == errors_pb2.ERROR_KIND_SHUTTING_DOWN
        assert dict(trailers)[OWNER] == asked.address
        assert dict(trailers)[MAP] == "7"


async def test_one_that_was_passed_on_waits_for_a_member_that_is_about_to_serve():
    async with Asked() as asked:
        asked.begins = True
        asking = asyncio.ensure_future(asked.ask([(PASSED, "1")]))
        await asyncio.sleep(0.1)
        asked.passing.local = METHODS
        assert await asking == b"hello, 1 times passed on"


async def test_nobody_waits_longer_than_the_caller_does():
    async with Asked() as asked:
        with pytest.raises(RpcError) as refused:
            await asked.ask(timeout=0.3)
        assert refused.value.code() in {StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED}


async def test_an_owner_that_is_away_is_named():
    async with Asked() as asked:
        asked.owner = 1
        await asked._b.stop(0)
        with pytest.raises(RpcError, match="member b is away") as refused:
            await asked.ask()
        assert refused.value.code() is StatusCode.UNAVAILABLE


def waiting_ones(asked, count):
    """Calls that wait, each at an owner that is looked for."""
    return [asyncio.ensure_future(asked.ask()) for _ in range(count)]


async def test_however_many_wait_one_of_them_looks():
    async with Asked() as asked:
        looks = []
        asked.passing._owner = lambda: looks.append(1) or asked.owner
        asking = waiting_ones(asked, 100)
        await asyncio.sleep(0.3)
        looks.clear()
        await asyncio.sleep(0.3)
        assert 0 < len(looks) < 100
        asked.owner = 1
        assert await asyncio.gather(*asking) == [b"hello, 1 times passed on"] * 100


async def test_nobody_looks_when_nobody_waits_any_more():
    async with Asked() as asked:
        looks = []
        asked.passing._owner = lambda: looks.append(1) or asked.owner
        for each in waiting_ones(asked, 3):
            await asyncio.sleep(0.05)
            each.cancel()
        await asyncio.sleep(0.2)
        looks.clear()
        await asyncio.sleep(0.2)
        assert looks == []


async def test_only_so_many_wait_and_the_others_are_told_at_once(monkeypatch):
    monkeypatch.setattr(passing, "MAX_WAITING", 2)
    async with Asked() as asked:
        asking = waiting_ones(asked, 2)
        await asyncio.sleep(0.1)
        with pytest.raises(RpcError, match="2 calls wait already until a member of the cluster serves") as refused:
            await asked.ask()
        assert refused.value.code() is StatusCode.RESOURCE_EXHAUSTED
        assert read_details(refused.value.trailing_metadata()).kind == errors_pb2.ERROR_KIND_OVERLOADED
        asked.owner = 1
        assert await asyncio.gather(*asking) == [b"hello, 1 times passed on"] * 2
        assert await asked.ask() == b"hello, 1 times passed on"


async def test_a_call_for_which_the_way_to_the_owner_has_no_room_is_told_where_to_ask():
    async with Asked() as asked:
        asked.owner = 1
        asked._peers._connections[1] = Connections(partial(Channel, asked.address), most=1, calls=1)
        talking = asked.channel.stream_stream(TALKS)(timeout=20)
        await talking.write(b"one")
        assert await talking.read() == b"one!"
        with pytest.raises(RpcError, match="too many calls are passed on to member b; ask there") as refused:
            await asked.ask()
        assert refused.value.code() is StatusCode.RESOURCE_EXHAUSTED
        trailers = refused.value.trailing_metadata()
        assert read_details(trailers).kind == errors_pb2.ERROR_KIND_OVERLOADED
        assert dict(trailers)[OWNER] == asked.address
        await talking.done_writing()
        while await talking.read() is not EOF:
            pass
        assert await asked.ask() == b"hello, 1 times passed on"
