"""Our server and our client with each other and with gRPC's own, in every pairing."""

import asyncio

import grpc
import pytest

from fila.wire.status import RpcError
from tests.integration.wire.conftest import ENDS, LARGEST, WAIT_S

ERRORS = (RpcError, grpc.aio.AioRpcError)


async def refusal(call):
    with pytest.raises(ERRORS) as refused:
        await call
    return refused.value


async def drain(call):
    """All responses of a call."""
    responses = []
    while (response := await asyncio.wait_for(call.read(), WAIT_S)) not in ENDS:
        responses.append(response)
    return responses


@pytest.mark.parametrize("size", [0, 1, 1000, 16_379, 16_380, 100_000, 5_000_000])
async def test_a_unary_call(peers, size):
    async with peers() as peer:
        payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        assert await peer.channel.unary_unary("/t/echo")(payload, timeout=WAIT_S) == payload


async def test_many_calls_at_once(peers):
    async with peers() as peer:
        echo = peer.channel.unary_unary("/t/echo")
        payloads = [b"%d" % number * (number % 50) for number in range(400)]
        assert await asyncio.gather(*[echo(payload) for payload in payloads]) == payloads


async def test_messages_each_way_in_order(peers):
    async with peers() as peer:
        call = peer.channel.stream_stream("/t/echo_all")()
        for number in range(300):
            payload = b"%d" % number
            await call.write(payload)
            assert await call.read() == payload
        await call.done_writing()
        assert await drain(call) == []
        assert (await call.code()).name == "OK"


async def test_much_under_way_each_way(peers):
    """More than any window: writing waits for the peer to read, and nothing is lost."""
    async with peers() as peer:
        call = peer.channel.stream_stream("/t/echo_all")()
        payloads = [bytes([number]) * 700_000 for number in range(30)]

        async def write():
            for payload in payloads:
                await call.write(payload)
            await call.done_writing()

        _, read = await asyncio.gather(write(), drain(call))
        assert read == payloads


async def test_many_responses(peers):
    async with peers() as peer:
        responses = await drain(peer.channel.unary_stream("/t/count")(b"200 30000"))
        assert responses == [bytes(30_000)] * 200


async def test_a_refusal_comes_with_code_text_and_trailers(peers):
    async with peers() as peer:
        for text in ("plain", "ünïcode % \n and more", ""):
            error = await refusal(peer.channel.unary_unary("/t/refuse")(text.encode()))
            assert (error.code().name, error.details() or "") == ("FAILED_PRECONDITION", text)
            trailers = dict(error.trailing_metadata())
            assert (trailers["why"], trailers["raw-bin"]) == ("so", b"\0\xff")


