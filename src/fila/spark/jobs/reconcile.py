"""`fila pipeline reconcile` as a program of its own."""

import argparse
import json
import sys
import time
from collections.abc import Sequence

from fila.client import FilaError
from fila.spark.errors import PipelineError
from fila.spark.jobs.arguments import add_rules, read_rules


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON."""
    parser = argparse.ArgumentParser(prog="fila.spark.jobs.reconcile", description=__doc__)
    parser.add_argument("--reports", required=True, help="files, folder or pattern: Parquet, CSV or JSON")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--out", required=True)
    add_rules(parser)
    parser.add_argument("--master", help="default: that of spark-submit, else all cores of this machine")
    parser.add_argument("--broker", help="put reports that wait for figures back there, as delayed jobs")
    parser.add_argument("--queue", default="reconcile", help="the queue of these jobs (default: reconcile)")
    chosen = parser.parse_args(arguments)
    try:
        rules = read_rules(chosen.config)
        from fila.spark.session import open_session

        spark = open_session("fila reconcile", chosen.master)
        from fila.spark import bulk, retries

        now_ms = time.time_ns() // 1_000_000
        outcome = bulk.reconcile(spark, chosen.reports, chosen.metrics, chosen.out, now_ms=now_ms, settings=rules)
        summary = dict(outcome.summary)
        if chosen.broker:
            due = spark.read.parquet(f"{outcome.folder}/gold/open")
            summary["jobs"] = retries.send(due, chosen.broker, chosen.queue, now_ms)
        print(json.dumps({"run": outcome.run, "changed": outcome.changed, "report": outcome.report, **summary}))  # noqa: T201
    except (PipelineError, FilaError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
