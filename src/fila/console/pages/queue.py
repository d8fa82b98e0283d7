"""One queue: share against entitlement of its fairness keys over time, flow, waits, consumers; pause and resume."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import KeyStats, QueueStats
from fila.console import heat
from fila.console.charts import Line
from fila.console.forms import read_form
from fila.console.history import History
from fila.console.limits import MAX_SHOWN_CHARS, PAGE_ROWS
from fila.console.pages.base import Page, done, link_of, page_number, session_of
from fila.console.rendering import render
from fila.console.watch import KeysView, WatchedQueue
from fila.console.words import visible

SORTS = ("pending", "oldest", "delivered", "weight", "name")
#: Ranges of the pictures: samples that one column stands for.
RANGES = {"2 min": 1, "10 min": 5}
#: What a wait can be spent on, with its colour.
CAUSES = (("fair_share", "c1"), ("no_consumer", "c5"), ("throttle", "c2"), ("retry", "c3"), ("delay", "c4"))


async def queue(request: Request) -> Response:
    name = request.query_params.get("name", "")
    sort = request.query_params.get("sort", "pending")
    wanted = request.query_params.get("q", "")[:MAX_SHOWN_CHARS]
    period = request.query_params.get("range", "2 min")
    page = page_number(request)
    view = KeysView(name, sort if sort in SORTS else "pending", wanted, page * PAGE_ROWS)
    watched = await link_of(request).watch.queue(view)
    stats = watched.stats
    every = RANGES.get(period, 1)
    rows = _rows(watched, every)
    about = {
        "stats": stats,
        "summary": stats.summary,
        "rates": watched.history.rates() or (None, None, None),
        "keys": rows,
        "scale": _scale(rows),
        "plot": _plot(watched.history, every),
        "columns": heat.COLUMNS,
        "causes": _causes(stats),
        "view": view,
        "period": period if period in RANGES else "2 min",
        "ranges": list(RANGES),
        "sorts": SORTS,
        "page": page,
        "pages": -(-stats.total_keys // PAGE_ROWS),
        "ordered": time.monotonic() - watched.ordered_at,
    }
    return render(request, "queue.html", about)


def _rows(watched: WatchedQueue, every: int) -> list[dict[str, Any]]:
    by_name: dict[str, KeyStats] = {key.fairness_key: key for key in watched.stats.keys}
    shown = [by_name[name] for name in watched.order if name in by_name][:PAGE_ROWS]
    rows = []
    for key in shown:
        turn = key.weight * watched.stats.scheduler.quantum
        cells = heat.cells(watched.key_history, key.fairness_key, turn, every)
        share = cells[-1].share if cells and cells[-1] is not None else None
        levels = [None if cell is None else cell.level for cell in cells]
        rows.append({"stats": key, "levels": levels, "share": share})
    return rows


def _scale(rows: list[dict[str, Any]]) -> float:
    """What the full width of a bar stands for: the largest share on the page."""
    return max((max(row["share"] or 0.0, row["stats"].entitlement) for row in rows), default=0.0) or 1.0


def _plot(history: History, every: int) -> list[Line]:
    steps = list(history.steps(every))[-heat.COLUMNS :]
    names = (("in", "c2"), ("out", "c1"), ("acked", "c3"))
    return [
        Line(name, [None if step is None else step[index] for step in steps], colour)
        for index, (name, colour) in enumerate(names)
    ]


def _causes(stats: QueueStats) -> list[tuple[str, str, float]]:
    return [(name.replace("_", " "), colour, stats.waits.parts.get(name, 0.0)) for name, colour in CAUSES]


async def pause(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    await link_of(request).client.pause_queue(fields.get("name", ""))
    return done(request, f"{visible(fields['name'], 100)} is paused: nothing is delivered until you resume it.", fields)


async def resume(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    await link_of(request).client.resume_queue(fields.get("name", ""))
    return done(request, f"{visible(fields['name'], 100)} delivers again.", fields)


PAGES = (
    Page("/queue", queue),
    Page("/queue/pause", pause, ("POST",)),
    Page("/queue/resume", resume, ("POST",)),
)
