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
from fila.cli.durations import Duration
from fila.cli.session import Session, pass_session

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(
    epilog="""\b
Examples:
  fila pipeline sample data --count 100000
  fila pipeline reconcile --reports data/reports --metrics data/metrics --out reconciled
  fila pipeline verdicts --out reconciled --as-of 2026-11-16
  fila pipeline fairness --broker localhost:5555 --out fairness"""
)
def pipeline() -> None:
    """Run data pipelines on Spark.

    The commands need the extra fila[spark] and Java 17 or newer.
    """


def spark_options(command: _Command) -> _Command:
    """Where Spark runs, and how to answer."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON."),
        click.option("--master", metavar="URL", help="The Spark master (default local[*]: all cores of this machine)."),
    ):
        command = option(command)
    return command


class _Share(click.ParamType):  # type: ignore[type-arg] # generic in some versions of click
    """A share such as 5%, in basis points."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from fila.pipelines.submit.program import share_bp

        try:
            return share_bp(value)
        except ValueError:
            self.fail(f"{value} is not a share from 0% to 100%", param, ctx)


max_refused_option = click.option(
    "--max-refused",
    type=_Share(),
    default=10_000,
    show_default="100%",
    metavar="SHARE",
    help="Exit with 4 if more rows of an input are refused, or all. The run is written all the same.",
)


class _Lineage(click.ParamType):  # type: ignore[type-arg] # generic in some versions of click
    """Where events of OpenLineage go."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from fila.pipelines.errors import BadInput
        from fila.pipelines.lineage import lineage_to

        try:
            return lineage_to(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)


lineage_option = click.option(
    "--lineage",
    type=_Lineage(),
    envvar="OPENLINEAGE_URL",
    metavar="URL|FILE",
    help="Send OpenLineage events to this endpoint, or append them to this file (default: to $OPENLINEAGE_URL).",
)
rules_option = click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file with rules: sections tiers, growth, trust, retries, alerts.",
)


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline reconcile --reports reports/ --metrics metrics/ --out reconciled
  fila pipeline reconcile --reports 'in/*.csv' --metrics in/told.parquet --out reconciled --json
  fila pipeline reconcile --reports hdfs:///r --metrics hdfs:///m --out hdfs:///o --master spark://host:7077"""
)
@click.option(
    "--reports", required=True, metavar="PATH", help="The reports of affiliates: files, a folder or a pattern."
)
@click.option(
    "--metrics", required=True, metavar="PATH", help="The metrics of platforms: files, a folder or a pattern."
)
@click.option(
    "--out", required=True, metavar="FOLDER", help="The folder of the tables. Use the same folder again to continue."
)
@max_refused_option
@rules_option
@lineage_option
@spark_options
@pass_session
def reconcile(
    session: Session,
    /,
    reports: str,
    metrics: str,
    out: str,
    max_refused: int,
    config_path: Path | None,
    lineage: Any,
    master: str | None,
    as_json: bool,
) -> None:
    """Reconcile files of reports with files of metrics.

    Files may be Parquet, CSV or JSON lines, also mixed. Invalid rows are kept apart, with the reason. A second run into
    the same folder adds what is new and changes nothing else. The command prints a summary and writes a report page.

    Exit codes: 0 done, 1 stopped by an error, 2 wrong options, 4 written but a check of the data failed.
    """
    with spark_session("fila reconcile", master) as (spark, say):
        from fila.pipelines.reconcile import bulk
        from fila.pipelines.reconcile.checks import Limits
        from fila.pipelines.submit.program import read_rules

        now_ms = time.time_ns() // 1_000_000
        rules, limits = read_rules(config_path), Limits(max_refused)
        told = {} if lineage is None else {"lineage": lineage}
        outcome = bulk.reconcile(
            spark, reports, metrics, out, now_ms=now_ms, settings=rules, limits=limits, say=say, **told
        )
    show_outcome(outcome, as_json=session.as_json or as_json)


class ChecksFailed(click.ClickException):
    """The run is written, and its data failed a check."""

    exit_code = 4


def show_outcome(outcome: Any, *, as_json: bool) -> None:
    """What a run came to. Raises ChecksFailed."""
    for reason in outcome.quarantined.values():
        click.echo(f"Warning: left out, until it is mended: {output.printable(reason)}", err=True)
    summary = outcome.summary
    if as_json:
        output.emit_json({"run": outcome.run, "changed": outcome.changed, "report": outcome.report, **summary})
    else:
        if not outcome.changed:
            click.echo("There is no new input. This is the result of the last run.")
        if "statuses" in summary:
            _show_reconciled(summary)
        click.echo(f"\nThe tables of run {outcome.run} are in {outcome.folder}\nReport: {outcome.report}")
    if outcome.failure is not None:
        raise ChecksFailed(output.printable(outcome.failure))


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline fairness --broker localhost:5555 --out fairness
  fila journal export history.parquet && fila pipeline fairness --journal history.parquet --out fairness
  fila pipeline fairness --journal history/ --out fairness --window 10s
  fila pipeline fairness --archive archive --out fairness"""
)
@click.option("--journal", metavar="PATH", help="The output of `fila journal export`: a file, a folder or a pattern.")
@click.option("--broker", metavar="HOST:PORT", help="Read the journal of this broker instead.")
@click.option("--archive", metavar="FOLDER", help="Read what is new in the --out folder of `fila pipeline archive`.")
@click.option("--out", required=True, metavar="FOLDER", help="The folder of the runs.")
@click.option(
    "--window",
    type=Duration("s", bare="s", low_s=0.001),
    metavar="TIME",
    help="The length of a time window, such as 10s (default: about 60 windows in all; of an archive 1m).",
)
@spark_options
@pass_session
def fairness(
    session: Session,
    /,
    journal: str | None,
    broker: str | None,
    archive: str | None,
    out: str,
    window: float | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Analyse the journal for fairness and lost messages.

    The report shows which fairness keys were served, which were starved, when, and by which keys. It also checks that
    every message is accounted for. If some are not, it names them and the exit code is 1.

    Of an archive, the command analyses the windows that ended since the last time, and reads no older entry.
    """
    if sum(given is not None for given in (journal, broker, archive)) != 1:
        raise click.UsageError("Give one of --journal, --broker and --archive.")
    if archive is not None:
        _advance(archive, out, window, master, as_json=session.as_json or as_json)
        return
    if broker is not None:
        session.addr = broker
    with spark_session("fila fairness", master) as (spark, say):
        from fila.pipelines.fairness import analysis

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


