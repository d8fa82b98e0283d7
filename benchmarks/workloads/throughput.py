"""How many messages a second, in bulk and one at a time."""

from collections.abc import Mapping

from benchmarks import clients
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Workload, cpu_figures

_BATCHES, _ROUND_TRIP = "grpc_batches", "grpc_round_trip"


def _enqueue(run: Run) -> Mapping[str, float]:
    scale = run.scale
    with fresh_server() as server:
        run.say(f"enqueueing {scale.messages:,} messages")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, scale.messages, scale.payload_bytes)
        return run_together(server.pid, [producer]).per_message(scale.messages)


def _drain(run: Run) -> Mapping[str, float]:
    scale = run.scale
    with fresh_server() as server:
        run.say(f"filling the queue with {scale.messages:,} messages")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, scale.messages, scale.payload_bytes)
        run_together(server.pid, [producer])
        run.say(f"draining {scale.messages:,} messages")
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, scale.messages, scale.max_in_flight)
        return run_together(server.pid, [consumer]).per_message(scale.messages)


def _lifecycle(run: Run) -> Mapping[str, float]:
    scale = run.scale
    with fresh_server() as server:
        run.say(f"enqueueing and consuming {scale.messages:,} messages at once")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, scale.messages, scale.payload_bytes)
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, scale.messages, scale.max_in_flight)
        return run_together(server.pid, [producer, consumer]).per_message(scale.messages)


def _one_by_one(run: Run) -> Mapping[str, float]:
    scale = run.scale
    count = scale.one_by_one_messages
    with fresh_server() as server:
        run.say(f"enqueueing {count:,} messages, each after the one before is confirmed")
        producer = ClientProcess(clients.produce_one_by_one, server.addr, QUEUE, count, scale.payload_bytes)
        return run_together(server.pid, [producer]).per_message(count)


ENQUEUE = Workload(
    name="enqueue",
    title="enqueue",
    setting=lambda s: f"{s.messages:,} x {s.payload_bytes} B, one producer process, enqueue_many",
    figures=(
        Figure("messages_per_s", "throughput", "msg/s", Goal(">=", 100_000), (_BATCHES, "messages_per_s")),
        *cpu_figures(_BATCHES),
    ),
    sample=_enqueue,
    beside=("rocksdb_puts",),
)

DRAIN = Workload(
    name="drain",
    title="drain",
    setting=lambda s: (
        f"backlog of {s.messages:,} x {s.payload_bytes} B, one consumer process, consume_batches + ack_many, "
        f"{s.max_in_flight:,} in flight"
    ),
    figures=(
        Figure("messages_per_s", "throughput", "msg/s", Goal(">=", 120_000), (_BATCHES, "messages_per_s")),
        *cpu_figures(_BATCHES),
    ),
    sample=_drain,
)

LIFECYCLE = Workload(
    name="lifecycle",
    title="enqueue, deliver, ack",
    setting=lambda s: (
        f"{s.messages:,} x {s.payload_bytes} B, one producer and one consumer process at once, until all are acked"
    ),
    figures=(
        Figure("messages_per_s", "throughput", "msg/s", Goal(">=", 50_000), (_BATCHES, "messages_per_s")),
        *cpu_figures(_BATCHES),
    ),
    sample=_lifecycle,
    beside=("rocksdb_puts",),
)

ONE_BY_ONE = Workload(
    name="one_by_one",
    title="one at a time, confirmed",
    setting=lambda s: f"{s.one_by_one_messages:,} x {s.payload_bytes} B, Client.enqueue in a loop",
    figures=(
        Figure("messages_per_s", "throughput", "msg/s", Goal(">=", 5_000), (_ROUND_TRIP, "messages_per_s")),
        *cpu_figures(_ROUND_TRIP),
    ),
    sample=_one_by_one,
)
