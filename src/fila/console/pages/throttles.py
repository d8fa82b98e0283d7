"""Throttles: what each limit has left, who waits for it, and what another limit would mean."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from fila.client import QueueStats, ThrottleStats
from fila.client.throttle_limit import PREFIX, ThrottleLimit
from fila.console.commands import command
from fila.console.forecast import empty_in, ladder
from fila.console.forms import BadForm, number, read_form, whole
from fila.console.limits import MAX_SHOWN_CHARS, PAGE_ROWS
from fila.console.links import Link
from fila.console.pages.base import Page, done, link_of, page_number, session_of
from fila.console.rendering import render
from fila.console.words import visible

_KEYS = 200
_QUEUES = 8


class Part(NamedTuple):
    """A field of the form: one for each part of a limit."""

    name: str
    title: str
    inputmode: str
    read: Callable[[dict[str, str], str], float | None]


FORM = (
    Part("rate", "Rate, a second", "decimal", number),
    Part("burst", "Burst", "decimal", number),
    Part("max_in_flight", "In flight", "numeric", whole),
)


@dataclass(slots=True)
class Throttle:
    """One throttle key over all queues."""

    key: str
    limit: ThrottleLimit
    figures: ThrottleStats | None = None
    parked: dict[str, int] = field(default_factory=dict)
    waiting: int = 0

    @property
    def tokens_left(self) -> float | None:
        bucket = self.limit.bucket
        if bucket is None or self.figures is None or self.figures.tokens is None:
            return None
        return max(0.0, self.figures.tokens) / bucket

    @property
    def in_use(self) -> float | None:
        cap = self.limit.max_in_flight
        return None if cap is None or self.figures is None else self.figures.in_flight / cap


async def throttles(request: Request) -> Response:
    link = link_of(request)
    wanted, page = request.query_params.get("q", "")[:MAX_SHOWN_CHARS], page_number(request)
    entries = await link.watch.shared(link.client.list_config, PREFIX)
    overview = await link.watch.overview()
    found = _throttles(entries, overview.stats)
    chosen = request.query_params.get("key", "")
    if chosen and chosen not in found:
        found[chosen] = Throttle(chosen, ThrottleLimit())
    await _count_waiting(link, found.values())
    rows = [one for one in found.values() if wanted in one.key]
    rows.sort(key=lambda one: (one.key != chosen, -one.waiting, one.key))
    about = {
        "rows": rows[page * PAGE_ROWS :][:PAGE_ROWS],
        "page": page,
        "pages": -(-len(rows) // PAGE_ROWS),
        "total": len(rows),
        "wanted": wanted,
        "chosen": chosen,
        "asked": _asked(request),
        "what_if": _what_if,
        "form": FORM,
        "set_command": _set_command,
    }
    return render(request, "throttles.html", about)


def _asked(request: Request) -> float | None:
    try:
        return number({"rate": request.query_params.get("rate", "")}, "rate")
    except BadForm:
        return None


def _throttles(entries: Mapping[str, str], stats: Mapping[str, QueueStats]) -> dict[str, Throttle]:
    found = {name.removeprefix(PREFIX): value for name, value in entries.items()}
    throttles = {key: Throttle(key, ThrottleLimit.parse(value)) for key, value in found.items()}
    for queue, each in stats.items():
        for figures in each.throttles:
            one = throttles.setdefault(figures.key, Throttle(figures.key, ThrottleLimit.parse(figures.limit)))
            one.figures = figures
            if figures.parked_keys:
                one.parked[queue] = figures.parked_keys
    return throttles


async def _count_waiting(link: Link, found: Any) -> None:
    """Messages of fairness keys that throttles hold up, in the queues in which this one holds some up."""
    queues = sorted({queue for one in found for queue in one.parked})[:_QUEUES]
    answers = await asyncio.gather(*(link.watch.shared(link.client.queue_stats, queue, _KEYS) for queue in queues))
    held = {
        queue: sum(key.pending for key in answer.keys if key.parked)
        for queue, answer in zip(queues, answers, strict=True)
    }
    for one in found:
        one.waiting = sum(held.get(queue, 0) for queue in one.parked)


def _what_if(one: Throttle, asked: float | None) -> list[tuple[float, float, bool]]:
    """Rates, with the time in which the line is empty, and whether it is the present one."""
    if not one.waiting or one.limit.rate is None:
        return []
    tokens = one.figures.tokens or 0.0 if one.figures is not None else 0.0
    return [
        (rate, empty_in(one.waiting, rate, tokens), rate == one.limit.rate) for rate in ladder(one.limit.rate, asked)
    ]


async def set_limit(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    key = fields.get("key", "")
    limit = read_limit(fields)
    await link_of(request).client.set_config(PREFIX + key, str(limit))
    return done(request, f"Set. From a shell: {_set_command(visible(key, 200), limit)}", fields)


def read_limit(fields: dict[str, str]) -> ThrottleLimit:
    """The limit in a form, with the parts that the form does not know. Raises BadForm."""
    parts: Any = {part.name: part.read(fields, part.name) for part in FORM}
    limit = ThrottleLimit(**parts, others=fields.get("others", ""))
    if not str(limit):
        raise BadForm("Give a rate, a number of messages in flight, or both.")
    return limit


def _set_command(key: str, limit: ThrottleLimit) -> str:
    """The command has options for the parts that are known here; with others the whole is set as text."""
    if limit.others:
        return command("config", "set", PREFIX + key, str(limit))
    return command("throttle", "set", key, options={n.replace("_", "-"): text for n, text in limit.texts().items()})


async def unset(request: Request) -> Response:
    fields = await read_form(request, session_of(request))
    key = fields.get("key", "")
    await link_of(request).client.delete_config(PREFIX + key)
    line = command("throttle", "unset", visible(key, 200))
    return done(request, f"{visible(key, 100)} is no longer limited. From a shell: {line}", fields)


PAGES = (
    Page("/throttles", throttles),
    Page("/throttles/set", set_limit, ("POST",)),
    Page("/throttles/unset", unset, ("POST",)),
)