def _advance(archive: str, out: str, window: float | None, master: str | None, *, as_json: bool) -> None:
    """Analyse what is new in an archive."""
    with spark_session("fila fairness", master) as (spark, say):
        from fila.pipelines.fairness import increments

        now_ms = time.time_ns() // 1_000_000
        done = increments.advance(spark, archive, out, now_ms=now_ms, window_s=window, say=say)
    found = done.found
    if as_json:
        output.emit_json({"runs": done.runs} | ({"report": found.report, **found.summary} if found else {}))
    elif found is None:
        click.echo("No window has ended yet: there must be an entry after it.")
    else:
        if not done.runs:
            click.echo("No window has ended since the last run. This is its result.")
        _show_fairness(found.summary, done.starved)
        click.echo(f"\nReport: {found.report}")
    if not done.conserved:
        raise click.ClickException("not every message is accounted for: see the end of the report")


@pipeline.command(
    epilog="""\b
Examples:
  fila pipeline sample data
  fila pipeline sample data --count 5000000 --affiliates 50000"""
)
@click.argument("folder", type=click.Path(file_okay=False))
@click.option(
    "--count", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="N", help="Make N reports."
)
@click.option(
    "--affiliates", type=click.IntRange(min=1), default=500, show_default=True, metavar="N", help="Of N affiliates."
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="The seed of the random rows. The same seed gives the same rows.",
)
@click.option("--master", metavar="URL", help="The Spark master (default local[*]: all cores of this machine).")
def sample(folder: str, count: int, affiliates: int, seed: int, master: str | None) -> None:
    """Generate sample reports and metrics in FOLDER."""
    with spark_session("fila sample", master) as (spark, say):
        from fila.pipelines.reconcile.sample import Sample, metrics, reports

        wanted = Sample(count, time.time_ns() // 1_000_000, affiliates=affiliates, seed=seed)
        for name, rows in (("reports", reports(spark, wanted)), ("metrics", metrics(spark, wanted))):
            say(name)
            try:
                rows.write.parquet(f"{folder}/{name}")
            except Exception as error:
                if "PATH_ALREADY_EXISTS" in str(error):
                    raise click.ClickException(f"{folder}/{name} exists already") from error
                raise
    click.echo(f"Wrote {count:,} reports to {folder}/reports and their metrics to {folder}/metrics")


@contextlib.contextmanager
def spark_session(name: str, master: str | None) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """A session that ends with the command, and a way to say how far it is. Failures are said in one line."""
    try:
        from fila.pipelines.errors import PipelineError
        from fila.pipelines.session import open_session
        from fila.spark.errors import SparkMissing
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"fila pipeline needs the package {error.name}: pip install 'fila[spark]'"
        ) from error
    with _status() as say:
        say("starting Spark")
        try:
            spark = open_session(name, master)
            try:
                yield spark, say
            finally:
                spark.stop()
        except (PipelineError, SparkMissing) as error:
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
    output.pairs(pairs)


def _show_fairness(summary: dict[str, Any], starved: list[Any]) -> None:
    ends = ("acked", "dead", "dropped", "deleted", "pending")
    enqueued = summary["enqueued"] + summary["carried"]
    equation = " + ".join(f"{summary[name]:,} {name}" for name in ends)
    click.echo(f"{enqueued:,} messages = {equation}: {'holds' if summary['conserved'] else 'BROKEN'}")
    if not starved:
        click.echo("No key was starved.")
        return
    click.echo()
    output.table(
        ("starved key", "queue", "from", "to", "delivered", "entitled to", "starved by"),
        [
            (
                row.key or "(no key)",
                row.queue,
                *(time.strftime("%H:%M:%S", time.gmtime(ns / 1e9)) for ns in (row.from_ns, row.to_ns)),
                row.got,
                round(row.owed),
                _culprits(row),
            )
            for row in starved
        ],
    )


def _culprits(row: Any) -> str:
    """The keys that were in the way, or the throttle."""
    names = [each.key or "(no key)" for each in row.by_whom]
    return ", ".join(names) or f"a throttle ({row.limited:.0%} of its waits)"
