"""Audit: who changed what, from where and when, with old and new values; and what was refused."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import AuditEntry
from fila.console.limits import MAX_SHOWN_CHARS, PAGE_ROWS
from fila.console.links import Link
from fila.console.pages.base import Page, link_of
from fila.console.rendering import render

FIELDS = ("who", "action", "resource")


async def audit(request: Request) -> Response:
    query = request.query_params
    asked = {field: query.get(field, "")[:MAX_SHOWN_CHARS] for field in FIELDS}
    refused = query.get("refused") == "1"
    options: dict[str, Any] = {name: text for name, text in asked.items() if text}
    link = link_of(request)
    entries = await link.watch.shared(_newest(link), **options, **({"refused": True} if refused else {}))
    return render(request, "audit.html", {"entries": entries[::-1], "asked": asked, "refused": refused})


def _newest(link: Link) -> Callable[..., Awaitable[list[AuditEntry]]]:
    """Reads the newest entries that match, oldest first."""

    async def newest_of_audit(**options: Any) -> list[AuditEntry]:
        return [entry async for entry in link.client.read_audit(last=PAGE_ROWS, **options)]

    return newest_of_audit


PAGES = (Page("/audit", audit),)
