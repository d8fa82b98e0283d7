"""What every job queue does, whichever backend keeps the jobs."""

import threading
import time

import pytest

from fila.jobs import InvalidJob, JobsError, LeaseLost, QueueClosed, QueueFull, UnknownPriority

#: Long enough for a machine under load to enqueue a few jobs in, short enough to wait for.
SOON = 0.3
#: Nothing should take this long; waiting for it means that something was missed.
LONG = 20.0


def take(queue, count, timeout=LONG):
    """Jobs in the order of their claims, acked."""
    jobs = []
    for _ in range(count):
        item = queue.dequeue(timeout)
        assert item is not None, f"only {jobs} came"
        queue.ack(item)
        jobs.append(item.job)
    return jobs


def test_an_item_tells_everything_about_its_job(queue):
    made = queue.enqueue(
        {"report": 7}, priority="high", correlation_id="trace-1", key="acme", headers={"platform": "x"}
    )
    item = queue.dequeue(LONG)
    assert item.job == {"report": 7}
    assert (item.priority_label, item.priority_value) == ("high", 0)
    assert (item.correlation_id, item.key, dict(item.headers)) == ("trace-1", "acme", {"platform": "x"})
    assert (item.id, item.attempt) == (made.id, 1)
    assert item.enqueued_at <= item.ready_at
    assert item.ready_at == pytest.approx(made.ready_at, abs=1)
    queue.ack(item)


@pytest.mark.parametrize("job", [None, True, 0, -1.5, "", "täxt\n\x00", [], [1, [2]], {}, {"a": {"b": [None]}}])
def test_a_job_comes_back_as_it_went_in(queue, job):
    queue.enqueue(job)
    assert take(queue, 1) == [job]


def test_jobs_of_one_priority_come_in_the_order_of_enqueueing(queue):
    for n in range(50):
        queue.enqueue(n)
    assert take(queue, 50) == list(range(50))


def test_the_lower_number_comes_first(queue):
    for label in ("low", "normal", "high", "low", "normal", "high"):
        queue.enqueue(label, priority=label)
    assert take(queue, 6) == ["high", "high", "normal", "normal", "low", "low"]


def test_a_job_is_not_handed_out_before_its_time(backend, queue):
    queue.enqueue("later", delay_seconds=SOON)
    assert queue.dequeue(0) is None
    backend.advance(SOON)
    assert take(queue, 1) == ["later"]


def test_an_urgent_job_of_the_far_future_holds_nobody_back(queue):
    queue.enqueue("urgent, but next week", priority="high", delay_seconds=7 * 86_400)
    for n in range(3):
        queue.enqueue(n, priority="low")
    assert take(queue, 3) == [0, 1, 2]
    assert queue.snapshot()["scheduled"] == 1


def test_delayed_jobs_come_in_the_order_of_their_times(backend, queue):
    queue.enqueue("second", delay_seconds=2 * SOON)
    queue.enqueue("first", delay_seconds=SOON)
    backend.advance(SOON)
    assert take(queue, 1) == ["first"]
    backend.advance(SOON)
    assert take(queue, 1) == ["second"]


def test_jobs_that_became_due_together_come_by_priority(backend, queue):
    queue.enqueue("low", priority="low", delay_seconds=SOON)
    queue.enqueue("high", priority="high", delay_seconds=SOON)
    backend.advance(2 * SOON)
    while queue.snapshot()["ready"] < 2:
        time.sleep(0.01)
    assert take(queue, 2) == ["high", "low"]


def test_an_acked_job_is_gone(backend, queue):
    queue.enqueue("once")
    take(queue, 1)
    queue = backend.lose_worker(queue)
    assert queue.dequeue(0.05) is None
    assert queue.snapshot()["depth"] == queue.snapshot()["claimed"] == 0


def test_a_claimed_job_is_handed_out_to_nobody_else(queue):
    queue.enqueue("mine")
    item = queue.dequeue(LONG)
    assert queue.dequeue(0.05) is None
    queue.ack(item)


def test_the_job_of_a_lost_worker_comes_back_as_the_next_attempt(backend, queue):
    made = queue.enqueue("survives", correlation_id="trace-2")
    assert queue.dequeue(LONG).attempt == 1
    queue = backend.lose_worker(queue)
    item = queue.dequeue(LONG)
    assert (item.job, item.id, item.attempt, item.correlation_id) == ("survives", made.id, 2, "trace-2")
    queue.ack(item)


def test_a_lost_workers_job_takes_its_old_place(backend, queue):
    for n in range(3):
        queue.enqueue(n)
    assert queue.dequeue(LONG).job == 0
    queue = backend.lose_worker(queue)
    assert take(queue, 3) == [0, 1, 2]


