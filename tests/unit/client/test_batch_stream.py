"""A stream of batches: a broken codec leaves no caller waiting, and what may be forgotten is not sent again."""

import asyncio

import pytest

from fila.client import batch_stream
from fila.client.aio import AsyncClient
from fila.client.batch_stream import BatchStream
from fila.client.connection import Connection
from fila.client.errors import FailedPreconditionError, InternalError
from fila.client.producer import EnqueueCodec
from fila.client.waiter import Waiter
from tests.helpers.scripted_broker import ScriptedBroker, serving


class BrokenCodec:
    repeatable_s = 1.0

    def make_batch(self, gathered):
        raise ZeroDivisionError

    def answer(self, batch, response):
        raise AssertionError("nothing was sent")


def test_a_defect_reaches_all_callers_now_and_later():
    async def main():
        loop = asyncio.get_running_loop()
        async with serving(ScriptedBroker()) as addr:
            connection = Connection(addr, 5.0)
            stream = BatchStream(connection.open_enqueue, BrokenCodec(), 5.0)
            loop.set_exception_handler(lambda *_: None)
            for _ in range(2):
                reply = loop.create_future()
                stream.submit(Waiter(reply, loop.time() + 5.0))
                with pytest.raises(InternalError, match="ZeroDivisionError"):
                    await asyncio.wait_for(reply, 2.0)
            await stream.close()
            await connection.close()

    asyncio.run(main())


@pytest.mark.parametrize("repeatable_s", [540.0, 0.0])
def test_what_the_broker_may_have_forgotten_is_not_sent_again(monkeypatch, repeatable_s):
    """With the answer of `x` lost, it is repeated under its number, or its caller is told that nobody knows."""
    monkeypatch.setattr(EnqueueCodec, "repeatable_s", repeatable_s)

    async def main():
        broker = ScriptedBroker()
        broker.script.append("lose answer")
        async with serving(broker) as addr, AsyncClient(addr, timeout=10.0) as client:
            if repeatable_s:
                assert await client.enqueue("q", payload=b"x") == "id-1"
            else:
                with pytest.raises(FailedPreconditionError) as raised:
                    await client.enqueue("q", payload=b"x")
                assert raised.value.kind == "stale_sequence"
                assert not raised.value.retryable
            assert await client.enqueue("q", payload=b"y") == "id-2"
        assert broker.enqueued == [b"x", b"y"]
        assert broker.sequences == ([1, 1, 2] if repeatable_s else [1, 2])

    asyncio.run(main())


def test_a_machine_that_slept_does_not_send_again_what_the_broker_has_forgotten(monkeypatch):
    """The clock of an event loop stands still meanwhile."""
    slept = iter([0.0])
    monkeypatch.setattr(batch_stream, "since_boot", lambda: next(slept, 3600.0))

    async def main():
        broker = ScriptedBroker()
        broker.script.append("lose answer")
        async with serving(broker) as addr, AsyncClient(addr, timeout=10.0) as client:
            with pytest.raises(FailedPreconditionError):
                await client.enqueue("q", payload=b"x")
        assert broker.sequences == [1]

    asyncio.run(main())
