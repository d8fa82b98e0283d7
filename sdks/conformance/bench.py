"""How fast the SDKs are: produce, drain, lifecycle and latency, by turns with the Python SDK on one server."""

import itertools
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fila.testing import ServerProcess
from sdks.conformance.driver_process import DriverFailed, DriverProcess
from sdks.conformance.report import TITLES, between

BEGIN = "<!-- bench: made by `make bench-sdks ARGS=--write` -->"
END = "<!-- end of bench -->"

SIZE = 1024
CONCURRENCY = 50
CREDIT = 1000
#: Of latency: messages a second, which leave any SDK idle most of the time.
RATE = 500
#: Rounds that do not count. In five rounds of 20,000 calls of `enqueue`, Java took 78, 51, 23, 22 and 10 µs of CPU for
#: each: it compiles what it runs.
WARM_UP = 3
_ANSWER_S = 600

#: A value for each measurement of one turn: messages a second, and microseconds.
Turn = dict[str, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A row of the table."""

    name: str
    title: str
    unit: str
    higher_is_better: bool


MEASUREMENTS = (
    Measurement("produce", f"produce: {CONCURRENCY} callers of the plain single enqueue", "msg/s", True),
    Measurement("drain", f"drain: consume and ack, {CONCURRENCY} at a time, credit {CREDIT:,}", "msg/s", True),
    Measurement("lifecycle", "lifecycle: both at once", "msg/s", True),
    Measurement("p50", f"latency at {RATE} a second, median", "µs", False),
    Measurement("p99", f"latency at {RATE} a second, 99 of 100", "µs", False),
)


class Bench:
    """One server, and one driver for each SDK that stays for all turns."""

    def __init__(self, server: ServerProcess, drivers: dict[str, DriverProcess], count: int) -> None:
        self._server = server
        self._drivers = drivers
        self._count = count
        self._numbers = itertools.count(1)
        for sdk in drivers:
            if self._ask(sdk, "hello").get("debug"):
                raise DriverFailed(
                    f"{sdk}: its driver is a debug build, whose figures say nothing: use make bench-sdks"
                )
            self._ask(sdk, "connect", addresses=[server.addr])

    def turn(self, sdk: str) -> Turn:
        """Measure one SDK once. Raises DriverFailed."""
        load = {"count": self._count, "size": SIZE, "concurrency": CONCURRENCY, "max_in_flight": CREDIT}
        load["timeout_ms"] = _ANSWER_S * 1000
        queue = self._queue(sdk)
        produced = self._ask(sdk, "produce", queue=queue, **load)
        if produced["errors"]:
            raise DriverFailed(f"{sdk}: produce: {produced['errors'][0]}")
        drained = self._ask(sdk, "work", queue=queue, **load)
        both = self._ask(sdk, "lifecycle", queue=self._queue(sdk), **load)
        count = max(100, min(2000, self._count // 5))
        waited = self._ask(sdk, "latency", queue=self._queue(sdk), count=count, rate=RATE, size=SIZE)
        return {
            "produce": self._count / produced["seconds"],
            "drain": self._count / drained["seconds"],
            "lifecycle": self._count / both["seconds"],
            "p50": waited["p50_us"],
            "p99": waited["p99_us"],
        }

    def _queue(self, sdk: str) -> str:
        queue = f"bench-{next(self._numbers)}"
        self._ask(sdk, "create_queue", queue=queue)
        return queue

    def _ask(self, sdk: str, op: str, **given: Any) -> dict[str, Any]:
        answer = self._drivers[sdk].ask(op, given).result(_ANSWER_S)
        if "error" in answer:
            raise DriverFailed(f"{sdk}: {op}: {answer['error']}")
        found: dict[str, Any] = answer["ok"]
        return found


def table(turns: dict[str, list[Turn]]) -> str:
    """Medians, and how many times Python's each is: the median over the turns, and the lowest and highest."""
    sdks = list(turns)
    lines = [f"| | {' | '.join(TITLES[sdk] for sdk in sdks)} |", f"|---|{'---:|' * len(sdks)}"]
    for row in MEASUREMENTS:
        medians = [statistics.median(turn[row.name] for turn in turns[sdk]) for sdk in sdks]
        lines.append(f"| {row.title}, {row.unit} | {' | '.join(f'{value:,.0f}' for value in medians)} |")
        ratios = [_ratio(turns[sdk], turns["python"], row) for sdk in sdks]
        better = "faster" if row.higher_is_better else "slower"
        lines.append(f"| &nbsp;&nbsp;to Python, more is {better} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def _ratio(turns: list[Turn], python: list[Turn], row: Measurement) -> str:
    if turns is python:
        return "1"
    ratios = [mine[row.name] / theirs[row.name] for mine, theirs in zip(turns, python, strict=True)]
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"


def conditions(repeats: int, count: int) -> str:
    """Under which the table was made."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{repeats} turns of each SDK in turn, after {WARM_UP} that do not count, {count:,} messages of 1 KiB each, "
        f"server and client on one machine with {cores} cores ({platform.machine()}), "
        f"Python {platform.python_version()}. In brackets: lowest and highest."
    )


def main(sdks: list[str], find: Callable[[str], list[str] | None], repeats: int, count: int, page: Path | None) -> int:
    """Measure and show. The exit code."""
    commands = {sdk: find(sdk) for sdk in ("python", *(sdk for sdk in sdks if sdk != "python"))}
    missing = [sdk for sdk, command in commands.items() if command is None]
    turns: dict[str, list[Turn]] = {sdk: [] for sdk in commands if sdk not in missing}
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        ServerProcess(config='[log]\nlevel = "warning"\n') as server,
    ):
        drivers: dict[str, DriverProcess] = {}
        try:
            for sdk in turns:
                drivers[sdk] = DriverProcess(commands[sdk] or [], Path(folder) / f"{sdk}.log")
            bench = Bench(server, drivers, count)
            for number in range(1 - WARM_UP, repeats + 1):
                for sdk, found in turns.items():
                    turn = bench.turn(sdk)
                    if number > 0:
                        found.append(turn)
                    shown = "  ".join(f"{row.name} {turn[row.name]:,.0f} {row.unit}" for row in MEASUREMENTS)
                    _say(f"{number}/{repeats}  {sdk:10}  {shown}")
        except DriverFailed as failure:
            _say(f"failed: {failure}")
            return 1
        finally:
            for driver in drivers.values():
                driver.kill()
    _say(f"\n{table(turns)}")
    for sdk in missing:
        _say(f"{sdk}: not measured: it has no driver (make -C sdks/{sdk} driver)")
    if page is not None:
        page.write_text(between(page.read_text(), BEGIN, END, f"{conditions(repeats, count)}\n\n{table(turns)}"))
    return 1 if missing else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
