"""`fila dlq`: look at dead letters, move them back, remove them. `fila redrive` is short for `fila dlq redrive`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fila.cli import completing, letters, output
from fila.cli.asking import confirm, yes_option
from fila.cli.durations import AGE_MS
from fila.cli.progress import Counter
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client

_LONG = 1000
"""Progress is shown for this many messages or more."""
_WHOLE = 64 << 20
"""Bytes to fetch of a payload that is shown whole: more than any payload has."""
_LINE_BYTES = 400
"""Bytes to fetch of a payload of which one line is shown."""


def _read_headers(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str | None]:
    headers: dict[str, str | None] = {}
    for each in values:
        name, given, value = each.partition("=")
        if not name:
            raise click.BadParameter(f'"{output.printable(each)}" is not NAME or NAME=VALUE', ctx, param)
        headers[name] = value if given else None
    return headers


FILTERS = (
    click.option(
        "--header",
        "-H",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        callback=_read_headers,
        help="Select messages with this header. Repeat the option for more headers; all must match.",
    ),
    click.option(
        "--key",
        "fairness_key",
        metavar="KEY",
        shell_complete=completing.fairness_keys,
        help="Select messages of this fairness key.",
    ),
    click.option(
        "--error", metavar="TEXT", help="Select messages with TEXT in one of their errors. Case does not matter."
    ),
    click.option(
        "--older-than",
        "min_age_ms",
        type=AGE_MS,
        metavar="TIME",
        help="Select messages enqueued longer ago than TIME, such as 2h.",
    ),
    click.option(
        "--newer-than",
        "max_age_ms",
        type=AGE_MS,
        metavar="TIME",
        help="Select messages enqueued less than TIME ago, such as 90s.",
    ),
    click.option(
        "--id",
        "message_ids",
        multiple=True,
        metavar="ID",
        help="Select the message with this id. Repeat the option for more messages.",
    ),
)


_FILTER_NAMES = {"headers", "fairness_key", "error", "min_age_ms", "max_age_ms", "message_ids"}


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that select messages. Their values are named as in the SDK."""
    for option in reversed(FILTERS):
        command = option(command)
    return command


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, (), {})}


@click.group(
    epilog="""\b
Examples:
  fila dlq peek orders.dlq
  fila dlq peek orders.dlq --error timeout --newer-than 1h
  fila dlq show orders.dlq 019a8f0e-6d1c-7c3a-9f54-0d6f3f6f2b11
  fila dlq redrive orders.dlq --key acme --dry-run
  fila dlq redrive orders.dlq --rate 100
  fila dlq purge orders.dlq --older-than 30d"""
)
def dlq() -> None:
    """Inspect dead letters, redrive them, or remove them."""


@dlq.command(
    epilog="""\b
Examples:
  fila dlq peek orders.dlq
  fila dlq peek orders.dlq --newest --count 5
  fila dlq peek orders.dlq -H region=eu --error timeout
  fila dlq peek orders --state leased
  fila dlq peek orders.dlq --count 1000 --json | jq -r .id"""
)
@click.argument("queue", shell_complete=completing.queue_names)
@_filters
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["ready", "delayed", "leased"]),
    help="Select messages in this state. Repeat the option for more states.",
)
@click.option("--newest", is_flag=True, help="Show the newest messages first.")
@click.option(
    "--count", "-n", type=click.IntRange(min=1), default=20, metavar="N", help="Show at most N messages (default 20)."
)
@click.option("--cursor", default="", metavar="CURSOR", help="Continue where an earlier page ended.")
@session_options
@pass_session
def peek(session: Session, /, queue: str, newest: bool, count: int, cursor: str, **options: Any) -> None:
    """Show messages of QUEUE without consuming them.

    QUEUE may be any queue, not only a dead-letter queue. With --json each message is one line, payload included.
    """
    payload_bytes = _WHOLE if session.as_json else _LINE_BYTES
    with session.client() as client:
        page = client.peek(
            queue, limit=count, newest=newest, payload_bytes=payload_bytes, cursor=cursor, **_given(options)
        )
    if session.as_json:
        for message in page.messages:
            output.emit_json(letters.as_json(message))
    elif page.messages:
        letters.show_table(page.messages)
    else:
        click.echo("No messages match.", err=True)
    if page.cursor:
        click.echo(f"More messages follow. Continue with --cursor {page.cursor}", err=True)


@dlq.command(
    epilog="""\b
Examples:
  fila dlq show orders.dlq 019a8f0e-6d1c-7c3a-9f54-0d6f3f6f2b11"""
)
@click.argument("queue", shell_complete=completing.queue_names)
@click.argument("message_id", metavar="ID")
@session_options
@pass_session
def show(session: Session, /, queue: str, message_id: str) -> None:
    """Show one message of QUEUE in full.

    The output includes its failed attempts with their errors, its headers and its payload.
    """
    with session.client() as client:
        found = client.peek(queue, limit=1, payload_bytes=_WHOLE, message_ids=[message_id]).messages
    if not found:
        about = f'"{output.printable(message_id)}" in queue "{output.printable(queue)}"'
        raise click.ClickException(f"message {about} does not exist")
    if session.as_json:
        output.emit_json(letters.as_json(found[0]))
    else:
        letters.show(found[0])