def test_settling_after_the_claim_has_ended_is_refused_and_changes_nothing(backend, queue):
    queue.enqueue("job")
    lost = queue.dequeue(LONG)
    queue = backend.lose_worker(queue)
    held = queue.dequeue(LONG)
    for settle in (queue.ack, queue.retry, queue.defer, queue.extend):
        with pytest.raises(LeaseLost):
            settle(lost)
    with pytest.raises(LeaseLost):
        queue.bury(lost, "too late")
    queue.ack(held)
    assert queue.snapshot()["depth"] == queue.snapshot()["dead"] == 0


def test_a_job_is_settled_once(queue):
    queue.enqueue("job")
    item = queue.dequeue(LONG)
    queue.ack(item)
    with pytest.raises(LeaseLost):
        queue.retry(item)
    assert queue.dequeue(0.05) is None


def test_a_retried_job_is_the_same_job_and_the_next_attempt(backend, queue):
    made = queue.enqueue("job", correlation_id="trace-3", key="acme")
    queue.retry(queue.dequeue(LONG), SOON, error="not yet")
    assert queue.dequeue(0) is None
    backend.advance(SOON)
    item = queue.dequeue(LONG)
    assert (item.id, item.attempt, item.correlation_id, item.key) == (made.id, 2, "trace-3", "acme")
    queue.retry(item)
    assert queue.dequeue(LONG).attempt == 3


def test_a_deferred_job_is_the_same_attempt(backend, queue):
    made = queue.enqueue("job", correlation_id="trace-4", headers={"a": "b"})
    queue.retry(queue.dequeue(LONG))
    for _ in range(2):
        item = queue.dequeue(LONG)
        assert (item.id, item.attempt, item.correlation_id, dict(item.headers)) == (made.id, 2, "trace-4", {"a": "b"})
        queue.defer(item, SOON)
        assert queue.dequeue(0) is None
        backend.advance(SOON)
    queue.ack(queue.dequeue(LONG))


def test_a_buried_job_is_kept_with_its_reason_and_not_handed_out(queue):
    queue.enqueue("poison", correlation_id="trace-5")
    queue.bury(queue.dequeue(LONG), "ValueError: no")
    assert queue.dequeue(0.05) is None
    [dead] = queue.dead_letters()
    assert (dead.item.job, dead.item.correlation_id, dead.error) == ("poison", "trace-5", "ValueError: no")
    assert queue.snapshot()["dead"] == 1
    assert queue.snapshot()["depth"] == 0


def test_redriven_jobs_start_over(queue):
    for n in range(3):
        queue.enqueue(n)
        item = queue.dequeue(LONG)
        queue.retry(item)
        queue.bury(queue.dequeue(LONG), "no")
    assert queue.redrive(2) == 2
    first = queue.dequeue(LONG)
    assert (first.job, first.attempt) == (0, 1)
    queue.ack(first)
    assert take(queue, 1) == [1]
    assert queue.redrive() == 1
    assert take(queue, 1) == [2]
    assert queue.redrive() == 0


def test_counts_follow_the_jobs(queue):
    queue.enqueue(1)
    queue.enqueue(2)
    queue.enqueue(3, delay_seconds=1000)
    item = queue.dequeue(LONG)
    seen = queue.snapshot()
    assert (seen["ready"], seen["scheduled"], seen["depth"], seen["claimed"]) == (1, 1, 2, 1)
    assert seen["shutdown"] is False
    queue.ack(item)
    assert queue.snapshot()["claimed"] == 0


def test_purge_forgets_everything(queue):
    queue.enqueue(1)
    queue.enqueue(2, delay_seconds=1000)
    queue.enqueue(3)
    queue.bury(queue.dequeue(LONG), "dead")
    held = queue.dequeue(LONG)
    queue.purge()
    seen = queue.snapshot()
    assert (seen["depth"], seen["claimed"], seen["dead"]) == (0, 0, 0)
    with pytest.raises(LeaseLost):
        queue.ack(held)
    queue.enqueue("new")
    assert take(queue, 1) == ["new"]


def test_an_unknown_priority_is_refused_with_the_known_ones(queue):
    with pytest.raises(UnknownPriority, match="'urgent': expected one of high, normal, low"):
        queue.enqueue(1, priority="urgent")
    assert queue.snapshot()["depth"] == 0


@pytest.mark.parametrize("job", [object(), {1: 2}, float("nan"), {"a": {"b": (1, 2)}}, "\ud800", {"when": {3}}])
def test_a_job_that_would_not_come_back_is_refused(queue, job):
    with pytest.raises(InvalidJob, match="job"):
        queue.enqueue(job)
    assert queue.snapshot()["depth"] == 0


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 10**10])
def test_a_delay_that_cannot_be_is_refused(queue, delay):
    with pytest.raises(InvalidJob, match="delay_seconds"):
        queue.enqueue(1, delay_seconds=delay)


