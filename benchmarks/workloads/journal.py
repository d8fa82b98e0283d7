"""What the journal costs: the same work with and without it, in turn, in one run."""

from collections.abc import Mapping

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, Measured, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila import Client
from fila.testing import ServerProcess

KEYS = (1, 10, 10_000)
ON = "[journal]\nenabled = true\n"


def _journal(run: Run) -> Mapping[str, float]:
    figures: dict[str, float] = {}
    for keys in KEYS:
        # Off and on take turns, and who begins changes, so that a machine that slows down favours neither.
        order = ((False, True, True, False), (True, False, False, True))[run.index % 2]
        measured: dict[bool, list[Measured]] = {False: [], True: []}
        for enabled in order:
            measured[enabled].append(_lifecycle(run, keys, enabled))
        cpu = {enabled: sum(each.server_cpu_s for each in runs) for enabled, runs in measured.items()}
        seconds = {enabled: sum(each.seconds for each in runs) for enabled, runs in measured.items()}
        figures[f"keys_{keys}_cpu_cost_percent"] = (cpu[True] / cpu[False] - 1) * 100
        figures[f"keys_{keys}_time_cost_percent"] = (seconds[True] / seconds[False] - 1) * 100
        figures[f"keys_{keys}_server_cpu_us"] = cpu[True] / len(order) * 2 / run.scale.fair_messages * 1e6
    return figures


def _lifecycle(run: Run, keys: int, enabled: bool) -> Measured:
    scale = run.scale
    with ServerProcess(config=ON if enabled else "", start_timeout=120) as server:
        with Client(server.addr) as client:
            client.create_queue(QUEUE, fairness_header=KEY_HEADER)
        run.say(f"{keys:,} keys, journal {'on' if enabled else 'off'}")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, scale.fair_messages, scale.payload_bytes, keys)
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, scale.fair_messages, scale.max_in_flight)
        return run_together(server.pid, [producer, consumer])


def _figures() -> tuple[Figure, ...]:
    figures = []
    for keys in KEYS:
        noun = "key" if keys == 1 else "keys"
        figures += [
            Figure(f"keys_{keys}_cpu_cost_percent", f"more server CPU, {keys:,} {noun}", "%", Goal("<", 3)),
            Figure(f"keys_{keys}_time_cost_percent", f"more time, {keys:,} {noun}", "%"),
            Figure(f"keys_{keys}_server_cpu_us", f"server CPU per message, {keys:,} {noun}", "us", shown=False),
        ]
    return tuple(figures)


JOURNAL = Workload(
    name="journal",
    title="journal on against off",
    setting=lambda s: (
        f"{s.fair_messages:,} x {s.payload_bytes} B enqueued, delivered and acked at once, with "
        f"{', '.join(f'{keys:,}' for keys in KEYS)} keys, twice with and twice without the journal, in turn"
    ),
    figures=_figures(),
    sample=_journal,
)
