"""Peers that leave with many open calls: these end a few at a time, and nothing of them is left."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from fila.wire import frames
from fila.wire.method import Method
from fila.wire.server import Server
from fila.wire.server_protocol import CALLS_ENDED_AT_ONCE
from tests.hostile.support import GREETING, data_frames, open_stream, prefixed

PEERS = 6
CALLS = 40
WAIT_S = 60


class Waiting:
    """A handler that waits for ever, and tells when it was ended."""

    def __init__(self):
        self.calls = []
        self.ended = 0

    async def __call__(self, _, call):
        self.calls.append(call)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended += 1


@asynccontextmanager
async def crowd(*, peers=PEERS):
    """A server, a handler, and peers each of which has open calls with a request that nobody has read."""
    handler = Waiting()
    server = Server({"/t/wait": Method(handler, bytes, bytes, takes_stream=True, gives_stream=True)})
    port = await server.listen("127.0.0.1", 0)
    writers = []
    try:
        async with asyncio.timeout(WAIT_S):
            for _ in range(peers):
                writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
                writers[-1].write(GREETING)
                for number in range(CALLS):
                    stream_id = 2 * number + 1
                    writers[-1].write(open_stream(stream_id, "/t/wait"))
                    writers[-1].writelines(data_frames(stream_id, prefixed(b"unread")))
            while len(handler.calls) < peers * CALLS or any(not call._stream.messages for call in handler.calls):
                await asyncio.sleep(0.001)
            yield server, handler, writers
    finally:
        for writer in writers:
            writer.close()
        await server.stop(0)


async def ends_by_turn(handler):
    """How many calls ended in each turn of the event loop."""
    ends = []
    while handler.ended < len(handler.calls):
        before = handler.ended
        await asyncio.sleep(0)
        ends.append(handler.ended - before)
    return ends


def vanish(writers):
    for writer in writers:
        writer.transport.abort()


def reset_all(writers):
    for writer in writers:
        writer.writelines(frames.rst_stream(2 * number + 1, frames.CANCEL) for number in range(CALLS))


@pytest.mark.parametrize("leave", [vanish, reset_all])
async def test_a_turn_of_the_event_loop_ends_a_few_calls_however_many_are_left(leave):
    async with crowd() as (server, handler, writers):
        leave(writers)
        assert max(await ends_by_turn(handler)) <= CALLS_ENDED_AT_ONCE
        while server._calls:  # what follows the end of a handler
            await asyncio.sleep(0)


async def test_nothing_is_left_of_peers_that_have_left():
    async with crowd() as (server, handler, writers):
        assert server.memory.held > 0
        vanish(writers)
        while server._calls or server._protocols or server.memory.peers:
            await asyncio.sleep(0)
        assert handler.ended == PEERS * CALLS
        assert server.memory.held == 0


async def test_a_call_that_waits_for_its_end_receives_and_answers_nothing():
    async with crowd() as (server, handler, writers):
        vanish(writers)
        while server._protocols:
            await asyncio.sleep(0)
        assert handler.ended < len(handler.calls), "some have not ended"
        for call in handler.calls:
            assert call.connection_lost
            assert call.take() is None
            assert not call.ready_to_send()
            with pytest.raises(asyncio.CancelledError):
                await call.read()
            with pytest.raises(asyncio.CancelledError):
                await call.write(b"too late")


async def test_a_caller_that_left_a_call_before_its_connection_was_lost_did_so_on_purpose():
    async with crowd(peers=1) as (_, handler, writers):
        reset_all(writers)
        while not all(call._responder.ended for call in handler.calls):
            await asyncio.sleep(0)
        vanish(writers)
        await ends_by_turn(handler)
        assert not any(call.connection_lost for call in handler.calls)


async def test_a_server_that_stops_waits_for_calls_that_were_left():
    async with crowd() as (server, handler, writers):
        vanish(writers)
        while server._protocols:
            await asyncio.sleep(0)
        await server.stop(WAIT_S)
        assert handler.ended == len(handler.calls)
