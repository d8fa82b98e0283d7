"""`fila pipeline daily` for spark-submit."""

import argparse
import sys
from collections.abc import Sequence
from datetime import date

from fila.pipelines.submit import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.daily", description=__doc__)
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day (UTC), such as 2026-11-17")
    parser.add_argument("--reports", required=True, help="files, folder or pattern; {date} is the day")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--max-age", type=program.hours_ms, help="how old the newest metrics may be, such as 36h")
    program.add_limits(parser)
    program.add_rules(parser)
    program.add_lineage(parser)
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    rules = program.read_rules(options.config)
    from fila.pipelines.session import open_session

    spark = open_session("fila daily", options.master)
    from fila.pipelines.reconcile import daily
    from fila.pipelines.reconcile.checks import Limits

    limits = Limits(options.max_refused, options.max_age)
    paths = (options.reports, options.metrics, options.out)
    more = {"settings": rules, "limits": limits, "lineage": options.lineage}
    outcome = daily.daily(spark, options.date, *paths, now_ms=program.now_ms(), **more)
    program.tell(outcome)


if __name__ == "__main__":
    sys.exit(main())
