"""Jobs: queues that the jobs layer writes, with what runs, waits, is scheduled and failed.

Such a queue is known by its fairness header. A job is JSON with the name of its task, as `fila.jobs` writes it; what
else is in such a queue is shown as "not a job".
"""

import json
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import PeekedMessage
from fila.console.limits import PAGE_ROWS
from fila.console.links import Link
from fila.console.pages.base import Page, link_of
from fila.console.rendering import render
from fila.console.watch import Overview

FAIRNESS_HEADER = "fila-job-key"
_SAMPLE = 200
_TASK_BYTES = 4096
_QUEUES = 8
_KEPT_S = 2.0


async def jobs(request: Request) -> Response:
    link = link_of(request)
    overview = await link.watch.overview()
    names = [name for name, each in overview.stats.items() if each.config.fairness_header == FAIRNESS_HEADER]
    queues = [await _queue(link, overview, name) for name in sorted(names)[:_QUEUES]]
    return render(request, "jobs.html", {"queues": queues, "sample": _SAMPLE})


async def _queue(link: Link, overview: Overview, name: str) -> dict[str, Any]:
    stats = overview.stats[name]
    summary = stats.summary
    limits = {"leased": PAGE_ROWS, "ready": _SAMPLE, "delayed": _SAMPLE}
    peeks = {state: await _peek(link, name, state, limit) for state, limit in limits.items()}
    dead = next((each.depth for each in overview.queues if each.name == summary.dead_letter_queue), 0)
    waiting = [*peeks["ready"], *peeks["delayed"]]
    return {
        "stats": stats,
        "dead": dead,
        "running": [{"message": each, "task": task_of(each)} for each in peeks["leased"]],
        "retried": sum(1 for each in waiting if each.attempt_count),
        "looked_at": len(waiting),
        "tasks": Counter(task_of(each) for each in waiting).most_common(12),
        "rates": (overview.histories[name].rates() if name in overview.histories else None) or (None, None, None),
    }


async def _peek(link: Link, name: str, state: str, limit: int) -> tuple[PeekedMessage, ...]:
    options: dict[str, Any] = {"limit": limit, "payload_bytes": _TASK_BYTES, "states": (state,)}
    return (await link.watch.kept(_KEPT_S, link.client.peek, name, **options)).messages


def task_of(message: PeekedMessage) -> str:
    """The name of its task."""
    try:
        job = json.loads(message.payload)
    except (ValueError, RecursionError):
        return "not a job" if message.payload_size <= _TASK_BYTES else "large job"
    name = job.get("task") if isinstance(job, dict) else None
    return name if isinstance(name, str) else "job without a task"


PAGES = (Page("/jobs", jobs),)
