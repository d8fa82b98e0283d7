"""How the worker's parts stop together."""

import threading
import time
from types import SimpleNamespace

from fila.jobs import PriorityDelayQueue
from fila.reconcile.worker import Worker

LONG = 20.0


def test_the_pool_takes_no_jobs_while_the_scheduler_ends():
    asked, go = threading.Event(), threading.Event()

    def take_due(before_ms, limit, *, missed):
        asked.set()
        go.wait(LONG)
        return []

    store = SimpleNamespace(due_reports=SimpleNamespace(take=take_due))
    worker = Worker(PriorityDelayQueue(), store, reconciler=None)
    worker.start()
    assert asked.wait(LONG)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    try:
        deadline = time.monotonic() + LONG
        while worker.pool.running:
            assert time.monotonic() < deadline, "the pool goes on"
            time.sleep(0.005)
        assert stopping.is_alive(), "the scheduler is waited for"
    finally:
        go.set()
        stopping.join()
