"""Clients that know several addresses, and members of a cluster that name each other."""

import asyncio
import socket
import threading
from contextlib import asynccontextmanager
from functools import wraps

import grpc
import pytest

from fila import AsyncClient, Client, InvalidArgumentError, UnavailableError
from fila.internal.wire_pb2 import RpcStatus
from fila.testing import ServerProcess
from fila.v1 import errors_pb2
from sdks.conformance.members import Passing
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def server():
    with ServerProcess() as server:
        yield server


def on_a_loop(scenario):
    """A test that is a coroutine."""

    @wraps(scenario)
    def test(**fixtures):
        asyncio.run(asyncio.wait_for(scenario(**fixtures), 60))

    return test


class Elsewhere(grpc.GenericRpcHandler):
    """A member that has nothing: it refuses every call and names the member to ask."""

    def __init__(self, owner):
        self.owner = owner
        self.asked = []

    def service(self, details):
        self.asked.append(details.method.rpartition("/")[2])
        return grpc.stream_stream_rpc_method_handler(self._refuse)

    async def _refuse(self, requests, context):
        status = RpcStatus(code=14, message="ask another member")
        status.details.add().Pack(errors_pb2.Error(code=14, kind=errors_pb2.ERROR_KIND_NOT_OWNER, retryable=True))
        trailers = [("fila-owner", self.owner), ("fila-map", "7")]
        trailers.append(("grpc-status-details-bin", status.SerializeToString()))
        await context.abort(grpc.StatusCode.UNAVAILABLE, "ask another member", trailing_metadata=tuple(trailers))
        yield b""  # which makes it a stream


@asynccontextmanager
async def member(owner):
    elsewhere, server = Elsewhere(owner), grpc.aio.server()
    server.add_generic_rpc_handlers((elsewhere,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield elsewhere, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@on_a_loop
async def test_a_client_goes_to_the_owner_that_a_passed_on_answer_names(server):
    with Passing(server.addr) as passing:
        async with AsyncClient(passing.addr, timeout=20) as client:
            await client.create_queue("passed")
            await life_of_a_message(client, "passed-2")
        assert passing.asked == ["CreateQueue"]  # from then on it goes to the owner


@on_a_loop
async def test_answers_that_are_passed_on_move_a_client_now_and_then_only(server):
    """A client whose queues have several owners would otherwise connect anew for every call."""
    with Passing(server.addr) as first, Passing(server.addr) as second:
        first.owner, second.owner = second.addr, first.addr
        async with AsyncClient(first.addr, timeout=20) as client:
            for _ in range(5):
                await client.list_queues()
        assert (len(first.asked), len(second.asked)) == (1, 4)


@on_a_loop
async def test_an_address_that_takes_connections_and_ends_them_is_left(server):
    with Proxy(server.addr) as dead:
        dead.cut()
        async with AsyncClient([dead.addr, server.addr], timeout=20) as client:
            with pytest.raises(UnavailableError):
                await client.list_queues()
            await life_of_a_message(client, "left")


async def life_of_a_message(client, queue):
    """Every kind of call: unary, and each of the streams."""
    await client.create_queue(queue)
    sent = await client.enqueue(queue, payload=b"x")
    async for message in client.consume(queue):
        assert message.id == sent
        await message.ack()
        break
    assert (await client.queue_stats(queue)).summary.depth == 0


@on_a_loop
async def test_a_client_follows_the_member_that_another_one_names(server):
    async with member(server.addr) as (elsewhere, addr):
        async with AsyncClient(addr, timeout=20) as client:
            await life_of_a_message(client, "followed")
        assert elsewhere.asked == ["CreateQueue"]  # from then on it goes where it was sent


@pytest.mark.parametrize("method", ["EnqueueStream", "Consume"])
@on_a_loop
async def test_so_does_a_stream(server, method):
    with Client(server.addr) as client:
        client.create_queue(f"streamed-{method}")
        client.enqueue(f"streamed-{method}", payload=b"x")
    async with member(server.addr) as (elsewhere, addr), AsyncClient(addr, timeout=20) as client:
        if method == "EnqueueStream":
            await client.enqueue(f"streamed-{method}", payload=b"y")
        else:
            async for message in client.consume(f"streamed-{method}"):
                await message.ack()
                break
        assert elsewhere.asked[0] == method


@on_a_loop
async def test_so_does_a_client_that_blocks(server):
    async with member(server.addr) as (elsewhere, addr):

        def use():
            with Client(addr, timeout=20) as client:
                client.ensure_queue("blocked")
                assert client.enqueue("blocked", payload=b"x")
                for message in client.consume("blocked"):
                    message.ack()
                    break

        await asyncio.to_thread(use)
        assert set(elsewhere.asked) == {"CreateQueue"}  # addresses are shared by all connections of a client


@on_a_loop
async def test_members_that_name_each_other_in_a_circle_end_in_an_error():
    async with member("") as (first, addr), member(addr) as (second, other):
        first.owner = other
        async with AsyncClient(addr, timeout=5) as client:
            with pytest.raises(UnavailableError, match="ask another member") as refused:
                await client.list_queues()
        assert refused.value.kind == "not_owner"
        assert len(first.asked) + len(second.asked) == 4


@on_a_loop
async def test_the_first_address_that_answers_is_used(server):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    async with AsyncClient([nobody, server.addr], timeout=20) as client:
        await life_of_a_message(client, "second")
    with Client(f"{nobody},{server.addr}", timeout=20) as client:
        client.create_queue("second-blocking")
        assert client.enqueue("second-blocking", payload=b"x")


def test_when_one_way_is_cut_the_other_is_taken_and_nothing_is_lost_or_doubled(server):
    with Proxy(server.addr) as one, Proxy(server.addr) as other, Client([one.addr, other.addr], timeout=30) as client:
        client.create_queue("cut")
        for number in range(20):
            if number == 7:
                one.swallows_answers = True
                lost = threading.Thread(target=lambda: (one.wait_until_swallowed(b"\n$", 20), one.cut()))
                lost.start()
            client.enqueue("cut", payload=b"%d" % number)
        lost.join()
        assert client.queue_stats("cut").summary.depth == 20


def test_no_address_is_an_error_that_says_so():
    with pytest.raises(InvalidArgumentError, match="addr = ' , '"):
        Client(" , ")
