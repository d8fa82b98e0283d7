"""`fila pipeline reconcile` for spark-submit."""

import argparse
import sys
from collections.abc import Sequence

from fila.pipelines.submit import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.reconcile", description=__doc__)
    parser.add_argument("--reports", required=True, help="files, folder or pattern: Parquet, CSV or JSON")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--out", required=True)
    program.add_limits(parser)
    program.add_rules(parser)
    program.add_lineage(parser)
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    rules = program.read_rules(options.config)
    from fila.pipelines.session import open_session

    spark = open_session("fila reconcile", options.master)
    from fila.pipelines.reconcile import bulk
    from fila.pipelines.reconcile.checks import Limits

    paths, limits = (options.reports, options.metrics, options.out), Limits(options.max_refused)
    more = {"settings": rules, "limits": limits, "lineage": options.lineage}
    outcome = bulk.reconcile(spark, *paths, now_ms=program.now_ms(), **more)
    program.tell(outcome)


if __name__ == "__main__":
    sys.exit(main())
