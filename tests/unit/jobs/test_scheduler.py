"""The thread of the retry scheduler, from start to stop. What it enqueues and when is in test_timelines.py."""

import threading

from fila.jobs import DueRetry, PriorityDelayQueue, RetryScheduler, SchedulerSettings

LONG = 20.0


class Backlog:
    """Names ten retries at each call, three times; the first time only after `go`."""

    def __init__(self):
        self.asked, self.go = threading.Event(), threading.Event()
        self.calls = 0

    def due(self, before, limit):
        self.asked.set()
        self.go.wait(LONG)
        self.calls += 1
        return [DueRetry(str(n), n, 0.0) for n in range(limit)] if self.calls <= 3 else []

    def mark(self, ids):
        pass


def test_stopping_leaves_a_backlog_after_the_batch_at_hand():
    source, queue = Backlog(), PriorityDelayQueue()
    scheduler = RetryScheduler(source, queue, SchedulerSettings(batch=10))
    scheduler.start()
    assert source.asked.wait(LONG)
    scheduler.stop(wait=False)
    source.go.set()
    scheduler.stop()
    assert source.calls == 1
    assert queue.snapshot()["ready"] == 10, "the batch is not left in the middle: its source may hold it"
