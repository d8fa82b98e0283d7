"""`fila pipeline archive` for spark-submit."""

import argparse
import json
import sys
from collections.abc import Sequence

from fila.pipelines.submit import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments. Prints a line of JSON for each batch. Returns 4 if entries are missing."""
    parser = argparse.ArgumentParser(prog="fila.pipelines.submit.archive", description=__doc__)
    parser.add_argument("--broker", default="localhost:5555", help="address of the broker (default: localhost:5555)")
    parser.add_argument("--out", required=True, help="folder for the table and the checkpoint")
    parser.add_argument("--max-entries", type=program.at_least(1), default=500_000, help="most entries in a batch")
    parser.add_argument("--every", type=program.at_least(0), default=60, help="seconds between batches (default: 60)")
    parser.add_argument("--once", action="store_true", help="archive what the broker has and exit")
    program.add_master(parser)
    options = parser.parse_args(arguments)
    return program.run(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    from fila.pipelines.session import open_session

    spark = open_session("fila archive", options.master)
    from fila.pipelines.archive import stream
    from fila.pipelines.archive.entries import Added
    from fila.pipelines.errors import ChecksFailed
    from fila.pipelines.reconcile.stream import wait

    missing: list[str] = []

    def on_batch(added: Added) -> None:
        missing.extend(map(str, added.gaps))
        print(json.dumps({"entries": added.entries, "last": added.last, "missing": [*map(str, added.gaps)]}))  # noqa: T201

    query = stream.start(
        spark,
        {"addr": options.broker},
        options.out,
        max_entries=options.max_entries,
        trigger={"availableNow": True} if options.once else {"processingTime": f"{options.every} seconds"},
        on_batch=on_batch,
    )
    wait(query)
    if missing:
        raise ChecksFailed(f"{', '.join(missing[:10])} of the journal are missing: archive more often")


if __name__ == "__main__":
    sys.exit(main())
