"""`fila pipeline fairness` for spark-submit."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from fila.pipelines.errors import PipelineError
from fila.pipelines.submit import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON. Returns 1 when messages are not accounted for."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.fairness", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--journal", help="files of `fila journal export`: a file, folder or pattern")
    source.add_argument("--broker", help="read the journal of the broker at this address")
    source.add_argument("--archive", help="read what is new in the --out folder of `fila pipeline archive`")
    parser.add_argument("--out", required=True)
    parser.add_argument(
        "--window", type=program.at_least(0.001), help="seconds (default: about 60 windows; of an archive 60 s)"
    )
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    from fila.pipelines.session import open_session

    spark = open_session("fila fairness", options.master)
    if options.archive is not None:
        from fila.pipelines.fairness import increments

        done = increments.advance(spark, options.archive, options.out, now_ms=program.now_ms(), window_s=options.window)
        told = {"report": done.found.report, **done.found.summary} if done.found else {}
        _tell({"runs": done.runs, **told}, conserved=done.conserved)
        return
    from fila.pipelines.fairness import analysis

    found = analysis.analyse(
        spark,
        options.out,
        now_ms=program.now_ms(),
        files=options.journal,
        broker=options.broker,
        window_s=options.window,
    )
    _tell({"report": found.report, **found.summary}, conserved=found.summary["conserved"])


def _tell(found: dict[str, Any], *, conserved: bool) -> None:
    print(json.dumps(found))  # noqa: T201
    if not conserved:
        raise PipelineError("not every message is accounted for: see the end of the report")


if __name__ == "__main__":
    sys.exit(main())
