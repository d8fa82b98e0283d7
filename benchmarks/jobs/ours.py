"""Our three backends. `python -m benchmarks.jobs.ours redis|fila` is a worker; memory has no other process."""

import logging
import signal
import sys
import threading
import time

from benchmarks.jobs import meter
from fila.jobs import App, AppSettings, FilaSettings, PoolSettings, QueueSettings, Task

SETTINGS = {
    "memory": QueueSettings(max_in_memory=10_000_000),
    "redis": QueueSettings(use_redis=True, redis_url=meter.REDIS_URL),
    "fila": QueueSettings(fila=FilaSettings(addr=meter.FILA_ADDR, timeout=30)),
}


def make(backend: str) -> tuple[App, Task[[int], None]]:
    app = App(settings=AppSettings(queue=SETTINGS[backend]))

    @app.task(name="noop")
    def noop(_n: int) -> None:
        meter.tick()

    return app, noop


def in_memory() -> tuple[float, float]:
    """Enqueue and run in one process. Returns seconds of enqueueing and of running."""
    app, noop = make("memory")
    began = time.perf_counter()
    for n in range(meter.TOTAL):
        noop.enqueue(n)
    enqueued = time.perf_counter() - began
    worker = app.worker(PoolSettings(concurrency=meter.CONCURRENCY))
    began = time.perf_counter()
    worker.start()
    while not meter.RESULT.exists():
        time.sleep(0.01)
    ran = time.perf_counter() - began
    worker.stop()
    return enqueued, ran


def main() -> None:
    logging.disable(logging.INFO)
    app, _ = make(sys.argv[1])
    worker = app.worker(PoolSettings(concurrency=meter.CONCURRENCY))
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    worker.start()
    stopped.wait()
    worker.stop()
    app.close()


if __name__ == "__main__":
    main()