async def test_a_refusal_after_responses(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/refuse_late")(b"")
        assert await call.read() == b"first"
        error = await refusal(drain(call))
        assert (error.code().name, error.details()) == ("ABORTED", "half-way")


async def test_metadata_both_ways(peers):
    async with peers() as peer:
        sent = (("my-text", "hello"), ("my-bin", b"\0\x01\xfe\xff"))
        call = peer.channel.unary_unary("/t/metadata")
        assert await call(b"", metadata=sent) == b"hello"


async def test_initial_and_trailing_metadata_of_a_stream(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/metadata")(b"", metadata=(("my-text", "hello"), ("my-bin", b"\xff")))
        assert dict(await call.initial_metadata())["head"] == "er"
        assert await drain(call) == [b"hello"]
        trailers = dict(await call.trailing_metadata())
        assert (trailers["trail"], trailers["got-bin"]) == ("er", b"\xff")


async def test_a_deadline_ends_both_sides(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/wait")(b"", timeout=1)
        error = await refusal(drain(call))
        assert error.code().name == "DEADLINE_EXCEEDED"
        await asyncio.wait_for(peer.handlers.cancelled.wait(), WAIT_S)
        rounded_up = 0.01 if peer.kinds[1] == "grpc" else 0  # gRPC sends timeouts from 1 s on in steps of 10 ms
        assert 0 < peer.handlers.seen[0] <= 1 + rounded_up


async def test_a_unary_deadline(peers):
    async with peers() as peer:
        error = await refusal(peer.channel.unary_unary("/t/wait")(b"", timeout=0.2))
        assert error.code().name == "DEADLINE_EXCEEDED"


async def test_a_call_that_is_cancelled_ends_its_handler(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/wait")(b"")
        await call.initial_metadata()
        reading = asyncio.create_task(call.read())
        await asyncio.sleep(0)
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert call.done()
        assert not call.cancel()
        assert (await call.code()).name == "CANCELLED"
        await asyncio.wait_for(peer.handlers.cancelled.wait(), WAIT_S)


async def test_a_task_that_is_cancelled_cancels_its_call(peers):
    async with peers() as peer:

        async def begun():
            while not peer.handlers.seen:
                await asyncio.sleep(0.01)

        task = asyncio.ensure_future(peer.channel.unary_unary("/t/wait")(b""))
        await asyncio.wait_for(begun(), WAIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.handlers.cancelled.wait(), WAIT_S)


async def test_a_connection_that_goes_ends_its_handlers(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/wait")(b"")
        await call.initial_metadata()
        await peer.channel.close()
        await asyncio.wait_for(peer.handlers.cancelled.wait(), WAIT_S)


async def test_an_unknown_method(peers):
    async with peers() as peer:
        assert (await refusal(peer.channel.unary_unary("/t/none")(b""))).code().name == "UNIMPLEMENTED"


async def test_a_handler_that_fails_says_nothing_of_its_inside_with_us(peers):
    async with peers() as peer:
        error = await refusal(peer.channel.unary_unary("/t/fail")(b""))
        assert error.code().name == "UNKNOWN"
        if peer.kinds[0] == "own":
            assert "secret" not in error.details()


async def test_a_request_that_is_too_large_is_refused_and_the_connection_goes_on(peers):
    async with peers() as peer:
        error = await refusal(peer.channel.unary_unary("/t/length")(bytes(LARGEST + 1)))
        # gRPC's own servers do not tell what may be sent again from what may not.
        assert error.code().name == ("INVALID_ARGUMENT" if peer.kinds[0] == "own" else "RESOURCE_EXHAUSTED")
        assert await peer.channel.unary_unary("/t/length")(bytes(LARGEST)) == str(LARGEST).encode()


async def test_a_response_that_is_too_large_is_refused_and_the_connection_goes_on(peers):
    async with peers() as peer:
        error = await refusal(drain(peer.channel.unary_stream("/t/count")(b"1 %d" % (LARGEST + 1))))
        assert error.code().name == "RESOURCE_EXHAUSTED"
        assert await drain(peer.channel.unary_stream("/t/count")(b"2 10")) == [bytes(10)] * 2


async def test_a_slow_reader_slows_down_its_handler(peers):
    """Its handler goes on when it reads; other calls are not held up."""
    async with peers() as peer:
        slow = peer.channel.unary_stream("/t/count")(b"1000 100000")
        await slow.read()
        for _ in range(20):
            assert await peer.channel.unary_unary("/t/echo")(b"x", timeout=WAIT_S) == b"x"
        assert len(await drain(slow)) == 999


async def test_a_server_that_stops_lets_calls_end(peers):
    async with peers() as peer:
        call = peer.channel.stream_stream("/t/echo_all")()
        await call.write(b"before")
        assert await call.read() == b"before"
        stopping = asyncio.create_task(peer.server.stop(WAIT_S))
        await asyncio.sleep(0.1)
        await call.write(b"after")
        assert await call.read() == b"after"
        await call.done_writing()
        assert await drain(call) == []
        await asyncio.wait_for(stopping, WAIT_S)


async def test_a_server_that_stops_at_once_ends_its_calls(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/wait")(b"")
        await call.initial_metadata()
        await peer.server.stop(0)
        error = await refusal(drain(call))
        assert error.code().name in {"UNAVAILABLE", "CANCELLED"}
        assert (await refusal(peer.channel.unary_unary("/t/echo")(b""))).code().name == "UNAVAILABLE"
