"""The timelines of the specification, sections 17 and 18, on a clock of ours; and the scheduler behind the second."""

import pytest

from fila.jobs import (
    DueRetry,
    InvalidSettings,
    JobRunner,
    PriorityDelayQueue,
    QueueFull,
    QueueSettings,
    RetryScheduler,
    SchedulerSettings,
)
from tests.helpers.clock import ManualClock

MINUTE = 60.0


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def queue(clock):
    return PriorityDelayQueue(clock=clock)


class Source:
    """Retries in a table, as an application's database would have them."""

    def __init__(self):
        self.rows, self.marked = {}, set()

    def schedule(self, report_id, attempt, at):
        self.rows[f"{report_id}/{attempt}"] = DueRetry(
            f"{report_id}/{attempt}", {"affiliate_report_id": report_id, "attempt": attempt}, at, correlation_id="c"
        )

    def due(self, before, limit):
        rows = [row for row in self.rows.values() if row.id not in self.marked and row.due_at <= before]
        return sorted(rows, key=lambda row: row.due_at)[:limit]

    def mark(self, ids):
        self.marked.update(ids)


def test_normal_flow(clock, queue):
    """T+0 enqueue #101, T+2 ms dequeued, T+120 ms reconciled, T+121 ms the queue is empty."""
    started = clock()
    log = []

    def reconcile(context):
        log.append(("dequeued", round(1000 * (clock() - started))))
        clock.advance(0.118)
        log.append(("matched", round(1000 * (clock() - started))))

    queue.enqueue({"affiliate_report_id": 101}, priority="normal")
    clock.advance(0.002)
    assert JobRunner(queue, reconcile).run(queue.dequeue(0)) == "done"
    clock.advance(0.001)
    assert queue.dequeue(0) is None
    assert queue.snapshot()["depth"] == 0
    assert log == [("dequeued", 2), ("matched", 120)]
    assert round(1000 * (clock() - started)) == 121


def test_delayed_retry(clock, queue):
    """Attempt 1 misses; scheduled_retry_at = now + 30 min; the scheduler enqueues it, attempt 2 runs when it is due."""
    source, attempts = Source(), []
    scheduler = RetryScheduler(source, queue, SchedulerSettings(interval_seconds=60, horizon_seconds=120), clock=clock)
    started = clock()

    def reconcile(context):
        attempt = context.job["attempt"]
        attempts.append((attempt, (clock() - started) / MINUTE))
        if attempt == 1:
            source.schedule(context.job["affiliate_report_id"], 2, clock() + 30 * MINUTE)

    runner = JobRunner(queue, reconcile)
    queue.enqueue({"affiliate_report_id": 101, "attempt": 1})
    for _ in range(40):
        scheduler.run_once()
        while (item := queue.dequeue(0)) is not None:
            assert runner.run(item) == "done"
        if 28 * MINUTE <= clock() - started < 30 * MINUTE:
            assert queue.snapshot()["scheduled"] == 1, "enqueued ahead, with the rest as its delay"
        clock.advance(MINUTE)
    assert attempts == [(1, 0), (2, 30)]


def test_a_retry_that_became_due_while_nobody_ran_is_enqueued_at_the_start(clock, queue):
    source = Source()
    source.schedule(7, 2, clock() + MINUTE)
    clock.advance(10 * MINUTE)
    assert RetryScheduler(source, queue, clock=clock).run_once() == 1
    item = queue.dequeue(0)
    assert item.job == {"affiliate_report_id": 7, "attempt": 2}
    assert item.correlation_id == "c"
    assert RetryScheduler(source, queue, clock=clock).run_once() == 0


def test_more_retries_than_a_batch_are_all_enqueued(clock, queue):
    source = Source()
    for n in range(25):
        source.schedule(n, 2, clock())
    scheduler = RetryScheduler(source, queue, SchedulerSettings(batch=10), clock=clock)
    assert scheduler.run_once() == 25
    assert queue.snapshot()["ready"] == 25


def test_what_a_full_queue_refused_is_tried_again(clock):
    queue = PriorityDelayQueue(QueueSettings(max_in_memory=1), clock=clock)
    source = Source()
    source.schedule(1, 2, clock())
    source.schedule(2, 2, clock())
    scheduler = RetryScheduler(source, queue, clock=clock)
    with pytest.raises(QueueFull):
        scheduler.run_once()
    queue.ack(queue.dequeue(0))
    assert scheduler.run_once() == 1
    assert queue.dequeue(0).job["affiliate_report_id"] == 2


def test_the_thread_goes_on_after_a_failing_source(queue):
    class Broken(Source):
        failures = 2

        def due(self, before, limit):
            if self.failures:
                self.failures -= 1
                raise OSError("no database")
            return super().due(before, limit)

    source = Broken()
    source.schedule(1, 2, 0)
    scheduler = RetryScheduler(source, queue, SchedulerSettings(interval_seconds=0.01, horizon_seconds=1))
    scheduler.start()
    assert queue.dequeue(20).job["affiliate_report_id"] == 1
    scheduler.stop()


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidSettings, match="horizon_seconds"):
        SchedulerSettings(interval_seconds=10, horizon_seconds=5)
