"""Throttles: what each limit has left, who waits for it, and what another limit would mean."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fila.client import QueueStats, ThrottleStats
from fila.console.commands import command
from fila.console.forecast import Limit, empty_in, ladder
from fila.console.forms import BadForm, number, read_form, whole
from fila.console.limits import MAX_SHOWN_CHARS, PAGE_ROWS
from fila.console.links import Link
from fila.console.pages.base import Page, done, link_of, page_number, session_of
from fila.console.rendering import render
from fila.console.words import visible

PREFIX = "throttle."
_KEYS = 200
_QUEUES = 8


@dataclass(slots=True)
class Throttle:
    """One throttle key over all queues."""

    key: str
    limit: Limit
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
        found[chosen] = Throttle(chosen, Limit())
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
    }
    return render(request, "throttles.html", about)


def _asked(request: Request) -> float | None:
    try:
        return number({"rate": request.query_params.get("rate", "")}, "rate")
    except BadForm:
        return None


def _throttles(entries: Mapping[str, str], stats: Mapping[str, QueueStats]) -> dict[str, Throttle]:
    found = {name.removeprefix(PREFIX): value for name, value in entries.items()}
    throttles = {key: Throttle(key, Limit.parse(value)) for key, value in found.items()}
    for queue, each in stats.items():
        for figures in each.throttles:
            one = throttles.setdefault(figures.key, Throttle(figures.key, Limit.parse(figures.limit)))
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
    limit = Limit(number(fields, "rate"), number(fields, "burst"), whole(fields, "max_in_flight"))
    if not str(limit):
        raise BadForm("Give a rate, a number of messages in flight, or both.")
    await link_of(request).client.set_config(PREFIX + key, str(limit))
    options = {"rate": limit.rate, "burst": limit.burst, "max-in-flight": limit.max_in_flight}
    return done(request, f"Set. From a shell: {command('throttle', 'set', visible(key, 200), options=options)}", fields)


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
