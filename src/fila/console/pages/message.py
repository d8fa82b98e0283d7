"""One fairness key or one message: why it waits as a timeline, what happened to it, its headers, its payload."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import (
    Explanation,
    FilaError,
    JournalEntry,
    MessageNotFoundError,
    PeekedMessage,
    PermissionDeniedError,
)
from fila.console import payload
from fila.console.limits import (
    MAX_HEADERS_SHOWN,
    MAX_HISTORY_ENTRIES,
    MAX_PAYLOAD_BYTES,
    MAX_SHOWN_CHARS,
    PAGE_ROWS,
)
from fila.console.links import Link
from fila.console.pages.base import Page, link_of
from fila.console.rendering import render

STATES = ("", "ready", "delayed", "leased")


async def key(request: Request) -> Response:
    """The first message of a fairness key, or the next one of the queue."""
    queue, name = request.query_params.get("queue", ""), request.query_params.get("key", "")
    link = link_of(request)
    stats = await link.watch.shared(link.client.queue_stats, queue, 1, sort="name", key_prefix=name)
    mine = next((each for each in stats.keys if each.fairness_key == name), None)
    about = await _explained(link, queue, fairness_key=name)
    chosen = {"fairness_key": name} if name else {}
    page = await link.watch.shared(link.client.peek, queue, limit=PAGE_ROWS, **chosen)
    context = {"queue": queue, "name": name, "stats": stats, "mine": mine, "about": about, "messages": page.messages}
    return render(request, "key.html", context)


async def message(request: Request) -> Response:
    query = request.query_params
    queue, message_id = query.get("queue", ""), query.get("id", "")
    link = link_of(request)
    found = (
        await link.watch.shared(
            link.client.peek, queue, limit=1, payload_bytes=MAX_PAYLOAD_BYTES, message_ids=(message_id,)
        )
    ).messages
    about = await _explained(link, queue, message_id=message_id)
    history = await _history(link, queue, message_id) if "history" in query else None
    context = {
        "queue": queue,
        "id": message_id,
        "message": found[0] if found else None,
        "about": about,
        "history": history,
        **_content(found[0] if found else None, query.get("view", "")),
    }
    return render(request, "message.html", context, status=200 if found or about or history else 404)


async def messages(request: Request) -> Response:
    """What is in a queue, oldest first, by state, key, header and error."""
    query = request.query_params
    queue = query.get("name", "")
    link = link_of(request)
    state = query.get("state", "")
    header, _, value = query.get("header", "")[:MAX_SHOWN_CHARS].partition("=")
    chosen: dict[str, Any] = {
        "states": (state,) if state in STATES and state else None,
        "fairness_key": query.get("key", "")[:MAX_SHOWN_CHARS] or None,
        "headers": {header: value or None} if header else None,
        "newest": query.get("order") == "newest",
        "cursor": query.get("cursor", ""),
    }
    page = await link.client.peek(queue, limit=PAGE_ROWS, payload_bytes=160, **chosen)
    first_bytes = {each.id: payload.as_text(each.payload)[:80] for each in page.messages}
    context = {"queue": queue, "messages": page.messages, "cursor": page.cursor, "query": query, "states": STATES}
    return render(request, "messages.html", {**context, "first_bytes": first_bytes})


async def _explained(link: Link, queue: str, message_id: str = "", fairness_key: str = "") -> Explanation | None:
    """None when there is no such message waiting."""
    try:
        return await link.watch.shared(link.client.explain, queue, message_id, fairness_key=fairness_key)
    except MessageNotFoundError:
        return None
    except FilaError as error:
        if "id" in str(error) and message_id:  # not an id at all
            return None
        raise


async def _history(link: Link, queue: str, message_id: str) -> dict[str, Any]:
    """What the journal says of a message, in its queue and in the dead-letter queue; and if not, why."""
    entries: list[JournalEntry] = []
    try:
        reader = link.client.read_journal_batches(last=MAX_HISTORY_ENTRIES, queue=queue)
        enabled = False
        async for batch in reader:
            enabled = enabled or batch.enabled
            wanted = message_id in batch.columns["message_id"]
            entries += [each for each in batch.entries() if each.message_id == message_id] if wanted else []
    except PermissionDeniedError:
        return {"entries": [], "why": "Your key may not read the journal: it needs the permission audit."}
    why = "" if enabled else "The broker writes no journal: set enabled = true under [journal]."
    if enabled and not entries:
        why = f"The last {MAX_HISTORY_ENTRIES:,} entries of the queue do not name it."
    return {"entries": entries[-PAGE_ROWS:], "why": why}


def _content(message: PeekedMessage | None, wanted: str) -> dict[str, Any]:
    """The headers and the payload as they are shown."""
    if message is None:
        return {"headers": [], "more_headers": 0, "view": "", "views": payload.VIEWS, "text": ""}
    view = wanted if wanted in payload.VIEWS else payload.best_view(message.payload)
    text = payload.as_json(message.payload) if view == "json" else None
    if view == "json" and text is None:
        view = "text"
    if text is None:
        text = payload.as_hex(message.payload) if view == "hex" else payload.as_text(message.payload)
    headers = sorted(message.headers.items())
    return {
        "headers": headers[:MAX_HEADERS_SHOWN],
        "more_headers": max(0, len(headers) - MAX_HEADERS_SHOWN),
        "view": view,
        "views": payload.VIEWS,
        "text": text,
    }


PAGES = (Page("/key", key), Page("/message", message), Page("/messages", messages))
