"""How long a message takes from the call that enqueues it to a consumer that waits for it."""

from collections.abc import Mapping

from benchmarks import clients
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.stats import percentile
from benchmarks.workloads.base import Figure, Goal, Run, Workload, cpu_figures

#: Left out at the start: connections, first calls and first allocations.
_WARM_UP_S = 0.5


def _latency(run: Run) -> Mapping[str, float]:
    scale = run.scale
    warm_up = int(scale.latency_per_s * _WARM_UP_S)
    count = warm_up + int(scale.latency_per_s * scale.latency_seconds)
    with fresh_server() as server:
        run.say(f"enqueueing {scale.latency_per_s:g} messages a second for {scale.latency_seconds:g} s")
        consumer = ClientProcess(clients.consume_and_time, server.addr, QUEUE, count)
        producer = ClientProcess(
            clients.produce_at_rate, server.addr, QUEUE, count, scale.payload_bytes, scale.latency_per_s
        )
        measured = run_together(server.pid, [consumer, producer])
    delivered, late = ([1000 * each for each in client.result[warm_up:]] for client in measured.clients)
    return {
        "p50_ms": percentile(delivered, 50),
        "p99_ms": percentile(delivered, 99),
        "max_ms": max(delivered),
        "producer_late_p99_ms": percentile(late, 99),
        **measured.per_message(count),
    }


LATENCY = Workload(
    name="latency",
    title="enqueue to delivery",
    setting=lambda s: (
        f"{s.latency_per_s:g} msg/s of {s.payload_bytes} B for {s.latency_seconds:g} s, a consumer process that waits"
    ),
    figures=(
        Figure("p50_ms", "p50", "ms", Goal("<", 0.5), ("grpc_round_trip", "p50_ms")),
        Figure("p99_ms", "p99", "ms", Goal("<", 2.0), ("grpc_round_trip", "p99_ms")),
        Figure("max_ms", "longest", "ms", shown=False),
        Figure("producer_late_p99_ms", "producer behind its schedule, p99", "ms", shown=False),
        Figure("messages_per_s", "rate that was kept", "msg/s", shown=False),
        *cpu_figures("grpc_round_trip"),
    ),
    sample=_latency,
)
