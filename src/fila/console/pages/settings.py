"""Settings: the entries of the runtime configuration, the server, and who you are."""

from starlette.requests import Request
from starlette.responses import Response

from fila.console.commands import command
from fila.console.forms import read_form
from fila.console.limits import MAX_SHOWN_CHARS, PAGE_ROWS
from fila.console.pages.base import Page, done, link_of, page_number, session_of
from fila.console.rendering import render
from fila.console.words import visible


async def settings(request: Request) -> Response:
    link = link_of(request)
    wanted, page = request.query_params.get("q", "")[:MAX_SHOWN_CHARS], page_number(request)
    entries = sorted((await link.watch.shared(link.client.list_config)).items())
    rows = [each for each in entries if wanted in each[0]]
    about = {
        "rows": rows[page * PAGE_ROWS :][:PAGE_ROWS],
        "total": len(rows),
        "page": page,
        "pages": -(-len(rows) // PAGE_ROWS),
        "wanted": wanted,
        "server": (await link.watch.overview()).server,
        "identity": session_of(request).identity,
    }
    return render(request, "settings.html", about)


async def set_entry(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    key, value = fields.get("key", ""), fields.get("value", "")
    await link_of(request).client.set_config(key, value)
    line = command("config", "set", visible(key, 200), visible(value, 200))
    return done(request, f"Set. From a shell: {line}", fields)


async def unset(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    key = fields.get("key", "")
    existed = await link_of(request).client.delete_config(key)
    line = command("config", "unset", visible(key, 200))
    return done(request, f"Removed. From a shell: {line}" if existed else "There is no such entry.", fields)


PAGES = (
    Page("/settings", settings),
    Page("/settings/set", set_entry, ("POST",)),
    Page("/settings/unset", unset, ("POST",)),
)
