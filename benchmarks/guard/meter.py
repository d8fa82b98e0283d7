"""How much a path costs, as a multiple of the reference in the same run.

Instruction counts do not depend on what else the machine does, so they are taken where something can count them:
`perf`, where the processor's counters are within reach, or else `valgrind`, which is slow but everywhere the same. A
program that handles N messages is counted twice, once with one path at twice N: the difference is that path alone,
its preparation included. Without either, CPU time decides, the least of several rounds.
"""

import gc
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.guard.paths import PATHS, reference

REFERENCE = "reference"
_ROOT = Path(__file__).parents[2]
_MESSAGES = 2000
_CPU_MESSAGES = 10_000
_TIMEOUT_S = 600

METHODS = ("perf", "valgrind", "cpu")


def best_method() -> str:
    """The steadiest that works here."""
    if shutil.which("perf"):
        try:
            if _counted("perf", [sys.executable, "-c", ""]) > 0:
                return "perf"
        except (OSError, ValueError, subprocess.SubprocessError):
            pass  # virtual machines and containers often hide the counters
    return "valgrind" if shutil.which("valgrind") else "cpu"


def ratios(method: str, rounds: int, say: Callable[[str], None]) -> dict[str, float]:
    """Cost of a message on each path, divided by that of the reference."""
    costs = _cpu(rounds, say) if method == "cpu" else _instructions(method, say)
    return {name: cost / costs[REFERENCE] for name, cost in costs.items() if name != REFERENCE}


def run_paths(counts: Mapping[str, int]) -> None:
    """What the counted program does."""
    gc.disable()  # when it runs depends on all that was there before
    for name, count in counts.items():
        _path(name)(count)()


def _instructions(method: str, say: Callable[[str], None]) -> dict[str, float]:
    names = [REFERENCE, *PATHS]
    base = dict.fromkeys(names, _MESSAGES)
    runs = [base, *({**base, name: 2 * _MESSAGES} for name in names)]

    def count(counts: Mapping[str, int]) -> int:
        arguments = [f"{name}={number}" for name, number in counts.items()]
        return _counted(method, [sys.executable, "-m", "benchmarks.guard", "--run", *arguments])

    run_paths(dict.fromkeys(names, 1))  # compiles what is not compiled yet
    with ThreadPoolExecutor(max_workers=max(1, min(4, os.cpu_count() or 1))) as pool:
        counted = []
        for number, found in enumerate(pool.map(count, runs), start=1):
            counted.append(found)
            say(f"{number} of {len(runs)} programs counted with {method}")
    return {name: (found - counted[0]) / _MESSAGES for name, found in zip(names, counted[1:], strict=True)}


def _counted(method: str, command: list[str]) -> int:
    """Instructions of a program. Raises ValueError when they were not counted."""
    prefix = {
        "perf": ["perf", "stat", "-x", ",", "-e", "instructions:u"],
        "valgrind": ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"],
    }[method]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(_ROOT)}
    done = subprocess.run(
        prefix + command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S
    )
    return read_count(method, done.stderr)


def read_count(method: str, text: str) -> int:
    """The number in what the counting program wrote. Raises ValueError."""
    pattern = {"perf": r"^(\d+),,instructions", "valgrind": r"I\s+refs:\s+([\d,]+)"}[method]
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{method} counted nothing: {text[-200:]}")
    return int(found.group(1).replace(",", ""))


def _cpu(rounds: int, say: Callable[[str], None]) -> dict[str, float]:
    least: dict[str, float] = {}
    for number in range(rounds):
        for name in (REFERENCE, *PATHS):
            run = _path(name)(_CPU_MESSAGES)
            gc.collect()
            gc.disable()
            began = time.process_time_ns()
            run()
            spent = (time.process_time_ns() - began) / _CPU_MESSAGES
            gc.enable()
            least[name] = min(spent, least.get(name, spent))
        say(f"round {number + 1} of {rounds}")
    return least


def _path(name: str) -> Callable[[int], Callable[[], object]]:
    return reference if name == REFERENCE else PATHS[name]
