"""Hooks: the script of a queue, tried on waiting messages before it is saved."""

from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from fila.client import FilaError, HookTrial, InvalidArgumentError, PermissionDeniedError
from fila.console.commands import command
from fila.console.forms import read_form
from fila.console.limits import MAX_TRIED, PAGE_ROWS
from fila.console.links import Link
from fila.console.lua_source import pieces
from fila.console.pages.base import Page, done, link_of, session_of
from fila.console.rendering import render
from fila.console.trials import Difference, differences, errors
from fila.console.words import visible


@dataclass(slots=True)
class Trial:
    """What trying a script showed."""

    tried: int = 0
    changed: list[Difference] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: Why it cannot be used at all.
    refusal: str = ""


async def index(request: Request) -> Response:
    overview = await link_of(request).watch.overview()
    rows = [each for each in overview.stats.values() if each.summary.dead_letter_queue]
    rows.sort(key=lambda each: (not each.config.script, each.summary.name))
    return render(request, "hooks.html", {"rows": rows})


async def hook(request: Request) -> Response:
    return await _page(request, request.query_params.get("name", ""))


async def _page(
    request: Request, name: str, script: str | None = None, trial: Trial | None = None, status: int = 200
) -> Response:
    link = link_of(request)
    stats = await link.watch.shared(link.client.queue_stats, name, 1)
    about = {
        "name": name,
        "stats": stats,
        "script": stats.config.script if script is None else script,
        "pieces": list(pieces(stats.config.script)),
        "trial": trial,
        "rows": PAGE_ROWS,
        "tried": MAX_TRIED,
    }
    return render(request, "hook.html", about, status=status)


async def act(request: Request) -> Response:
    """Tries the script, or saves it. A script that cannot be used stays in the form."""
    fields = await read_form(request, session_of(request))
    name, script = fields.get("name", ""), fields.get("script", "")
    link = link_of(request)
    if fields.get("act") != "save":
        trial = await _try(link, name, script)
        return await _page(request, name, script, trial)
    try:
        await link.client.update_queue(name, script=script)
    except InvalidArgumentError as error:
        return await _page(request, name, script, Trial(refusal=str(error)), 400)
    words = ("--script", "policy.lua") if script else ("--no-script",)
    line = command("queue", "update", visible(name, 200), *words)
    return done(request, f"Saved: it decides about messages from now on. From a shell: {line}", fields)


async def _try(link: Link, name: str, script: str) -> Trial:
    try:
        before = await _decisions(link, name, (await link.client.queue_stats(name, 1)).config.script)
        after = await _decisions(link, name, script)
    except PermissionDeniedError:
        raise
    except FilaError as error:
        return Trial(refusal=str(error))
    return Trial(len(after) or len(before), differences(before, after), errors(after))


async def _decisions(link: Link, name: str, script: str) -> list[HookTrial]:
    """Without a script the defaults apply: those of a script that decides nothing."""
    source = script or "function on_enqueue(msg) return {} end"
    return await link.client.try_hook(name, source, next_messages=MAX_TRIED)


PAGES = (Page("/hooks", index), Page("/hook", hook), Page("/hook", act, ("POST",)))
