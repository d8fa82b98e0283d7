"""`fila top`: one snapshot, lines of JSON, or a live view."""

from __future__ import annotations

import os
import sys
import time

import click

from fila.cli import completing, output
from fila.cli.durations import Duration
from fila.cli.session import Session, pass_session, session_options
from fila.cli.top.samples import KEY_SORTS, Samples

_KEYS = 15


@click.command(
    epilog="""\b
Examples:
  fila top
  fila top orders
  fila top orders --interval 0.5 --keys 30 --sort oldest
  fila top orders --once --json

\b
Keys of the live view:
  q            quit
  s            sort by the next figure
  up, down     choose a queue (also k, j)
  Enter, Esc   open it, go back to all queues"""
)
@click.argument("queue", required=False, shell_complete=completing.queue_names)
@click.option(
    "--interval",
    type=Duration("s", bare="s", low_s=0.1, high_s=3600),
    default=1.0,
    metavar="TIME",
    help="Refresh every TIME (default 1s).",
)
@click.option(
    "--keys",
    type=click.IntRange(1, 500),
    metavar="N",
    help=f"Show at most N fairness keys, or N queues (default: what fits; with --once or --json {_KEYS}).",
)
@click.option(
    "--sort",
    type=click.Choice(KEY_SORTS),
    default=KEY_SORTS[0],
    help="Order the fairness keys (default: pending).",
)
@click.option("--once", is_flag=True, help="Print one snapshot and exit.")
@session_options
@pass_session
def top(session: Session, /, queue: str | None, interval: float, keys: int | None, sort: str, once: bool) -> None:
    """Show a live view of all queues, or of QUEUE.

    The view of one queue shows its fairness keys, limits, waits and consumers. Press q to quit.
    """
    if not (once or session.as_json or _has_screen()):
        raise click.UsageError("The live view needs a terminal. Use --once or --json instead.")
    with session.client() as client:
        samples = Samples(client, queue, keys or _KEYS, sort)
        if session.as_json:
            _stream_json(samples, interval, once)
        elif once:
            _print_once(samples, interval)
        else:
            from fila.cli.top.live import Live

            Live(samples, interval, keys).run()


def _has_screen() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _stream_json(samples: Samples, interval: float, once: bool) -> None:
    """One line of JSON for each sample."""
    samples.take()
    while True:
        time.sleep(interval)
        output.emit_json(samples.json(samples.take()))
        if once:
            return


def _print_once(samples: Samples, interval: float) -> None:
    from fila.cli.top.live import screen_of
    from fila.cli.top.view import View

    samples.take()
    time.sleep(interval)
    samples.take()
    for line in screen_of(samples, View(samples.queue), width=output.width_of(sys.stdout), height=None):
        click.echo(line)
