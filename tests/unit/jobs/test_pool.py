"""A pool of workers on a queue in memory."""

import asyncio
import threading
import time

import pytest

from fila.jobs import (
    Counters,
    InvalidSettings,
    PoolSettings,
    PriorityDelayQueue,
    QueueSettings,
    QueueUnavailable,
    RetryPolicy,
    RunnerSettings,
    WorkerPool,
)
from fila.jobs.events import DepthSeen

LONG = 20.0


def until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def queue():
    return PriorityDelayQueue()


def test_jobs_run_at_the_same_time(queue):
    """Each waits for all the others: one after the other they would wait for ever."""
    together = threading.Barrier(4)
    for n in range(4):
        queue.enqueue(n)
    with WorkerPool(queue, lambda context: together.wait(LONG), PoolSettings(concurrency=4)):
        until(lambda: queue.snapshot()["claimed"] == 0 and queue.snapshot()["depth"] == 0)
    assert not together.broken


def test_async_handlers_share_a_loop_and_run_at_the_same_time(queue):
    arrived, loops = [], set()

    async def handler(context):
        loops.add(asyncio.get_running_loop())
        arrived.append(context.job)
        while len(arrived) < 3:
            await asyncio.sleep(0.001)

    for n in range(3):
        queue.enqueue(n)
    with WorkerPool(queue, handler, PoolSettings(concurrency=3)):
        until(lambda: len(arrived) == 3)
    assert len(loops) == 1


def test_stopping_finishes_what_is_ready_in_memory(queue):
    done = []
    for n in range(20):
        queue.enqueue(n)
    pool = WorkerPool(queue, lambda context: done.append(context.job), PoolSettings(concurrency=2))
    pool.start()
    assert pool.stop() is True
    assert sorted(done) == list(range(20))


def test_stopping_without_draining_finishes_only_what_is_being_run(queue):
    started, go = threading.Event(), threading.Event()

    def handler(context):
        started.set()
        go.wait(LONG)

    for n in range(5):
        queue.enqueue(n)
    pool = WorkerPool(queue, handler, PoolSettings(concurrency=1))
    pool.start()
    started.wait(LONG)
    threading.Timer(0.1, go.set).start()
    assert pool.stop(drain=False) is True
    assert queue.snapshot()["ready"] == 4
    assert queue.snapshot()["claimed"] == 0


def test_stopping_does_not_wait_for_the_poll_timeout(queue):
    pool = WorkerPool(queue, print, PoolSettings(concurrency=3, poll_timeout=1000))
    pool.start()
    time.sleep(0.05)
    assert pool.stop(drain=False, grace_seconds=LONG) is True


def test_a_job_longer_than_the_grace_is_reported(queue, caplog):
    go = threading.Event()
    made = queue.enqueue(1)
    pool = WorkerPool(queue, lambda context: go.wait(LONG), PoolSettings(concurrency=1))
    pool.start()
    until(lambda: pool.busy == 1)
    assert pool.stop(grace_seconds=0.05) is False
    assert [record.job_ids for record in caplog.records if hasattr(record, "job_ids")] == [[made.id]]
    go.set()


def test_a_long_job_keeps_its_claim(queue):
    short = PriorityDelayQueue(QueueSettings(lease_seconds=0.15))
    runs = []

    def handler(context):
        runs.append(context.attempt)
        time.sleep(0.6)

    short.enqueue(1)
    with WorkerPool(short, handler, PoolSettings(concurrency=2)):
        until(lambda: runs and short.snapshot()["claimed"] == 0)
    assert runs == [1]


def test_a_queue_that_cannot_be_asked_is_asked_again(queue):
    class Flaky(PriorityDelayQueue):
        failures = 2

        def dequeue(self, timeout=None):
            if self.failures:
                self.failures -= 1
                raise QueueUnavailable("away")
            return super().dequeue(timeout)

    flaky, done = Flaky(), threading.Event()
    flaky.enqueue(1)
    with WorkerPool(flaky, lambda context: done.set(), PoolSettings(concurrency=1)):
        assert done.wait(LONG)


def test_workers_go_home_when_the_queue_is_shut_down_and_empty(queue):
    queue.enqueue(1)
    pool = WorkerPool(queue, lambda context: None, PoolSettings(concurrency=2))
    pool.start()
    queue.shutdown()
    until(lambda: not pool.running)
    pool.stop()


def test_counters_see_the_work(queue):
    counters = Counters()
    queue.enqueue("good")
    queue.enqueue("bad")

    def handler(context):
        if context.job == "bad":
            raise KeyError("x")

    run = RunnerSettings(hooks=[counters], name="q", retry=RetryPolicy(max_attempts=1))
    with WorkerPool(queue, handler, run=run):
        until(lambda: sum(counters.jobs_total.values()) == 2)
    assert counters.jobs_total == {("q", "done"): 1, ("q", "dead"): 1}
    assert counters.job_failures_total == {("q", "KeyError"): 1}
    assert counters.dequeue_latency["q"].count == counters.job_processing_duration["q"].count == 2
    assert "q" in counters.queue_depth


def test_the_depth_is_told_from_the_start(queue):
    seen = []
    queue.enqueue(1, delay_seconds=1000)
    with WorkerPool(queue, print, run=RunnerSettings(hooks=[seen.append], name="q")):
        until(lambda: seen)
    assert seen[0] == DepthSeen("q", 1)


def test_a_pool_starts_once(queue):
    pool = WorkerPool(queue, print)
    pool.start()
    with pytest.raises(RuntimeError):
        pool.start()
    pool.stop()


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"poll_timeout": 0}, {"grace_seconds": -1}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidSettings, match=next(iter(wrong))):
        PoolSettings(**wrong)
