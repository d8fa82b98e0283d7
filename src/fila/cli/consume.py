"""`fila consume`: print messages as they come, and ack what was printed.

A message is acked only after its text has left this process, so a reader that goes away early loses nothing: what it
did not get goes back to the queue.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fila.cli import output, render
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client, ConsumeMessage

T = TypeVar("T")

_MAX_IN_FLIGHT = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What to take, and when to stop."""

    queue: str
    count: int | None
    wait_s: float | None
    ack: bool
    max_in_flight: int | None

    def credit(self) -> int:
        """How many messages to hold at a time.

        Whatever is fetched beyond the last wanted message goes back with one more attempt on its account. So for a
        counted number the default is one at a time; unacked ones must all fit.
        """
        if self.max_in_flight is not None:
            return self.max_in_flight
        if self.count is None:
            return _MAX_IN_FLIGHT
        return 1 if self.ack else self.count


@click.command(
    epilog="""\b
Examples:
  fila consume orders                   until Ctrl-C
  fila consume orders --count 10
  fila consume orders --wait 2 --json   stop when nothing came for 2 seconds
  fila consume orders --count 5 --no-ack
"""
)
@click.argument("queue")
@click.option("--count", "-n", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop when nothing came for so long (default: wait forever).",
)
@click.option("--ack/--no-ack", default=True, help="Ack what was printed (default), or give it back at the end.")
@click.option(
    "--max-in-flight",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Messages to hold at a time (default {_MAX_IN_FLIGHT}, with --count 1).",
)
@session_options
@pass_session
def consume(session: Session, /, **choices: Any) -> None:
    """Print the messages of QUEUE as they come, and ack them.

    With --no-ack they go back to the queue when the command ends, and count one more attempt. Bytes that could harm a
    terminal are shown as escapes; --json carries every message exactly.
    """
    plan = Plan(**choices)
    with session.client() as client:
        client.queue_stats(plan.queue, max_keys=1)  # consuming waits for a broker to come; a typo should not
        stream = client.consume_batches(plan.queue, max_in_flight=plan.credit())
        for batch in take(until_silent(stream, plan.wait_s), plan.count):
            _write(session, batch)
            if plan.ack:
                _ack(client, batch)


def take(batches: Iterable[Sequence[T]], count: int | None) -> Iterator[Sequence[T]]:
    """The first `count` items, still in batches; all of them without a count."""
    left = count
    for batch in batches:
        if left is not None and len(batch) >= left:
            yield batch[:left]
            return
        yield batch
        left = left if left is None else left - len(batch)


def until_silent(items: Iterable[T], seconds: float | None) -> Iterator[T]:
    """The items, until none has come for so long."""
    if seconds is None:
        yield from items
        return
    arrived: SimpleQueue[T | Exception] = SimpleQueue()
    threading.Thread(target=_pump, args=(items, arrived), daemon=True).start()
    while True:
        try:
            item = arrived.get(timeout=seconds)
        except Empty:
            return
        if isinstance(item, Exception):
            raise item
        yield item


def _pump(items: Iterable[T], arrived: SimpleQueue[T | Exception]) -> None:
    try:
        for item in items:
            arrived.put(item)
    except Exception as error:  # noqa: BLE001  the consuming thread raises it
        arrived.put(error)


def _ack(client: Client, batch: Sequence[ConsumeMessage]) -> None:
    from fila.client.errors import AckManyError

    try:
        client.ack_many(batch)
    except AckManyError as error:
        reason = output.printable(str(next(iter(error.failed.values()))))
        click.echo(f"Warning: {output.count(len(error.failed), 'message')} may come again: {reason}", err=True)


def _write(session: Session, batch: Sequence[ConsumeMessage]) -> None:
    """Hands the messages to whoever reads stdout. When it returns, they are no longer in our buffers."""
    for message in batch:
        sys.stdout.write(output.to_json(render.as_json(message)) if session.as_json else render.human(message))
        sys.stdout.write("\n")
    sys.stdout.flush()
