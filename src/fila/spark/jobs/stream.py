"""`fila pipeline stream` as a program of its own."""

import argparse
import sys
import time
from collections.abc import Sequence

from fila.client import FilaError
from fila.spark.errors import PipelineError
from fila.spark.jobs.arguments import add_rules, at_least, read_rules

_NAMES = ("group", "discrepancies", "alerts", "refused", "max_messages", "lease")
"""The arguments that say what is read and where what is found goes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. The queues for discrepancies and alerts must be there."""
    parser = argparse.ArgumentParser(prog="fila.spark.jobs.stream", description=__doc__)
    parser.add_argument("--broker", default="localhost:5555", help="where the broker is (default: localhost:5555)")
    parser.add_argument("--queue", required=True, help="where reports come from, each as JSON")
    parser.add_argument("--metrics", required=True, help="files, folder or pattern: Parquet, CSV or JSON")
    parser.add_argument("--out", required=True, help="where runs and the checkpoint are kept")
    add_rules(parser)
    parser.add_argument("--group", default="reconcile", help="who reads: one name for each stream (default: reconcile)")
    parser.add_argument("--discrepancies", help="where discrepancies go (default: QUEUE.discrepancies)")
    parser.add_argument("--alerts", help="where alerts go (default: QUEUE.alerts)")
    parser.add_argument("--refused", help="where what is no report goes (default: the dead-letter queue)")
    parser.add_argument("--max-messages", type=at_least(1), default=50_000, help="reports in a batch, at most")
    parser.add_argument(
        "--lease", default="15m", help="how long reports stay with a stream that is down (default: 15m)"
    )
    parser.add_argument("--every", type=at_least(0), default=10, help="seconds between batches (default: 10)")
    parser.add_argument("--once", action="store_true", help="read what is there, and end")
    parser.add_argument("--master", help="default: that of spark-submit, else all cores of this machine")
    chosen = parser.parse_args(arguments)
    try:
        rules = read_rules(chosen.config)
        from fila.spark.session import open_session

        spark = open_session("fila stream", chosen.master)
        from fila.spark import stream

        names = {name: getattr(chosen, name) for name in _NAMES if getattr(chosen, name) is not None}
        query = stream.start(
            spark,
            stream.Queues.beside(chosen.broker, chosen.queue, **names),
            chosen.metrics,
            chosen.out,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            settings=rules,
            trigger={"availableNow": True} if chosen.once else {"processingTime": f"{chosen.every} seconds"},
        )
        stream.wait(query)
    except (PipelineError, FilaError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
