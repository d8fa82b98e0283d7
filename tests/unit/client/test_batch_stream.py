"""A stream of batches whose codec is broken must not leave its callers waiting."""

import asyncio

import pytest

from fila.client.batch_stream import BatchStream
from fila.client.connection import Connection
from fila.client.errors import InternalError
from fila.client.waiter import Waiter
from tests.helpers.scripted_broker import ScriptedBroker, serving


class BrokenCodec:
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
