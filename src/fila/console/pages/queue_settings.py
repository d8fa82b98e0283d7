"""The settings of a queue, to be changed in place. Only what was changed is sent."""

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from fila.client import QueueConfig
from fila.console.commands import command
from fila.console.forms import number, read_form, whole
from fila.console.pages.base import Page, done, link_of, session_of
from fila.console.rendering import render
from fila.console.words import visible


class Setting(NamedTuple):
    """One field of the form."""

    name: str
    title: str
    help: str
    option: str
    #: "whole", "number", "text" or "names".
    kind: str


GROUPS = {
    "Fairness": (
        Setting("fairness_header", "Fairness header", "Its value is the fairness key.", "fairness-header", "text"),
        Setting("weight_header", "Weight header", "Its value, 1 to 1000, is the weight.", "weight-header", "text"),
        Setting("cost_header", "Cost header", "Its value is what a delivery costs.", "cost-header", "text"),
        Setting("quantum", "Quantum", "What a key of weight 1 may spend in a round.", "quantum", "whole"),
        Setting("throttle_headers", "Throttle headers", "With commas between them.", "throttle-header", "names"),
    ),
    "Delivery": (
        Setting(
            "visibility_timeout_ms",
            "Visibility timeout, ms",
            "How long a consumer may hold a message.",
            "visibility-timeout",
            "whole",
        ),
        Setting("max_depth", "Most messages", "0 means no limit.", "max-depth", "whole"),
        Setting("max_bytes", "Most bytes", "0 means no limit.", "max-bytes", "whole"),
        Setting("overflow", "When full", "reject or drop-oldest.", "overflow", "text"),
        Setting("dedup_window_ms", "Dedup window, ms", "How long dedup keys are remembered.", "dedup-window", "whole"),
    ),
    "Failure": (
        Setting("max_attempts", "Attempts", "Then it is a dead letter; 0 means never.", "max-attempts", "whole"),
        Setting("retry_delay_ms", "Retry delay, ms", "Before the second attempt.", "retry-delay", "whole"),
        Setting("retry_backoff", "Backoff", "The factor for each further attempt.", "retry-backoff", "number"),
        Setting("retry_max_delay_ms", "Largest delay, ms", "0 means the broker's limit.", "retry-max-delay", "whole"),
        Setting("retry_jitter", "Jitter", "0 to 1: shortens delays at random.", "retry-jitter", "number"),
    ),
    "Script": (
        Setting("script_timeout_ms", "Time limit, ms", "Of one call of a hook.", "script-timeout", "whole"),
        Setting("script_memory_bytes", "Memory limit, bytes", "Of the script.", "script-memory", "whole"),
    ),
}


async def settings(request: Request) -> Response:
    name = request.query_params.get("name", "")
    link = link_of(request)
    stats = await link.watch.shared(link.client.queue_stats, name, 1)
    shown = {each.name: _shown(stats.config, each) for group in GROUPS.values() for each in group}
    about = {"name": name, "groups": GROUPS, "values": shown, "created_at": stats.created_at}
    return render(request, "queue-settings.html", about)


async def change(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    name = fields.get("name", "")
    client = link_of(request).client
    before = (await client.queue_stats(name, 1)).config
    changed = {
        each.name: _read(fields, each)
        for group in GROUPS.values()
        for each in group
        if each.name in fields and fields[each.name] != _shown(before, each)
    }
    if not changed:
        return done(request, "Nothing was changed.", fields)
    await client.update_queue(name, **changed)
    return done(request, f"Changed. From a shell: {_command(name, changed)}", fields)


def _command(name: str, changed: dict[str, Any]) -> str:
    options = {each.name: f"--{each.option}" for group in GROUPS.values() for each in group}
    words: list[str] = []
    for setting, value in changed.items():
        for one in (value or [""]) if isinstance(value, list) else [value]:
            words += [options[setting], str(one)]
    return command("queue", "update", visible(name, 200), *words)


def _shown(config: QueueConfig, setting: Setting) -> str:
    value = getattr(config, setting.name)
    if setting.kind == "names":
        return ", ".join(value)
    return f"{value:g}" if setting.kind == "number" else str(value)


def _read(fields: dict[str, str], setting: Setting) -> Any:
    """Raises BadForm."""
    match setting.kind:
        case "names":
            return [each.strip() for each in fields[setting.name].split(",") if each.strip()]
        case "text":
            return fields[setting.name].strip()
        case "whole":
            return whole(fields, setting.name)
        case _:
            return number(fields, setting.name)


PAGES = (Page("/queue/settings", settings), Page("/queue/settings", change, ("POST",)))
