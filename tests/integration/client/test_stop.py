"""Stopping a consumer gracefully, and ids that tell of duplicates."""

import asyncio
import time

import pytest

from fila import AsyncClient, Client, DuplicateId
from fila.testing import ServerProcess

VISIBLE_MS = 2_000
"""A lease is extended three times in that, and may be once too late by more than a second: tests share the machine."""
HELD_S = 3.0
"""Longer than a lease that is not extended"""


@pytest.fixture(scope="module")
def server():
    with ServerProcess() as server:
        yield server


def summary(client, queue):
    found = client.queue_stats(queue).summary
    return found.depth, found.in_flight


def test_what_the_application_holds_can_be_settled_after_stop(server):
    with Client(server.addr) as client:
        client.create_queue("stopped", visibility_timeout_ms=VISIBLE_MS, max_attempts=1)
        client.enqueue_many("stopped", [b"%d" % number for number in range(5)])
        consumer = client.consume("stopped")
        first = next(consumer)
        consumer.stop()
        assert list(consumer) == []
        assert summary(client, "stopped") == (4, 1)
        time.sleep(HELD_S)  # its lease is extended while the application holds it
        first.ack()
        assert summary(client, "stopped") == (4, 0)
        others = zip(range(4), client.consume("stopped"), strict=False)
        assert [message.attempt_count for _, message in others] == [0] * 4


def test_so_it_can_when_the_consumer_had_not_asked_for_messages_for_long(server):
    """Then it is sent none, has no stream to end, and still holds what it was handed."""
    with Client(server.addr) as client:
        client.create_queue("paused", visibility_timeout_ms=VISIBLE_MS, max_attempts=1)
        client.enqueue_many("paused", [b"x"] * 3)
        consumer = client.consume("paused")
        first = next(consumer)
        while summary(client, "paused") != (2, 1):  # prefetched messages have gone back
            time.sleep(0.05)
        consumer.stop()
        time.sleep(HELD_S)
        first.ack()
        assert list(consumer) == []
        assert summary(client, "paused") == (2, 0)


def test_so_it_can_when_nothing_refers_to_the_consumer_any_more(server):
    """The loop over it has ended, and threads of the application go on with what they have."""
    with Client(server.addr) as client:
        client.create_queue("dropped", visibility_timeout_ms=VISIBLE_MS, max_attempts=1)
        client.enqueue_many("dropped", [b"x"] * 2)

        def take():
            consumer = client.consume("dropped")
            message = next(consumer)
            consumer.stop()
            return message

        held = take()
        time.sleep(HELD_S)
        held.ack()
        assert summary(client, "dropped") == (1, 0)


def test_so_can_a_coroutine_that_has_dropped_its_consumer(server):
    async def scenario():
        async with AsyncClient(server.addr) as client:
            await client.create_queue("dropped-async", visibility_timeout_ms=VISIBLE_MS, max_attempts=1)
            await client.enqueue("dropped-async")
            consumer = client.consume("dropped-async")
            message = await anext(consumer)
            await consumer.stop()
            del consumer
            await asyncio.sleep(HELD_S)
            await message.ack()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_so_can_a_coroutine(server):
    async def scenario():
        async with AsyncClient(server.addr) as client:
            await client.create_queue("stopped-async")
            await client.enqueue("stopped-async")
            consumer = client.consume("stopped-async")
            message = await anext(consumer)
            await consumer.stop()
            await consumer.stop()  # again does nothing
            await message.ack()
            assert (await client.queue_stats("stopped-async")).summary.in_flight == 0
            await consumer.aclose()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_consumer_that_never_connected_stops_too():
    with Client("127.0.0.1:1", timeout=1) as client:
        client.consume("nowhere").stop()


def test_an_id_says_whether_it_is_a_duplicate(server):
    with Client(server.addr) as client:
        client.create_queue("told")
        first = client.enqueue("told", dedup_key="one")
        again = client.enqueue("told", dedup_key="one")
        assert first == again
        assert not isinstance(first, DuplicateId)
        assert isinstance(again, DuplicateId)
