"""Shows queues: as tables, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output

if TYPE_CHECKING:
    from fila.client import (
        CapacityStats,
        GroupStats,
        HookStats,
        KeyStats,
        QueueConfig,
        QueueInfo,
        QueueStats,
        ThrottleStats,
        WaitStats,
    )

_SUMMARY = ("name", "depth", "in_flight", "delayed", "active_keys", "consumers")
_GROUP = ("group", "epoch", "floor", "last", "open_claims", "held")
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
    "max_depth",
    "max_bytes",
    "overflow",
)
_COUNTERS = (
    "enqueued",
    "delivered",
    "acked",
    "nacked",
    "expired",
    "returned",
    "dead_lettered",
    "redriven",
    "purged",
    "refused",
    "dropped",
)
_KEY = ("fairness_key", "weight", "pending", "delivered", "deficit", "share", "entitlement", "parked")
_CONSUMER = ("number", "in_flight", "max_in_flight", "credit")
_THROTTLE = ("key", "limit", "tokens", "in_flight", "passed", "held_up", "parked_keys")


def held_messages(summary: QueueInfo) -> int:
    """How many messages deleting the queue would destroy. The depth includes delayed messages, not those in flight."""
    return summary.depth + summary.in_flight


def summary_json(summary: QueueInfo) -> dict[str, Any]:
    """One queue of a list."""
    return _fields(summary, (*_SUMMARY, "paused"))


def stats_json(stats: QueueStats) -> dict[str, Any]:
    """All figures of one queue."""
    return {
        **summary_json(stats.summary),
        "dead_letter_queue": stats.summary.dead_letter_queue,
        "created_at": stats.created_at.isoformat(),
        "config": config_json(stats.config),
        "counters": _fields(stats.counters, _COUNTERS),
        "scheduler": _fields(stats.scheduler, ("quantum", "round", "active_keys")),
        "runnable": stats.runnable,
        "oldest_at": _iso(stats.oldest_at),
        "deliveries_per_second": stats.deliveries_per_second,
        "consumer_list": [_fields(one, _CONSUMER) for one in stats.consumers],
        "groups": [_fields(one, _GROUP) | {"expires_at": _iso(one.expires_at)} for one in stats.groups],
        "throttles": [_fields(one, _THROTTLE) for one in stats.throttles],
        "total_keys": stats.total_keys,
        "waits": asdict(stats.waits),
        "hooks": [
            asdict(one) | {"bypassed_until": _iso(one.bypassed_until), "last_error_at": _iso(one.last_error_at)}
            for one in stats.hooks
        ],
        "waiting_for_hooks": stats.waiting_for_hooks,
        "script_error": stats.script_error,
        "forgotten_delivered": stats.forgotten_delivered,
        "capacity": asdict(stats.capacity) | {"used": stats.capacity.used},
        "keys": [
            _fields(key, _KEY)
            | {"oldest_at": _iso(key.oldest_at), "waits": asdict(key.waits) if key.waits is not None else None}
            for key in stats.keys
        ],
    }


def show_list(queues: Iterable[QueueInfo]) -> None:
    """One line for each queue."""
    titles = ("NAME", "DEPTH", "IN FLIGHT", "DELAYED", "KEYS", "CONSUMERS", "STATE")
    output.table(titles, [[*_row(each, _SUMMARY), _state(each)] for each in queues])


def _state(summary: QueueInfo) -> str:
    return "paused" if summary.paused else "running"


def show_stats(stats: QueueStats) -> None:
    """Summary, settings, counters, then the fairness keys."""
    summary = stats.summary
    _section(f'Queue "{output.printable(summary.name)}"')
    output.pairs(
        [
            ("state", _state(summary)),
            ("depth", summary.depth),
            ("runnable now", stats.runnable),
            ("delayed", summary.delayed),
            ("in flight", summary.in_flight),
            ("oldest", _age(stats.oldest_at)),
            ("deliveries a second", f"{stats.deliveries_per_second:,.1f}"),
            ("consumers", f"{summary.consumers:,} ({sum(1 for one in stats.consumers if one.credit):,} with credit)"),
            (
                "dead letters",
                f"in {summary.dead_letter_queue}" if summary.dead_letter_queue else "this is a dead-letter queue",
            ),
            ("created", output.moment(stats.created_at)),
            *_capacity(stats.capacity),
        ]
    )
    _section("\nSettings")
    show_config(stats.config)
    _section("\nSince the server started")
    output.pairs([(name.replace("_", " "), getattr(stats.counters, name)) for name in _COUNTERS])
    if stats.waits.sampled:
        _section("\nMean wait before delivery")
        output.pairs(_waits(stats.waits))
    if stats.groups:
        _section("\nReader groups (claims)")
        group_titles = ("GROUP", "EPOCH", "ACKED UP TO", "LAST CLAIM", "OPEN", "HELD", "FIRST EXPIRES")
        output.table(group_titles, [_group(one) for one in stats.groups])
    if stats.throttles:
        _section("\nLimits")
        throttle_titles = ("THROTTLE KEY", "LIMIT", "TOKENS", "IN FLIGHT", "PASSED", "HELD UP", "PARKED KEYS")
        output.table(throttle_titles, [_throttle(one) for one in stats.throttles])
    if stats.hooks or stats.script_error:
        _section("\nHooks")
        _show_hooks(stats)
    _section(f"\nFairness keys ({stats.scheduler.active_keys:,} active, round {stats.scheduler.round:,})")
    if stats.keys:
        titles = ("KEY", "WEIGHT", "PENDING", "OLDEST", "DELIVERED", "SHARE", "ENTITLED", "DEFICIT", "STATE")
        output.table(titles, [_key(key) for key in stats.keys])
    if stats.forgotten_delivered:
        part = stats.forgotten_delivered / stats.counters.delivered
        click.echo(
            f"{stats.forgotten_delivered:,} deliveries ({part:.1%}) belong to keys that the broker no longer remembers"
        )
    if stats.total_keys > len(stats.keys):
        click.echo(
            f"Showing {len(stats.keys):,} of {stats.total_keys:,} keys. Use --keys N and --offset N for others.",
            err=True,
        )


def _capacity(held: CapacityStats) -> list[tuple[str, str | int]]:
    """What of its limits a queue uses."""
    rows: list[tuple[str, str | int]] = [("owner", held.owner)] if held.owner else []
    staged = f" and {held.staged_messages:,} staged" if held.staged_messages else ""
    if held.max_depth:
        part = held.messages / held.max_depth
        rows.append(("max depth used", f"{part:.0%}: {held.messages:,}{staged} of {held.max_depth:,} messages"))
    if held.max_bytes:
        rows.append(("max bytes used", f"{held.bytes / held.max_bytes:.0%}: {held.bytes:,} of {held.max_bytes:,}"))
    return rows


def _show_hooks(stats: QueueStats) -> None:
    if stats.script_error:
        click.echo(
            f"The script cannot be loaded, so messages take the defaults: {output.printable(stats.script_error)}"
        )
    if stats.hooks:
        titles = ("HOOK", "STATE", "CALLS", "FAILED", "BYPASSED", "MEAN", "LAST ERROR")
        output.table(titles, [_hook(one) for one in stats.hooks])
    if stats.waiting_for_hooks:
        click.echo(f"{stats.waiting_for_hooks:,} messages wait for hooks, which have used up their time budget")


def _hook(one: HookStats) -> list[str | int]:
    state = "active" if one.bypassed_until is None else f"bypassed until {output.moment(one.bypassed_until)}"
    failed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(one.failures.items()) if count) or "0"
    mean = output.seconds(one.seconds / one.calls) if one.calls else "-"
    error = f"{_age(one.last_error_at)} ago: {one.last_error}" if one.last_error else "-"
    return [one.hook, state, one.calls, failed, one.bypassed, mean, error]


def _waits(waits: WaitStats) -> list[tuple[str, str | int]]:
    rows: list[tuple[str, str | int]] = [("total", output.seconds(waits.mean_seconds))]
    parts = sorted(waits.parts.items(), key=lambda part: -part[1])
    rows += [(name.replace("_", " "), output.seconds(mean)) for name, mean in parts if mean]
    tail = f"half up to {output.seconds(waits.p50_seconds)}, 99 % up to {output.seconds(waits.p99_seconds)}"
    return [*rows, ("spread", f"{tail} ({waits.sampled:,} deliveries sampled)")]


def _key(key: KeyStats) -> list[str | int]:
    state = "parked" if key.parked else "active" if key.pending else "idle"
    shares = [f"{part:.1%}" for part in (key.share, key.entitlement)]
    return [key.fairness_key, key.weight, key.pending, _age(key.oldest_at), key.delivered, *shares, key.deficit, state]


def _group(one: GroupStats) -> list[str | int]:
    expires = output.moment(one.expires_at) if one.expires_at is not None else "-"
    return [one.group, one.epoch, one.floor, one.last, one.open_claims, one.held, expires]


def _throttle(one: ThrottleStats) -> list[str | int]:
    tokens = "-" if one.tokens is None else f"{one.tokens:,.1f}"
    return [one.key, one.limit or "none", tokens, one.in_flight, one.passed, one.held_up, one.parked_keys]


def _age(since: datetime | None) -> str:
    return "-" if since is None else f"{max(0.0, (datetime.now(UTC) - since).total_seconds()):,.1f} s"


def _iso(when: datetime | None) -> str | None:
    return when.isoformat() if when is not None else None


def config_json(config: QueueConfig) -> dict[str, Any]:
    """The settings of a queue."""
    return _fields(config, _CONFIG)


def show_config(config: QueueConfig) -> None:
    """The settings of a queue."""
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
            ("limit", _limit(config)),
            ("retry", _retry(config)),
            ("script", _script(config)),
        ]
    )


def _limit(config: QueueConfig) -> str:
    limits = [f"{config.max_depth:,} messages"] if config.max_depth else []
    limits += [f"{config.max_bytes:,} bytes"] if config.max_bytes else []
    return f"{' and '.join(limits)}, then {config.overflow}" if limits else "none"


def _retry(config: QueueConfig) -> str:
    if not config.retry_delay_ms:
        return "immediately"
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
