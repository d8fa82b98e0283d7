"""Fails when a hot path has become clearly slower.

    python -m benchmarks.guard [--method perf|valgrind|cpu] [--rounds N] [--update]

Each path is compared with plain Python in the same run, and that ratio with the one in thresholds.json. Exit code 1 if
one is above what is allowed.
"""

import argparse
from collections.abc import Sequence

from benchmarks.guard import check, meter


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, shows, judges."""
    options = _parser().parse_args(arguments)
    if options.run:
        meter.run_paths({name: int(count) for name, _, count in (each.rpartition("=") for each in options.run)})
        return 0
    method = options.method or meter.best_method()
    measured = meter.ratios(method, options.rounds, lambda text: print(text, flush=True))
    if options.update:
        check.store(method, measured)
    verdicts = check.judge(method, measured, check.load())
    print(f"\nCost of a message as a multiple of the reference, in {check.kind(method)} ({method})")
    print(f"{'path':<22}{'now':>8}{'stored':>8}{'limit':>8}")
    for each in verdicts:
        stored, limit = (f"{number:.2f}" if number is not None else "-" for number in (each.stored, each.limit))
        print(f"{each.path:<22}{each.ratio:>8.2f}{stored:>8}{limit:>8}{'  SLOWER' if each.slower else ''}")
    slower = [each.path for each in verdicts if each.slower]
    print(f"clearly slower: {', '.join(slower)}" if slower else "no path is clearly slower")
    return 1 if slower else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__.splitlines()[0])
    parser.add_argument("--method", choices=meter.METHODS, help="how to measure (default: the steadiest that works)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of CPU time (default 7)")
    parser.add_argument("--update", action="store_true", help="store the measured ratios: say why in the commit")
    parser.add_argument("--run", nargs="+", metavar="PATH=COUNT", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
