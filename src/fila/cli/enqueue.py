"""`fila enqueue`: send one message from an argument, a file or stdin, or one message for each line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any, cast

import click

from fila.cli import completing, output
from fila.cli.durations import MILLISECONDS
from fila.cli.progress import Progress, size_of
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client
    from fila.client.errors import EnqueueManyError, FilaError

#: Input read at a time: large enough that calls cost little, small enough that ids appear soon.
_CHUNK_BYTES = 1 << 16


def parse_headers(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """The value of a `--header` option. Raises BadParameter."""
    headers = {}
    for each in values:
        key, equals, value = each.partition("=")
        if not key or not equals:
            raise click.BadParameter(f'"{output.printable(each)}" is not of the form KEY=VALUE', ctx, param)
        headers[key] = value
    return headers


@click.command(
    epilog="""\b
Examples:
  fila enqueue orders 'hello' -H tenant=acme
  fila enqueue orders --file photo.jpg --delay 5000
  echo hello | fila enqueue orders -
  fila enqueue orders --lines --file events.ndjson --quiet"""
)
@click.argument("queue", shell_complete=completing.queue_names)
@click.argument("payload", required=False)
@click.option(
    "-H",
    "--header",
    "headers",
    metavar="KEY=VALUE",
    multiple=True,
    callback=parse_headers,
    help="Add a header. Repeat the option for more headers.",
)
@click.option(
    "--delay",
    "delay_ms",
    type=MILLISECONDS,
    default=0,
    metavar="TIME",
    help="Deliver the message no earlier than TIME from now, such as 30s or 2h.",
)
@click.option(
    "--priority",
    type=click.IntRange(0, 255),
    metavar="N",
    help="Priority within its fairness key: 0 (first) to 255. The default is 5.",
)
@click.option(
    "--dedup-key",
    metavar="KEY",
    help="Send nothing if a message had this key within the dedup window; print its id instead.",
)
@click.option(
    "--file", "source", type=click.File("rb"), metavar="FILE", help="Read the payload from FILE; - means stdin."
)
@click.option("--lines", is_flag=True, help="Send every line of the input as its own message.")
@click.option("--quiet", "-q", is_flag=True, help="Print the number of messages instead of their ids.")
@session_options
@pass_session
def enqueue(
    session: Session,
    /,
    queue: str,
    payload: str | None,
    source: BufferedIOBase | None,
    lines: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Send a message to QUEUE and print its id.

    Without PAYLOAD, or with -, the payload is read from --file or stdin. The id is printed once the message is durable.
    """
    if lines and options["dedup_key"] is not None:
        raise click.UsageError("--dedup-key applies to one message and cannot be used with --lines.")
    if payload is not None and (source or (lines and payload != "-")):
        raise click.UsageError("Give PAYLOAD or --file, not both. With --lines, give no PAYLOAD.")
    with session.client() as client:
        if lines:
            sent = _enqueue_lines(session, client, queue, source or _stdin(), options, quiet)
        else:
            ids = [client.enqueue(queue, payload=_single_payload(payload, source), **options)]
            sent = len(ids)
            if not quiet:
                click.echo(_ids_text(session, ids))
    if quiet and session.as_json:
        output.emit_json({"queue": queue, "enqueued": sent})
    elif quiet:
        click.echo(f'Enqueued {output.count(sent, "message")} to "{output.printable(queue)}"')


def _single_payload(payload: str | None, source: BufferedIOBase | None) -> bytes:
    if payload is not None and payload != "-":
        return os.fsencode(payload)  # the bytes as typed, also when they are not UTF-8
    return (source or _stdin()).read()


def _stdin() -> BufferedIOBase:
    if sys.stdin.isatty():
        click.echo("Reading from the terminal. Press Ctrl-D to end.", err=True)
    return cast("BufferedIOBase", sys.stdin.buffer)


def _enqueue_lines(
    session: Session, client: Client, queue: str, source: BufferedIOBase, template: Mapping[str, Any], quiet: bool
) -> int:
    from fila.client import OutgoingMessage
    from fila.client.errors import EnqueueManyError

    sent = 0
    with Progress(size_of(source)) as progress:
        for lines in arriving_lines(source):
            messages = [OutgoingMessage(line.removesuffix(b"\r"), **template) for line in lines]
            refused: EnqueueManyError | None = None
            try:
                ids = client.enqueue_many(queue, messages)
            except EnqueueManyError as error:
                refused, ids = error, [each for each in error.results if isinstance(each, str)]
            if ids and not quiet:
                progress.write(_ids_text(session, ids))
            if refused:
                raise _first_refusal(refused, sent) from refused
            progress.advance(messages=len(ids), read=sum(map(len, lines)) + len(lines))
            sent += len(ids)
    return sent


def arriving_lines(source: BufferedIOBase) -> Iterator[list[bytes]]:
    """The lines of the input without their ends, in lists, as soon as they arrive."""
    rest = b""
    while data := source.read1(_CHUNK_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _first_refusal(error: EnqueueManyError, lines_before: int) -> FilaError:
    index, first = next(iter(error.failed.items()))
    return type(first)(f"line {lines_before + index + 1}: {first}")


def _ids_text(session: Session, ids: Sequence[str]) -> str:
    return "\n".join(output.to_json({"id": each}) if session.as_json else output.printable(each) for each in ids)
