"""`fila queue`: create, list, inspect, delete."""

from __future__ import annotations

import sys
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
  fila queue delete orders --yes"""
)
def queue() -> None:
    """Create, list, inspect and delete queues."""


@queue.command(
    epilog="""\b
Examples:
  fila queue create orders
  fila queue create orders --visibility-timeout 60000
  fila queue create orders --fairness-header tenant --weight-header weight"""
)
@click.argument("name")
@click.option(
    "--visibility-timeout",
    "visibility_timeout_ms",
    type=int,
    metavar="MS",
    help="How long a consumer may hold a message before it is delivered again.",
)
@click.option("--fairness-header", metavar="HEADER", help="The header that says whose turn a message waits for.")
@click.option("--weight-header", metavar="HEADER", help="The header that says how large that share is (1 to 1000).")
@click.option("--quantum", type=int, metavar="N", help="What a key of weight 1 may spend in one round.")
@click.option("--dedup-window", "dedup_window_ms", type=int, metavar="MS", help="How long dedup keys are remembered.")
@session_options
@pass_session
def create(session: Session, /, name: str, **settings: Any) -> None:
    """Create the queue NAME. What is not given takes the broker's default."""
    with session.client() as client:
        client.create_queue(name, **settings)
    if session.as_json:
        output.emit_json({"queue": name, "created": True})
    else:
        click.echo(f'Created queue "{output.printable(name)}"')


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
  fila queue inspect orders --keys 100
  fila queue inspect orders --json | jq .counters"""
)
@click.argument("name")
@click.option("--keys", type=click.IntRange(min=1), default=20, metavar="N", help="How many keys to show (default 20).")
@session_options
@pass_session
def inspect(session: Session, /, name: str, keys: int) -> None:
    """Show the figures, settings and fairness keys of the queue NAME, the keys with the longest backlog first."""
    with session.client() as client:
        stats = client.queue_stats(name, max_keys=keys)
    if session.as_json:
        output.emit_json(views.stats_json(stats))
    else:
        views.show_stats(stats)


@queue.command(
    epilog="""\b
Examples:
  fila queue delete orders
  fila queue delete orders --yes"""
)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, even when there are messages.")
@session_options
@pass_session
def delete(session: Session, /, name: str, yes: bool) -> None:
    """Delete the queue NAME with all its messages.

    On a terminal, a queue that holds messages is deleted only after a yes.
    """
    with session.client() as client:
        if not yes and sys.stdin.isatty():
            held = views.held_messages(client.queue_stats(name, max_keys=1).summary)
            if held:
                question = f'Queue "{output.printable(name)}" holds {output.count(held, "message")}. Delete it?'
                click.confirm(question, abort=True, err=True)
        deleted = client.delete_queue(name)
    if session.as_json:
        output.emit_json({"queue": name, "deleted": True, "messages": deleted})
    else:
        click.echo(f'Deleted queue "{output.printable(name)}" ({output.count(deleted, "message")})')
