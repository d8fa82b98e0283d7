"""The screen of all queues."""

from __future__ import annotations

from datetime import UTC, datetime

from fila.cli import output
from fila.cli.top.figures import ALARM, BOLD, DIM, age, number, rate
from fila.cli.top.grid import Cell, Column, grid, line
from fila.cli.top.samples import Sample, Samples
from fila.client import QueueStats

_COLUMNS = (
    Column("QUEUE", 0, left=True),
    Column("DEPTH", 1),
    Column("RUNNABLE", 8),
    Column("DELAYED", 9),
    Column("IN FLIGHT", 5),
    Column("IN/S", 4),
    Column("OUT/S", 2),
    Column("ACK/S", 7),
    Column("OLDEST", 3),
    Column("CONSUMERS", 6),
)
LINES = 3
"""What the screen has besides one line for each queue: title, column titles, what is not shown."""


def broker_screen(samples: Samples, now: Sample, selected: str, width: int | None) -> list[str]:
    """`selected` is the name of the queue that is marked; empty: none is, since there are no keys to choose one."""
    clock = datetime.now(UTC).strftime("%H:%M:%S UTC")
    about = f"Fila  {output.count(len(now.queues), 'queue')}  {clock}"
    marked = f"  {selected}" if selected else ""  # the whole name, which its line may have no room for
    rows = [_row(samples, now, name, stats, selected) for name, stats in now.stats.items()]
    left = len(now.queues) - len(now.stats)
    hint = "" if selected else ": show with --keys N"
    more = [line([Cell(f"{output.count(left, 'more queue')}{hint}", DIM)], width)] if left > 0 else []
    return [line([Cell(about, BOLD), Cell(marked)], width), *grid(_COLUMNS, rows, width), *more]


def _row(samples: Samples, now: Sample, name: str, stats: QueueStats, selected: str) -> list[Cell]:
    info = stats.summary
    flows = [rate(samples.rate(now, name, counter)) for counter in ("enqueued", "delivered", "acked")]
    mark = "" if not selected else "> " if name == selected else "  "
    return [
        Cell(mark + name, ALARM if info.depth and not info.consumers else BOLD),
        *map(number, (info.depth, stats.runnable, info.delayed, info.in_flight)),
        *flows,
        age(stats.oldest_at),
        number(info.consumers),
    ]
