"""A server that says nothing, or nonsense: every call ends in time, with an error of the SDK."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import grpc
import pytest

from fila import AsyncClient, Client, FilaError, FilaTimeoutError, InternalError
from fila.v1 import admin_pb2

PATIENCE_S = 8
"""Longer than any call takes on a busy machine, and less than a connection takes to be noticed as dead."""
GARBAGE = b"\xff\xff\xff\xff"


class AnyMethod(grpc.GenericRpcHandler):
    """Answers every method, whatever it is, with bytes, or with nothing for ever."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer

    def service(self, _):
        async def serve(requests, context) -> AsyncIterator[bytes]:
            await context.send_initial_metadata([("fila-visibility-timeout-ms", "30000")])
            async for _ in requests:
                if self._answer is None:
                    await asyncio.sleep(3600)
                yield self._answer

        return grpc.stream_stream_rpc_method_handler(serve)


@contextmanager
def serving(answer: bytes | None) -> Iterator[str]:
    """The server on an event loop of its own, so that blocking clients can be tested."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start():
        server = grpc.aio.server()
        server.add_generic_rpc_handlers([AnyMethod(answer)])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, f"127.0.0.1:{port}"

    def run(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)

    server, addr = run(start())
    try:
        yield addr
    finally:
        run(server.stop(None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


CALLS: dict[str, Callable[[Client], object]] = {
    "read_queue": lambda client: list(client.read_queue("q")),
    "group.read": lambda client: list(client.group("q", "g").read(1)),
    "read_journal": lambda client: list(client.read_journal()),
    "enqueue": lambda client: client.enqueue("q", payload=b"x"),
    "enqueue_many": lambda client: client.enqueue_many("q", [b"x"]),
    "ack": lambda client: client.ack("q", "id"),
    "list_queues": lambda client: client.list_queues(),
    "queue_stats": lambda client: client.queue_stats("q"),
    "peek": lambda client: client.peek("q"),
    "redrive": lambda client: client.redrive("q.dlq"),
    "explain": lambda client: client.explain("q"),
    "claim": lambda client: client.group("q", "g").claim(0),
    "stage": lambda client: client.transaction("p", 1).stage("q", [b"x"]),
    "commit": lambda client: client.transaction("p", 1).commit([]),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_says_nothing_is_given_up_at_the_deadline(call):
    with serving(None) as addr, Client(addr, timeout=0.3) as client:
        began = time.monotonic()
        with pytest.raises(FilaError) as raised:
            CALLS[call](client)
        took = time.monotonic() - began
        assert 0.25 < took < PATIENCE_S
        errors = [raised.value, *getattr(raised.value, "failed", {}).values()]
        assert any(isinstance(error, FilaTimeoutError) for error in errors)


@pytest.mark.parametrize("call", CALLS)
def test_garbage_is_an_internal_error_at_once(call):
    with serving(GARBAGE) as addr, Client(addr, timeout=PATIENCE_S * 4) as client:
        began = time.monotonic()
        with pytest.raises(FilaError) as raised:
            CALLS[call](client)
        assert time.monotonic() - began < PATIENCE_S
        errors = [raised.value, *getattr(raised.value, "failed", {}).values()]
        assert any(isinstance(error, InternalError) for error in errors)


def test_a_consumer_that_is_sent_garbage_ends_with_an_internal_error():
    with serving(GARBAGE) as addr, Client(addr, timeout=PATIENCE_S) as client, pytest.raises(InternalError):
        next(iter(client.consume("q")))


@pytest.mark.parametrize(
    "section",
    [
        admin_pb2.JournalSection(first_seq=1, rows=3, lanes=[7]),
        admin_pb2.JournalSection(first_seq=1, rows=3, lanes=[0], notes=["a", "b"]),
    ],
    ids=["a lane that is not there", "fewer notes than rows"],
)
def test_a_journal_whose_columns_do_not_fit_is_an_internal_error(section):
    record = admin_pb2.JournalRecord(sections=[section], lanes=[admin_pb2.JournalLane(queue="q")])
    response = admin_pb2.ReadJournalResponse(records=[record]).SerializeToString()
    with serving(response) as addr, Client(addr, timeout=PATIENCE_S) as client, pytest.raises(InternalError):
        list(client.read_journal())


@pytest.mark.parametrize("answer", [None, GARBAGE], ids=["nothing", "garbage"])
def test_the_asynchronous_client_does_the_same(answer):
    async def read(addr):
        timeout = 0.5 if answer is None else PATIENCE_S * 4  # garbage has to arrive, however busy the machine is
        async with AsyncClient(addr, timeout=timeout) as client:
            began = asyncio.get_running_loop().time()
            for pieces in (client.read_queue("q"), client.group("q", "g").read(1), client.read_journal()):
                with pytest.raises(FilaTimeoutError if answer is None else InternalError):
                    async for _ in pieces:
                        pass
            return asyncio.get_running_loop().time() - began

    with serving(answer) as addr:
        assert asyncio.run(read(addr)) < PATIENCE_S
