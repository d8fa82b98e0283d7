"""Dead letters: by error and key, to be looked at, counted, sent back or removed."""

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fila.client import AsyncClient
from fila.console.commands import command
from fila.console.forms import number, read_form, whole
from fila.console.letters import FIELDS, by_error, by_key, filter_of, last_error, options_of
from fila.console.limits import MAX_GROUPED_LETTERS, PAGE_ROWS
from fila.console.pages.base import Page, back, done, link_of, session_of
from fila.console.rendering import render
from fila.console.urls import url
from fila.console.words import plural, visible

SUFFIX = ".dlq"
#: How long the letters that are grouped are not read again: otherwise, and while they are moved.
_KEPT_S, _KEPT_MOVING_S = 8.0, 2.0


async def index(request: Request) -> Response:
    overview = await link_of(request).watch.overview()
    queues = [one for one in overview.queues if not one.dead_letter_queue]
    filled = sorted((one for one in queues if one.depth), key=lambda one: -one.depth)
    return render(request, "dead-letters.html", {"queues": filled, "empty": len(queues) - len(filled)})


async def letters(request: Request) -> Response:
    """The dead-letter queue, or that of the queue with this name."""
    link = link_of(request)
    name = request.query_params.get("name", "")
    asked = {field: request.query_params.get(field, "") for field in FIELDS}
    if not name.endswith(SUFFIX):
        return RedirectResponse(url("/dead-letters/queue", name=name + SUFFIX, **asked), 303)
    chosen = filter_of(asked)
    stats = await link.watch.shared(link.client.queue_stats, name, 1)
    sweeps = link.sweeps.of(name)
    kept_s = _KEPT_MOVING_S if any(not job.ended for job in sweeps) else _KEPT_S
    page = await link.watch.kept(kept_s, link.client.peek, name, limit=MAX_GROUPED_LETTERS, newest=True, **chosen)
    about = {
        "name": name,
        "source": name.removesuffix(SUFFIX),
        "summary": stats.summary,
        "asked": asked,
        "filtered": bool(chosen),
        "found": len(page.messages),
        "more": bool(page.cursor),
        "errors": by_error(page.messages)[:PAGE_ROWS],
        "keys": by_key(page.messages),
        "messages": page.messages[:PAGE_ROWS],
        "last_error": last_error,
        "sweeps": sweeps,
        "options": options_of(asked),
    }
    return render(request, "letters.html", about)


async def try_out(request: Request) -> Response:
    """How many a redrive or purge would take."""
    fields = await read_form(request, session_of(request))
    name = fields.get("name", "")
    count = await link_of(request).client.redrive(name, dry_run=True, **filter_of(fields))
    return done(request, f"{plural(count, 'message')} of {visible(name, 100)} match. Nothing was moved.", fields)


async def redrive(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    link, name = link_of(request), fields.get("name", "")
    rate, count = number(fields, "rate"), whole(fields, "count")
    chosen: dict[str, Any] = filter_of(fields)
    total = await link.client.redrive(name, dry_run=True, count=count, **chosen)
    line = command("dlq", "redrive", name, options=options_of(fields) | {"rate": rate, "count": count})
    act = partial(_redrive, link.client, name, count, rate, chosen)
    link.sweeps.start("redrive", name, total, line, act)
    link.watch.forget()
    return back(fields)


async def _redrive(
    client: AsyncClient, name: str, count: int | None, rate: float | None, chosen: dict[str, Any], report: Any
) -> int:
    return await client.redrive(name, count=count, rate=rate, on_progress=report, **chosen)


async def purge(request: Request) -> Response:
    """Asks first, with the number of messages; then removes them."""
    fields = await read_form(request, session_of(request))
    link, name = link_of(request), fields.get("name", "")
    chosen = filter_of(fields)
    total = await link.client.purge(name, dry_run=True, **chosen)
    line = command("dlq", "purge", name, options=options_of(fields))
    if fields.get("sure") != str(total):
        about = {"name": name, "total": total, "asked": fields, "fields": FIELDS, "line": line, "options": chosen}
        return render(request, "purge.html", about | {"back": fields.get("back", "/")})
    link.sweeps.start("purge", name, total, line, partial(_purge, link.client, name, total, chosen))
    link.watch.forget()
    return back(fields)


async def _purge(client: AsyncClient, name: str, count: int, chosen: dict[str, Any], report: Any) -> int:
    """No more than were counted: what has come since was not confirmed."""
    return await client.purge(name, count=count, on_progress=report, **chosen) if count else 0


async def stop(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    link_of(request).sweeps.stop(whole(fields, "number") or 0)
    return back(fields)


PAGES = (
    Page("/dead-letters", index),
    Page("/dead-letters/queue", letters),
    Page("/dead-letters/try", try_out, ("POST",)),
    Page("/dead-letters/redrive", redrive, ("POST",)),
    Page("/dead-letters/purge", purge, ("POST",)),
    Page("/dead-letters/stop", stop, ("POST",)),
)
