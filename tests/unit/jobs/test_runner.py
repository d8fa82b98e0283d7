"""Running one job: its session, its logs, its end. No threads, time by hand."""

import asyncio
import logging
from datetime import timedelta

import pytest

from fila.jobs import (
    LAST_EXCEPTIONS,
    CorrelationFilter,
    Defer,
    JobRunner,
    PriorityDelayQueue,
    QueueSettings,
    Reject,
    Retry,
    RetryPolicy,
    RunnerSettings,
    current_job,
)
from fila.jobs.events import JobEnded
from tests.helpers.clock import ManualClock


class FakeSession:
    """Not a database: it only shows the order in which it is used."""

    def __init__(self, log):
        self.log = log
        log.append("open")

    def commit(self):
        self.log.append("commit")

    def close(self):
        self.log.append("close")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def queue(clock):
    return PriorityDelayQueue(QueueSettings(lease_seconds=30), clock=clock)


def run(queue, handler, **settings):
    """Run the next job. `retry` without jitter, unless told otherwise."""
    settings.setdefault("retry", RetryPolicy(jitter=0))
    return JobRunner(queue, handler, RunnerSettings(**settings)).run(queue.dequeue(0))


def test_a_job_that_succeeds_is_acked(queue):
    queue.enqueue({"n": 1})
    assert run(queue, lambda context: context.job) == "done"
    assert queue.snapshot()["claimed"] == queue.snapshot()["depth"] == 0


def test_an_async_handler_is_awaited(queue):
    done = []

    async def handler(context):
        await asyncio.sleep(0)
        done.append((context.job, current_job().job))

    queue.enqueue("job")
    assert run(queue, handler) == "done"
    assert done == [("job", "job")]


def test_each_job_has_a_session_of_its_own_closed_at_the_end(queue):
    log = []
    for _ in range(2):
        queue.enqueue(1)
        run(queue, lambda context: log.append("work"), session_factory=lambda: FakeSession(log))
    assert log == ["open", "work", "commit", "close"] * 2


def test_a_failed_jobs_session_is_closed_and_not_committed(queue):
    log = []
    queue.enqueue(1)
    assert run(queue, lambda context: 1 / 0, session_factory=lambda: FakeSession(log)) == "retried"
    assert log == ["open", "close"]


def test_a_session_that_cannot_be_made_is_a_failure_of_the_attempt(queue):
    def broken():
        raise OSError("no database")

    queue.enqueue(1)
    assert run(queue, lambda context: None, session_factory=broken) == "retried"


def test_a_failure_is_retried_with_growing_waits_and_buried_in_the_end(queue, clock):
    queue.enqueue(1)
    policy = RetryPolicy(max_attempts=3, base_seconds=10, jitter=0)
    outcomes = []
    for wait in (0, 10, 20):
        clock.advance(wait - 0.001)
        assert wait == 0 or queue.dequeue(0) is None
        clock.advance(0.001)
        outcomes.append(run(queue, lambda context: 1 / 0, retry=policy))
    assert outcomes == ["retried", "retried", "dead"]
    [dead] = queue.dead_letters()
    assert dead.error == "ZeroDivisionError: division by zero (attempt 3 of 3)"


def test_no_exception_is_silent(queue, caplog):
    LAST_EXCEPTIONS.clear()
    queue.enqueue({"order": 101}, correlation_id="trace-9")

    def handler(context):
        raise ValueError("bad number")

    with caplog.at_level(logging.ERROR):
        run(queue, handler, failure_fields=lambda item: {"order": item.job["order"]})
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (record.correlation_id, record.outcome, record.attempt) == ("trace-9", "retried", 1)
    assert record.exc_info[1].args == ("bad number",)
    [kept] = LAST_EXCEPTIONS
    assert (kept["order"], kept["error"], kept["type"]) == (101, "bad number", "ValueError")


def test_only_the_last_exceptions_are_kept(queue):
    for n in range(150):
        queue.enqueue(n)
        run(queue, lambda context: 1 / 0, failure_fields=lambda item: {"number": item.job})
    assert [kept["number"] for kept in LAST_EXCEPTIONS] == list(range(50, 150))


def test_what_a_job_holds_is_not_logged(queue, caplog):
    queue.enqueue({"password": "hush-hush"})
    with caplog.at_level(logging.DEBUG):
        run(queue, lambda context: None)
        queue.enqueue({"password": "hush-hush"})
        run(queue, lambda context: 1 / 0)
    assert caplog.records
    assert all("hush-hush" not in str(record.__dict__) for record in caplog.records)


def test_even_a_handler_that_exits_does_not_take_the_worker_along(queue):
    def handler(context):
        raise SystemExit(1)

    queue.enqueue(1)
    assert run(queue, handler) == "retried"


def test_a_deferred_job_waits_and_keeps_its_attempt(queue, clock):
    LAST_EXCEPTIONS.clear()

    def handler(context):
        raise Defer("not now", delay_seconds=5)

    queue.enqueue(1)
    for _ in range(20):
        assert run(queue, handler, retry=RetryPolicy(max_attempts=1)) == "deferred"
        assert queue.dequeue(0) is None
        clock.advance(5)
    assert queue.dequeue(0).attempt == 1
    assert LAST_EXCEPTIONS == []


