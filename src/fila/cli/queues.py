"""`fila queue`: create, list, inspect, update, pause, resume, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fila.cli import output, views
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
    """Create, list, inspect, update, pause, resume and delete queues."""


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options for what can be set of a queue, each named as the SDK names it."""
    for option in reversed(SETTINGS):
        command = option(command)
    return command


SETTINGS = (
    click.option(
        "--visibility-timeout",
        "visibility_timeout_ms",
        type=int,
        metavar="MS",
        help="How long a consumer may hold a message before it is delivered again.",
    ),
    click.option("--fairness-header", metavar="HEADER", help="The header that says whose turn a message waits for."),
    click.option("--weight-header", metavar="HEADER", help="The header that says how large that share is (1 to 1000)."),
    click.option(
        "--throttle-header",
        "throttle_headers",
        multiple=True,
        metavar="HEADER",
        help='A header that makes a throttle key, "HEADER:value". May be repeated; an empty name means none.',
    ),
    click.option("--cost-header", metavar="HEADER", help="The header that says what delivering a message costs."),
    click.option("--quantum", type=int, metavar="N", help="What a key of weight 1 may spend in one round."),
    click.option(
        "--dedup-window", "dedup_window_ms", type=int, metavar="MS", help="How long dedup keys are remembered."
    ),
    click.option(
        "--max-attempts", type=int, metavar="N", help="Dead-letter a message that failed so often; 0 is never."
    ),
    click.option("--retry-delay", "retry_delay_ms", type=int, metavar="MS", help="How long a nacked message rests."),
    click.option("--retry-backoff", type=float, metavar="FACTOR", help="By how much longer it rests each time."),
    click.option(
        "--retry-max-delay", "retry_max_delay_ms", type=int, metavar="MS", help="It rests no longer than this."
    ),
    click.option("--retry-jitter", type=float, metavar="PART", help="The part of the rest left to chance, 0 to 1."),
    click.option(
        "--script",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="Lua that defines on_enqueue, on_failure or both; - reads from stdin.",
    ),
    click.option(
        "--on-enqueue",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="Lua that defines on_enqueue; with --on-failure instead of one --script.",
    ),
    click.option(
        "--on-failure",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="Lua that defines on_failure; with --on-enqueue instead of one --script.",
    ),
    click.option("--no-script", is_flag=True, help="Take the script away."),
    click.option("--script-timeout", "script_timeout_ms", type=int, metavar="MS", help="How long one hook may run."),
    click.option("--script-memory", "script_memory_bytes", type=int, metavar="BYTES", help="What a script may hold."),
)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings among the options of a command. Raises UsageError."""
    no_script = options.pop("no_script")
    sources = {name: options.pop(name) for name in ("script", "on_enqueue", "on_failure")}
    scripts = {name: file.read() for name, file in sources.items() if file is not None}
    if scripts and no_script:
        raise click.UsageError(f"--{next(iter(scripts)).replace('_', '-')} and --no-script contradict each other")
    if "script" in scripts and len(scripts) > 1:
        raise click.UsageError("--script defines both hooks: give it, or --on-enqueue and --on-failure")
    given = {name: value for name, value in options.items() if value is not None}
    headers = given.pop("throttle_headers")
    if headers:
        given["throttle_headers"] = [name for name in headers if name]
    return given | ({"script": ""} if no_script else scripts)


@queue.command(
    epilog="""\b
Examples:
  fila queue create orders
  fila queue create orders --visibility-timeout 60000
  fila queue create orders --fairness-header tenant --weight-header weight
  fila queue create mail --max-attempts 5 --retry-delay 1000 --retry-backoff 2 --retry-jitter 0.2
  fila queue create api --throttle-header provider
  fila queue create jobs --script policy.lua
  fila queue create jobs --on-enqueue place.lua --on-failure retry.lua
  fila queue create orders --if-not-exists"""
)
@click.argument("name")
@click.option("--if-not-exists", is_flag=True, help="A queue that is there already stays as it is.")
@_settings
@session_options
@pass_session
def create(session: Session, /, name: str, if_not_exists: bool, **options: Any) -> None:
    """Create the queue NAME and its dead-letter queue NAME.dlq. What is not given takes the broker's default."""
    created = True
    with session.client() as client:
        if if_not_exists:
            created = client.ensure_queue(name, **_given(options))
        else:
            client.create_queue(name, **_given(options))
    if session.as_json:
        output.emit_json({"queue": name, "created": created})
    else:
        click.echo(f'{"Created queue" if created else "There is a queue"} "{output.printable(name)}"')


@queue.command(
    epilog="""\b
Examples:
  fila queue update orders --max-attempts 5
  fila queue update orders --script policy.lua
  fila queue update orders --no-script"""
)
@click.argument("name")
@_settings
@session_options
@pass_session
def update(session: Session, /, name: str, **options: Any) -> None:
    """Change settings of the queue NAME. They hold for what happens from now on; what is not given stays."""
    given = _given(options)
    if not given:
        raise click.UsageError("nothing to change: name at least one setting")
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
    """List all queues with their basic figures."""
    with session.client() as client:
        queues = client.list_queues()
    if session.as_json:
        output.emit_json([views.summary_json(each) for each in queues])
    elif queues:
        views.show_list(queues)
    else:
        click.echo("No queues yet: create one with `fila queue create NAME`.", err=True)


@queue.command(
    epilog="""\b
Examples:
  fila queue inspect orders
  fila queue inspect orders --keys 100 --sort oldest
  fila queue inspect orders --json | jq .counters"""
)
@click.argument("name")
@click.option("--keys", type=click.IntRange(min=1), default=20, metavar="N", help="How many keys to show (default 20).")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="How many keys to leave out first.")
@click.option(
    "--sort",
    type=click.Choice(["pending", "delivered", "weight", "oldest", "name"]),
    default="pending",
    help="The order of the keys (default: those with the longest backlog first).",
)
@click.option("--prefix", default="", metavar="TEXT", help="Only keys that begin so.")
@session_options
@pass_session
def inspect(session: Session, /, name: str, keys: int, offset: int, sort: str, prefix: str) -> None:
    """Show the figures, settings, consumers, limits and fairness keys of the queue NAME."""
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
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Also when there are dead letters, which go with it.")
@session_options
@pass_session
def delete(session: Session, /, name: str, yes: bool, force: bool) -> None:
    """Delete the queue NAME with all its messages and its dead-letter queue.

    It is deleted only after a yes, on a terminal or by --yes.
    """
    with session.client() as client:
        if not yes:
            held = views.held_messages(client.queue_stats(name, max_keys=1).summary)
            output.confirm(f'Queue "{output.printable(name)}" holds {output.count(held, "message")}. Delete it?')
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
@click.argument("name")
@session_options
@pass_session
def pause(session: Session, /, name: str) -> None:
    """Deliver nothing from the queue NAME until it is resumed, also over restarts.

    Messages are still accepted, and consumers can settle what they hold.
    """
    with session.client() as client:
        client.pause_queue(name)
    _say_paused(session, name, paused=True)


@queue.command(
    epilog="""\b
Examples:
  fila queue resume orders"""
)
@click.argument("name")
@session_options
@pass_session
def resume(session: Session, /, name: str) -> None:
    """Deliver from the queue NAME again."""
    with session.client() as client:
        client.resume_queue(name)
    _say_paused(session, name, paused=False)


def _say_paused(session: Session, name: str, *, paused: bool) -> None:
    if session.as_json:
        output.emit_json({"queue": name, "paused": paused})
    else:
        click.echo(f'{"Paused" if paused else "Resumed"} queue "{output.printable(name)}"')
