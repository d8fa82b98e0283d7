"""`fila top`: a live view of a broker or of one queue.

Rates are differences between two samples. Text from producers and operators is escaped.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output
from fila.cli.durations import Duration
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from fila.client import Client, KeyStats, QueueInfo, QueueStats

BAR = 20
"""Cells of a bar."""
NEARLY_FULL = 0.9
"""The part of its limit from which on a queue is shown in red."""


@click.command(
    epilog="""\b
Examples:
  fila top
  fila top orders
  fila top orders --interval 0.5 --keys 30 --sort oldest
  fila top orders --once --json"""
)
@click.argument("queue", required=False)
@click.option(
    "--interval",
    type=Duration("s", bare="s", low_s=0.1, high_s=3600),
    default=1.0,
    metavar="TIME",
    help="Refresh every TIME (default 1s).",
)
@click.option(
    "--keys",
    type=click.IntRange(1, 500),
    default=15,
    metavar="N",
    help="Show N fairness keys, or N queues (default 15).",
)
@click.option(
    "--sort",
    type=click.Choice(["pending", "delivered", "weight", "oldest", "name"]),
    default="pending",
    help="Order the fairness keys (default: pending).",
)
@click.option("--once", is_flag=True, help="Print one snapshot and exit.")
@session_options
@pass_session
def top(session: Session, /, queue: str | None, interval: float, keys: int, sort: str, once: bool) -> None:
    """Show a live view of all queues, or of QUEUE.

    The view of one queue shows its fairness keys, limits, waits and consumers. Press Ctrl-C to end.
    """
    with session.client() as client:
        samples = Samples(client, queue, keys, sort)
        if session.as_json:
            _stream_json(samples, interval, once)
        elif once:
            samples.take()
            time.sleep(interval)
            output.console().print(samples.render(samples.take()))
        else:
            _live(samples, interval)


def _stream_json(samples: Samples, interval: float, once: bool) -> None:
    """One line of JSON for each sample."""
    samples.take()
    while True:
        time.sleep(interval)
        output.emit_json(samples.json(samples.take()))
        if once:
            return


def _live(samples: Samples, interval: float) -> None:
    from rich.live import Live

    console = output.console()
    if not console.is_terminal:
        raise click.UsageError("The live view needs a terminal. Use --once or --json instead.")
    with Live(samples.render(samples.take()), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            live.update(samples.render(samples.take()), refresh=True)


@dataclass(slots=True)
class Sample:
    """The figures of a broker at one moment."""

    at: float
    queues: list[QueueInfo]
    stats: dict[str, QueueStats]
    """The figures of the queues that are shown."""


@dataclass(slots=True)
class Samples:
    """Two samples of a broker: the last one and the one before it."""

    client: Client
    queue: str | None
    keys: int
    sort: str
    before: Sample | None = None
    last: Sample | None = None

    def take(self) -> Sample:
        """Take a sample. The last one becomes the one before."""
        if self.queue is not None:
            stats = {self.queue: self.client.queue_stats(self.queue, self.keys, sort=self.sort)}
            found = Sample(time.monotonic(), [stats[self.queue].summary], stats)
        else:
            queues = self.client.list_queues()
            shown = sorted(queues, key=lambda one: -(one.depth + one.in_flight))[: self.keys]
            found = Sample(time.monotonic(), queues, {one.name: self._stats(one.name) for one in shown})
        self.before, self.last = self.last, found
        return found

    def _stats(self, name: str) -> QueueStats:
        return self.client.queue_stats(name, 1)

    def rate(self, now: Sample, name: str, counter: str) -> float | None:
        """How often a second a counter of a queue grew between the samples; None before the second one."""
        if self.before is None or name not in self.before.stats or name not in now.stats:
            return None
        seconds = now.at - self.before.at
        earlier = getattr(self.before.stats[name].counters, counter)
        return max(0, getattr(now.stats[name].counters, counter) - earlier) / seconds if seconds > 0 else None

    def key_rates(self, now: Sample, name: str) -> dict[str, float]:
        """Deliveries a second of the keys that are in both samples."""
        if self.before is None or name not in self.before.stats:
            return {}
        seconds = max(now.at - self.before.at, 1e-9)
        earlier = {key.fairness_key: key.delivered for key in self.before.stats[name].keys}
        return {
            key.fairness_key: max(0, key.delivered - earlier[key.fairness_key]) / seconds
            for key in now.stats[name].keys
            if key.fairness_key in earlier
        }

    def key_shares(self, now: Sample, name: str) -> dict[str, float]:
        """The fraction of the queue's deliveries between the samples of each key that is in both."""
        total = self.rate(now, name, "delivered")
        return {key: rate / total for key, rate in self.key_rates(now, name).items()} if total else {}

    def json(self, now: Sample) -> dict[str, Any]:
        """The figures of one sample."""
        from fila.cli import views

        counters = ("enqueued", "delivered", "acked", "nacked", "dead_lettered")
        return {
            "at": datetime.now(UTC).isoformat(),
            "queues": [
                views.stats_json(stats)
                | {"per_second": {counter: self.rate(now, name, counter) for counter in counters}}
                for name, stats in now.stats.items()
            ],
        }

    def render(self, now: Sample) -> RenderableType:
        """The screen."""
        return _queue_screen(self, now, self.queue) if self.queue is not None else _broker_screen(self, now)


