"""`fila pipeline archive`: the journal of a broker into a table. Spark is imported by the command itself."""

from __future__ import annotations

from typing import Any

import click

from fila.cli import output
from fila.cli.pipeline import ChecksFailed, spark_options, spark_session
from fila.cli.session import Session, pass_session


@click.command(
    epilog="""\b
Examples:
  fila pipeline archive --broker localhost:5555 --out archive
  fila pipeline archive --out archive --once
  fila pipeline archive --out hdfs:///archive --every 60 --master spark://host:7077"""
)
@click.option("--broker", metavar="HOST:PORT", help="The address of the broker (default: that of --addr).")
@click.option("--out", required=True, metavar="FOLDER", help="The folder of the table and of the checkpoint.")
@click.option(
    "--max-entries",
    type=click.IntRange(1, 1_000_000),
    default=500_000,
    show_default=True,
    metavar="N",
    help="The most entries in a batch.",
)
@click.option("--every", type=click.IntRange(min=0), default=60, show_default=True, help="The seconds between batches.")
@click.option("--once", is_flag=True, help="Archive the entries that the broker has, and exit.")
@spark_options
@pass_session
def archive(
    session: Session,
    /,
    broker: str | None,
    out: str,
    max_entries: int,
    every: int,
    once: bool,
    master: str | None,
    as_json: bool,
) -> None:
    """Archive the broker's journal as it is written, until Ctrl-C.

    Each entry is added once to the table FOLDER/journal, also if the command is killed and started again. If the broker
    removed entries before they were archived, the command says which, and so does a row of the table.

    Exit codes: 0 done, 1 stopped by an error (try again), 2 wrong options, 4 archived but entries are missing.
    """
    if broker is not None:
        session.addr = broker
    endpoint = session.endpoint()
    endpoint.export()
    totals: dict[str, Any] = {"batches": 0, "entries": 0, "last": 0, "missing": 0}
    with spark_session("fila archive", master) as (spark, say):
        from fila.pipelines.archive import stream
        from fila.pipelines.archive.entries import Added
        from fila.pipelines.reconcile.stream import wait

        def on_batch(added: Added) -> None:
            totals["batches"] += 1
            totals["entries"] += added.entries
            totals["last"] = max(totals["last"], added.last)
            for gap in added.gaps:
                totals["missing"] += gap.count
                click.echo(f"Warning: {gap} of the journal were not there any more, or never written", err=True)
            say(f"{totals['entries']:,} entries, the last is {totals['last']:,}")

        query = stream.start(
            spark,
            {"addr": endpoint.addr},
            out,
            max_entries=max_entries,
            trigger={"availableNow": True} if once else {"processingTime": f"{every} seconds"},
            on_batch=on_batch,
        )
        try:
            wait(query)
        except KeyboardInterrupt:
            query.stop()
    if session.as_json or as_json:
        output.emit_json({**totals, "out": out})
    else:
        output.pairs([(name, f"{count:,}") for name, count in totals.items()])
        click.echo(f"\nThe table is {out}/journal")
    if totals["missing"]:
        raise ChecksFailed(
            f"{totals['missing']:,} entries are missing: archive more often, or let the broker keep more of them"
        )
