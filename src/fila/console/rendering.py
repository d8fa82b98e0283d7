"""Pages from templates: escaped always, whole for a browser, and the changing part alone for a page that refreshes.

A page asks again every two seconds for itself with the header `fila-live`, and is answered with its `<main>` alone, or
with 304 when that has not changed. The script of the page changes what differs and leaves the rest, with focus,
selection, scroll position and half-filled forms, as it is.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from fila.console import charts, words
from fila.console.commands import command
from fila.console.limits import MAX_ANSWER_BYTES
from fila.console.urls import NAVIGATION, url

LIVE = "fila-live"
THEMES = ("auto", "light", "dark")

_env = Environment(
    loader=PackageLoader("fila.console", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_env.filters.update(
    visible=words.visible,
    count=words.count,
    short=words.short,
    rate=words.rate,
    percent=words.percent,
    size=words.size,
    seconds=words.seconds,
    age=words.age,
    until=words.until,
    moment=words.moment,
)
_env.globals.update(url=url, cli=command, plural=words.plural, charts=charts)


def render(request: Request, template: str, context: Mapping[str, Any], *, status: int = 200) -> Response:
    """The page, or its live part. `context` has what the template names."""
    live = LIVE in request.headers
    theme = request.cookies.get("fila_theme", "auto")
    text = _env.get_template(template).render(
        frame="live.html" if live else "base.html",
        path=request.url.path,
        here=str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
        theme=theme if theme in THEMES else "auto",
        navigation=NAVIGATION,
        session=getattr(request.state, "session", None),
        broker=request.app.state.links.addr,
        notices=_notices(request, live=live),
        **context,
    )
    body = text.encode("utf-8", "replace")
    if len(body) > MAX_ANSWER_BYTES:
        status, body = 500, b"<!doctype html><title>Fila</title>The page would exceed its limit: narrow the search.\n"
    headers = {}
    if live:
        tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        if request.headers[LIVE] == tag:
            return Response(status_code=304, headers={"etag": tag})
        headers["etag"] = tag
    return HTMLResponse(body, status, headers)


def _notices(request: Request, *, live: bool) -> list[tuple[str, str]]:
    session = getattr(request.state, "session", None)
    if live or session is None:
        return []
    found = list(session.notices)
    session.notices.clear()
    return found
