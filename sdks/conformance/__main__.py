"""Run the conformance suite: each scenario with the driver of each SDK, and a table of what came out."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from sdks.conformance import bench
from sdks.conformance.pool import DriverPool
from sdks.conformance.report import Results
from sdks.conformance.runner import Failed, run
from sdks.conformance.scenario import Scenario, load
from sdks.conformance.world import World

SDKS = Path(__file__).parents[1]
DOCS = SDKS.parent / "docs"
LANGUAGES = ("python", "go", "javascript", "rust", "java", "ruby")

#: Scenarios at a time: most of them wait most of the time.
JOBS = 4


def command(sdk: str) -> list[str] | None:
    """Of the driver, if there is one."""
    path = SDKS / sdk / "driver"
    return [str(path)] if os.access(path, os.X_OK) else None


def run_sdk(sdk: str, scenarios: list[Scenario], driver: list[str], results: Results, jobs: int = JOBS) -> None:
    """Run the scenarios with one SDK, several at a time. Says each result as soon as it is known."""
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        World(Path(folder)) as world,
        DriverPool(driver, Path(folder)) as pool,
        ThreadPoolExecutor(jobs) as threads,
    ):
        running = [threads.submit(_timed, scenario, pool, world) for scenario in scenarios]
        for number, future in enumerate(as_completed(running), 1):
            name, failure, seconds = future.result()
            results.add(sdk, name, failure)
            _say(f"{number:3}/{len(scenarios)}  {results.line(sdk, name, seconds)}")


def _timed(scenario: Scenario, pool: DriverPool, world: World) -> tuple[str, str, float]:
    began, failure = time.monotonic(), ""
    try:
        run(scenario, pool, world)
    except Failed as error:
        failure = str(error)
    return scenario.name, failure, time.monotonic() - began


def run_all(sdks: list[str], scenarios: list[Scenario], jobs: int, find: Callable[[str], list[str] | None]) -> Results:
    """All scenarios with all SDKs, one SDK after the other."""
    results = Results(scenarios, sdks)
    for sdk in sdks:
        driver, began = find(sdk), time.monotonic()
        if driver is not None:
            run_sdk(sdk, scenarios, driver, results, jobs)
        _say(results.line_of(sdk, time.monotonic() - began))
    return results


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sdks.conformance", description=__doc__)
    parser.add_argument("--sdk", help="only these, separated by commas")
    parser.add_argument("--only", help="only these scenarios, separated by commas")
    parser.add_argument("--fast", action="store_true", help="only the quick scenarios")
    parser.add_argument("--jobs", type=int, default=JOBS, help="scenarios at a time (%(default)s)")
    parser.add_argument("--list", action="store_true", help="show the scenarios and end")
    parser.add_argument("--write", action="store_true", help="write the result into docs/")
    parser.add_argument("--bench", action="store_true", help="measure instead: every SDK beside the Python SDK")
    parser.add_argument("--repeats", type=int, default=5, help="of the benchmark, by turns (%(default)s)")
    parser.add_argument("--count", type=int, default=20_000, help="messages of each benchmark (%(default)s)")
    return parser


def _chosen(given: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Scenario]:
    scenarios = load()
    if given.only:
        names = given.only.split(",")
        if unknown := set(names) - {scenario.name for scenario in scenarios}:
            parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
        scenarios = [scenario for scenario in scenarios if scenario.name in names]
    return [scenario for scenario in scenarios if scenario.fast or not given.fast]


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 only if something ran and everything passed."""
    parser = _arguments()
    given = parser.parse_args(arguments)
    sdks = given.sdk.split(",") if given.sdk else list(LANGUAGES)
    if unknown := set(sdks) - set(LANGUAGES):
        parser.error(f"no such SDK: {', '.join(sorted(unknown))}")
    if given.bench:
        return bench.main(
            sdks, command, given.repeats, given.count, DOCS / "benchmarks-sdks.md" if given.write else None
        )
    if given.write and (given.only or given.fast or given.sdk):
        parser.error("--write takes all scenarios and all SDKs")
    scenarios = _chosen(given, parser)
    if given.list:
        for scenario in scenarios:
            _say(f"{scenario.name:30} {'fast' if scenario.fast else '    '}  {scenario.about}")
        return 0
    results = run_all(sdks, scenarios, given.jobs, command)
    _say(f"\n{results.table()}\n\n{results.summary()}")
    if given.write:
        results.write(DOCS / "sdks.md")
    return results.exit_code()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
