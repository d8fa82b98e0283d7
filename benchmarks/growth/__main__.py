"""Measures what a message costs as keys, backlog, consumers, queues and the like grow.

    python -m benchmarks.growth [--scale 0.01] [--repeat N] [--only NAMES]

Progress goes to the terminal, every figure to a JSON file. A run in full writes docs/benchmarks-growth.md with its
picture, any other one writes them beside the JSON file. Exit code 1 if something failed, not if something rises.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.__main__ import RESULTS, positive, some_of
from benchmarks.growth.page import Curve, draw, render
from benchmarks.growth.ranges import RANGES, Range
from benchmarks.harness import end_on_sigterm
from benchmarks.report import Display, digits

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "benchmarks-growth"
_PROBE = 50_000
_LEAST_PROBE = 500

Samples = dict[str, dict[int, list[Mapping[str, float]]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for."""
    options = _parser().parse_args(arguments)
    end_on_sigterm()
    facts = machine.facts() | {"repeat": options.repeat, "scale": options.scale}
    began, start = datetime.now(UTC), time.monotonic()
    samples, errors = _measure(options.only, options.scale, options.repeat)
    curves = [Curve.of(each, samples[each.name]) for each in options.only if any(samples[each.name].values())]
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"growth-{began:%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(_as_json(facts, began, time.monotonic() - start, samples, errors), indent=1) + "\n")
    print(f"every figure: {path}")
    for curve in curves:
        print(f"{curve.range.title:<24}{curve.rise:>+8.0%}  {curve.verdict.strip('*')}")
    whole = options.scale == 1 and options.only == RANGES and not errors
    folder = options.page or (DOCS if whole else options.output)
    draw(curves, folder / f"{PAGE}.png")
    note = "" if options.scale == 1 else f"A run at a scale of {options.scale:g}: it shows that the command works."
    (folder / f"{PAGE}.md").write_text(render(curves, facts, f"{PAGE}.png", note))
    print(f"page: {folder / PAGE}.md\npicture: {folder / PAGE}.png")
    return 1 if errors else 0


def _measure(ranges: Sequence[Range], scale: float, repeat: int) -> tuple[Samples, list[str]]:
    probe = max(_LEAST_PROBE, int(_PROBE * scale))
    samples: Samples = {each.name: {point: [] for point in each.scaled(scale)} for each in ranges}
    errors: list[str] = []
    display = Display()
    with display.following(repeat * sum(len(points) for points in samples.values())):
        for index in range(repeat):
            for each in ranges:
                # A machine that gets slower or faster during a run must not look like growth.
                for point in each.scaled(scale)[:: 1 if index % 2 == 0 else -1]:
                    where = f"{index + 1}/{repeat} {point:,} {each.title}"
                    display.step(where)
                    try:
                        costs = each.measure(point, probe)
                    except Exception as failure:  # noqa: BLE001 - the other points are still worth measuring
                        errors.append(f"{where}: {type(failure).__name__}: {str(failure).strip().splitlines()[-1]}")
                        display.done(f"FAILED: {errors[-1]}")
                        continue
                    samples[each.name][point].append(costs)
                    display.done(f"{where}: " + ", ".join(f"{name} {digits(cost)}" for name, cost in costs.items()))
    return samples, errors


def _as_json(
    facts: Mapping[str, Any], began: datetime, seconds: float, samples: Samples, errors: Sequence[str]
) -> dict[str, Any]:
    return {
        "format": 1,
        "began": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": round(seconds, 1),
        "machine": dict(facts),
        "load_average_after": machine.load_average(),
        "samples": samples,
        "errors": list(errors),
    }


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(each.name for each in RANGES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=_scale, default=1.0, metavar="X", help="part of everything, for example 0.01")
    parser.add_argument("--repeat", type=positive, default=3, metavar="N", help="repeats (default 3)")
    parser.add_argument("--only", type=some_of(RANGES), default=RANGES, metavar="NAMES", help=f"some of: {names}")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where the JSON file goes")
    parser.add_argument("--page", type=Path, metavar="FOLDER", help="where page and picture go")
    return parser


def _scale(text: str) -> float:
    scale = float(text)
    if not 0 < scale <= 1:
        raise argparse.ArgumentTypeError("must be above 0 and at most 1")
    return scale


if __name__ == "__main__":
    raise SystemExit(main())
