"""How calls of `AsyncClient` end: in time, by a close, and with nothing left behind."""

import asyncio

import pytest

from fila import AsyncClient, ClientClosedError, FilaTimeoutError

LONG = 60


def scenario(test):
    """Runs an async test with a client and a queue."""

    def run(server):
        async def main():
            async with AsyncClient(server.addr, timeout=30) as client:
                await client.create_queue("q")
                try:
                    await test(client, server.addr)
                finally:
                    async with AsyncClient(server.addr, timeout=30) as cleaner:
                        await cleaner.delete_queue("q", force=True)

        asyncio.run(asyncio.wait_for(main(), LONG))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def test_a_message_whose_time_is_over_is_not_kept():
    async def main():
        async with AsyncClient("127.0.0.1:1", timeout=0.2) as client:
            for _ in range(3):
                sent = [client.enqueue("q", payload=bytes(1000)) for _ in range(50)]
                results = await asyncio.gather(*sent, return_exceptions=True)
                assert {type(each) for each in results} == {FilaTimeoutError}
            await asyncio.sleep(0.1)
            assert not client._session().producer._stream._gathered

    asyncio.run(main())


@scenario
async def test_a_close_that_is_cancelled_closes_all_the_same(client, addr):
    consumers = [client.consume("q") for _ in range(3)]
    waiting = [asyncio.ensure_future(anext(consumer)) for consumer in consumers]
    await client.enqueue("q")
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    session = client._session()
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await client.close()
    assert not session._consumers
    assert not len(session.in_flight)
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in ended].count(StopAsyncIteration) == 2


@scenario
async def test_who_reads_is_told_that_the_client_was_closed(client, addr):
    async with AsyncClient(addr, timeout=30) as other:
        await client.enqueue_many("q", [bytes(10_000)] * 3000)
        pieces = other.read_queue("q")
        await anext(pieces)

        async def rest():
            async for _ in pieces:
                await asyncio.sleep(0.01)

        reading = asyncio.ensure_future(rest())
        await asyncio.sleep(0.05)
        await other.close()
        with pytest.raises(ClientClosedError):
            await reading


@scenario
async def test_what_nobody_extends_is_not_remembered(client, addr):
    await client.enqueue_many("q", [b"x"] * 20)
    consumer = client.consume("q", auto_extend=False)
    for _ in range(20):
        await anext(consumer)
    assert len(client._session().in_flight) == 0


@scenario
async def test_a_claim_may_wait_for_longer_than_other_calls(client, addr):
    async with AsyncClient(addr, timeout=0.5) as hasty:
        assert await hasty.group("q", "g").claim(0, wait_ms=1500) is None
