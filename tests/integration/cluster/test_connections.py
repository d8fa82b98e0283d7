"""As many connections to another as its calls need, and no more."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

from fila.cluster.connections import CALLS, MOST, Connections
from fila.cluster.peers import Peers
from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server import Server

STANDING, QUICK = "/a/Standing", "/a/Quick"
HOST = "127.0.0.1"


async def stand(request, call):
    await call.write(request)
    await asyncio.sleep(60)


async def answer(request, call):
    return request


@asynccontextmanager
async def serving():
    """Its address."""
    server = Server(
        {STANDING: Method(stand, bytes, bytes, gives_stream=True), QUICK: Method(answer, bytes, bytes)}, Limits()
    )
    address = f"{HOST}:{await server.listen(HOST, 0)}"
    try:
        yield address
    finally:
        await server.stop(0)


async def open_streams(begin, count):
    calls = [begin() for _ in range(count)]
    for call in calls:
        assert await call.read() == b"here"
    return calls


async def test_more_calls_stand_than_a_connection_allows():
    async with serving() as address:
        peers = Peers.of_members(["", address], 0, 1 << 20)
        assert await peers.ask(1, QUICK, b"first", 20, ()) == b"first"
        await open_streams(lambda: peers.read(1, STANDING, b"here", None, ()), Limits().max_streams + 1)
        assert await peers.ask(1, QUICK, b"still", 20, ()) == b"still"
        await peers.close()


def test_a_connection_carries_fewer_than_the_other_allows():
    assert Limits().max_streams > CALLS
    assert MOST > 1


async def test_there_is_room_until_all_connections_are_busy_and_again_when_a_call_has_ended():
    async with serving() as address:
        connections = Connections(partial(Channel, address), most=2, calls=3)
        begin = lambda: connections.next().unary_stream(STANDING)(b"here")  # noqa: E731
        calls = await open_streams(begin, 5)
        assert connections.has_room
        calls += await open_streams(begin, 1)
        assert not connections.has_room
        assert len({id(connections.next()) for _ in range(9)}) == 1
        calls[0].cancel()
        assert connections.has_room
        await open_streams(begin, 1)
        assert not connections.has_room
        await connections.close()


async def test_few_calls_share_one_connection():
    async with serving() as address:
        made = []

        def make():
            made.append(Channel(address))
            return made[-1]

        connections = Connections(make, most=4, calls=3)
        for _ in range(20):
            assert await connections.next().unary_unary(QUICK)(b"one") == b"one"
        assert len(made) == 1
        await connections.close()
