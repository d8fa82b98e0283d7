"""`fila pipeline stream`: reports from a queue, reconciled as they come. Spark is imported by the command itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from fila.cli import completing, output
from fila.cli.pipeline import lineage_option, rules_option, spark_options, spark_session
from fila.cli.session import Session, pass_session


@click.command(
    epilog="""\b
Examples:
  fila pipeline stream --queue reports --metrics metrics/ --out streamed
  fila pipeline stream --queue reports --metrics metrics/ --out streamed --once
  fila pipeline stream --queue reports --metrics hdfs:///m --out hdfs:///o --every 60 --master spark://host:7077"""
)
@click.option("--broker", metavar="HOST:PORT", help="The address of the broker (default: that of --addr).")
@click.option(
    "--queue",
    required=True,
    metavar="QUEUE",
    shell_complete=completing.queue_names,
    help="The queue of the reports, each a JSON object.",
)
@click.option(
    "--metrics", required=True, metavar="PATH", help="The metrics of platforms: files. New files are picked up."
)
@click.option("--out", required=True, metavar="FOLDER", help="The folder of the tables and of the checkpoint.")
@rules_option
@lineage_option
@click.option(
    "--group",
    default="reconcile",
    show_default=True,
    metavar="NAME",
    help="The reader group. Each stream needs its own.",
)
@click.option("--discrepancies", metavar="QUEUE", help="The queue for discrepancies (default: QUEUE.discrepancies).")
@click.option("--alerts", metavar="QUEUE", help="The queue for alerts (default: QUEUE.alerts).")
@click.option("--refused", metavar="QUEUE", help="The queue for invalid messages (default: the dead-letter queue).")
@click.option(
    "--max-messages", type=click.IntRange(min=1), default=50_000, show_default=True, help="The most reports in a batch."
)
@click.option("--lease", default="15m", show_default=True, help="Keep reports for a stream that is down for this long.")
@click.option("--every", type=click.IntRange(min=0), default=10, show_default=True, help="The seconds between batches.")
@click.option("--once", is_flag=True, help="Process the reports that are in the queue, and exit.")
@spark_options
@pass_session
def stream(
    session: Session,
    /,
    broker: str | None,
    queue: str,
    metrics: str,
    out: str,
    config_path: Path | None,
    lineage: Any,
    every: int,
    once: bool,
    master: str | None,
    as_json: bool,
    **names: Any,
) -> None:
    """Reconcile reports from a queue as they arrive, until Ctrl-C.

    Each batch is a run on the tables in FOLDER. Discrepancies, alerts and invalid messages go to queues, exactly once,
    even if the command is killed and started again.
    """
    if broker is not None:
        session.addr = broker
    addr = _export(session)
    totals = {"batches": 0, "received": 0, "refused": 0, "repeated": 0, "new": 0}
    with spark_session("fila stream", master) as (spark, say):
        from fila.pipelines.reconcile import stream as streaming
        from fila.pipelines.submit.program import read_rules

        def on_batch(counts: dict[str, int]) -> None:
            totals["batches"] += 1
            for name, count in counts.items():
                totals[name] += count
            say(f"{totals['batches']:,} batches, {totals['new']:,} reports")

        chosen = {name: value for name, value in names.items() if value is not None}
        queues = streaming.Queues.beside(addr, queue, **chosen)
        _make_queues(session, queues.discrepancies, queues.alerts)
        query = streaming.start(
            spark,
            queues,
            metrics,
            out,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            settings=read_rules(config_path),
            trigger={"availableNow": True} if once else {"processingTime": f"{every} seconds"},
            on_batch=on_batch,
            **({} if lineage is None else {"lineage": lineage}),
        )
        say("waiting for reports")
        try:
            streaming.wait(query)
        except KeyboardInterrupt:
            query.stop()
    if session.as_json or as_json:
        output.emit_json({**totals, "out": out})
        return
    output.pairs([(name, f"{count:,}") for name, count in totals.items()])
    click.echo(f"\nThe tables are in {out}")


def _export(session: Session) -> str:
    """The address. How to connect there is left to the environment, which Spark's processes read."""
    endpoint = session.endpoint()
    endpoint.export()
    return endpoint.addr


def _make_queues(session: Session, *names: str) -> None:
    """Makes those that are not there."""
    with session.client() as client:
        for name in names:
            client.ensure_queue(name)
