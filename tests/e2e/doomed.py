"""A worker process that ends as it is told to. Usage: doomed.py ADDR QUEUE PREFETCH HANDLERS WAY.

Ways: "leave" handles one message with each handler and leaves; "raise" ends with an error when it meets poison; "kill"
is killed by it; "job" is killed by it while it runs jobs.
"""

import os
import signal
import sys
import threading
import time

from fila import Client
from fila.jobs.broker.queue import FilaQueue
from fila.jobs.pool import PoolSettings, WorkerPool
from fila.jobs.retry import RetryPolicy
from fila.jobs.runner import RunnerSettings
from fila.jobs.settings import FilaSettings, QueueSettings


def handle(payload: bytes, way: str) -> None:
    if payload != b"poison":
        time.sleep(0.001)
    elif way == "raise":
        raise ValueError("poison")
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def consume(addr: str, queue: str, prefetch: int, handlers: int, way: str) -> None:
    failed = threading.Event()
    with Client(addr, timeout=30) as client, client.consume(queue, max_in_flight=prefetch) as messages:

        def work() -> None:
            for message in messages:
                try:
                    handle(message.payload, way)
                except ValueError:
                    failed.set()
                    return
                message.ack()
                if way == "leave":
                    return

        threads = [threading.Thread(target=work, daemon=True) for _ in range(handlers)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not failed.wait(0.01):
            pass
    if failed.is_set():
        raise SystemExit("a handler failed")


def run_jobs(addr: str, queue: str, prefetch: int, handlers: int) -> None:
    settings = QueueSettings(fila=FilaSettings(addr=addr, queue=queue, max_in_flight=prefetch, timeout=30))
    run = RunnerSettings(retry=RetryPolicy(max_attempts=2))
    with WorkerPool(
        FilaQueue(settings),
        lambda context: handle(context.job.encode(), "kill"),
        PoolSettings(concurrency=handlers),
        run,
    ):
        threading.Event().wait()


if __name__ == "__main__":
    address, name, ahead, count, how = sys.argv[1:]
    if how == "job":
        run_jobs(address, name, int(ahead), int(count))
    else:
        consume(address, name, int(ahead), int(count), how)
