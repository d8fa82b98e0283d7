"""What the client processes do. Each uses the SDK as a program would, and nothing else of Fila."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from random import getrandbits
from typing import Any

from benchmarks.harness import Gate
from fila import AsyncClient, AsyncConsumeMessage, Client, OutgoingMessage

KEY_HEADER = "tenant"
WEIGHT_HEADER = "weight"

#: Fairness keys of workloads that are not about how many there are.
TENANTS = 20

# A benchmark that waits for a slow machine is right; one that gives up half-way is useless.
_TIMEOUT_S = 60.0


def produce(gate: Gate, addr: str, queue: str, count: int, size: int, keys: int = 0, sampled_every: int = 0) -> None:
    """Enqueue `count` messages of `size` bytes with `enqueue_many`, in turn for each of `keys` fairness keys.

    One in `sampled_every` carries the context of a sampled trace.
    """
    payload = b"x" * size
    messages: Iterable[OutgoingMessage | bytes] = _keyed(count, payload, keys) if keys else repeat(payload, count)
    if sampled_every:
        messages = _traced(messages, sampled_every)

    async def run() -> None:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            with gate:
                await client.enqueue_many(queue, messages)

    asyncio.run(run())


def consume(gate: Gate, addr: str, queue: str, count: int, max_in_flight: int) -> None:
    """Receive and ack `count` messages in the batches in which they come, each acked before the next is taken."""

    async def run() -> None:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            with gate:
                left = count
                async with client.consume_batches(queue, max_in_flight=max_in_flight) as batches:
                    async for batch in batches:
                        await client.ack_many(batch)
                        left -= len(batch)
                        if left <= 0:
                            break

    asyncio.run(run())


def produce_one_by_one(gate: Gate, addr: str, queue: str, count: int, size: int) -> None:
    """Enqueue each message after the one before is confirmed."""
    payload = b"x" * size
    with Client(addr, timeout=_TIMEOUT_S) as client:
        client.enqueue(queue, payload=payload)
        with gate:
            for _ in range(count):
                client.enqueue(queue, payload=payload)


def produce_at_rate(gate: Gate, addr: str, queue: str, count: int, size: int, per_s: float) -> list[float]:
    """Enqueue at fixed times, without waiting for answers. Each payload begins with the time of its enqueue call.

    Returns how late each call was: a machine that is too busy to keep the rate shows here.
    """
    filler = b"x" * (size - 8)

    async def run() -> list[float]:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            late: list[float] = []
            confirmed: list[asyncio.Task[str]] = []
            with gate:
                start = time.monotonic()
                for number in range(count):
                    due = start + number / per_s
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
                    late.append(time.monotonic() - due)
                    payload = time.monotonic_ns().to_bytes(8, "big") + filler
                    confirmed.append(asyncio.create_task(client.enqueue(queue, payload=payload)))
                await asyncio.gather(*confirmed)
            return late

    return asyncio.run(run())


def consume_and_time(gate: Gate, addr: str, queue: str, count: int) -> list[float]:
    """Wait for `count` messages, ack each without waiting for the answer. Returns seconds from enqueue call to here."""

    async def run() -> list[float]:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            seconds: list[float] = []
            acked: list[asyncio.Task[Any]] = []
            async with client.consume(queue) as messages:
                with gate:
                    async for message in messages:
                        sent_ns = int.from_bytes(message.payload[:8], "big")
                        seconds.append((time.monotonic_ns() - sent_ns) / 1e9)
                        acked.append(asyncio.create_task(_ack(message)))
                        if len(seconds) == count:
                            break
                    await asyncio.gather(*acked)
            return seconds

    return asyncio.run(run())


def consume_keys(gate: Gate, addr: str, queue: str, count: int, max_in_flight: int) -> list[str]:
    """Receive and ack `count` messages at full speed. Returns their fairness keys in the order of delivery."""

    async def run() -> list[str]:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            order: list[str] = []
            with gate:
                async with client.consume_batches(queue, max_in_flight=max_in_flight) as batches:
                    async for batch in batches:
                        order += [message.fairness_key for message in batch]
                        if len(order) >= count:
                            break
                        await client.ack_many(batch)
            return order[:count]

    return asyncio.run(run())


def consume_with_quiet_tenants(
    gate: Gate, addr: str, queue: str, count: int, every: int, max_in_flight: int
) -> list[int]:
    """Consume a backlog one by one. After every `every` deliveries a tenant that sent nothing before sends one message.

    Returns for each of those tenants how many deliveries came between the confirmed enqueue and its own, those that
    the client had already prefetched included.
    """

    async def run() -> list[int]:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            waits: list[int] = []
            sent_at: dict[str, int] = {}
            acked: list[asyncio.Task[Any]] = []
            number = 0
            with gate:
                async with client.consume(queue, max_in_flight=max_in_flight) as messages:
                    async for message in messages:
                        number += 1
                        acked.append(asyncio.create_task(_ack(message)))
                        if message.fairness_key in sent_at:
                            waits.append(number - sent_at.pop(message.fairness_key))
                        if number >= count and not sent_at:
                            break
                        if number % every == 0 and number < count:
                            name = f"quiet-{number}"
                            await client.enqueue(queue, {KEY_HEADER: name}, b"hello")
                            sent_at[name] = number
                    await asyncio.gather(*acked)
            return waits

    return asyncio.run(run())


def fill(addr: str, queue: str, count: int, size: int, headers: Mapping[str, str]) -> None:
    """A backlog of one tenant, enqueued from the calling process: it is not measured."""
    with Client(addr, timeout=_TIMEOUT_S) as client:
        client.enqueue_many(queue, repeat(OutgoingMessage(b"x" * size, headers), count))


def fill_keys(addr: str, queue: str, keys: int, size: int, headers: Mapping[str, str]) -> None:
    """One message for each of many tenants, enqueued from the calling process: it is not measured."""
    payload = b"x" * size
    messages = (OutgoingMessage(payload, {KEY_HEADER: _tenant(number), **headers}) for number in range(keys))
    with Client(addr, timeout=_TIMEOUT_S) as client:
        client.enqueue_many(queue, messages)


def consume_for(gate: Gate, addr: str, queue: str, seconds: float) -> list[float]:
    """Receive and ack what comes in a time. Returns when each message came, in seconds after the start."""

    async def run() -> list[float]:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            came: list[float] = []
            with gate:
                began = time.monotonic()
                async with client.consume_batches(queue) as batches:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            async for batch in batches:
                                came += [time.monotonic() - began] * len(batch)
                                await client.ack_many(batch)
            return came

    return asyncio.run(run())


def first_message(addr: str, queue: str) -> None:
    """Return when one message was delivered."""
    with Client(addr, timeout=_TIMEOUT_S) as client, client.consume(queue, max_in_flight=1) as messages:
        next(messages)


async def _ack(message: AsyncConsumeMessage) -> None:
    await message.ack()


def _traced(messages: Iterable[Any], every: int) -> Iterator[OutgoingMessage]:
    for number, message in enumerate(messages):
        if number % every:
            yield message
        else:
            context = f"00-{getrandbits(128):032x}-{getrandbits(64):016x}-01"
            yield replace(message, headers={**message.headers, "traceparent": context})


def _keyed(count: int, payload: bytes, keys: int) -> Iterator[OutgoingMessage]:
    headers = [{KEY_HEADER: _tenant(number)} for number in range(keys)]
    return (OutgoingMessage(payload, headers[number % keys]) for number in range(count))


def _tenant(number: int) -> str:
    """Names of one length: more tenants do not make larger messages."""
    return f"tenant-{number:06}"
