"""The command: options and their bounds, the queue's name, the table."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output
from fila.cli.bench.load import MOST_PROBES, STAMP_BYTES, WORKLOADS, Load
from fila.cli.durations import Duration
from fila.cli.progress import Counter
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.cli.bench.latencies import Spread
    from fila.cli.bench.workloads import Measured

PREFIX = "fila-bench-"
MOST_BYTES = 4 << 30
"""Of the payloads of a workload: they are on the broker's disk for a while"""
_TIMEOUT_S = 30.0
"""Deleting a queue takes the longer the more it holds."""


@click.command(
    epilog="""\b
Examples:
  fila bench
  fila bench produce consume --messages 500000 --size 1024
  fila bench lifecycle --producers 2 --consumers 4 --keys 100
  fila bench latency --messages 5000 --json

\b
Workloads:
  produce    enqueue batches; latency: of a call, until all its messages are durable
  consume    receive and ack what produce has sent; latency: of an ack of a batch
  lifecycle  both at once; latency: from enqueue to delivery, at full load
  latency    one message at a time; of an enqueue, and from enqueue to delivery"""
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...", type=click.Choice(WORKLOADS))
@click.option(
    "--messages",
    "-n",
    type=click.IntRange(1, 10_000_000),
    default=100_000,
    metavar="N",
    help=f"Send N messages in each workload (default 100,000; latency at most {MOST_PROBES:,}).",
)
@click.option(
    "--size",
    type=click.IntRange(STAMP_BYTES, 1 << 20),
    default=256,
    metavar="BYTES",
    help=f"The size of a payload (default 256, at least {STAMP_BYTES}).",
)
@click.option(
    "--keys", type=click.IntRange(1, 10_000), default=10, metavar="N", help="Use N fairness keys (default 10)."
)
@click.option(
    "--producers", type=click.IntRange(1, 32), default=1, metavar="N", help="Send from N processes (default 1)."
)
@click.option(
    "--consumers", type=click.IntRange(1, 32), default=1, metavar="N", help="Receive in N processes (default 1)."
)
@click.option(
    "--batch", type=click.IntRange(1, 10_000), default=500, metavar="N", help="Send N messages a call (default 500)."
)
@click.option(
    "--time",
    "seconds",
    type=Duration("s", bare="s", low_s=0.1, high_s=3600),
    default=30.0,
    metavar="TIME",
    help="Stop each workload after TIME (default 30s).",
)
@click.option(
    "--queue",
    metavar="NAME",
    help=f"The name of the queue that is made and deleted (default: {PREFIX} and a random number). It must not exist.",
)
@session_options
@pass_session
def bench(session: Session, /, workloads: Collection[str], queue: str | None, **numbers: Any) -> None:
    """Measure what the broker does in a second, and how fast it answers.

    The command makes a queue of its own, sends made-up messages from processes of this machine, and deletes the queue
    at the end, also after Ctrl-C. Measure a broker in production only when it may be busy. Without WORKLOAD, all are
    run.
    """
    from fila.cli.bench.processes import ClientFailed
    from fila.cli.bench.workloads import Bench, LeftBehind

    load = Load(**numbers)
    if load.bytes > MOST_BYTES:
        raise click.UsageError(f"--messages times --size is {load.bytes:,} bytes: at most {MOST_BYTES:,} are sent.")
    name = queue or PREFIX + secrets.token_hex(4)
    with session.client() as client:
        client.auth.who_am_i()  # a wrong address is told within the timeout
    session.timeout = max(session.timeout, _TIMEOUT_S)
    found: list[Measured] = []
    with session.client() as client, _ended_by_signals():
        _say(session, name, load)
        run = Bench(client, session.endpoint(), name, load, _progress).run(workloads or WORKLOADS)
        try:
            with closing(run):
                for measured in run:
                    found.append(measured)
                    _warn(measured, load)
        except (ClientFailed, LeftBehind) as error:
            raise click.ClickException(output.printable(str(error))) from error
    if session.as_json:
        output.emit_json([_json(measured) for measured in found])
    else:
        _show(found)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end the command as an interrupt does: with the queue deleted."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(workload: str, messages: int) -> Iterator[Callable[[int], object]]:
    with Counter(messages, f"{workload:<9}") as bar:
        yield bar.reach


def _say(session: Session, queue: str, load: Load) -> None:
    if sys.stderr.isatty():
        addr = output.printable(session.endpoint().addr)
        clients = f"{output.count(load.producers, 'producer')}, {output.count(load.consumers, 'consumer')}"
        messages = f"{output.count(load.messages, 'message')} of {load.size:,} B, {output.count(load.keys, 'key')}"
        click.echo(f'Broker {addr}, queue "{output.printable(queue)}"\n{messages}, {clients}', err=True)


def _warn(measured: Measured, load: Load) -> None:
    if not measured.complete:
        click.echo(f"{measured.workload}: stopped after {load.seconds:g} s, before all messages were through", err=True)


def _show(found: Collection[Measured]) -> None:
    rows: list[list[str | int]] = []
    for measured in found:
        through = (measured.workload, measured.messages, round(measured.per_second), f"{measured.mib_per_second:,.1f}")
        rows += [[*through, *_times(spread), of] for of, spread in measured.latencies.items()]
    output.table(("WORKLOAD", "MESSAGES", "MSG/S", "MIB/S", "P50", "P99", "LATENCY OF"), rows)


def _times(spread: Spread | None) -> tuple[str, str]:
    return ("-", "-") if spread is None else (output.seconds(spread.p50), output.seconds(spread.p99))


def _json(measured: Measured) -> dict[str, Any]:
    return {
        "workload": measured.workload,
        "messages": measured.messages,
        "seconds": measured.seconds,
        "messages_per_second": measured.per_second,
        "mib_per_second": measured.mib_per_second,
        "complete": measured.complete,
        "latency": {
            of: None if spread is None else {"p50_ms": spread.p50 * 1000, "p99_ms": spread.p99 * 1000}
            for of, spread in measured.latencies.items()
        },
    }
