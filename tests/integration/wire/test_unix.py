"""Servers of one machine that talk over Unix sockets, share a port, and hand calls over."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from fila.cluster.caller import PassedServer, write_caller
from fila.cluster.forwarding import Forwarding
from fila.cluster.peers import KEEPALIVE_S, REQUEST_WINDOW, RESPONSE_WINDOW, Peers, limits, socket_path
from fila.wire.channel import Channel
from fila.wire.memory_quota import Shares
from fila.wire.method import Method
from fila.wire.server import Quotas, Server
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import EOF
from fila.wire.unix_channel import UnixChannel

LARGEST = 1 << 20


def method(handler, **more):
    return Method(handler, bytes, bytes, **more)


@asynccontextmanager
async def served(methods, path, quotas=Quotas()):  # noqa: B008 - it cannot be changed
    """A server of the socket, and a client of it."""
    server = PassedServer(methods, limits(LARGEST, REQUEST_WINDOW), quotas=quotas)
    await server.listen_unix(str(path))
    channel = UnixChannel(str(path), limits(LARGEST, RESPONSE_WINDOW), KEEPALIVE_S)
    try:
        yield channel
    finally:
        await channel.close()
        await server.stop(1)


async def test_more_calls_are_open_than_a_client_may_have(tmp_path):
    """Many callers share one connection between two workers; and they may all leave at once."""
    begun = asyncio.Semaphore(0)

    async def wait(_, __):
        begun.release()
        await asyncio.Event().wait()

    async def answer(request, _):
        return request

    methods = {"/s/Wait": method(wait, gives_stream=True), "/s/Echo": method(answer)}
    async with served(methods, tmp_path / "socket") as channel:
        calls = [channel.unary_stream("/s/Wait")(b"") for _ in range(3000)]
        for _ in calls:
            await begun.acquire()
        assert await channel.unary_unary("/s/Echo")(b"x") == b"x"
        for call in calls:
            call.cancel()
        assert await channel.unary_unary("/s/Echo")(b"y") == b"y"


@pytest.mark.parametrize("leave", ["cancel", "lose"])
async def test_a_call_says_whether_its_caller_was_lost(tmp_path, leave):
    begun, ended = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def wait(_, call):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set_result(call.connection_lost)

    async with served({"/s/Wait": method(wait, gives_stream=True)}, tmp_path / "socket") as channel:
        call = channel.unary_stream("/s/Wait")(b"")
        await begun.wait()
        getattr(call, leave)()
        assert await ended is (leave == "lose")


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("leave", ["cancel", "lose"])
async def test_how_a_caller_has_left_is_passed_on(tmp_path, leave, streams):
    """A connection that is lost is one at the server that a call is passed on to; a call that is cancelled is not."""
    begun, ended = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def wait(_, call):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set_result(call.connection_lost)

    inner = PassedServer(
        {"/s/Wait": method(wait, takes_stream=streams, gives_stream=True)}, limits(LARGEST, REQUEST_WINDOW)
    )
    await inner.listen_unix(socket_path(tmp_path, 1))
    peers = Peers.of_workers(tmp_path, 2, 0, LARGEST)
    forwarding = Forwarding(peers, 0)

    async def pass_on(request, call):
        if streams:
            await forwarding.pass_talk(1, "/s/Wait", call)
        else:
            await forwarding.pass_responses(1, "/s/Wait", request, call)

    outer = Server({"/s/Wait": method(pass_on, takes_stream=streams, gives_stream=True)})
    port = await outer.listen("127.0.0.1", 0)
    channel = Channel(f"127.0.0.1:{port}")
    call = channel.stream_stream("/s/Wait")() if streams else channel.unary_stream("/s/Wait")(b"")
    await begun.wait()
    if leave == "cancel":
        call.cancel()
    else:
        channel._current.transport.abort()
    assert await ended is (leave == "lose")
    await channel.close()
    await outer.stop(1)
    await peers.close()
    await inner.stop(1)


async def test_a_caller_is_told_to_the_other_server_and_to_no_one_else(tmp_path):
    """Address and credentials go along; metadata of the caller's own that looks like ours does not."""

    async def say(_, call):
        keys = ",".join(call.metadata(b"authorization"))
        return f"{call.peer()} {call.peer_address} {keys} {call.peer_certificate}".encode()

    async with served({"/s/Say": method(say)}, tmp_path / "socket") as inner:

        async def pass_on(request, call):
            said = await inner.unary_unary("/s/Say")(request, metadata=write_caller(call))
            return said + b" of " + call.peer().encode()

        outer = Server({"/s/Pass": method(pass_on)})
        port = await outer.listen("127.0.0.1", 0)
        channel = Channel(f"127.0.0.1:{port}")
        forged = (("authorization", "Bearer k"), ("fila-peer", "203.0.113.1:9"), ("fila-certificate-bin", b"{}"))
        said = (await channel.unary_unary("/s/Pass")(b"", metadata=forged)).decode()
        told, real = said.split(" of ")
        assert told == f"{real} 127.0.0.1 Bearer k None"
        await channel.close()
        await outer.stop(1)


