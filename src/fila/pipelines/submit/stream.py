"""`fila pipeline stream` for spark-submit."""

import argparse
import sys
from collections.abc import Sequence

from fila.pipelines.submit import program

_NAMES = ("group", "discrepancies", "alerts", "refused", "max_messages", "lease")
"""The arguments that go to `Queues`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. The queues for discrepancies and alerts must exist."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.stream", description=__doc__)
    parser.add_argument("--broker", default="localhost:5555", help="address of the broker (default: localhost:5555)")
    parser.add_argument("--queue", required=True, help="the queue of reports, each as JSON")
    parser.add_argument("--metrics", required=True, help="files, folder or pattern: Parquet, CSV or JSON")
    parser.add_argument("--out", required=True, help="folder for runs and the checkpoint")
    program.add_rules(parser)
    program.add_lineage(parser)
    parser.add_argument("--group", default="reconcile", help="consumer group, one per stream (default: reconcile)")
    parser.add_argument("--discrepancies", help="queue for discrepancies (default: QUEUE.discrepancies)")
    parser.add_argument("--alerts", help="queue for alerts (default: QUEUE.alerts)")
    parser.add_argument("--refused", help="queue for messages that are no report (default: the dead-letter queue)")
    parser.add_argument("--max-messages", type=program.at_least(1), default=50_000, help="most reports in a batch")
    parser.add_argument("--lease", default="15m", help="how long a stream that is down keeps its batch (default: 15m)")
    parser.add_argument("--every", type=program.at_least(0), default=10, help="seconds between batches (default: 10)")
    parser.add_argument("--once", action="store_true", help="process what is in the queue and exit")
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    rules = program.read_rules(options.config)
    from fila.pipelines.session import open_session

    spark = open_session("fila stream", options.master)
    from fila.pipelines.reconcile import stream

    names = {name: getattr(options, name) for name in _NAMES if getattr(options, name) is not None}
    query = stream.start(
        spark,
        stream.Queues.beside(options.broker, options.queue, **names),
        options.metrics,
        options.out,
        clock_ms=program.now_ms,
        settings=rules,
        lineage=options.lineage,
        trigger={"availableNow": True} if options.once else {"processingTime": f"{options.every} seconds"},
    )
    stream.wait(query)


if __name__ == "__main__":
    sys.exit(main())
