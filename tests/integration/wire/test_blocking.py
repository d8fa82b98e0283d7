"""A call without an event loop, against both servers."""

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager

import pytest

from fila.wire.blocking import BlockingConnection
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server import Server
from fila.wire.status import RpcError, StatusCode

from .conftest import LARGEST, SERVERS, Handlers, identity


def soon(seconds=10.0):
    return time.monotonic() + seconds


def connected(port, path="/t/echo_all", limits=Limits(max_message_bytes=LARGEST)):  # noqa: B008  # it cannot be changed
    connection = BlockingConnection(limits)
    connection.connect(f"127.0.0.1:{port}", path, soon())
    return connection


@contextmanager
def connection_to(port, path="/t/echo_all", limits=Limits(max_message_bytes=LARGEST)):  # noqa: B008  # it cannot be changed
    connection = connected(port, path, limits)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture(params=["own", "grpc"])
def serving(request):
    return lambda: SERVERS[request.param](Handlers())


def raised_by(port, path, request=b"x", limits=Limits(max_message_bytes=LARGEST)):  # noqa: B008
    with connection_to(port, path, limits) as connection, pytest.raises(RpcError) as raised:
        connection.ask(request, soon())
    return raised.value


async def test_answers_come_to_what_was_asked_whatever_its_size(serving):
    def ask(port):
        with connection_to(port) as connection:
            for size in (0, 1, 5_000_000, 100, 20_000, LARGEST - 100):
                request = bytes([size % 251]) * size
                assert connection.ask(request, soon()) == request

    async with serving() as (_, port):
        await asyncio.to_thread(ask, port)


async def test_a_call_that_the_server_refuses_says_why(serving):
    async with serving() as (_, port):
        error = await asyncio.to_thread(raised_by, port, "/t/none")
        assert error.code() is StatusCode.UNIMPLEMENTED


async def test_an_answer_that_is_too_large_is_refused(serving):
    async with serving() as (_, port):
        error = await asyncio.to_thread(raised_by, port, "/t/echo_all", bytes(2000), Limits(max_message_bytes=1000))
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED


async def test_waiting_ends_at_the_deadline(serving):
    def ask(port):
        with connection_to(port, "/t/wait") as connection:
            with pytest.raises(RpcError) as raised:
                connection.ask(b"x", soon(0.2))
            assert raised.value.code() is StatusCode.DEADLINE_EXCEEDED

    async with serving() as (_, port):
        await asyncio.to_thread(ask, port)


async def test_a_server_that_stops_ends_the_call(serving):
    async with serving() as (server, port):
        connection = await asyncio.to_thread(connected, port)
        assert await asyncio.to_thread(connection.ask, b"x", soon()) == b"x"
        assert connection.still_open()
        await server.stop(0)
        assert not connection.still_open()
        with pytest.raises(RpcError) as raised:
            await asyncio.to_thread(connection.ask, b"x", soon())
        assert raised.value.code() is StatusCode.UNAVAILABLE
        connection.close()


@asynccontextmanager
async def impatient_server():
    """Asks a silent caller after a tenth of a second, and gives it up a second later."""
    methods = {"/t/echo_all": Method(Handlers().echo_all, identity, identity, takes_stream=True, gives_stream=True)}
    server = Server(methods, keepalive=(0.1, 1.0))
    try:
        yield await server.listen("127.0.0.1", 0)
    finally:
        await server.stop(0)


async def test_a_connection_that_is_looked_at_is_kept_and_one_that_is_not_is_given_up():
    async with impatient_server() as port:
        watched, forgotten = [await asyncio.to_thread(connected, port) for _ in range(2)]
        for _ in range(100):
            await asyncio.sleep(0.02)
            assert watched.still_open()
        assert await asyncio.to_thread(watched.ask, b"x", soon()) == b"x"
        assert not forgotten.still_open()
        watched.close()
        forgotten.close()
