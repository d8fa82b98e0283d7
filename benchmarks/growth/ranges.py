"""What grows, and what a message costs at each size of it.

Each point starts from a fresh server. What is there already is not measured; the messages of the probe are. The cost of
a message is the server's CPU time for it: waiting for a core is not in it, so a busy machine distorts it least.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, Gate, cpu_s, fresh_server, rss_bytes, run_together
from fila import AsyncClient, Client, OutgoingMessage
from fila.testing import ServerProcess

_MB = 1_000_000
_SIZE = 100
_IN_FLIGHT = 4000
_EACH_IN_FLIGHT = 100
_CHUNK = 50_000
_TIMEOUT_S = 120.0
_HOUR_MS = 3_600_000
_PARKED = "provider"
#: Payload bytes that one point moves at most.
_MOST_BYTES = 200 * _MB

Costs = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Range:
    """Something that grows. `cost` names the figure that is to stay flat."""

    name: str
    title: str
    points: tuple[int, ...]
    what: str
    measure: Callable[[int, int], Costs]
    cost: str = "cpu_us"
    #: Whether more of it is more work by nature, so that the rise says little.
    natural: bool = False

    def scaled(self, scale: float) -> tuple[int, ...]:
        """The points of a smaller run: still growing, and never below 1, but 0 stays 0."""
        return tuple(dict.fromkeys(point if point == 0 else max(1, round(point * scale)) for point in self.points))


def _keys(keys: int, probe: int) -> Costs:
    count = max(20 * probe, 10 * keys)  # as many at every point, so that keys are all that grows
    with fresh_server(fairness_header=KEY_HEADER) as server:
        enqueued = run_together(
            server.pid, [ClientProcess(clients.produce, server.addr, QUEUE, count, _SIZE, keys)]
        ).server_cpu_s
        drained = _drain(server, count)
        rss = rss_bytes(server.pid)
    return {
        "cpu_us": (enqueued + drained) / count * 1e6,
        "enqueue_cpu_us": enqueued / count * 1e6,
        "drain_cpu_us": drained / count * 1e6,
        "rss_mb": rss / _MB,
    }


def _backlog(pending: int, probe: int) -> Costs:
    with fresh_server() as server:
        _fill(server, QUEUE, _plain(pending))
        costs = _probe(server, probe)
        first = _first_ms(server)
        return costs | {
            "first_delivery_ms": first,
            "rss_mb": rss_bytes(server.pid) / _MB,
            "restart_s": _restart_s(server),
        }


def _consumers(consumers: int, probe: int) -> Costs:
    count = max(probe, 10 * consumers * _EACH_IN_FLIGHT)  # so that the start of a consumer is little beside the rest
    with fresh_server() as server:
        _fill(server, QUEUE, _plain(count))
        consumer = ClientProcess(consume_with_many, server.addr, QUEUE, count, consumers)
        measured = run_together(server.pid, [consumer])
        return {"cpu_us": measured.server_cpu_s / count * 1e6, "messages_per_s": count / measured.seconds}


def _queues(queues: int, probe: int) -> Costs:
    """Other queues with a few messages each beside the one that is used."""
    with fresh_server() as server:
        with Client(server.addr, timeout=_TIMEOUT_S) as client:
            for number in range(1, queues):
                client.create_queue(f"other-{number}")
                client.enqueue_many(f"other-{number}", [b"x" * _SIZE] * 10)
        return _probe(server, probe) | {"rss_mb": rss_bytes(server.pid) / _MB, "restart_s": _restart_s(server)}


def _delayed(delayed: int, probe: int) -> Costs:
    with fresh_server() as server:
        before = cpu_s(server.pid)
        later = OutgoingMessage(b"x" * _SIZE, delay_ms=_HOUR_MS)
        _fill(server, QUEUE, (later for _ in range(delayed)))
        filled = cpu_s(server.pid) - before
        return _probe(server, probe) | {
            "delay_cpu_us": filled / delayed * 1e6,
            "rss_mb": rss_bytes(server.pid) / _MB,
        }


def _throttled(keys: int, probe: int) -> Costs:
    """Keys that wait for one bucket that is empty, beside one that waits for nothing."""
    with fresh_server(fairness_header=KEY_HEADER, throttle_headers=[_PARKED]) as server:
        with Client(server.addr) as client:
            client.set_config(f"throttle.{_PARKED}:x", "rate=0.001,burst=1")
        clients.fill_keys(server.addr, QUEUE, keys, _SIZE, {_PARKED: "x"})
        clients.first_message(server.addr, QUEUE)  # takes the only token; it comes back and waits with the others
        before = cpu_s(server.pid)
        _first_ms(server)  # stands behind all others: when it comes, each of them had its turn and was parked
        parked = cpu_s(server.pid) - before
        return _probe(server, probe) | {"park_cpu_us": parked / keys * 1e6, "rss_mb": rss_bytes(server.pid) / _MB}


def _payload(size: int, probe: int) -> Costs:
    count = max(20, min(probe, _MOST_BYTES // size))
    with fresh_server() as server:
        costs = _probe(server, count, size)
        return costs | {"cpu_ms_per_mb": costs["cpu_us"] / 1000 / (size / _MB)}


def _history(acked: int, probe: int) -> Costs:
    with fresh_server() as server:
        left = acked
        while left:
            step = min(left, 10 * _CHUNK)
            _fill(server, QUEUE, _plain(step))
            _drain(server, step)
            left -= step
        costs = _probe(server, probe)
        first = _first_ms(server)
        return costs | {
            "first_delivery_ms": first,
            "rss_mb": rss_bytes(server.pid) / _MB,
            "restart_s": _restart_s(server),
        }


def _probe(server: ServerProcess, count: int, size: int = _SIZE) -> dict[str, float]:
    """As many messages in as out again: what is there stays as much as it is."""
    producer = ClientProcess(clients.produce, server.addr, QUEUE, count, size)
    enqueued = run_together(server.pid, [producer]).server_cpu_s
    drained = _drain(server, count)
    return {
        "cpu_us": (enqueued + drained) / count * 1e6,
        "enqueue_cpu_us": enqueued / count * 1e6,
        "drain_cpu_us": drained / count * 1e6,
    }


def _drain(server: ServerProcess, count: int) -> float:
    consumer = ClientProcess(clients.consume, server.addr, QUEUE, count, _IN_FLIGHT)
    return run_together(server.pid, [consumer]).server_cpu_s


def _fill(server: ServerProcess, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> None:
    left = iter(messages)
    with Client(server.addr, timeout=_TIMEOUT_S) as client:
        while chunk := list(islice(left, _CHUNK)):
            client.enqueue_many(queue, chunk)


def _plain(count: int) -> Iterable[bytes]:
    payload = b"x" * _SIZE
    return (payload for _ in range(count))


def _first_ms(server: ServerProcess) -> float:
    _fill(server, QUEUE, _plain(1))  # a probe takes whole batches, and so the last message of a small backlog
    began = time.monotonic()
    clients.first_message(server.addr, QUEUE)
    return (time.monotonic() - began) * 1000


def _restart_s(server: ServerProcess) -> float:
    """From the start of the process after kill -9 until it serves."""
    server.kill()
    began = time.monotonic()
    server.start()
    return time.monotonic() - began


def consume_with_many(gate: Gate, addr: str, queue: str, count: int, consumers: int) -> None:
    """Receive and ack with many consumers of one process, each with a stream of its own."""

    async def run() -> None:
        async with AsyncClient(addr, timeout=_TIMEOUT_S) as client:
            await client.list_queues()
            left = count
            done = asyncio.Event()

            async def consume() -> None:
                nonlocal left
                room = _EACH_IN_FLIGHT
                async with client.consume_batches(queue, max_in_flight=room) as batches:
                    async for batch in batches:
                        await client.ack_many(batch)
                        left -= len(batch)
                        if left <= 0:
                            done.set()

            with gate:
                tasks = [asyncio.create_task(consume()) for _ in range(consumers)]
                await done.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


RANGES: tuple[Range, ...] = (
    Range(
        "keys",
        "fairness keys",
        (10, 1_000, 100_000, 1_000_000),
        "enqueue and drain of a million messages, one of each key in turn",
        _keys,
    ),
    Range(
        *("backlog", "pending messages", (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)),
        *("enqueue and drain of some messages beside a backlog", _backlog),
    ),
    Range(
        "consumers", "consumers", (1, 10, 100, 200), "drain by consumers with 100 messages in flight each", _consumers
    ),
    Range("queues", "queues", (1, 20, 200, 2_000), "enqueue and drain in one of the queues", _queues),
    Range(
        *("delayed", "delayed messages", (1_000, 10_000, 100_000, 1_000_000)),
        *("enqueue and drain beside messages of the same queue that are not due", _delayed),
    ),
    Range(
        *("throttled", "parked throttled keys", (100, 1_000, 10_000, 100_000)),
        *("enqueue and drain beside keys of the same queue that wait for a token", _throttled),
    ),
    Range(
        *("payload", "payload bytes", (100, 1_024, 10_240, 102_400, 1_048_576)),
        *("enqueue and drain of messages of that size", _payload, "cpu_us"),
        natural=True,
    ),
    Range(
        *("history", "acked messages before", (0, 50_000, 500_000, 5_000_000)),
        *("enqueue and drain in a queue that has acked many messages", _history),
    ),
)
