"""Home: one true sentence, tiles, what to mend, and all queues."""

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import QueueInfo
from fila.console.charts import Line
from fila.console.history import History
from fila.console.limits import PAGE_ROWS
from fila.console.pages.base import Page, link_of, page_number
from fila.console.problems import headline, problems
from fila.console.rendering import render
from fila.console.watch import Overview

_COLUMNS = 90
_PROBLEMS = 8


async def home(request: Request) -> Response:
    overview = await link_of(request).watch.overview()
    now = datetime.now(UTC)
    found = problems(overview.queues, overview.stats, overview.server, now)
    wanted = request.query_params.get("q", "")[:200]
    page = page_number(request)
    dead = {one.name: one.depth for one in overview.queues if not one.dead_letter_queue}
    rows = [_row(one, overview, dead) for one in overview.queues if one.dead_letter_queue and wanted in one.name]
    rows.sort(key=lambda row: (-row["info"].depth, row["info"].name))
    about = {
        "headline": headline(found, overview.queues),
        "calm": not any(problem.weight != "note" for problem in found),
        "problems": found[:_PROBLEMS],
        "more_problems": max(0, len(found) - _PROBLEMS),
        "tiles": _tiles(overview, now),
        "plot": _plot(overview),
        "columns": _COLUMNS,
        "rows": rows[page * PAGE_ROWS :][:PAGE_ROWS],
        "total": len(rows),
        "page": page,
        "pages": -(-len(rows) // PAGE_ROWS),
        "wanted": wanted,
        "now": now,
    }
    return render(request, "home.html", about)


def _tiles(overview: Overview, now: datetime) -> dict[str, Any]:
    live = [one for one in overview.queues if one.dead_letter_queue]
    oldest = min((one.oldest_at for one in overview.stats.values() if one.oldest_at is not None), default=None)
    rates = [history.rates() for history in overview.histories.values()]
    known = [each for each in rates if each is not None]
    sums = [sum(each[index] for each in known) for index in range(3)] if known else [None] * 3
    return {
        "rates": sums,
        "waiting": sum(one.depth for one in live),
        "in_flight": sum(one.in_flight for one in live),
        "oldest": (now - oldest).total_seconds() if oldest is not None else None,
        "dead": sum(one.depth for one in overview.queues if not one.dead_letter_queue),
        "free": None if overview.server is None else overview.server.store.free_bytes,
    }


def _plot(overview: Overview) -> list[Line]:
    """Enqueued, delivered and acked a second, over all queues that are sampled."""
    names = (("in", "c2"), ("out", "c1"), ("acked", "c3"))
    lines = [_summed(list(overview.histories.values()), index) for index in range(3)]
    return [Line(name, values, colour) for (name, colour), values in zip(names, lines, strict=True)]


def _summed(histories: list[History], field: int) -> list[float | None]:
    total: list[float | None] = [None] * _COLUMNS
    for history in histories:
        for index, step in enumerate(reversed(list(history.steps()))):
            if step is not None and index < _COLUMNS:
                total[-1 - index] = (total[-1 - index] or 0.0) + step[field]
    return total


def _row(one: QueueInfo, overview: Overview, dead: dict[str, int]) -> dict[str, Any]:
    history = overview.histories.get(one.name)
    return {
        "info": one,
        "stats": overview.stats.get(one.name),
        "rates": (history.rates() if history is not None else None) or (None, None, None),
        "dead": dead.get(one.dead_letter_queue, 0),
    }


PAGES = (Page("/", home),)
