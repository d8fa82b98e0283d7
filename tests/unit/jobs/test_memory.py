"""What is special about the queue in memory: its waiting, its bounds, and what moves out of it."""

import threading
import time
from dataclasses import dataclass

import pytest

from fila.jobs import DataclassCodec, InvalidJob, PriorityDelayQueue, QueueSettings, memory
from tests.helpers.clock import ManualClock

LONG = 20.0


def test_who_waits_takes_over_from_a_silent_worker():
    """Whoever claims a job passes the watch on: the other one learns when the claim ends."""
    queue, came = PriorityDelayQueue(QueueSettings(lease_seconds=0.2)), []
    waiters = [threading.Thread(target=lambda: came.append(queue.dequeue(2 * LONG)), daemon=True) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    time.sleep(0.1)
    queue.enqueue("job")
    for waiter in waiters:
        waiter.join(LONG)
    assert [item and item.attempt for item in came] == [1, 2]


def test_a_log_that_fails_loses_no_job(monkeypatch):
    clock = ManualClock()
    queue = PriorityDelayQueue(QueueSettings(lease_seconds=30.0), clock=clock)
    queue.enqueue("job")
    queue.dequeue(0)
    clock.advance(30)

    def fail(*_, **__):
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(memory.logger, "warning", fail)
        with pytest.raises(OSError, match="no space"):
            queue.dequeue(0)
    item = queue.dequeue(0)
    assert (item.job, item.attempt) == ("job", 2)


def test_who_waits_gets_a_delayed_job_when_it_is_due():
    queue, came = PriorityDelayQueue(), []
    waiter = threading.Thread(target=lambda: came.append(queue.dequeue(LONG)))
    waiter.start()
    time.sleep(0.05)
    queue.enqueue("later", delay_seconds=60)
    queue.enqueue("soon", delay_seconds=0.2)
    waiter.join(LONG)
    assert [item.job for item in came] == ["soon"]
    assert time.time() >= came[0].ready_at


def test_what_is_taken_out_is_in_order_and_can_be_put_back():
    clock = ManualClock()
    queue = PriorityDelayQueue(clock=clock)
    for job, priority, delay in (
        ("c", "low", 0),
        ("a", "high", 0),
        ("e", "high", 9),
        ("b", "normal", 0),
        ("d", "low", 3),
    ):
        queue.enqueue(job, priority=priority, delay_seconds=delay)
    out = queue.take_all()
    assert [item.job for item in out] == ["a", "b", "c", "d", "e"]
    assert queue.snapshot()["depth"] == 0
    queue.restore(out)
    clock.advance(10)
    assert [queue.dequeue(0).job for _ in range(5)] == ["a", "e", "b", "c", "d"]


def test_a_worker_does_not_share_an_object_with_whoever_enqueued_it():
    queue, job = PriorityDelayQueue(), {"list": [1]}
    queue.enqueue(job)
    job["list"].append(2)
    assert queue.dequeue(0).job == {"list": [1]}


def test_closing_says_what_is_lost(caplog):
    queue = PriorityDelayQueue()
    queue.enqueue(1)
    queue.close()
    assert [record.jobs_lost for record in caplog.records if hasattr(record, "jobs_lost")] == [1]


@dataclass(frozen=True)
class Job:
    affiliate_report_id: int
    priority: str = "normal"

    def __post_init__(self):
        assert self.priority.islower()


def test_a_codec_keeps_jobs_what_they_are():
    queue = PriorityDelayQueue(codec=DataclassCodec(Job))
    queue.enqueue(Job(7))
    assert queue.dequeue(0).job == Job(7)
    with pytest.raises(InvalidJob, match="expected a Job, got dict"):
        queue.enqueue({"affiliate_report_id": 7})
    for text in ('{"unknown": 1}', "[]", '{"affiliate_report_id": 1, "priority": 2}'):
        with pytest.raises(InvalidJob, match="is not a Job"):
            DataclassCodec(Job).decode(text)
    with pytest.raises(TypeError):
        DataclassCodec(int)
