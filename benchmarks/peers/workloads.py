"""What is done with every broker, through the few things that every client can do.

Each workload starts a fresh server in an empty folder. What runs in client processes is named by a peer's name, so that
a spawned process finds it again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from benchmarks.harness import ClientProcess, Gate, cpu_s, rss_bytes, run_together
from benchmarks.peers.peers import Peer, by_name
from benchmarks.stats import percentile

_MB = 1_000_000
#: Left out at the start of latencies: first calls and first allocations.
_WARM_UP_S = 0.5
_QUIET_TENANTS = 10
_RESTART_S = 120.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done."""

    messages: int = 100_000
    one_by_one: int = 2_000
    latency_seconds: float = 6.0
    latency_per_s: float = 500.0
    noisy: int = 20_000
    pending: int = 1_000_000


FULL = Scale()
QUICK = Scale(messages=3_000, one_by_one=60, latency_seconds=1.0, noisy=1_000, pending=5_000)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a workload yields. `better` says which end of the scale is the good one."""

    name: str
    label: str
    unit: str
    better: str = "high"


_SERVER_CPU = Figure("server_cpu_s_per_100k", "server CPU per 100,000", "s", "low")
_CLIENT_CPU = Figure("client_cpu_s_per_100k", "client CPU per 100,000", "s", "low")
_RATE = (Figure("messages_per_s", "throughput", "msg/s"), _SERVER_CPU, _CLIENT_CPU)


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that is done with every peer."""

    name: str
    title: str
    what: str
    figures: tuple[Figure, ...]
    sizes: tuple[int, ...]
    sample: Callable[[Peer, Scale, int], Mapping[str, float]]