async def test_a_call_is_looked_at_and_then_served_by_another_method(tmp_path):
    """`peek` takes nothing, and from `serve_as` on the other method decodes and encodes."""

    async def add(_, call):
        total = 0
        while (number := await call.read()) is not EOF:
            total += number
        await call.write(total)

    adding = Method(add, int, lambda total: str(total).encode(), takes_stream=True, gives_stream=True)

    async def route(_, call):
        first = await call.peek()
        assert call.decoded(adding, first) == 1
        assert await call.peek() == first
        call.serve_as(adding)
        await add(None, call)

    async with served({"/s/Add": method(route, takes_stream=True, gives_stream=True)}, tmp_path / "socket") as channel:
        call = channel.stream_stream("/s/Add")()
        for number in (b"1", b"2", b"3"):
            await call.write(number)
        await call.done_writing()
        assert await call.read() == b"6"
        empty = channel.stream_stream("/s/Add")()
        await empty.write(b"no number")
        with pytest.raises(RpcError) as refused:
            await empty.read()
        assert refused.value.code() is StatusCode.INTERNAL


async def test_a_response_comes_when_there_is_room_for_it(tmp_path):
    """Before, no more than a window of it is here, and its size is known; others on the connection go on."""
    sizes = [10, 300_000, 0, 70_000, 900_000]

    async def count(_, call):
        for size in sizes:
            await call.write(bytes(size))

    async def echo(request, _):
        return request

    methods = {"/s/Count": method(count, gives_stream=True), "/s/Echo": method(echo)}
    async with served(methods, tmp_path / "socket") as channel:
        call = channel.unary_stream("/s/Count")(b"")
        told = []

        async def room(size):
            told.append(size)
            for _ in range(3):
                assert await channel.unary_unary("/s/Echo")(b"x") == b"x"
            assert call._stream.unreturned <= RESPONSE_WINDOW

        seen = []
        while (response := await call.pull(room)) is not EOF:
            seen.append(len(response))
        assert seen == sizes
        assert all(size in {0, real} for size, real in zip(told, sizes, strict=False))


async def test_callers_that_do_not_read_end_their_own_calls_and_not_the_connection(tmp_path):
    """The calls that hold most end; what others ask over the same connection goes on."""
    others, held = asyncio.Event(), 2 << 20

    async def pour(_, call):
        await call.write(bytes(200_000))

    async def wait(_, __):
        others.set()
        await asyncio.Event().wait()

    async def echo(request, _):
        return request

    methods = {
        "/s/Pour": method(pour, gives_stream=True),
        "/s/Wait": method(wait, gives_stream=True),
        "/s/Echo": method(echo),
    }
    async with served(methods, tmp_path / "socket", Quotas(shares=Shares(held, held, held))) as channel:
        waits = channel.unary_stream("/s/Wait")(b"")
        await others.wait()
        unread = [channel.unary_stream("/s/Pour")(b"") for _ in range(300)]
        for call in unread:
            call._stream.pulled = True
        ended = [call for call in unread if await _ends(call, channel)]
        assert ended, "nothing was evicted"
        assert {await call.code() for call in ended} <= {StatusCode.CANCELLED, StatusCode.RESOURCE_EXHAUSTED}
        assert not waits.done()
        waits.cancel()


async def _ends(call, channel):
    """Whether a call has ended after an answer on the same connection."""
    assert await channel.unary_unary("/s/Echo")(b"x") == b"x"
    return call.done()


async def test_servers_share_a_port():
    """Both are reached; when one stops, new connections go to the other."""

    def named(name):
        async def say(_, __):
            return name

        return Server({"/s/Say": method(say)})

    async def ask(port):
        channel = Channel(f"127.0.0.1:{port}")
        try:
            return await channel.unary_unary("/s/Say")(b"")
        finally:
            await channel.close()

    one, two = named(b"one"), named(b"two")
    port = await one.listen("127.0.0.1", 0, shared=True)
    assert await two.listen("127.0.0.1", port, shared=True) == port
    seen = set()
    while len(seen) < 2:
        seen.add(await ask(port))
    await one.stop(1)
    assert {await ask(port) for _ in range(20)} == {b"two"}
    await two.stop(1)
    with pytest.raises(RpcError):
        await ask(port)
