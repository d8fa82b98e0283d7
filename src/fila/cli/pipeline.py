"""`fila pipeline`: the pipelines on Spark. Spark is imported by the commands themselves."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from fila.cli import output
from fila.cli.session import Session, pass_session

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(
    epilog="""\b
Examples:
  fila pipeline sample data --count 100000
  fila pipeline reconcile --reports data/reports --metrics data/metrics --out reconciled
  fila pipeline fairness --broker localhost:5555 --out fairness"""
)
def pipeline() -> None:
    """Run data pipelines on Spark, here or on a cluster. Needs fila[spark] and Java 17 or newer."""


def spark_options(command: _Command) -> _Command:
    """Where Spark runs, and how to answer."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Answer in JSON."),
        click.option("--master", metavar="URL", help="Where Spark runs (default local[*]: all cores of this machine)."),
    ):
        command = option(command)
    return command


rules_option = click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rules, as TOML: sections tiers, growth, trust, retries, alerts.",
)


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline reconcile --reports reports/ --metrics metrics/ --out reconciled
  fila pipeline reconcile --reports 'in/*.csv' --metrics in/told.parquet --out reconciled --json
  fila pipeline reconcile --reports r --metrics m --out o --broker localhost:5555 --queue reconcile
  fila pipeline reconcile --reports hdfs:///r --metrics hdfs:///m --out hdfs:///o --master spark://host:7077"""
)
@click.option("--reports", required=True, metavar="PATH", help="What affiliates claim: files, a folder or a pattern.")
@click.option("--metrics", required=True, metavar="PATH", help="What platforms tell: files, a folder or a pattern.")
@click.option("--out", required=True, metavar="FOLDER", help="Where runs are kept. Give the same again to go on.")
@rules_option
@click.option("--broker", metavar="HOST:PORT", help="Put reports that wait for figures back there, as delayed jobs.")
@click.option("--queue", default="reconcile", show_default=True, metavar="QUEUE", help="The queue of these jobs.")
@spark_options
@pass_session
def reconcile(
    session: Session,
    /,
    reports: str,
    metrics: str,
    out: str,
    config_path: Path | None,
    broker: str | None,
    queue: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Hold files of reports against files of metrics.

    Parquet, CSV and lines of JSON, also mixed. Rows that make no sense are kept with the reason. A second run into the
    same folder takes in what is new and changes nothing else. Ends with a summary and a page with plots.
    """
    with spark_session("fila reconcile", master) as (spark, say):
        from fila.spark import bulk, retries
        from fila.spark.jobs.arguments import read_rules

        now_ms = time.time_ns() // 1_000_000
        rules = read_rules(config_path)
        outcome = bulk.reconcile(spark, reports, metrics, out, now_ms=now_ms, settings=rules, say=say)
        summary = dict(outcome.summary)
        if broker is not None:
            session.addr = broker
            say("queueing retries")
            due = spark.read.parquet(f"{outcome.folder}/gold/open")
            summary["jobs"] = retries.send(due, broker, queue, now_ms)
    if session.as_json or as_json:
        output.emit_json({"run": outcome.run, "changed": outcome.changed, "report": outcome.report, **summary})
        return
    if not outcome.changed:
        click.echo("Nothing new: this is what the last run came to.")
    _show_reconciled(summary)
    click.echo(f"\nRun {outcome.run} is in {outcome.folder}\nReport: {outcome.report}")


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline fairness --broker localhost:5555 --out fairness
  fila journal export history.parquet && fila pipeline fairness --journal history.parquet --out fairness
  fila pipeline fairness --journal history/ --out fairness --window 10"""
)
@click.option("--journal", metavar="PATH", help="What `fila journal export` wrote: a file, a folder or a pattern.")
@click.option("--broker", metavar="HOST:PORT", help="Read the journal of this broker instead.")
@click.option("--out", required=True, metavar="FOLDER", help="Where runs are kept.")
@click.option(
    "--window",
    type=click.FloatRange(min=0.001),
    metavar="SECONDS",
    help="How finely time is cut (default: about 60 windows).",
)
@spark_options
@pass_session
def fairness(
    session: Session,
    /,
    journal: str | None,
    broker: str | None,
    out: str,
    window: float | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Tell from the journal who got what, who was starved, when, and by whom.

    And prove that every message is accounted for, or name those that are not; then the exit code is 1.
    """
    if (journal is None) == (broker is None):
        raise click.UsageError("give either --journal or --broker")
    if broker is not None:
        session.addr = broker
    with spark_session("fila fairness", master) as (spark, say):
        from fila.spark import analysis

        now_ms = time.time_ns() // 1_000_000
        found = analysis.analyse(spark, out, now_ms=now_ms, files=journal, broker=broker, window_s=window, say=say)
        starved = spark.read.parquet(f"{found.folder}/starvation").orderBy("from_ns").limit(10).collect()
    if session.as_json or as_json:
        output.emit_json({"report": found.report, **found.summary})
    else:
        _show_fairness(found.summary, starved)
        click.echo(f"\nReport: {found.report}")
    if not found.summary["conserved"]:
        raise click.ClickException("not every message is accounted for: see the end of the report")


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline sample data
  fila pipeline sample data --count 5000000 --affiliates 50000"""
)
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--count", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="N", help="Reports.")
@click.option("--affiliates", type=click.IntRange(min=1), default=500, show_default=True, metavar="N")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="The same gives the same rows.")
@click.option("--master", metavar="URL", help="Where Spark runs (default local[*]: all cores of this machine).")
def sample(folder: str, count: int, affiliates: int, seed: int, master: str | None) -> None:
    """Make up reports and metrics in FOLDER, for a first try."""
    with spark_session("fila sample", master) as (spark, say):
        from fila.spark.sample import Sample, metrics, reports

        wanted = Sample(count, time.time_ns() // 1_000_000, affiliates=affiliates, seed=seed)
        for name, rows in (("reports", reports(spark, wanted)), ("metrics", metrics(spark, wanted))):
            say(name)
            try:
                rows.write.parquet(f"{folder}/{name}")
            except Exception as error:
                if "PATH_ALREADY_EXISTS" in str(error):
                    raise click.ClickException(f"{folder}/{name} is there already") from error
                raise
    click.echo(f"Wrote {count:,} reports to {folder}/reports and their metrics to {folder}/metrics")


@contextlib.contextmanager
def spark_session(name: str, master: str | None) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A session that ends with the command, and a way to say how far it is. Failures are said in one line."""
    try:
        from fila.spark.errors import PipelineError
        from fila.spark.session import open_session
    except ModuleNotFoundError as error:
        raise click.ClickException(f"needs the package {error.name}: pip install 'fila[spark]'") from error
    with _status() as say:
        say("starting Spark")
        try:
            spark = open_session(name, master)
            try:
                yield spark, say
            finally:
                spark.stop()
        except PipelineError as error:
            raise click.ClickException(output.printable(str(error))) from error


@contextlib.contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """Says what is being done: in one changing line on a terminal, else not at all."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with output.console(stderr=True).status("") as status:
        yield lambda text: status.update(output.printable(text))


def _show_reconciled(summary: dict[str, Any]) -> None:
    rows = summary["rows"]
    output.table(
        ("input", "files", "rows", "refused", "repeated", "new"),
        [
            (name, summary["files"][name], *(rows[name][key] for key in ("received", "refused", "repeated", "new")))
            for name in rows
        ],
    )
    click.echo()
    total = sum(summary["statuses"].values()) or 1
    output.table(
        ("status", "reports", "share"),
        [(status, count, f"{count / total:.1%}") for status, count in summary["statuses"].items()],
    )
    click.echo()
    pairs = [
        ("classified in this run", summary["classified"]),
        ("of these again", summary["looked_at_again"]),
        ("affiliates", summary["affiliates"]),
        ("alerts", summary["alerts"]),
        ("due again", summary["retries"]),
    ]
    if "jobs" in summary:
        pairs.append(("queued as jobs", summary["jobs"]))
    output.pairs(pairs)


def _show_fairness(summary: dict[str, Any], starved: list[Any]) -> None:
    ends = ("acked", "dead", "dropped", "deleted", "pending")
    enqueued = summary["enqueued"] + summary["carried"]
    equation = " + ".join(f"{summary[name]:,} {name}" for name in ends)
    click.echo(f"{enqueued:,} messages = {equation}: {'holds' if summary['conserved'] else 'BROKEN'}")
    if not starved:
        click.echo("Nobody was starved.")
        return
    click.echo()
    output.table(
        ("starved", "queue", "from", "to", "got", "was owed", "by whom"),
        [
            (
                row.key or "(no key)",
                row.queue,
                *(time.strftime("%H:%M:%S", time.gmtime(ns / 1e9)) for ns in (row.from_ns, row.to_ns)),
                row.got,
                round(row.owed),
                ", ".join(each.key or "(no key)" for each in row.by_whom or []),
            )
            for row in starved
        ],
    )