def test_a_rejected_job_is_buried_at_once(queue):
    def handler(context):
        raise Reject("never")

    queue.enqueue(1)
    assert run(queue, handler) == "dead"


def test_a_job_that_kills_its_workers_is_buried_without_being_run_again(queue, clock):
    queue.enqueue("poison")
    policy = RetryPolicy(max_attempts=2)
    for _ in range(2):
        assert queue.dequeue(0) is not None
        clock.advance(30)
    assert run(queue, lambda context: pytest.fail("ran"), retry=policy) == "dead"
    assert "its workers were lost" in queue.dead_letters()[0].error


def test_a_claim_that_ended_meanwhile_is_reported_and_nothing_else(queue, clock):
    queue.enqueue(1)
    assert run(queue, lambda context: clock.advance(31)) == "lost"
    assert queue.dequeue(0).attempt == 2


def test_a_job_may_have_a_policy_of_its_own(queue):
    queue.enqueue(1)
    own = RetryPolicy(max_attempts=1)
    assert run(queue, lambda context: 1 / 0, policy_for=lambda item: own) == "dead"


def test_an_error_without_a_text_is_a_failure_like_others(queue):
    LAST_EXCEPTIONS.clear()

    class Odd(Exception):
        def __str__(self):
            return self.args[1]

    def handler(context):
        raise Odd("x")

    queue.enqueue(1)
    assert run(queue, handler, retry=RetryPolicy(max_attempts=1)) == "dead"
    [dead] = queue.dead_letters()
    assert dead.error == "Odd: (no text: its __str__ raised IndexError) (attempt 1 of 1)"
    [kept] = LAST_EXCEPTIONS
    assert (kept["type"], kept["error"]) == ("Odd", "(no text: its __str__ raised IndexError)")


@pytest.mark.parametrize("kind", [Retry, Defer])
def test_a_wait_that_cannot_be_is_the_error_of_the_job_and_counts(queue, clock, kind):
    def handler(context):
        raise kind("later", delay_seconds=timedelta(minutes=5))

    seen = []
    queue.enqueue(1)
    policy = RetryPolicy(max_attempts=7, base_seconds=1, factor=1, jitter=0)
    for _ in range(6):
        assert run(queue, handler, retry=policy, hooks=[seen.append]) == "retried"
        clock.advance(1)
    assert {event.error for event in seen} == {"InvalidSettings"}
    assert run(queue, handler, retry=policy) == "dead"
    text = f"InvalidSettings: {kind.__name__}(delay_seconds=datetime.timedelta(seconds=300)): expected a number"
    assert queue.dead_letters()[0].error.startswith(text)


def test_a_policy_that_cannot_be_found_is_an_error_of_the_job(queue):
    def policy_for(item):
        raise LookupError("no policy")

    def handler(context):
        pytest.fail("ran")

    queue.enqueue(1)
    assert run(queue, handler, policy_for=policy_for, retry=RetryPolicy(max_attempts=1)) == "dead"
    assert queue.dead_letters()[0].error == "LookupError: no policy (attempt 1 of 1)"


def test_a_policy_that_cannot_decide_is_replaced_by_the_default(queue, clock):
    class Broken(RetryPolicy):
        def decide(self, attempt, error, random):
            raise RuntimeError("undecided")

    queue.enqueue(1)
    outcomes = []
    for _ in range(5):
        outcomes.append(run(queue, lambda context: 1 / 0, retry=Broken()))
        clock.advance(60)
    assert outcomes == ["retried"] * 4 + ["dead"]
    assert queue.dead_letters()[0].error == "RuntimeError: undecided (attempt 5 of 5)"


def test_a_failed_job_that_cannot_be_settled_comes_again_when_its_claim_ends(clock):
    class Odd(PriorityDelayQueue):
        def retry(self, item, delay_seconds=0, *, error=""):
            raise RuntimeError("odd")

    odd = Odd(QueueSettings(lease_seconds=30), clock=clock)
    odd.enqueue(1)
    assert run(odd, lambda context: 1 / 0) == "lost"
    clock.advance(30)
    assert odd.dequeue(0).attempt == 2


def test_hooks_are_told_and_cannot_do_harm(queue):
    seen = []

    def broken(event):
        raise RuntimeError("hook")

    queue.enqueue(1)
    run(queue, lambda context: 1 / 0, hooks=[broken, seen.append], name="reports")
    [event] = seen
    assert isinstance(event, JobEnded)
    assert (event.queue, event.outcome, event.error) == ("reports", "retried", "ZeroDivisionError")


def test_logs_of_a_handler_carry_the_correlation_id(queue, caplog):
    caplog.handler.addFilter(CorrelationFilter())
    queue.enqueue(1, correlation_id="trace-7")
    with caplog.at_level(logging.INFO):
        run(queue, lambda context: logging.getLogger("mine").info("working"))
        logging.getLogger("mine").info("outside")
    inside, outside = [record for record in caplog.records if record.name == "mine"]
    assert inside.correlation_id == "trace-7"
    assert not hasattr(outside, "correlation_id")