def _amount(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options that say how many messages to move or remove, and how fast."""
    count = click.option("--count", "-n", type=click.IntRange(min=1), metavar="N", help=f"{verb} at most N messages.")
    rate = click.option(
        "--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help=f"{verb} at most N messages a second."
    )
    return lambda command: count(rate(command))


@dlq.command(
    epilog="""\b
Examples:
  fila dlq redrive orders.dlq
  fila redrive orders.dlq --yes           the same, without being asked
  fila dlq redrive orders.dlq --dry-run
  fila dlq redrive orders.dlq --count 100 --rate 10
  fila dlq redrive orders.dlq --error timeout --newer-than 1h"""
)
@click.argument("queue", shell_complete=completing.dead_letter_queue_names)
@_filters
@_amount("Move")
@click.option("--dry-run", is_flag=True, help="Print how many messages would be moved, and move none.")
@yes_option
@session_options
@pass_session
def redrive(session: Session, /, queue: str, yes: bool, **options: Any) -> None:
    """Move dead letters of QUEUE back to their source queue.

    QUEUE is a dead-letter queue. Messages are moved oldest first. They keep their ids, fairness keys and priorities,
    and their attempts are reset to 0. Messages that a consumer holds are not moved. Without a filter or --count, the
    command asks for confirmation unless --yes is given.
    """
    source = queue.removesuffix(".dlq")
    names = f'from "{output.printable(queue)}" to "{output.printable(source)}"'
    given = _given(options)
    with session.client() as client:
        if not (yes or options["dry_run"] or given.keys() & {*_FILTER_NAMES, "count"}):
            moving = client.redrive(queue, dry_run=True)
            if moving:
                confirm(f"Move {output.count(moving, 'message')} {names}?")
        done = _sweep(client.redrive, client, queue, given)
    if session.as_json:
        output.emit_json({"queue": queue, "source": source, "redriven": done, "dry_run": options["dry_run"]})
    elif options["dry_run"]:
        click.echo(f"Would move {output.count(done, 'message')} {names}")
    else:
        click.echo(f"Moved {output.count(done, 'message')} {names}")


@dlq.command(
    epilog="""\b
Examples:
  fila dlq purge orders.dlq --older-than 30d
  fila dlq purge orders.dlq --error "no such user" --dry-run
  fila dlq purge orders.dlq --yes
  fila dlq purge orders --key acme --force-any"""
)
@click.argument("queue", shell_complete=completing.dead_letter_queue_names)
@_filters
@_amount("Remove")
@click.option("--dry-run", is_flag=True, help="Print how many messages would be removed, and remove none.")
@click.option("--force-any", "any_queue", is_flag=True, help="Allow QUEUE to be any queue.")
@yes_option
@session_options
@pass_session
def purge(session: Session, /, queue: str, yes: bool, **options: Any) -> None:
    """Remove messages of QUEUE for good.

    QUEUE is a dead-letter queue, or with --force-any any queue. Messages are removed oldest first. The command asks
    for confirmation unless --yes is given. Messages that a consumer holds are not removed.
    """
    name = f'"{output.printable(queue)}"'
    given = _given(options)
    with session.client() as client:
        if not (yes or options["dry_run"]):
            doomed = client.purge(queue, **given | {"dry_run": True})
            if doomed:
                confirm(f"Remove {output.count(doomed, 'message')} from {name} for good?")
        done = _sweep(client.purge, client, queue, given)
    if session.as_json:
        output.emit_json({"queue": queue, "purged": done, "dry_run": options["dry_run"]})
    elif options["dry_run"]:
        click.echo(f"Would remove {output.count(done, 'message')} from {name}")
    else:
        click.echo(f"Removed {output.count(done, 'message')} from {name}")


def _sweep(act: Callable[..., int], client: Client, queue: str, given: dict[str, Any]) -> int:
    """Move or remove messages, with a progress bar when there are many."""
    act = partial(act, queue, **given)
    if given["dry_run"] or not (sys.stdout.isatty() or sys.stderr.isatty()):
        return act()
    total = min(client.queue_stats(queue, max_keys=1).summary.depth, given.get("count", sys.maxsize))
    if total < min(_LONG, 10 * given.get("rate", _LONG)):
        return act()
    if given.keys() & _FILTER_NAMES:
        total = act(dry_run=True)
    with Counter(total) as bar:
        return act(on_progress=bar.reach)
