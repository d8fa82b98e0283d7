"""`fila pipeline whatif` for spark-submit."""

import argparse
import json
import sys
from collections.abc import Sequence

from fila.pipelines.errors import PipelineError
from fila.pipelines.submit import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints the summary as JSON. Returns 1 when the replay contradicts the journal."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.whatif", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--journal", help="files of `fila journal export`: a file, folder or pattern")
    source.add_argument("--broker", help="read the journal of the broker at this address")
    source.add_argument("--archive", help="read the --out folder of `fila pipeline archive`")
    parser.add_argument("--out", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="what to change")
    parser.add_argument("--queue", action="append", default=[], help="change settings of this queue only")
    parser.add_argument("--window", type=program.at_least(0.001), help="seconds (default: about 60 windows)")
    parser.add_argument("--in-one", action="store_true", help="replay the days of a queue one after the other")
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    from fila.pipelines.session import open_session

    with program.needs_server():
        from fila.pipelines.whatif.changes import parse

    changes = parse(options.set, options.queue)
    spark = open_session("fila whatif", options.master)
    with program.needs_server():
        from fila.pipelines.whatif.pipeline import Options, Source, whatif

    source = Source(options.journal, options.broker, options.archive)
    chosen = Options(changes, options.window, by_day=not options.in_one)
    found = whatif(spark, options.out, chosen, now_ms=program.now_ms(), source=source)
    print(json.dumps({"report": found.report, **found.summary}))  # noqa: T201
    if found.failure is not None:
        raise PipelineError(found.failure)


if __name__ == "__main__":
    sys.exit(main())
