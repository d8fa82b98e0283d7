"""`fila pipeline stream` as a program of its own."""

import argparse
import sys
import time
from collections.abc import Sequence

from fila.client import FilaError
from fila.spark.errors import PipelineError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. The queues for discrepancies and alerts must be there."""
    parser = argparse.ArgumentParser(prog="fila.spark.jobs.stream", description=__doc__)
    parser.add_argument("--broker", default="localhost:5555", help="where the broker is (default: localhost:5555)")
    parser.add_argument("--queue", required=True, help="where reports come from, each as JSON")
    parser.add_argument("--metrics", required=True, help="files, folder or pattern: Parquet, CSV or JSON")
    parser.add_argument("--out", required=True, help="where runs and the checkpoint are kept")
    parser.add_argument("--group", default="reconcile", help="who reads: one name for each stream (default: reconcile)")
    parser.add_argument("--max-messages", type=int, default=50_000, help="reports in a batch, at most")
    parser.add_argument("--every", type=int, default=10, help="seconds between batches (default: 10)")
    parser.add_argument("--once", action="store_true", help="read what is there, and end")
    parser.add_argument("--master", help="default: that of spark-submit, else all cores of this machine")
    chosen = parser.parse_args(arguments)
    try:
        from fila.spark.session import open_session

        spark = open_session("fila stream", chosen.master)
        from fila.spark import stream

        names = {"group": chosen.group, "max_messages": chosen.max_messages}
        query = stream.start(
            spark,
            stream.Queues.beside(chosen.broker, chosen.queue, **names),
            chosen.metrics,
            chosen.out,
            clock_ms=lambda: time.time_ns() // 1_000_000,
            trigger={"availableNow": True} if chosen.once else {"processingTime": f"{chosen.every} seconds"},
        )
        stream.wait(query)
    except (PipelineError, FilaError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