def _produce(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        producer = ClientProcess(send, peer.name, server.port, scale.messages, size)
        return run_together(server.pid, [producer]).per_message(scale.messages)


def _drain(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        run_together(server.pid, [ClientProcess(send, peer.name, server.port, scale.messages, size)])
        consumer = ClientProcess(receive, peer.name, server.port, scale.messages)
        return run_together(server.pid, [consumer]).per_message(scale.messages)


def _lifecycle(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        producer = ClientProcess(send, peer.name, server.port, scale.messages, size)
        consumer = ClientProcess(receive, peer.name, server.port, scale.messages)
        return run_together(server.pid, [producer, consumer]).per_message(scale.messages)


def _one_by_one(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        producer = ClientProcess(send_one_by_one, peer.name, server.port, scale.one_by_one, size)
        return run_together(server.pid, [producer]).per_message(scale.one_by_one)


def _latency(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    warm_up = int(scale.latency_per_s * _WARM_UP_S)
    count = warm_up + int(scale.latency_per_s * scale.latency_seconds)
    with peer.server() as server:
        server.setup()
        consumer = ClientProcess(receive_and_time, peer.name, server.port, count)
        producer = ClientProcess(send_at_rate, peer.name, server.port, count, size, scale.latency_per_s)
        measured = run_together(server.pid, [consumer, producer])
    delivered, late = ([1000 * each for each in client.result[warm_up:]] for client in measured.clients)
    return {
        "p50_ms": percentile(delivered, 50),
        "p99_ms": percentile(delivered, 99),
        "late_p99_ms": percentile(late, 99),
        **measured.per_message(count),
    }


def _tenants(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        run_together(server.pid, [ClientProcess(send_for_tenants, peer.name, server.port, scale.noisy, size)])
        consumer = ClientProcess(receive_quiet, peer.name, server.port)
        deliveries: int = run_together(server.pid, [consumer]).clients[0].result
    return {"deliveries": deliveries, "share_percent": deliveries / (scale.noisy + _QUIET_TENANTS) * 100}


def _restart(peer: Peer, scale: Scale, size: int) -> Mapping[str, float]:
    with peer.server() as server:
        server.setup()
        empty = rss_bytes(server.pid)
        run_together(server.pid, [ClientProcess(send, peer.name, server.port, scale.pending, size)])
        before = rss_bytes(server.pid)
        server.kill()
        began = time.monotonic()
        server.start()
        _first_message(peer, server.port)
        consumable = time.monotonic() - began
        return {
            "rss_empty_mb": empty / _MB,
            "rss_mb": before / _MB,
            "rss_after_mb": rss_bytes(server.pid) / _MB,
            "consumable_s": consumable,
            "consumable_cpu_s": cpu_s(server.pid),
        }


def _first_message(peer: Peer, port: int) -> None:
    """Return when a message came. From this process: the start of another one would be measured with it.

    A broker that answers already may not have found its queue yet, and refuses: a client tries again.
    """
    deadline = time.monotonic() + _RESTART_S
    while True:
        try:
            client = peer.connect(port)
            client.receive(lambda _: False)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            client.close()
            return


def send(gate: Gate, peer: str, port: int, count: int, size: int) -> None:
    client = by_name(peer).connect(port)
    payload = b"x" * size
    with gate:
        client.send(repeat(payload, count))


def send_one_by_one(gate: Gate, peer: str, port: int, count: int, size: int) -> None:
    client = by_name(peer).connect(port)
    payload = b"x" * size
    client.send_one(payload)
    with gate:
        for _ in range(count):
            client.send_one(payload)


def send_at_rate(gate: Gate, peer: str, port: int, count: int, size: int, per_s: float) -> list[float]:
    client = by_name(peer).connect(port)
    filler = b"x" * (size - 8)
    with gate:
        return client.send_paced(count, per_s, lambda: time.monotonic_ns().to_bytes(8, "big") + filler)


def send_for_tenants(gate: Gate, peer: str, port: int, noisy: int, size: int) -> None:
    """The backlog of one tenant, then one message of each of the others. The first byte says whose it is."""
    client = by_name(peer).connect(port)
    with gate:
        client.send(repeat(b"n" * size, noisy), "noisy")
        for number in range(_QUIET_TENANTS):
            client.send([b"q" * size], f"quiet-{number}")


def receive(gate: Gate, peer: str, port: int, count: int) -> None:
    client = by_name(peer).connect(port)
    left = count

    def take(payloads: Sequence[bytes]) -> bool:
        nonlocal left
        left -= len(payloads)
        return left > 0

    with gate:
        client.receive(take)


def receive_and_time(gate: Gate, peer: str, port: int, count: int) -> list[float]:
    client = by_name(peer).connect(port)
    seconds: list[float] = []

    def take(payloads: Sequence[bytes]) -> bool:
        now = time.monotonic_ns()
        seconds.extend((now - int.from_bytes(payload[:8], "big")) / 1e9 for payload in payloads)
        return len(seconds) < count

    with gate:
        client.receive(take)
    return seconds


def receive_quiet(gate: Gate, peer: str, port: int) -> int:
    """How many deliveries it took until the last of the quiet tenants was served."""
    client = by_name(peer).connect(port)
    deliveries = quiet = last = 0

    def take(payloads: Sequence[bytes]) -> bool:
        nonlocal deliveries, quiet, last
        for payload in payloads:
            deliveries += 1
            if payload[:1] == b"q":
                quiet, last = quiet + 1, deliveries
        return quiet < _QUIET_TENANTS

    with gate:
        client.receive(take)
    return last


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        *("produce", "produce, confirmed"),
        "one producer process sends in bulk until the last message is confirmed",
        _RATE,
        (1024, 100),
        _produce,
    ),
    Workload(
        *("drain", "drain"),
        "one consumer process receives and acks a backlog in bulk",
        _RATE,
        (1024, 100),
        _drain,
    ),
    Workload(
        *("lifecycle", "produce and consume at once"),
        "one producer and one consumer process at once, until all messages are acked",
        _RATE,
        (1024, 100),
        _lifecycle,
    ),
    Workload(
        *("one_by_one", "one at a time, confirmed"),
        "each message is sent after the one before is confirmed",
        _RATE,
        (1024, 100),
        _one_by_one,
    ),
    Workload(
        *("latency", "latency at 500 msg/s"),
        "from the send call to the consumer, 500 messages a second at fixed times; the first half second is left out",
        (
            Figure("p50_ms", "p50", "ms", "low"),
            Figure("p99_ms", "p99", "ms", "low"),
            _SERVER_CPU,
            _CLIENT_CPU,
        ),
        *((1024, 100), _latency),
    ),
    Workload(
        *("tenants", "quiet tenants behind a noisy one"),
        f"one tenant has a backlog, then {_QUIET_TENANTS} others send one message each into the same queue: "
        "deliveries until all of those are served",
        (Figure("deliveries", "until all are served", "deliveries", "low"),),
        *((1024,), _tenants),
    ),
    Workload(
        *("restart", "memory, and restart after kill -9"),
        "pending messages of 100 B, then kill -9; from the start of the process to the first message at a new client",
        (
            Figure("rss_mb", "RSS with the backlog", "MB", "low"),
            Figure("rss_after_mb", "RSS after the restart", "MB", "low"),
            Figure("consumable_s", "first message after", "s", "low"),
        ),
        *((100,), _restart),
    ),
)
