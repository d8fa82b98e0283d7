"""`fila queue`: create, list, inspect, update, pause, resume and delete queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fila.cli import completing, output, views
from fila.cli.asking import confirm, yes_option
from fila.cli.durations import MILLISECONDS
from fila.cli.session import Session, pass_session, session_options


@click.group(
    epilog="""\b
Examples:
  fila queue create orders --fairness-header tenant --weight-header weight
  fila queue list
  fila queue inspect orders --keys 50
  fila queue update orders --max-attempts 5
  fila queue pause orders
  fila queue delete orders --yes"""
)
def queue() -> None:
    """Create, inspect, change and delete queues."""


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for the settings of a queue. Their values are named as in the SDK."""
    for option in reversed(SETTINGS):
        command = option(command)
    return command


SETTINGS = (
    click.option(
        "--visibility-timeout",
        "visibility_timeout_ms",
        type=MILLISECONDS,
        metavar="TIME",
        help="Deliver a message again if it is not settled within TIME, such as 30s.",
    ),
    click.option(
        "--fairness-header", metavar="HEADER", help="The header whose value is the fairness key of a message."
    ),
    click.option(
        "--weight-header",
        metavar="HEADER",
        help="The header whose value (1 to 1000) is the weight of the fairness key.",
    ),
    click.option(
        "--throttle-header",
        "throttle_headers",
        multiple=True,
        metavar="HEADER",
        help='Give messages the throttle key "HEADER:value". Repeat the option for more headers.',
    ),
    click.option("--cost-header", metavar="HEADER", help="The header whose value is the cost of delivering a message."),
    click.option("--quantum", type=int, metavar="N", help="The cost that a key of weight 1 may spend in one round."),
    click.option(
        "--dedup-window", "dedup_window_ms", type=MILLISECONDS, metavar="TIME", help="Remember dedup keys for TIME."
    ),
    click.option(
        "--max-attempts",
        type=int,
        metavar="N",
        help="Move a message to the dead-letter queue after N failed attempts; 0 means never.",
    ),
    click.option(
        "--retry-delay",
        "retry_delay_ms",
        type=MILLISECONDS,
        metavar="TIME",
        help="Deliver a nacked message again after TIME, such as 500ms.",
    ),
    click.option(
        "--retry-backoff", type=float, metavar="FACTOR", help="Multiply the retry delay by FACTOR after each attempt."
    ),
    click.option(
        "--retry-max-delay",
        "retry_max_delay_ms",
        type=MILLISECONDS,
        metavar="TIME",
        help="Limit the retry delay to TIME.",
    ),
    click.option(
        "--retry-jitter",
        type=float,
        metavar="FRACTION",
        help="Randomly shorten the retry delay by up to this fraction (0 to 1).",
    ),
    click.option(
        "--script",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="The Lua script that defines on_enqueue, on_failure or both; - means stdin.",
    ),
    click.option(
        "--on-enqueue",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="The Lua source of on_enqueue, if it is not in --script.",
    ),
    click.option(
        "--on-failure",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="The Lua source of on_failure, if it is not in --script.",
    ),
    click.option(
        "--script-timeout",
        "script_timeout_ms",
        type=MILLISECONDS,
        metavar="TIME",
        help="Stop a hook that runs longer than TIME, such as 5ms.",
    ),
    click.option(
        "--script-memory",
        "script_memory_bytes",
        type=int,
        metavar="BYTES",
        help="Limit the memory of the script to BYTES.",
    ),
    click.option(
        "--max-depth",
        type=click.IntRange(min=0),
        metavar="N",
        help="Hold at most N messages: ready, delayed, leased and staged ones; 0 means no limit.",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(min=0),
        metavar="BYTES",
        help="Hold at most BYTES of headers and payloads; 0 means no limit.",
    ),
    click.option(
        "--overflow",
        type=click.Choice(["reject", "drop-oldest"]),
        help="What a full queue does: refuse messages, or move the oldest ones to the dead-letter queue.",
    ),
)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given as options. Raises UsageError."""
    no_script = options.pop("no_script", False)
    sources = {name: options.pop(name) for name in ("script", "on_enqueue", "on_failure")}
    scripts = {name: file.read() for name, file in sources.items() if file is not None}
    if scripts and no_script:
        raise click.UsageError(f"--{next(iter(scripts)).replace('_', '-')} and --no-script cannot both be given.")
    if "script" in scripts and len(scripts) > 1:
        raise click.UsageError("Give --script, or --on-enqueue and --on-failure, not both.")
    given = {name: value for name, value in options.items() if value is not None}
    headers = given.pop("throttle_headers")
    if headers:
        given["throttle_headers"] = [name for name in headers if name]
    return given | ({"script": ""} if no_script else scripts)


@queue.command(
    epilog="""\b
Examples:
  fila queue create orders
  fila queue create orders --visibility-timeout 60s
  fila queue create orders --fairness-header tenant --weight-header weight
  fila queue create mail --max-attempts 5 --retry-delay 1s --retry-backoff 2 --retry-jitter 0.2
  fila queue create api --throttle-header provider
  fila queue create jobs --script policy.lua
  fila queue create jobs --on-enqueue place.lua --on-failure retry.lua
  fila queue create events --max-depth 100000 --max-bytes 500000000 --overflow drop-oldest
  fila queue create orders --if-not-exists"""
)
@click.argument("name")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the queue exists already.")
@_settings
@session_options
@pass_session
def create(session: Session, /, name: str, if_not_exists: bool, **options: Any) -> None:
    """Create a queue and its dead-letter queue.

    The queue is called NAME, its dead-letter queue NAME.dlq. Settings that are not given take the broker's defaults.
    """
    created = True
    with session.client() as client:
        if if_not_exists:
            created = client.ensure_queue(name, **_given(options))
        else:
            client.create_queue(name, **_given(options))
    if session.as_json:
        output.emit_json({"queue": name, "created": created})
    else:
        click.echo(f'{"Created queue" if created else "Queue exists already:"} "{output.printable(name)}"')


@queue.command(
    epilog="""\b
