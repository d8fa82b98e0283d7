"""The screen of one queue: its flow, fairness keys, limits, waits and consumers."""

from __future__ import annotations

from datetime import UTC, datetime

from fila.cli import output
from fila.cli.top.figures import ALARM, BOLD, DIM, NOTICE, age, bar, number, rate
from fila.cli.top.grid import Cell, Column, grid, line, lines
from fila.cli.top.samples import Sample, Samples
from fila.client import KeyStats, QueueStats, ThrottleStats

NEARLY_FULL = 0.9
"""The part of its limit from which on a queue is shown in red."""
_WIDE = 100
"""Columns from which on bars are long."""
_KEYS = (
    Column("KEY", 0, left=True),
    Column("WEIGHT", 6),
    Column("PENDING", 1),
    Column("OLDEST", 5),
    Column("OUT/S", 2),
    Column("SHARE OF ENTITLEMENT", 3, left=True),
    Column("WAIT", 7),
    Column("STATE", 4, left=True),
)
_THROTTLES = (
    Column("THROTTLE", 0, left=True),
    Column("LIMIT", 1, left=True),
    Column("TOKENS", 2),
    Column("IN FLIGHT", 3),
    Column("PASSED", 6),
    Column("HELD UP", 5),
    Column("PARKED KEYS", 4),
)
_MOST_THROTTLES = 10
_MOST_CONSUMERS = 12


def queue_screen(samples: Samples, now: Sample, name: str, width: int | None, height: int | None) -> list[str]:
    """With a height, keys and throttles share the room that the rest leaves, keys first."""
    stats = now.stats[name]
    head = [_title(name, stats, width), *_flow(samples, now, name, width), line([_warning(stats)], width)]
    foot = ["", *_waits(stats, width), line([_consumers(stats)], width)]
    room = None if height is None else max(2, height - len(head) - len(foot))
    keys = grid(_KEYS, _key_rows(samples, now, name, width), width)[:room]
    throttles = grid(_THROTTLES, [_throttle(one) for one in stats.throttles[:_MOST_THROTTLES]], width)
    left = None if room is None else room - len(keys)
    if stats.throttles and (left is None or left > 2):
        keys += ["", *throttles[: None if left is None else left - 1]]
    return [*head, *keys, *foot]


def _title(name: str, stats: QueueStats, width: int | None) -> str:
    clock = datetime.now(UTC).strftime("%H:%M:%S UTC")
    about = f"  {stats.total_keys:,} fairness keys, round {stats.scheduler.round:,}  {clock}"
    return line([Cell(name, BOLD), Cell(about)], width)


def _flow(samples: Samples, now: Sample, name: str, width: int | None) -> list[str]:
    stats = now.stats[name]
    rates = {"in": "enqueued", "out": "delivered", "ack": "acked", "nack": "nacked"}
    counts = {
        "depth": stats.summary.depth,
        "runnable": stats.runnable,
        "delayed": stats.summary.delayed,
        "in flight": stats.summary.in_flight,
        "dead": stats.counters.dead_lettered,
    }
    if stats.capacity.used is not None:
        counts["% full"] = round(100 * stats.capacity.used)
    shown = [f"{label} {rate(samples.rate(now, name, counter)).text}/s" for label, counter in rates.items()]
    return lines([Cell(each) for each in (*shown, *(f"{label} {count:,}" for label, count in counts.items()))], width)


def _key_rows(samples: Samples, now: Sample, name: str, width: int | None) -> list[list[Cell]]:
    rates = samples.key_rates(now, name)
    shares = samples.key_shares(now, name)
    cells = 20 if width is None or width >= _WIDE else 10
    return [
        [
            Cell(key.fairness_key),
            number(key.weight),
            number(key.pending),
            age(key.oldest_at),
            rate(rates.get(key.fairness_key)),
            bar(shares.get(key.fairness_key, 0.0), key.entitlement, cells),
            Cell("-" if key.waits is None else output.seconds(key.waits.p50_seconds)),
            _state(key),
        ]
        for key in now.stats[name].keys
    ]


def _state(key: KeyStats) -> Cell:
    if key.parked:
        return Cell("throttled", NOTICE)
    return Cell("active", {"fg": "green"}) if key.pending else Cell("idle", DIM)


def _throttle(one: ThrottleStats) -> list[Cell]:
    counts = (one.in_flight, one.passed, one.held_up, one.parked_keys)
    tokens = "-" if one.tokens is None else f"{one.tokens:,.1f}"
    return [Cell(one.key), Cell(one.limit or "none"), Cell(tokens), *map(number, counts)]


def _warning(stats: QueueStats) -> Cell:
    info = stats.summary
    if info.paused:
        return Cell("The queue is paused.", NOTICE)
    if info.depth and not info.consumers:
        return Cell("The queue has messages but no consumers.", ALARM)
    if stats.capacity.used is not None and stats.capacity.used >= NEARLY_FULL:
        return Cell(f"The queue is {stats.capacity.used:.0%} full.", ALARM)
    if stats.script_error:
        return Cell(f"The script cannot be loaded: {stats.script_error}", ALARM)
    bypassed = [one for one in stats.hooks if one.bypassed_until is not None]
    if bypassed:
        return Cell(f"Hook {bypassed[0].hook} is bypassed: {bypassed[0].last_error}", ALARM)
    if stats.runnable and not any(one.credit for one in stats.consumers):
        return Cell("All consumers hold as many messages as they may.", NOTICE)
    return Cell("")


def _waits(stats: QueueStats, width: int | None) -> list[str]:
    waits = stats.waits
    if not waits.sampled:
        return [line([Cell("waits no samples yet", DIM)], width)]
    spread = f"half up to {output.seconds(waits.p50_seconds)}, 99 % up to {output.seconds(waits.p99_seconds)}:"
    parts = sorted(waits.parts.items(), key=lambda part: -part[1])
    whole = waits.mean_seconds or 1.0
    words = [f"{name.replace('_', ' ')} {mean / whole:.0%}" for name, mean in parts if mean / whole >= 0.005]
    return [line([Cell("waits ", DIM), Cell(f"{spread} {', '.join(words)}")], width)]


def _consumers(stats: QueueStats) -> Cell:
    shown = stats.consumers[:_MOST_CONSUMERS]
    words = [f"#{one.number} {one.in_flight:,}/{one.max_in_flight:,}" for one in shown]
    left = len(stats.consumers) - len(shown)
    more = f", and {left:,} more" if left else ""
    return Cell(f"consumers {len(stats.consumers):,}: {', '.join(words) or 'none'}{more}")
