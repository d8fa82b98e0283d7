"""`fila consume`: print messages as they arrive, and ack them.

A message is acked only after its text has left this process. So a reader of the output that ends early loses nothing:
what it did not receive goes back to the queue.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fila.cli import completing, output, render
from fila.cli.durations import Duration
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client, ConsumeMessage

T = TypeVar("T")

_MAX_IN_FLIGHT = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How many messages to take, and when to stop."""

    queue: str
    count: int | None
    wait_s: float | None
    ack: bool
    max_in_flight: int | None

    def credit(self) -> int:
        """How many messages to hold at a time.

        A message that is fetched beyond the last wanted one goes back to the queue and counts an attempt. So with
        --count the default is one at a time; with --no-ack all of them, since none is settled before the end.
        """
        if self.max_in_flight is not None:
            return self.max_in_flight
        if self.count is None:
            return _MAX_IN_FLIGHT
        return 1 if self.ack else self.count


@click.command(
    epilog="""\b
Examples:
  fila consume orders                   run until Ctrl-C
  fila consume orders --count 10
  fila consume orders --wait 2 --json   stop when nothing came for 2 seconds
  fila consume orders --count 5 --no-ack
"""
)
@click.argument("queue", shell_complete=completing.queue_names)
@click.option("--count", "-n", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option(
    "--wait",
    "wait_s",
    type=Duration("s", bare="s", low_s=0.001),
    metavar="TIME",
    help="Stop when no message has arrived for TIME, such as 10s (default: wait until Ctrl-C).",
)
@click.option(
    "--ack/--no-ack", default=True, help="Ack printed messages (default), or return them to the queue at the end."
)
@click.option(
    "--max-in-flight",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Hold at most N messages at a time (default {_MAX_IN_FLIGHT}; with --count, 1).",
)
@session_options
@pass_session
def consume(session: Session, /, **choices: Any) -> None:
    """Print the messages of QUEUE as they arrive, and ack them.

    With --no-ack the messages go back to the queue when the command ends, and count one more attempt. Control
    characters are escaped. With --json every message is printed exactly.
    """
    plan = Plan(**choices)
    with session.client() as client:
        client.auth.who_am_i()  # fails for a wrong address, for which consuming would wait; every key may ask it
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
    """The items, until none has arrived for `seconds`."""
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
        click.echo(
            f"Warning: {output.count(len(error.failed), 'message')} not acked and may be delivered again: {reason}",
            err=True,
        )


def _write(session: Session, batch: Sequence[ConsumeMessage]) -> None:
    """Writes messages to stdout. On return they have left our buffers."""
    for message in batch:
        sys.stdout.write(output.to_json(render.as_json(message)) if session.as_json else render.human(message))
        sys.stdout.write("\n")
    sys.stdout.flush()
