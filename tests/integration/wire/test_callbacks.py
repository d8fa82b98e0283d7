"""Calls of our client that are served by callbacks, against either server."""

import asyncio

import pytest

from fila.wire.status import RpcError, StatusCode
from tests.integration.wire.conftest import WAIT_S

pytestmark = pytest.mark.parametrize("peers", ["own-own", "grpc-own"], indirect=True)


async def test_each_response_is_handed_over_in_order(peers):
    async with peers() as peer:
        got: list[int] = []
        await asyncio.wait_for(
            peer.channel.unary_stream("/t/count")(b"200 5000").each(lambda each: got.append(len(each))), WAIT_S
        )
        assert got == [5000] * 200


async def test_what_came_before_a_refusal_is_handed_over(peers):
    async with peers() as peer:
        got: list[bytes] = []
        with pytest.raises(RpcError) as refused:
            await peer.channel.unary_stream("/t/refuse_late")(b"").each(got.append)
        assert refused.value.code() is StatusCode.ABORTED
        assert got == [b"first"]


async def test_one_who_cannot_take_a_response_ends_the_call_and_no_other(peers):
    async with peers() as peer:
        call = peer.channel.unary_stream("/t/count")(b"3 10")
        with pytest.raises(ZeroDivisionError):
            await call.each(lambda each: 1 / 0)
        assert call.done()
        assert await peer.channel.unary_unary("/t/echo")(b"x", timeout=WAIT_S) == b"x"


async def test_requests_are_sent_while_there_is_room(peers):
    """More than any window: no more is sent than the peer takes, and nothing is lost."""
    async with peers() as peer:
        call = peer.channel.stream_stream("/t/echo_all")()
        left = [bytes([number]) * 700_000 for number in range(30)]
        expected, got = list(left), []

        def write():
            while left and call.has_room:
                call.send(left.pop(0))

        def take(response):
            got.append(response)
            if len(got) == 30:
                call.cancel()

        assert not call.has_room  # there is no connection yet
        call.on_writable = write
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call.each(take), WAIT_S)
        assert got == expected
        assert not call.has_room
