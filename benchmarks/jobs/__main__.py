"""Throughput of no-op jobs: `python -m benchmarks.jobs [--jobs N] [--repeat N] [--only NAMES]`.

One program enqueues N jobs, one at a time; then one worker process, with four threads where the library has threads,
runs them. From the first job's start to the last one's end counts. All but the first and third line share one Redis,
without persistence; the broker writes to its log as always. Repeats alternate, so that a slow minute hits everybody.
"""

import argparse
import importlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from redis import Redis

from benchmarks import machine
from fila.testing import RedisProcess, ServerProcess

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parents[1] / "results"
CONCURRENCY = 4
TIMEOUT_S = 600

WORKERS = {
    "fila.jobs redis": [sys.executable, "-m", "benchmarks.jobs.ours", "redis"],
    "fila.jobs fila": [sys.executable, "-m", "benchmarks.jobs.ours", "fila"],
    "celery": [
        *[sys.executable, "-m", "celery", "-A", "benchmarks.jobs.with_celery", "worker", "-P", "threads"],
        *["-c", str(CONCURRENCY), "-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"],
    ],
    "rq": [sys.executable, "-m", "benchmarks.jobs.with_rq"],
    "huey": [
        *[sys.executable, "-m", "huey.bin.huey_consumer", "benchmarks.jobs.with_huey.huey"],
        *["-w", str(CONCURRENCY), "-k", "thread", "-q"],
    ],
    "dramatiq": [
        *[sys.executable, "-m", "dramatiq", "benchmarks.jobs.with_dramatiq"],
        *["-p", "1", "-t", str(CONCURRENCY), "--skip-logging"],
    ],
}
NAMES = ["fila.jobs memory", *WORKERS]

Samples = dict[str, list[dict[str, float]]]
"""By name, the figures of every repeat."""


def main() -> None:
    options = _parser().parse_args()
    names = [name.strip() for name in options.only.split(",")] if options.only else NAMES
    samples: Samples = {name: [] for name in names}
    load = machine.load_average()
    with tempfile.TemporaryDirectory() as folder, RedisProcess(args=["--appendonly", "no"]) as redis:
        for repeat in range(options.repeat):
            for name in names:
                print(f"{name} {repeat + 1}/{options.repeat} ...", end=" ", flush=True)
                enqueued, ran = _measure(name, options.jobs, redis, Path(folder, f"{repeat}.json"))
                samples[name].append({"enqueue_per_s": options.jobs / enqueued, "run_per_s": options.jobs / ran})
                print(f"{options.jobs / enqueued:,.0f} enqueued/s, {options.jobs / ran:,.0f} run/s", flush=True)
    report = {
        "began": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "jobs": options.jobs,
        "concurrency": CONCURRENCY,
        "machine": machine.facts(),
        "load_average": {"before": load, "after": machine.load_average()},
        "versions": _versions(),
        "samples": samples,
    }
    _print(samples)
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / f"jobs-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps(report, indent=1, default=str))
    print(f"every figure: {file}")


def _measure(name: str, jobs: int, redis: RedisProcess, result: Path) -> tuple[float, float]:
    """Seconds of enqueueing, and of running."""
    result.unlink(missing_ok=True)
    Redis.from_url(redis.url).flushall()
    env = os.environ | {
        "BENCH_REDIS_URL": redis.url,
        "BENCH_JOBS": str(jobs),
        "BENCH_RESULT": str(result),
        "BENCH_CONCURRENCY": str(CONCURRENCY),
        "PYTHONPATH": str(ROOT),
    }
    if name == "fila.jobs fila":
        with ServerProcess() as server:
            return _enqueue_and_run(name, env | {"BENCH_FILA_ADDR": server.addr}, result)
    return _enqueue_and_run(name, env, result)


def _enqueue_and_run(name: str, env: dict[str, str], result: Path) -> tuple[float, float]:
    enqueued, ran = _child(name, env)
    if ran is not None:
        return enqueued, ran
    worker = subprocess.Popen(WORKERS[name], cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not result.exists():
            if worker.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name}: the worker did not finish (exit code {worker.poll()})")
            time.sleep(0.05)
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
    times = json.loads(result.read_text())
    return enqueued, times["last"] - times["first"]


def _child(name: str, env: dict[str, str]) -> tuple[float, float | None]:
    """Seconds of enqueueing, and of running if it did that too. Enqueueing has a process of its own, so that no library
    finds the modules of another loaded.
    """
    command = [sys.executable, "-m", "benchmarks.jobs", "--enqueue", name]
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    enqueued, ran = json.loads(done.stdout)
    return enqueued, ran


def _enqueue(name: str) -> None:
    from benchmarks.jobs import meter, ours

    if name == "fila.jobs memory":
        print(json.dumps(ours.in_memory()))
        return
    if name.startswith("fila.jobs"):
        app, noop = ours.make(name.split()[1])
        put: Callable[[int], object] = noop.enqueue
    else:
        app, put = None, importlib.import_module(f"benchmarks.jobs.with_{name}").enqueue
    began = time.perf_counter()
    for n in range(meter.TOTAL):
        put(n)
    print(json.dumps([time.perf_counter() - began, None]))
    if app is not None:
        app.close()


def _print(samples: Samples) -> None:
    print(f"\n{'':<18}{'enqueued/s':>12}{'run/s':>12}   (medians)")
    for name, taken in samples.items():
        enqueued = statistics.median(each["enqueue_per_s"] for each in taken)
        ran = statistics.median(each["run_per_s"] for each in taken)
        print(f"{name:<18}{enqueued:>12,.0f}{ran:>12,.0f}")


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    found = {name: version(name) for name in ("celery", "rq", "huey", "dramatiq", "redis")}
    server = subprocess.run(["redis-server", "--version"], check=True, capture_output=True, text=True)
    return found | {"redis-server": server.stdout.split("v=")[1].split()[0], "python": platform.python_version()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=str(__doc__).splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000, metavar="N", help="jobs of each run (default 10000)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repeats (default 3)")
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {', '.join(NAMES)}")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where the JSON file goes")
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] == ["--enqueue"]:
        _enqueue(sys.argv[2])
    else:
        main()
