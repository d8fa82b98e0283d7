"""Producers and consumers that go on whatever happens to the server, and a record of all they saw."""

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fila import AsyncClient, FilaError, FilaTimeoutError, MessageNotFoundError

UNDER_WAY = 100
"""Enqueues of one producer that wait for their answer at the same time."""


@dataclass(frozen=True)
class Delivered:
    """What a consumer was given, and whether its ack had been confirmed before."""

    consumer: int
    id: str
    key: str
    number: int
    attempt_count: int
    acked_before: bool


class Load:
    """One producer for each fairness key, which numbers its messages, and some consumers.

    Every client is given more time than the server needs to come back, so that only a broken promise makes a call fail.
    """

    def __init__(self, addr, queue, *, producers=3, consumers=2):
        self._addr = addr
        self._queue = queue
        self._producers = producers
        self._consumers = consumers
        self._producing = True
        self.ids = {}
        """The id of each confirmed enqueue, by key and number."""
        self.delivered = []
        self.acked = set()
        self.errors = []

    @asynccontextmanager
    async def running(self):
        """Produce and consume inside the block. Leaves it when all that was enqueued is consumed."""
        consumers = [asyncio.create_task(self._consume(number)) for number in range(self._consumers)]
        producers = [asyncio.create_task(self._produce(f"key-{number}")) for number in range(self._producers)]
        try:
            yield
            self._producing = False
            await asyncio.gather(*producers)
            async with AsyncClient(self._addr, timeout=60) as client:
                await self._until(lambda: self._is_empty(client))
        finally:
            for task in (*producers, *consumers):
                task.cancel()
            ended = await asyncio.gather(*producers, *consumers, return_exceptions=True)
            self.errors += [end for end in ended if isinstance(end, Exception)]

    async def progress(self, count=200):
        """Wait until so many more messages were acked."""
        goal = len(self.acked) + count

        async def reached():
            return len(self.acked) >= goal

        await self._until(reached)

    def check(self, *, connections_lost=False):
        """What must hold however often the server went away.

        With `connections_lost`, the broker went on meanwhile: what a consumer was handed in its last milliseconds is
        not reported, and comes back as if it had not been, perhaps behind what was delivered meanwhile.
        """
        if self.errors:
            raise ExceptionGroup("calls that failed", self.errors)
        first_ids = defaultdict(set)
        for each in self.delivered:
            first_ids[each.key, each.number].add(each.id)
        lost = [number for number in self.ids if number not in first_ids]
        assert lost == [], "confirmed enqueues that were never delivered"
        twice = {number: ids for number, ids in first_ids.items() if len(ids) > 1}
        assert twice == {}, "messages that were enqueued twice"
        assert {number: {message_id} for number, message_id in self.ids.items()} == first_ids, "ids differ"
        assert [each for each in self.delivered if each.acked_before] == [], "delivered after the ack was confirmed"
        leases = [(each.id, each.attempt_count) for each in self.delivered]
        assert connections_lost or len(set(leases)) == len(leases), "a redelivery that does not count as one"
        for consumer in range(self._consumers):
            for key in {each.key for each in self.delivered}:
                numbers = [
                    each.number
                    for each in self.delivered
                    if (each.consumer, each.key, each.attempt_count) == (consumer, key, 0)
                ]
                assert connections_lost or numbers == sorted(numbers), f"out of order in {key}"
        for key in {key for key, _ in self.ids}:
            stored = sorted((message_id, number) for (each, number), message_id in self.ids.items() if each == key)
            assert [number for _, number in stored] == sorted(number for _, number in stored), (
                f"stored out of order: {key}"
            )

    async def _produce(self, key):
        async with AsyncClient(self._addr, timeout=60) as client, asyncio.TaskGroup() as calls:
            room = asyncio.Semaphore(UNDER_WAY)

            async def enqueue(number):
                self.ids[key, number] = await client.enqueue(self._queue, {"tenant": key}, str(number).encode())
                room.release()

            number = 0
            while self._producing:
                await room.acquire()
                calls.create_task(enqueue(number))
                number += 1
                await asyncio.sleep(0.002)

    async def _consume(self, consumer):
        async with AsyncClient(self._addr, timeout=60) as client, asyncio.TaskGroup() as settling:
            async for message in client.consume(self._queue, max_in_flight=50):
                number = int(message.payload)
                self.delivered.append(
                    Delivered(
                        consumer,
                        message.id,
                        message.fairness_key,
                        number,
                        message.attempt_count,
                        message.id in self.acked,
                    )
                )
                if self.must_fail(message, number):
                    settling.create_task(self._nack(message))
                else:
                    settling.create_task(self._ack(message))

    def must_fail(self, message, number):
        """Whether a consumer nacks a delivery."""
        return number % 20 == 7 and not message.attempt_count

    async def _ack(self, message):
        try:
            await message.ack()
        except MessageNotFoundError:
            return  # its lease ended while the server was away
        self.acked.add(message.id)

    async def _nack(self, message):
        try:
            await message.nack("try again")
        except (MessageNotFoundError, FilaTimeoutError):
            return

    async def _is_empty(self, client):
        try:
            summary = (await client.queue_stats(self._queue)).summary
        except FilaError:
            return False
        return not (summary.depth or summary.in_flight or summary.delayed)

    @staticmethod
    async def _until(condition):
        async with asyncio.timeout(60):
            while not await condition():
                await asyncio.sleep(0.02)