def test_a_full_queue_refuses_and_takes_again_when_there_is_room(backend):
    queue = backend.make_small(3)
    queue.enqueue(1, delay_seconds=1000)
    queue.enqueue(2)
    queue.enqueue(3)
    with pytest.raises(QueueFull, match="3"):
        queue.enqueue(4)
    take(queue, 1)
    queue.enqueue(5)
    assert take(queue, 2) == [3, 5]


def test_a_closed_queue_takes_nothing_and_hands_out_what_is_ready(queue):
    queue.enqueue("ready")
    queue.enqueue("for next week", delay_seconds=7 * 86_400)
    item = queue.dequeue(LONG)
    queue.defer(item)
    queue.shutdown()
    with pytest.raises(QueueClosed):
        queue.enqueue("too late")
    assert take(queue, 1) == ["ready"]
    assert queue.dequeue() is None
    assert queue.snapshot()["shutdown"] is True


def test_who_waits_is_woken_by_a_job(queue):
    came = []
    waiter = threading.Thread(target=lambda: came.append(queue.dequeue(LONG)))
    waiter.start()
    queue.enqueue("wake up")
    waiter.join(LONG)
    assert [item.job for item in came] == ["wake up"]
    queue.ack(came[0])


def test_each_of_many_waiters_gets_a_job(queue):
    came = []

    def wait():
        item = queue.dequeue(LONG)
        queue.ack(item)
        came.append(item.job)

    waiters = [threading.Thread(target=wait) for _ in range(8)]
    for waiter in waiters:
        waiter.start()
    for n in range(8):
        queue.enqueue(n)
    for waiter in waiters:
        waiter.join(LONG)
    assert sorted(came) == list(range(8))


def test_who_leaves_without_a_job_leaves_nobody_asleep(backend, queue):
    """One waiter is woken to wait until a job is due. If it has no time for that, another one has."""
    came = []
    waiters = [
        threading.Thread(target=lambda left=left: came.append(queue.dequeue(left)), daemon=True)
        for left in (3 * SOON, 3 * LONG)
    ]
    for waiter in waiters:
        waiter.start()
        time.sleep(0.1)
    queue.enqueue("later", delay_seconds=5 * SOON)
    waiters[0].join(LONG)
    backend.advance(5 * SOON)
    waiters[1].join(LONG)
    assert [item.job for item in came if item is not None] == ["later"]


def test_who_waits_is_told_of_shutdown(queue):
    came = []
    waiters = [threading.Thread(target=lambda: came.append(queue.dequeue())) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    queue.shutdown()
    for waiter in waiters:
        waiter.join(LONG)
    assert came == [None, None, None]


@pytest.mark.parametrize("timeout", [None, 0, LONG])
def test_after_close_nothing_comes(queue, timeout):
    queue.close()
    assert queue.dequeue(timeout) is None


def test_who_waits_is_told_of_close(queue):
    came = []

    def wait():
        try:
            came.append(queue.dequeue())
        except JobsError as error:
            came.append(error)

    waiters = [threading.Thread(target=wait) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    queue.close()
    for waiter in waiters:
        waiter.join(LONG)
    assert came == [None, None, None]


def test_a_job_that_was_taken_is_returned_though_the_log_fails(backend, monkeypatch):
    """The backlog is past its mark, and cannot be logged."""
    tried = []

    def fail(record):
        tried.append(record.getMessage())
        raise OSError("no space left on device")

    monkeypatch.setattr("fila.jobs.pressure.logger.handle", fail)
    queue = backend.make(warn_depth=1)
    made = [queue.enqueue(n).job for n in range(100)]
    assert made == list(range(100))
    assert tried == ["backlog above warn_depth"]


def test_who_waits_can_be_interrupted_and_wait_again(queue):
    came = []
    waiters = [threading.Thread(target=lambda: came.append(queue.dequeue(LONG))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    time.sleep(0.2)
    queue.interrupt()
    for waiter in waiters:
        waiter.join(LONG / 2)
    assert came == [None, None, None]
    queue.enqueue("still open")
    assert take(queue, 1) == ["still open"]


def test_many_threads_get_each_job_once(queue):
    count, took, lock = 200, [], threading.Lock()

    def work():
        while (item := queue.dequeue(0.5)) is not None:
            queue.ack(item)
            with lock:
                took.append(item.job)

    def produce(start):
        for n in range(start, count, 2):
            queue.enqueue(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    threads += [threading.Thread(target=produce, args=(start,)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert sorted(took) == list(range(count))
