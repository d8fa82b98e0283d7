"""`fila pipeline daily`, `verdicts`, `checks`, `maintain`: work on the tables of a reconciliation."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fila.cli import output
from fila.cli.durations import AGE_MS
from fila.cli.pipeline import (
    lineage_option,
    max_refused_option,
    rules_option,
    show_outcome,
    spark_options,
    spark_session,
)
from fila.cli.session import Session, pass_session

_out_option = click.option("--out", required=True, metavar="FOLDER", help="The folder of the tables.")
_SHOWN = ("report_id", "affiliate_id", "platform", "post_id", "status", "reason", "attempt")


@click.command(
    epilog="""\b
Examples:
  fila pipeline daily --date 2026-11-17 --reports 'in/reports/{date}/' --metrics 'in/metrics/{date}/' --out lake
  fila pipeline daily --date 2026-11-17 --reports in/r --metrics in/m --out lake --max-refused 2% --max-age 36h"""
)
@click.option("--date", "day", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The day (UTC).")
@click.option("--reports", required=True, metavar="PATH", help="Files, a folder or a pattern. {date} is the day.")
@click.option("--metrics", required=True, metavar="PATH", help="The same, of metrics.")
@_out_option
@max_refused_option
@click.option("--max-age", type=AGE_MS, metavar="TIME", help="Exit with 4 if the newest metrics are older, as 36h.")
@rules_option
@lineage_option
@spark_options
@pass_session
def daily(
    session: Session,
    /,
    day: datetime,
    reports: str,
    metrics: str,
    out: str,
    max_refused: int,
    max_age: int | None,
    config_path: Path | None,
    lineage: Any,
    master: str | None,
    as_json: bool,
) -> None:
    """Reconcile one day, for a scheduler. A repetition changes nothing.

    The run is as of the end of the day. It finishes what an earlier run was stopped in, reads new files, tries open
    reports again and checks the data.

    Exit codes: 0 done, 1 stopped by an error (try again), 2 wrong options, 4 written but a check of the data failed.
    """
    with spark_session("fila daily", master) as (spark, say):
        from fila.pipelines.reconcile.checks import Limits
        from fila.pipelines.reconcile.daily import daily as run_daily
        from fila.pipelines.submit.program import read_rules

        outcome = run_daily(
            spark,
            day.date(),
            reports,
            metrics,
            out,
            now_ms=time.time_ns() // 1_000_000,
            settings=read_rules(config_path),
            limits=Limits(max_refused, max_age),
            say=say,
            **({} if lineage is None else {"lineage": lineage}),
        )
    show_outcome(outcome, as_json=session.as_json or as_json)


@click.command(
    epilog="""\b
Examples:
  fila pipeline verdicts --out reconciled
  fila pipeline verdicts --out reconciled --as-of 2026-11-16
  fila pipeline verdicts --out reconciled --report r000000000042 --json
  fila pipeline verdicts --out reconciled --affiliate ada --export ada.parquet"""
)
@_out_option
@click.option(
    "--as-of",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="What was said at this time (UTC), or at the end of this day.",
)
@click.option("--report", metavar="ID", help="This report alone.")
@click.option("--affiliate", metavar="ID", help="This affiliate alone.")
@click.option("--export", "export_to", metavar="FOLDER", help="Write the rows to Parquet files in FOLDER.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Print at most N rows.")
@spark_options
@pass_session
def verdicts(
    session: Session,
    /,
    out: str,
    as_of: datetime | None,
    report: str | None,
    affiliate: str | None,
    export_to: str | None,
    limit: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Show the verdicts on reports, of now or of earlier."""
    with spark_session("fila verdicts", master) as (spark, _):
        from fila.pipelines.reconcile.current import current_results

        rows = current_results(spark, out, None if as_of is None else _moment_ms(as_of))
        for column, value in (("report_id", report), ("affiliate_id", affiliate)):
            rows = rows if value is None else rows.where(rows[column] == value)
        if export_to is not None:
            rows.write.parquet(export_to)
        counts = {row.status: row["count"] for row in rows.groupBy("status").count().orderBy("status").collect()}
        first = [row.asDict() for row in rows.drop("day").orderBy("report_id").limit(limit).collect()]
    if session.as_json or as_json:
        output.emit_json({"statuses": counts, "verdicts": first})
        return
    output.table(("status", "reports"), list(counts.items()))
    click.echo()
    output.table(_SHOWN, [tuple(row[name] for name in _SHOWN) for row in first])
    if export_to is not None:
        click.echo(f"\nWrote {sum(counts.values()):,} rows to {export_to}")


@click.command(
    epilog="""\b
Examples:
  fila pipeline checks --out reconciled
  fila pipeline checks --out reconciled --failed --runs 100"""
)
@_out_option
@click.option("--runs", type=click.IntRange(1, 10_000), default=5, show_default=True, help="Of the last N runs.")
@click.option("--failed", is_flag=True, help="Only checks that failed.")
@spark_options
@pass_session
def checks(session: Session, /, out: str, runs: int, failed: bool, master: str | None, as_json: bool) -> None:
    """Show the checks of the data that runs have made."""
    with spark_session("fila checks", master) as (spark, _):
        from fila.pipelines.lake.contract import CHECKS
        from fila.pipelines.reconcile.current import table

        rows = table(spark, out, CHECKS)
        newest = rows.agg({"run": "max"}).collect()[0][0] or 0
        rows = rows.where(rows["run"] > newest - runs)
        rows = rows.where(~rows["passed"]) if failed else rows
        found = [row.asDict() for row in rows.drop("day").orderBy("run", "name").collect()]
    if session.as_json or as_json:
        output.emit_json(found)
        return
    lines = [(row["run"], _time(row["as_of_ms"]), row["name"], _mark(row), row["text"]) for row in found]
    output.table(("run", "as of", "check", "passed", "what was found"), lines)


@click.command(
    epilog="""\b
Examples:
  fila pipeline maintain --out reconciled
  fila pipeline maintain --out reconciled --keep-days 90"""
)
@_out_option
@click.option(
    "--keep-days",
    type=click.IntRange(7, 3650),
    default=30,
    show_default=True,
    metavar="N",
    help="Keep what verdicts --as-of needs for N days.",
)
@spark_options
@pass_session
def maintain(session: Session, /, out: str, keep_days: int, master: str | None, as_json: bool) -> None:
    """Merge small files of the tables and remove old ones.

    A file is removed when only versions older than N days need it. No row changes. Run the command once a day or
    a week.
    """
    with spark_session("fila maintain", master) as (spark, say):
        from fila.pipelines.lake import maintenance

        done = maintenance.maintain(spark, out, keep_days=keep_days, say=say)
    if session.as_json or as_json:
        output.emit_json([{"table": each.table, "files": each.compacted, "into": each.into} for each in done])
        return
    output.table(("table", "small files", "merged into"), [(each.table, each.compacted, each.into) for each in done])


def _moment_ms(moment: datetime) -> int:
    """A day means its end."""
    if moment.time() == datetime.min.time():
        moment += timedelta(days=1) - timedelta(milliseconds=1)
    return int(moment.replace(tzinfo=UTC).timestamp() * 1000)


def _time(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(ms / 1000))


def _mark(row: dict[str, Any]) -> str:
    return "yes" if row["passed"] else "NO"
