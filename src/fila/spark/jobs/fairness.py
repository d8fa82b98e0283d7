"""`fila pipeline fairness` as a program of its own."""

import argparse
import json
import sys
import time
from collections.abc import Sequence

from fila.client import FilaError
from fila.spark.errors import PipelineError
from fila.spark.jobs.arguments import at_least


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON. Returns 1 when messages are not accounted for."""
    parser = argparse.ArgumentParser(prog="fila.spark.jobs.fairness", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--journal", help="what `fila journal export` wrote: a file, folder or pattern")
    source.add_argument("--broker", help="read the journal of this broker")
    parser.add_argument("--out", required=True)
    parser.add_argument("--window", type=at_least(0.001), help="seconds (default: about 60 windows)")
    parser.add_argument("--master", help="default: that of spark-submit, else all cores of this machine")
    chosen = parser.parse_args(arguments)
    try:
        from fila.spark.session import open_session

        spark = open_session("fila fairness", chosen.master)
        from fila.spark import analysis

        now_ms = time.time_ns() // 1_000_000
        found = analysis.analyse(
            spark, chosen.out, now_ms=now_ms, files=chosen.journal, broker=chosen.broker, window_s=chosen.window
        )
        print(json.dumps({"report": found.report, **found.summary}))  # noqa: T201
        if not found.summary["conserved"]:
            raise PipelineError("not every message is accounted for: see the end of the report")
    except (PipelineError, FilaError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
