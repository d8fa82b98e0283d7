"""How queues look: as tables for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output

if TYPE_CHECKING:
    from fila.client import QueueConfig, QueueInfo, QueueStats

_SUMMARY = ("name", "depth", "in_flight", "delayed", "active_keys", "consumers")
_CONFIG = (
    "visibility_timeout_ms",
    "fairness_header",
    "weight_header",
    "throttle_headers",
    "cost_header",
    "quantum",
    "dedup_window_ms",
    "max_attempts",
    "retry_delay_ms",
    "retry_backoff",
    "retry_max_delay_ms",
    "retry_jitter",
    "script",
    "script_timeout_ms",
    "script_memory_bytes",
)
_COUNTERS = ("enqueued", "delivered", "acked", "nacked", "expired", "returned", "dead_lettered")
_KEY = ("fairness_key", "weight", "pending", "delivered", "deficit")


def held_messages(summary: QueueInfo) -> int:
    """All that deleting the queue would destroy. The depth includes what is delayed, but not what is in flight."""
    return summary.depth + summary.in_flight


def summary_json(summary: QueueInfo) -> dict[str, Any]:
    """One queue of a list."""
    return _fields(summary, _SUMMARY)


def stats_json(stats: QueueStats) -> dict[str, Any]:
    """All that is known of one queue."""
    return {
        **summary_json(stats.summary),
        "dead_letter_queue": stats.summary.dead_letter_queue,
        "created_at": stats.created_at.isoformat(),
        "config": config_json(stats.config),
        "counters": _fields(stats.counters, _COUNTERS),
        "scheduler": _fields(stats.scheduler, ("quantum", "round", "active_keys")),
        "keys": [_fields(key, _KEY) for key in stats.keys],
    }


def show_list(queues: Iterable[QueueInfo]) -> None:
    """One line for each queue."""
    titles = ("NAME", "DEPTH", "IN FLIGHT", "DELAYED", "KEYS", "CONSUMERS")
    output.table(titles, [_row(each, _SUMMARY) for each in queues])


def show_stats(stats: QueueStats) -> None:
    """Summary, settings, counters, then the fairness keys."""
    summary = stats.summary
    _section(f'Queue "{output.printable(summary.name)}"')
    output.pairs(
        [
            ("depth", summary.depth),
            ("in flight", summary.in_flight),
            ("delayed", summary.delayed),
            ("consumers", summary.consumers),
            ("dead letters", f"in {summary.dead_letter_queue}" if summary.dead_letter_queue else "are its messages"),
            ("created", output.moment(stats.created_at)),
        ]
    )
    _section("\nSettings")
    show_config(stats.config)
    _section("\nSince the server started")
    output.pairs([(name.replace("_", " "), getattr(stats.counters, name)) for name in _COUNTERS])
    active = stats.scheduler.active_keys
    _section(f"\nFairness keys ({active:,} active, round {stats.scheduler.round:,})")
    if stats.keys:
        output.table(("KEY", "WEIGHT", "PENDING", "DELIVERED", "DEFICIT"), [_row(key, _KEY) for key in stats.keys])
    if active > len(stats.keys):
        click.echo(f"{len(stats.keys):,} of {active:,} keys; --keys N shows more", err=True)


def config_json(config: QueueConfig) -> dict[str, Any]:
    """How a queue is set up."""
    return _fields(config, _CONFIG)


def show_config(config: QueueConfig) -> None:
    """How a queue is set up."""
    throttles = ", ".join(config.throttle_headers)
    output.pairs(
        [
            ("visibility timeout", output.duration(config.visibility_timeout_ms)),
            ("fairness header", config.fairness_header or "none (one key for all)"),
            ("weight header", config.weight_header or "none (weight 1)"),
            ("throttle headers", throttles or "none"),
            ("cost header", config.cost_header or "none (cost 1)"),
            ("quantum", config.quantum),
            ("dedup window", output.duration(config.dedup_window_ms)),
            ("max attempts", config.max_attempts or "no limit"),
            ("retry", _retry(config)),
            ("script", _script(config)),
        ]
    )


def _retry(config: QueueConfig) -> str:
    if not config.retry_delay_ms:
        return "at once"
    words = [f"after {output.duration(config.retry_delay_ms)}"]
    if config.retry_backoff > 1:
        words.append(f"x{config.retry_backoff:g} each time")
    if config.retry_max_delay_ms:
        words.append(f"at most {output.duration(config.retry_max_delay_ms)}")
    if config.retry_jitter:
        words.append(f"up to {config.retry_jitter:.0%} less")
    return ", ".join(words)


def _script(config: QueueConfig) -> str:
    if not config.script:
        return "none"
    lines = config.script.count("\n") + 1
    limit = f"{config.script_timeout_ms} ms and {config.script_memory_bytes >> 10:,} KiB a call"
    return f"{output.count(lines, 'line')} of Lua, {limit}"


def _section(title: str) -> None:
    click.echo(output.style(title, bold=True))


def _fields(source: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _row(source: object, names: Iterable[str]) -> list[str | int]:
    return [getattr(source, name) for name in names]
