"""What a server can do: messages for a processor, bytes on the disk and in memory, time of a restart."""

import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import clients
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, rss_bytes, run_together
from benchmarks.scale import FULL
from benchmarks.workloads.base import Figure, Run, Ways, Workload
from fila.storage.room import RESERVE_FILE

_COLUMNS = tuple(f"of_{size}" for _, size in FULL.capacity)


def _capacity(run: Run) -> Mapping[str, float]:
    figures: dict[str, float] = {}
    for column, (count, size) in zip(_COLUMNS, run.scale.capacity, strict=True):
        for name, value in _at(run, count, size).items():
            figures[f"{column}_{name}"] = value
    return figures


def _at(run: Run, count: int, size: int) -> Mapping[str, float]:
    with fresh_server() as server:
        empty = rss_bytes(server.pid)
        run.say(f"enqueueing {count:,} x {size} B")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, count, size)
        enqueued = run_together(server.pid, [producer])
        disk = _on_disk(server.data_dir)
        memory = rss_bytes(server.pid) - empty
        run.say("kill -9 and restart")
        server.kill()
        began = time.monotonic()
        server.start()
        clients.first_message(server.addr, QUEUE)
        restart = time.monotonic() - began
        run.say(f"draining {count:,} x {size} B")
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, count, run.scale.max_in_flight)
        drained = run_together(server.pid, [consumer])
    return {
        "enqueue_per_core": count / enqueued.server_cpu_s,
        "drain_per_core": count / drained.server_cpu_s,
        "whole_per_core": count / (enqueued.server_cpu_s + drained.server_cpu_s),
        "disk_bytes": disk / count,
        "memory_bytes": memory / count,
        "restart_s": restart,
    }


def _on_disk(folder: Path) -> int:
    """What the store takes, without what it keeps back for a full disk."""
    return sum(
        each.stat().st_blocks * 512 for each in folder.rglob("*") if each.is_file() and each.name != RESERVE_FILE
    )


_ROWS = {
    "enqueue_per_core": ("messages enqueued for a second of one processor", "msg"),
    "drain_per_core": ("messages delivered and acked for a second of one processor", "msg"),
    "whole_per_core": ("the whole way of a message, for a second of one processor", "msg"),
    "disk_bytes": ("bytes on the disk for a waiting message", "B"),
    "memory_bytes": ("bytes of memory for a waiting message, with the store's buffers", "B"),
    "restart_s": ("seconds from `kill -9` to the first message", "s"),
}

CAPACITY = Workload(
    name="capacity",
    title="capacity",
    setting=lambda s: (
        ", ".join(f"{count:,} x {size:,} B" for count, size in s.capacity)
        + ", each enqueued (`enqueue_many`), kept over a `kill -9`, and drained (`consume_batches`, `ack_many`)"
    ),
    figures=tuple(
        Figure(f"{column}_{row}", f"{size:,} B: {label}", unit)
        for column, (_, size) in zip(_COLUMNS, FULL.capacity, strict=True)
        for row, (label, unit) in _ROWS.items()
    ),
    sample=_capacity,
    ways=Ways(
        page="capacity.md",
        columns={
            column: f"{count:,} messages of {size:,} B"
            for column, (count, size) in zip(_COLUMNS, FULL.capacity, strict=True)
        },
        rows={row: label for row, (label, _) in _ROWS.items()},
    ),
)
