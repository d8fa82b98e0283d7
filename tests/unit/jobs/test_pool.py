"""A pool of workers on a queue in memory."""

import asyncio
import logging
import sys
import threading
import time
from datetime import timedelta

import pytest

from fila.jobs import (
    Counters,
    InvalidSettings,
    PoolSettings,
    PriorityDelayQueue,
    QueueSettings,
    QueueUnavailable,
    Retry,
    RetryPolicy,
    RunnerSettings,
    WorkerPool,
)
from fila.jobs.events import DepthSeen, JobTaken

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


@pytest.mark.parametrize("drain", [True, False])
def test_workers_without_a_job_need_no_grace(queue, caplog, drain):
    pool = WorkerPool(queue, print, PoolSettings(concurrency=3, poll_timeout=1000, grace_seconds=0))
    pool.start()
    assert pool.stop(drain=drain) is True
    assert not pool.running
    assert caplog.records == []


def test_without_grace_idle_workers_leave_and_the_busy_one_is_reported(queue, caplog):
    go = threading.Event()
    made = queue.enqueue(1)
    pool = WorkerPool(queue, lambda context: go.wait(LONG), PoolSettings(concurrency=3, poll_timeout=1000))
    pool.start()
    until(lambda: pool.busy == 1)
    assert pool.stop(drain=False, grace_seconds=0) is False
    assert [record.job_ids for record in caplog.records if hasattr(record, "job_ids")] == [[made.id]]
    go.set()
    until(lambda: not pool.running)


@pytest.mark.parametrize("wrong", ["text", "wait", "policy"])
def test_a_failing_job_never_takes_its_worker_along(queue, wrong):
    class Odd(Exception):
        def __str__(self):
            return self.args[1]

    def policy_for(item):
        return {}["policy"] if item.job == "policy" else None

    def handler(context):
        if context.job == "text":
            raise Odd("x")
        if context.job == "wait":
            raise Retry(delay_seconds=timedelta(minutes=5))
        done.set()

    done, run = threading.Event(), RunnerSettings(policy_for=policy_for)
    queue.enqueue(wrong)
    queue.enqueue("plain")
    with WorkerPool(queue, handler, PoolSettings(concurrency=1), run):
        assert done.wait(LONG)
        assert queue.snapshot()["scheduled"] == 1


def test_a_job_whose_surroundings_fail_is_given_back_and_the_worker_goes_on(queue):
    """No claim is left behind that would be extended for ever."""
    attempts, failures = [], [SystemExit(1), SystemExit(2)]

    def hook(event):
        if isinstance(event, JobTaken) and failures:
            raise failures.pop()

    queue.enqueue(1)
    run = RunnerSettings(hooks=[hook], retry=RetryPolicy(base_seconds=0))
    with WorkerPool(queue, lambda context: attempts.append(context.attempt), PoolSettings(concurrency=1), run) as pool:
        until(lambda: attempts and not pool.busy)
    assert attempts == [3]
    assert queue.snapshot()["claimed"] == queue.snapshot()["depth"] == 0


def test_a_log_that_fails_does_not_take_the_worker_along(queue):
    class Broken(logging.Handler):
        def emit(self, record):
            raise OSError("no space left")

    broken, done = Broken(), []
    logging.getLogger("fila.jobs").addHandler(broken)
    try:
        for n in range(3):
            queue.enqueue(n)
        run = RunnerSettings(retry=RetryPolicy(max_attempts=1))
        with WorkerPool(queue, lambda context: done.append(context.job) or 1 / 0, PoolSettings(concurrency=1), run):
            until(lambda: len(done) == 3)
    finally:
        logging.getLogger("fila.jobs").removeHandler(broken)
    assert queue.snapshot()["dead"] == 3


def test_claims_are_extended_even_after_the_depth_could_not_be_told():
    class Odd(PriorityDelayQueue):
        def snapshot(self):
            if threading.current_thread().name == "fila-worker-keeper":
                raise RuntimeError("odd")
            return super().snapshot()

        def extend(self, item):
            extended.set()
            super().extend(item)

    extended, seen = threading.Event(), []
    odd = Odd(QueueSettings(lease_seconds=0.3))
    odd.enqueue(1)
    run = RunnerSettings(hooks=[lambda event: None])
    with WorkerPool(odd, lambda context: seen.append(extended.wait(LONG)), PoolSettings(concurrency=1), run):
        until(lambda: seen)
    assert seen[0] is True


def test_an_async_job_that_exits_fails_as_any_other_and_the_loop_goes_on(queue):
    exited, together = threading.Event(), asyncio.Event()
    done = []

    async def handler(context):
        if context.job == "exit":
            together.set()
            sys.exit(1)
        if context.job == "beside":
            await together.wait()
            while not exited.is_set():
                await asyncio.sleep(0.001)
        done.append(context.job)

    queue.enqueue("beside")
    queue.enqueue("exit")
    pool = WorkerPool(queue, handler, PoolSettings(concurrency=2), RunnerSettings(retry=RetryPolicy(max_attempts=1)))
    pool.start()
    until(lambda: queue.snapshot()["dead"] == 1)
    exited.set()
    queue.enqueue("later")
    until(lambda: sorted(done) == ["beside", "later"])
    assert pool.stop() is True
    assert queue.dead_letters()[0].error == "SystemExit: 1 (attempt 1 of 1)"


def test_a_task_of_an_async_job_that_exits_does_not_end_the_loop(queue):
    done = []

    async def leave():
        sys.exit(1)

    async def handler(context):
        if context.job == "exit":
            await asyncio.create_task(leave())
        done.append(context.job)

    queue.enqueue("exit")
    queue.enqueue("later")
    pool = WorkerPool(queue, handler, PoolSettings(concurrency=1), RunnerSettings(retry=RetryPolicy(max_attempts=1)))
    pool.start()
    until(lambda: done == ["later"])
    assert pool.stop() is True
    assert queue.dead_letters()[0].error == "SystemExit: 1 (attempt 1 of 1)"


def test_an_async_job_longer_than_the_grace_is_cancelled_and_may_clean_up(queue):
    started, cleaned = threading.Event(), threading.Event()

    async def handler(context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            cleaned.set()

    queue.enqueue(1)
    pool = WorkerPool(queue, handler, PoolSettings(concurrency=1))
    pool.start()
    assert started.wait(LONG)
    assert pool.stop(grace_seconds=0) is False
    assert cleaned.wait(LONG)
    until(lambda: not pool.running)
    assert queue.snapshot()["scheduled"] == 1


def test_an_async_job_that_comes_after_the_end_is_given_back(queue):
    started, go, ran = threading.Event(), threading.Event(), []

    def handler(context):
        async def rest():
            ran.append(1)

        started.set()
        go.wait(LONG)
        return rest()

    queue.enqueue(1)
    pool = WorkerPool(queue, handler, PoolSettings(concurrency=1))
    pool.start()
    assert started.wait(LONG)
    assert pool.stop(grace_seconds=0) is False
    go.set()
    until(lambda: not pool.running)
    assert (ran, queue.snapshot()["scheduled"]) == ([], 1)


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
