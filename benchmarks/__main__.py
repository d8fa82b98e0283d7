"""Measures Fila against a real server process.

    python -m benchmarks [--quick] [--repeat N] [--only NAME,NAME] [--output FOLDER] [--pages]

Progress and a table go to the terminal, every figure goes to a JSON file. Exit code 0 if everything could be measured,
whether or not the goals are met; 1 if a workload failed.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine, side_by_side
from benchmarks.floors import FLOORS
from benchmarks.report import Display
from benchmarks.results import Report, Result, Sample
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.base import Run, Workload

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.quick and options.pages:
        parser.error("--pages needs a full run: the figures of a quick one mean nothing")
    scale = QUICK if options.quick else FULL
    if options.messages:
        scale = replace(scale, messages=options.messages)
    repeat = options.repeat or (1 if options.quick else 3)
    display = Display()
    facts = machine.facts()
    began, start = datetime.now(UTC), time.monotonic()
    with display.following(len(options.only) * repeat):
        results = [_measure(workload, scale, repeat, display) for workload in options.only]
    report = Report(
        began=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.monotonic() - start,
        quick=options.quick,
        repeat=repeat,
        scale=scale,
        machine=facts,
        load_average_after=machine.load_average(),
        results=results,
    )
    display.table(report)
    display.line(f"every figure: {report.write(options.output)}")
    if options.pages:
        for page in side_by_side.write_pages(report):
            display.line(f"written: {page}")
    return 1 if any(result.error for result in results) else 0


def _measure(workload: Workload, scale: Scale, repeat: int, display: Display) -> Result:
    samples: list[Sample] = []
    error = ""
    for index in range(repeat):

        def say(text: str, where: str = f"{workload.name} {index + 1}/{repeat}") -> None:
            display.step(f"{where}: {text}")

        try:
            samples.append(_sample(workload, Run(scale, index, say)))
        except Exception as failure:  # noqa: BLE001 - the other workloads are still worth measuring
            error = f"{type(failure).__name__}: {failure}"
            display.line(f"{workload.name} {index + 1}: FAILED: {error}")
            break
        display.sampled(workload, index, samples[-1])
    return Result(workload, workload.setting(scale), samples, error)


def _sample(workload: Workload, run: Run) -> Sample:
    load = machine.load_average()
    floors = {}
    for name in workload.floors:
        run.say(f"floor of the machine: {name}")
        floors[name] = FLOORS[name](run.scale.floor_seconds)
    return Sample(workload.sample(run), floors, load)


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(workload.name for workload in WORKLOADS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small counts and one repeat: shows that it runs, no figures"
    )
    parser.add_argument("--repeat", type=positive, metavar="N", help="repeats of each workload (default 3)")
    parser.add_argument(
        "--only", type=some_of(WORKLOADS, "no workload"), default=WORKLOADS, metavar="NAMES", help=f"some of: {names}"
    )
    parser.add_argument("--messages", type=positive, metavar="N", help="messages of enqueue, drain and lifecycle")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where the JSON file goes")
    parser.add_argument(
        "--pages", action="store_true", help="replace the tables of the pages in docs/ that show these workloads"
    )
    return parser


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def some_of(known: Sequence[Any], none: str = "nothing") -> Callable[[str], tuple[Any, ...]]:
    """Reads names with commas between them: what has these names, in its own order."""

    def parse(text: str) -> tuple[Any, ...]:
        asked = [name.strip() for name in text.split(",")]
        unknown = set(asked) - {each.name for each in known}
        if unknown:
            names = ", ".join(each.name for each in known)
            raise argparse.ArgumentTypeError(f"{none} is called {', '.join(sorted(unknown))}; there are: {names}")
        return tuple(each for each in known if each.name in asked)

    return parse


if __name__ == "__main__":
    raise SystemExit(main())
