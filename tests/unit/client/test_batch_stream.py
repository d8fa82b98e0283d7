"""A stream of batches: a broken codec leaves no caller waiting, and what may be forgotten is not sent again."""

import asyncio
import time

import pytest

from fila.client import batch_stream
from fila.client.aio import AsyncClient
from fila.client.batch_stream import BatchStream
from fila.client.connection import Connection
from fila.client.errors import FailedPreconditionError, FilaTimeoutError, InternalError, OverloadedError
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


def test_batches_that_may_have_been_carried_out_keep_their_numbers_and_order_when_they_are_refused_for_a_while():
    """Both were carried out and their answers lost. Under other numbers they would be enqueued twice."""

    async def main():
        broker = ScriptedBroker()
        broker.script.extend(["ignore", "lose answer", "overloaded"])
        async with serving(broker) as addr, AsyncClient(addr, timeout=30.0) as client:
            first = asyncio.create_task(client.enqueue("q", payload=b"x"))
            while not broker.enqueued:
                await asyncio.sleep(0.01)
            assert await client.enqueue("q", payload=b"y") == "id-2"
            assert await first == "id-1"
            assert await client.enqueue("q", payload=b"z") == "id-3"
        assert broker.enqueued == [b"x", b"y", b"z"]
        assert broker.sequences == [1, 2, 1, 1, 2, 3]

    asyncio.run(main())


def test_an_ack_that_is_refused_for_a_while_is_still_one_that_was_sent_before():
    async def main():
        broker = ScriptedBroker()
        broker.held.add("a")
        broker.script.extend(["lose answer", "overloaded", "overloaded"])
        async with serving(broker) as addr, AsyncClient(addr, timeout=30.0) as client:
            await client.ack("q", "a")
        assert broker.acked == ["a"]
        assert not broker.script

    asyncio.run(main())


def test_a_refusal_of_what_was_never_sent_before_is_told_at_once():
    async def main():
        broker = ScriptedBroker()
        broker.script.append("overloaded")
        async with serving(broker) as addr, AsyncClient(addr, timeout=30.0) as client:
            with pytest.raises(OverloadedError, match="too much waits"):
                await client.enqueue("q", payload=b"x")
            assert await client.enqueue("q", payload=b"x") == "id-1"
        assert broker.sequences == [1, 2]

    asyncio.run(main())


def test_what_is_refused_until_its_deadline_may_or_may_not_have_been_carried_out():
    async def main():
        broker = ScriptedBroker()
        broker.script.extend(["lose answer", *["overloaded"] * 1000])
        async with serving(broker) as addr, AsyncClient(addr, timeout=1.0) as client:
            with pytest.raises(FilaTimeoutError, match="too much waits"):
                await client.enqueue("q", payload=b"x")
            broker.script.clear()
            assert await client.enqueue("q", payload=b"y") == "id-2"
        assert broker.enqueued == [b"x", b"y"]
        assert set(broker.sequences) == {1, 2}

    asyncio.run(main())


def test_it_comes_again_no_sooner_than_the_broker_asks():
    async def main():
        broker = ScriptedBroker()
        broker.script.extend(["lose answer", "quota"])
        async with serving(broker) as addr, AsyncClient(addr, timeout=30.0) as client:
            began = time.monotonic()
            assert await client.enqueue("q", payload=b"x") == "id-1"
            assert time.monotonic() - began >= 1.0

    asyncio.run(main())
