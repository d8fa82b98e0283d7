"""What being watched costs: the same work on servers with and without, in turn, in one run."""

import threading
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from benchmarks import clients
from benchmarks.harness import QUEUE, ClientProcess, free_port, fresh_server, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila.testing import ServerProcess

ROUNDS = 6
"""How often each server has its turn. Which one begins changes from round to round."""
SCRAPE_S = 1.0
"""Oftener than anybody scrapes: a minute's scrapes in a few seconds of work."""
SAMPLED_EVERY = 100
"""One message in so many is traced."""


@dataclass(slots=True)
class _Arm:
    """One way to run the server and what was spent on it."""

    server: ServerProcess
    sampled_every: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0

    def run(self, messages: int, size: int, max_in_flight: int) -> None:
        args = (self.server.addr, QUEUE, messages)
        producer = ClientProcess(clients.produce, *args, size, clients.TENANTS, self.sampled_every)
        measured = run_together(self.server.pid, [producer, ClientProcess(clients.consume, *args, max_in_flight)])
        self.seconds += measured.seconds
        self.cpu_s += measured.server_cpu_s


def _sample(run: Run) -> Mapping[str, float]:
    scale = run.scale
    port = free_port()
    messages = scale.messages // ROUNDS
    with ExitStack() as stack:
        collector = stack.enter_context(_collector())

        def server(config: str = "") -> ServerProcess:
            return stack.enter_context(fresh_server(config=config, fairness_header=clients.KEY_HEADER))

        plain = server()
        watched = server(
            f'[telemetry]\nprometheus_listen = "127.0.0.1:{port}"\notlp_endpoint = "{collector}"\n'
            "traces = false\nmetrics_interval_ms = 1_000\n"
        )
        traced = server(f'[telemetry]\notlp_endpoint = "{collector}"\n')
        stack.enter_context(_scraped(f"http://127.0.0.1:{port}/metrics"))
        off, metrics = _Arm(plain), _Arm(watched)
        untraced, traces = _Arm(plain, SAMPLED_EVERY), _Arm(traced, SAMPLED_EVERY)
        arms = [off, metrics, untraced, traces]
        for arm in arms:
            arm.run(messages // 4, scale.payload_bytes, scale.max_in_flight)  # to be warm
            arm.seconds = arm.cpu_s = 0.0
        for number in range(ROUNDS):
            run.say(f"round {number + 1} of {ROUNDS}: {messages:,} messages, four times")
            for arm in arms if (run.index + number) % 2 else reversed(arms):
                arm.run(messages, scale.payload_bytes, scale.max_in_flight)
    return {
        "metrics_cpu_percent": _more(metrics.cpu_s, off.cpu_s),
        "metrics_percent": _more(metrics.seconds, off.seconds),
        "traces_cpu_percent": _more(traces.cpu_s, untraced.cpu_s),
        "traces_percent": _more(traces.seconds, untraced.seconds),
        "off_messages_per_s": messages * ROUNDS / off.seconds,
    }


def _more(value: float, than: float) -> float:
    return (value / than - 1) * 100


@contextmanager
def _scraped(url: str) -> Iterator[None]:
    """Has the page read again and again."""
    done = threading.Event()

    def scrape() -> None:
        while not done.wait(SCRAPE_S):
            with urllib.request.urlopen(url, timeout=30) as page:
                page.read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def Export(self, request: object, context: object) -> metrics_service_pb2.ExportMetricsServiceResponse:  # noqa: ARG002, N802
        return metrics_service_pb2.ExportMetricsServiceResponse()


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, request: object, context: object) -> trace_service_pb2.ExportTraceServiceResponse:  # noqa: ARG002, N802
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def _collector() -> Iterator[str]:
    """A collector that takes everything and keeps nothing; its address."""
    server = grpc.server(ThreadPoolExecutor(2))
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(), server)
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


TELEMETRY = Workload(
    name="telemetry",
    title="metrics and traces",
    setting=lambda s: (
        f"enqueue, deliver, ack of {s.messages:,} x {s.payload_bytes} B of {clients.TENANTS} keys on servers with and "
        f"without, in turn; scraped and exported every second; one message in {SAMPLED_EVERY} traced"
    ),
    figures=(
        Figure("metrics_percent", "more time with metrics", "%", Goal("<", 3)),
        Figure("metrics_cpu_percent", "more server CPU with metrics", "%", Goal("<", 3)),
        Figure("traces_percent", f"more time with traces of 1 in {SAMPLED_EVERY}", "%"),
        Figure("traces_cpu_percent", f"more server CPU with traces of 1 in {SAMPLED_EVERY}", "%"),
        Figure("off_messages_per_s", "throughput without", "msg/s", shown=False),
    ),
    sample=_sample,
)