Examples:
  fila queue update orders --max-attempts 5
  fila queue update orders --script policy.lua
  fila queue update orders --max-depth 10000
  fila queue update orders --no-script"""
)
@click.argument("name", shell_complete=completing.queue_names)
@_settings
@click.option("--no-script", is_flag=True, help="Remove the script.")
@session_options
@pass_session
def update(session: Session, /, name: str, **options: Any) -> None:
    """Change settings of the queue NAME.

    Changes apply to what happens from now on. Settings that are not given stay as they are. --throttle-header ""
    removes all throttle headers.
    """
    given = _given(options)
    if not given:
        raise click.UsageError("Give at least one setting to change.")
    with session.client() as client:
        config = client.update_queue(name, **given)
    if session.as_json:
        output.emit_json(views.config_json(config))
    else:
        click.echo(f'Updated queue "{output.printable(name)}"')
        views.show_config(config)


@queue.command(
    name="list",
    epilog="""\b
Examples:
  fila queue list
  fila queue list --json | jq -r '.[].name'""",
)
@session_options
@pass_session
def list_queues(session: Session, /) -> None:
    """List all queues with their main figures."""
    with session.client() as client:
        queues = client.list_queues()
    if session.as_json:
        output.emit_json([views.summary_json(each) for each in queues])
    elif queues:
        views.show_list(queues)
    else:
        click.echo("There are no queues. Create one with `fila queue create NAME`.", err=True)


@queue.command(
    epilog="""\b
Examples:
  fila queue inspect orders
  fila stats orders                       the same
  fila queue inspect orders --keys 100 --sort oldest
  fila queue inspect orders --json | jq .counters"""
)
@click.argument("name", shell_complete=completing.queue_names)
@click.option("--keys", type=click.IntRange(min=1), default=20, metavar="N", help="Show N fairness keys (default 20).")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Skip the first N fairness keys.")
@click.option(
    "--sort",
    type=click.Choice(["pending", "delivered", "weight", "oldest", "name"]),
    default="pending",
    help="Order the fairness keys (default: pending, the largest backlog first).",
)
@click.option("--prefix", default="", metavar="TEXT", help="Show only fairness keys that begin with TEXT.")
@session_options
@pass_session
def inspect(session: Session, /, name: str, keys: int, offset: int, sort: str, prefix: str) -> None:
    """Show the figures, settings and fairness keys of a queue.

    SHARE is the key's fraction of all deliveries since the server started. ENTITLED is the fraction that its weight
    entitles it to now.
    """
    with session.client() as client:
        stats = client.queue_stats(name, keys, sort=sort, offset=offset, key_prefix=prefix)
    if session.as_json:
        output.emit_json(views.stats_json(stats))
    else:
        views.show_stats(stats)


@queue.command(
    epilog="""\b
Examples:
  fila queue delete orders
  fila queue delete orders --yes
  fila queue delete orders --yes --force"""
)
@click.argument("name", shell_complete=completing.queue_names)
@yes_option
@click.option("--force", is_flag=True, help="Delete the queue even if it has dead letters, and delete these too.")
@session_options
@pass_session
def delete(session: Session, /, name: str, yes: bool, force: bool) -> None:
    """Delete the queue NAME with all its messages.

    Its dead-letter queue is deleted too. The command asks for confirmation unless --yes is given.
    """
    with session.client() as client:
        if not yes:
            held = views.held_messages(client.queue_stats(name, max_keys=1).summary)
            confirm(f'Queue "{output.printable(name)}" holds {output.count(held, "message")}. Delete it?')
        deleted = client.delete_queue(name, force=force)
    if session.as_json:
        output.emit_json({"queue": name, "deleted": True, "messages": deleted})
    else:
        click.echo(f'Deleted queue "{output.printable(name)}" ({output.count(deleted, "message")})')


@queue.command(
    epilog="""\b
Examples:
  fila queue pause orders"""
)
@click.argument("name", shell_complete=completing.queue_names)
@session_options
@pass_session
def pause(session: Session, /, name: str) -> None:
    """Stop delivery from the queue NAME.

    The pause lasts until `fila queue resume`, also over restarts. Meanwhile the queue accepts messages, and consumers
    can settle what they hold.
    """
    with session.client() as client:
        client.pause_queue(name)
    _say_paused(session, name, paused=True)


@queue.command(
    epilog="""\b
Examples:
  fila queue resume orders"""
)
@click.argument("name", shell_complete=completing.queue_names)
@session_options
@pass_session
def resume(session: Session, /, name: str) -> None:
    """Start delivery from the paused queue NAME again."""
    with session.client() as client:
        client.resume_queue(name)
    _say_paused(session, name, paused=False)


def _say_paused(session: Session, name: str, *, paused: bool) -> None:
    if session.as_json:
        output.emit_json({"queue": name, "paused": paused})
    else:
        click.echo(f'{"Paused" if paused else "Resumed"} queue "{output.printable(name)}"')
