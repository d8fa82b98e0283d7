"""What the wait ledger costs: its share of the server's CPU for a delivered message."""

import time
from collections.abc import Mapping

from benchmarks import clients
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.ledger import Ledger

BATCH = 500
"""About as many messages as one tick of a drain delivers."""


def _accounting_us(messages: int) -> float:
    """CPU that the ledger takes for one delivered message."""
    lanes = [Lane(FairKey(f"key-{number}"), 5, (b"", b"")) for number in range(10)]
    now = time.time_ns()
    batch = [(lanes[number % len(lanes)], now - number, 1) for number in range(BATCH)]
    ledger = Ledger(now)
    began = time.thread_time_ns()
    for tick in range(messages // BATCH):
        ledger.idle.set(tick % 2 == 0, now + tick)
        ledger.deliver(batch, {}, now + tick)
    return (time.thread_time_ns() - began) / messages / 1000


def _sample(run: Run) -> Mapping[str, float]:
    messages = run.scale.fair_messages
    with fresh_server() as server:
        run.say(f"filling the queue with {messages:,} messages")
        args = (server.addr, QUEUE, messages)
        run_together(server.pid, [ClientProcess(clients.produce, *args, run.scale.payload_bytes)])
        run.say(f"draining {messages:,} messages")
        measured = run_together(server.pid, [ClientProcess(clients.consume, *args, run.scale.max_in_flight)])
    delivery_us = measured.server_cpu_s / messages * 1e6
    ledger_us = _accounting_us(messages)
    return {"percent": ledger_us / delivery_us * 100, "ledger_us": ledger_us, "delivery_us": delivery_us}


LEDGER = Workload(
    name="ledger",
    title="wait ledger",
    setting=lambda s: f"drain of {s.fair_messages:,} x {s.payload_bytes} B, and the ledger's part of it in one process",
    figures=(
        Figure("percent", "part of the server's CPU", "%", Goal("<", 3)),
        Figure("ledger_us", "ledger, CPU per message", "us"),
        Figure("delivery_us", "server, CPU per message", "us"),
    ),
    sample=_sample,
)
