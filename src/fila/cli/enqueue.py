"""`fila enqueue`: one message from an argument, a file or stdin, or one for each line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from fila.cli import output
from fila.cli.progress import Progress, size_of
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client

#: Lines sent with one call: enough that the calls cost little beside the messages, few enough that ids appear soon.
_CHUNK = 1000


class Header(click.ParamType):
    """KEY=VALUE, where the value may be empty and may contain `=`."""

    name = "KEY=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, content = value.partition("=")
        if not key or not equals:
            self.fail(f'"{output.printable(value)}" is not of the form key=value', param, ctx)
        return key, content


@click.command(
    epilog="""\b
Examples:
  fila enqueue orders 'hello' -H tenant=acme
  fila enqueue orders --file photo.jpg --delay 5000
  echo hello | fila enqueue orders -
  fila enqueue orders --lines --file events.ndjson --quiet"""
)
@click.argument("queue")
@click.argument("payload", required=False)
@click.option("-H", "--header", "headers", type=Header(), multiple=True, help="A header; may be given several times.")
@click.option(
    "--delay", "delay_ms", type=click.IntRange(min=0), default=0, metavar="MS", help="Deliver it only after this long."
)
@click.option("--priority", type=click.IntRange(0, 255), metavar="N", help="0 (first) to 255 (default 5).")
@click.option("--dedup-key", metavar="KEY", help="Enqueue only if no message had this key lately.")
@click.option("--file", "source", type=click.File("rb"), metavar="FILE", help="Read the payload from here; - is stdin.")
@click.option("--lines", is_flag=True, help="Every line of the file or of stdin is a message.")
@click.option("--quiet", "-q", is_flag=True, help="Say how many, not which ids.")
@session_options
@pass_session
def enqueue(
    session: Session,
    queue: str,
    payload: str | None,
    source: BinaryIO | None,
    lines: bool,
    quiet: bool,
    headers: tuple[tuple[str, str], ...],
    **options: Any,
) -> None:
    """Put PAYLOAD into QUEUE and print the id it was given.

    Without PAYLOAD, or with -, the payload is read from --file or stdin. The answer comes when the message is durable.
    """
    if lines and options["dedup_key"]:
        raise click.UsageError("--dedup-key names one message: it does not go with --lines.")
    if payload is not None and (source or (lines and payload != "-")):
        raise click.UsageError("give either PAYLOAD or --file, and with --lines no PAYLOAD.")
    template = {"headers": dict(headers), **options}
    with session.client() as client:
        if lines:
            sent = _enqueue_lines(session, client, queue, source or _stdin(), template, quiet)
        else:
            ids = [client.enqueue(queue, payload=_single_payload(payload, source), **template)]
            sent = len(ids)
            if not quiet:
                click.echo(_ids_text(session, ids))
    if quiet and session.as_json:
        output.emit_json({"queue": queue, "enqueued": sent})
    elif quiet:
        click.echo(f'Enqueued {output.count(sent, "message")} to "{output.printable(queue)}"')


def _single_payload(payload: str | None, source: BinaryIO | None) -> bytes:
    if payload is not None and payload != "-":
        return os.fsencode(payload)  # the bytes that were typed, also when they are not UTF-8
    return (source or _stdin()).read()


def _stdin() -> BinaryIO:
    if sys.stdin.isatty():
        click.echo("Reading from the terminal; end with Ctrl-D.", err=True)
    return sys.stdin.buffer


def _enqueue_lines(
    session: Session, client: Client, queue: str, source: BinaryIO, template: Mapping[str, Any], quiet: bool
) -> int:
    from fila.client import OutgoingMessage

    sent = 0
    with Progress(size_of(source)) as progress:
        while lines := list(islice(source, _CHUNK)):
            ids = client.enqueue_many(queue, [OutgoingMessage(line.rstrip(b"\r\n"), **template) for line in lines])
            sent += len(ids)
            if not quiet:
                progress.write(_ids_text(session, ids))
            progress.advance(messages=len(ids), read=sum(map(len, lines)))
    return sent


def _ids_text(session: Session, ids: Sequence[str]) -> str:
    return "\n".join(output.to_json({"id": each}) if session.as_json else output.printable(each) for each in ids)