def _broker_screen(samples: Samples, now: Sample) -> RenderableType:
    from rich.console import Group

    table = _table(
        "QUEUE", "DEPTH", "RUNNABLE", "DELAYED", "IN FLIGHT", "IN/S", "OUT/S", "ACK/S", "OLDEST", "CONSUMERS"
    )
    for name, stats in now.stats.items():
        info = stats.summary
        table.add_row(
            _text(name, "bold red" if info.depth and not info.consumers else "bold"),
            *(_number(value) for value in (info.depth, stats.runnable, info.delayed, info.in_flight)),
            *(_rate(samples.rate(now, name, counter)) for counter in ("enqueued", "delivered", "acked")),
            _age(stats.oldest_at),
            _number(info.consumers),
        )
    left = len(now.queues) - len(now.stats)
    more = _text(f"{output.count(left, 'more queue')}: show with --keys N", "dim") if left > 0 else _text("")
    return Group(_title("Fila", f"{len(now.queues):,} queues"), table, more)


def _queue_screen(samples: Samples, now: Sample, name: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    stats = now.stats[name]
    info = stats.summary
    parts: list[RenderableType] = [_title(name, f"{stats.total_keys:,} fairness keys, round {stats.scheduler.round:,}")]
    flow = Text()
    for label, counter in (("in", "enqueued"), ("out", "delivered"), ("ack", "acked"), ("nack", "nacked")):
        flow.append(f"{label} ", "dim").append(_rate(samples.rate(now, name, counter)).plain + "/s   ", "bold cyan")
    for label, value in (
        ("depth", info.depth),
        ("runnable", stats.runnable),
        ("delayed", info.delayed),
        ("in flight", info.in_flight),
        ("dead", stats.counters.dead_lettered),
        *([] if stats.capacity.used is None else [("% full", round(100 * stats.capacity.used))]),
    ):
        flow.append(f"{label} ", "dim").append(f"{value:,}   ", "bold")
    parts += [flow, _warning(stats), _text("")]
    parts.append(_keys_table(samples, now, name))
    if stats.throttles:
        throttles = _table("THROTTLE", "LIMIT", "TOKENS", "IN FLIGHT", "PASSED", "HELD UP", "PARKED KEYS")
        for one in stats.throttles[:10]:
            tokens = "-" if one.tokens is None else f"{one.tokens:,.1f}"
            throttles.add_row(
                _text(one.key),
                _text(one.limit or "none"),
                _text(tokens),
                *(_number(value) for value in (one.in_flight, one.passed, one.held_up, one.parked_keys)),
            )
        parts += [_text(""), throttles]
    parts += [_text(""), _waits(stats), _consumers(stats)]
    return Group(*parts)


def _keys_table(samples: Samples, now: Sample, name: str) -> RenderableType:
    stats = now.stats[name]
    rates = samples.key_rates(now, name)
    shares = samples.key_shares(now, name)
    table = _table("KEY", "WEIGHT", "PENDING", "OLDEST", "OUT/S", "SHARE NOW OF ENTITLEMENT", "WAIT", "STATE")
    for key in stats.keys:
        table.add_row(
            _text(key.fairness_key),
            _number(key.weight),
            _number(key.pending),
            _age(key.oldest_at),
            _rate(rates.get(key.fairness_key)),
            _bar(shares.get(key.fairness_key, 0.0), key.entitlement),
            _text("-" if key.waits is None else output.seconds(key.waits.p50_seconds)),
            _state(key),
        )
    return table


def _bar(share: float, entitled: float) -> RenderableType:
    """The share as a bar, with a mark at the entitlement."""
    from rich.text import Text

    filled, mark = round(share * BAR), min(BAR - 1, round(entitled * BAR))
    bar = Text()
    for cell in range(BAR):
        if cell == mark and entitled:
            bar.append("|", "bold yellow")
        else:
            bar.append("#" if cell < filled else ".", "green" if cell < filled else "dim")
    return bar.append(f" {share:>4.0%} of {entitled:.0%}")


def _state(key: KeyStats) -> RenderableType:
    if key.parked:
        return _text("throttled", "yellow")
    return _text("active", "green") if key.pending else _text("idle", "dim")


def _warning(stats: QueueStats) -> RenderableType:
    info = stats.summary
    if info.paused:
        return _text("The queue is paused.", "bold yellow")
    if info.depth and not info.consumers:
        return _text("The queue has messages but no consumers.", "bold red")
    if stats.capacity.used is not None and stats.capacity.used >= NEARLY_FULL:
        return _text(f"The queue is {stats.capacity.used:.0%} full.", "bold red")
    if stats.script_error:
        return _text(f"The script cannot be loaded: {stats.script_error}", "bold red")
    bypassed = [one for one in stats.hooks if one.bypassed_until is not None]
    if bypassed:
        return _text(f"Hook {bypassed[0].hook} is bypassed: {bypassed[0].last_error}", "bold red")
    if stats.runnable and not any(one.credit for one in stats.consumers):
        return _text("All consumers hold as many messages as they may.", "yellow")
    return _text("")


def _waits(stats: QueueStats) -> RenderableType:
    from rich.text import Text

    waits = stats.waits
    line = Text("waits ", "dim")
    if not waits.sampled:
        return line.append("no samples yet", "dim")
    line.append(f"half up to {output.seconds(waits.p50_seconds)}, 99 % up to {output.seconds(waits.p99_seconds)}: ")
    parts = sorted(waits.parts.items(), key=lambda part: -part[1])
    whole = waits.mean_seconds or 1.0
    words = [f"{name.replace('_', ' ')} {mean / whole:.0%}" for name, mean in parts if mean / whole >= 0.005]
    return line.append(", ".join(words))


def _consumers(stats: QueueStats) -> RenderableType:
    from rich.text import Text

    line = Text(f"consumers {len(stats.consumers):,}: ", "dim")
    shown = stats.consumers[:12]
    words = [f"#{one.number} {one.in_flight:,}/{one.max_in_flight:,}" for one in shown]
    more = f", and {len(stats.consumers) - len(shown):,} more" if len(stats.consumers) > len(shown) else ""
    return line.append((", ".join(words) or "none") + more)


def _table(*titles: str) -> Table:
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False, show_edge=False)
    for number, title in enumerate(titles):
        text = number == 0 or title in {"STATE", "LIMIT"} or title.startswith("SHARE")
        grid.add_column(title, justify="left" if text else "right", no_wrap=True, overflow="ellipsis")
    return grid


def _title(name: str, about: str) -> RenderableType:
    clock = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return _text(f"{name}  {about}  {clock}", "bold reverse")


def _text(value: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(output.printable(value), style)


def _number(value: int) -> Text:
    return _text(f"{value:,}", "dim" if not value else "")


def _rate(value: float | None) -> Text:
    return _text("-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}", "" if value else "dim")


def _age(since: datetime | None) -> Text:
    if since is None:
        return _text("-", "dim")
    return _text(output.seconds(max(0.0, (datetime.now(UTC) - since).total_seconds())))
