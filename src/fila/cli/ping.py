"""`fila ping`: does the broker answer, and how fast."""

from __future__ import annotations

import time

import click

from fila.cli import output
from fila.cli.durations import SECONDS
from fila.cli.session import Session, pass_session, session_options


@click.command(
    epilog="""\b
Examples:
  fila ping
  fila ping --count 100 --interval 0
  fila --addr broker.example:5555 ping --json

Exit code 3 means that no broker answers."""
)
@click.option(
    "--count", "-n", type=click.IntRange(1, 1_000_000), default=4, metavar="N", help="Ask N times (default 4)."
)
@click.option("--interval", type=SECONDS, default=0.2, metavar="TIME", help="Wait TIME in between (default 200ms).")
@session_options
@pass_session
def ping(session: Session, /, count: int, interval: float) -> None:
    """Ask the broker whether it is there, and print how long each answer took.

    It needs no permission but a valid key, if the broker has keys.
    """
    took_ms: list[float] = []
    addr = output.printable(session.endpoint().addr)
    with session.client() as client:
        for number in range(count):
            if number:
                time.sleep(interval)
            began = time.perf_counter()
            client.auth.who_am_i()
            took_ms.append((time.perf_counter() - began) * 1000)
            if not session.as_json:
                click.echo(f"answer from {addr}: {output.duration_ms(took_ms[-1])}")
    ordered = sorted(took_ms)
    median = ordered[len(ordered) // 2]
    if session.as_json:
        output.emit_json({"answers": count, "min_ms": ordered[0], "median_ms": median, "max_ms": ordered[-1]})
    else:
        shown = " / ".join(output.duration_ms(each) for each in (ordered[0], median, ordered[-1]))
        click.echo(f"{output.count(count, 'answer')}, min / median / max: {shown}")
