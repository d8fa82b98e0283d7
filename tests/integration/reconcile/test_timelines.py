"""Whole histories of reports on a virtual clock. Queue, store, scheduler and rules are the real ones."""

import pytest

from fila.jobs.breaker import BreakerSettings, CircuitBreaker, LocalStore
from fila.jobs.errors import QueueFull
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.retry import RetryPolicy
from fila.jobs.runner import LAST_EXCEPTIONS, JobRunner
from fila.jobs.scheduler import RetryScheduler, SchedulerSettings
from fila.jobs.settings import QueueSettings
from fila.reconcile import dispatch
from fila.reconcile.domain.models import Fetched, Observation, Reason
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.platforms import GuardedFetchers
from fila.reconcile.reconciler import Outcome, Reconciler
from fila.reconcile.store import DueReport, Store, StoreError, open_engine, upgrade
from fila.reconcile.worker import handler, runner_settings
from tests.helpers.reconcile import MATCHED, NOW, OVERCLAIMED, submission

MINUTE = 60_000
HOUR = 60 * MINUTE


class World:
    """Everything in one thread, with time that moves when it is told to."""

    def __init__(self, folder, *, answers=(), source=None, max_in_memory=100_000):
        self.now_ms = NOW
        self.url = f"sqlite:///{folder}/reconcile.db"
        self.answers = list(answers)
        self.asked = []
        self.source = source or self
        self.queue_settings = QueueSettings(max_in_memory=max_in_memory, lease_seconds=30)
        engine = open_engine(self.url)
        upgrade(engine)
        engine.dispose()
        self.store = None
        self.restart()

    def restart(self):
        """A new process: what was in memory is gone."""
        if self.store is not None:
            self.store.close()
        self.store = Store(open_engine(self.url), DEFAULTS, requeue_after_ms=10 * MINUTE)
        self.queue = PriorityDelayQueue(self.queue_settings, clock=self.clock)
        self.reconciler = Reconciler(self.store, self.source, DEFAULTS, lambda: self.now_ms)
        retry = RetryPolicy(max_attempts=3, jitter=0)
        self.runner = JobRunner(self.queue, handler(self.reconciler), runner_settings(retry))
        self.scheduler = RetryScheduler(
            dispatch.StoredRetries(self.store, self.queue), self.queue, SchedulerSettings(1, 10), clock=self.clock
        )

    def clock(self):
        return self.now_ms / 1000

    def fetch(self, post, now_ms):
        """The platform: each time the next of the given answers, the last one for ever."""
        self.asked.append((post.post_id, now_ms - NOW))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return answer(now_ms) if callable(answer) else answer

    def submit(self, enqueue=True, **given):
        """Take a report in. Without `enqueue` it is one that the queue did not take."""
        one = submission(**given)
        [result] = self.store.intake.submit([one], self.now_ms)
        due = DueReport(result.report_id, 1, self.now_ms, "ada", "clipshare", result.admission.priority, "c-1")
        if enqueue:
            dispatch.enqueue(self.queue, due, self.now_ms)
        else:
            self.store.due_reports.release([due])
        return result.report_id

    def work(self):
        """Run all that is ready."""
        outcomes = []
        while (item := self.queue.dequeue(0)) is not None:
            outcomes.append(self.runner.run(item))
        return outcomes

    def pass_time(self, total_ms, step_ms=30_000):
        """Let time go by, with a scheduler that looks and workers that work at every step."""
        end = self.now_ms + total_ms
        while self.now_ms < end:
            self.now_ms = min(end, self.now_ms + step_ms)
            self.scheduler.run_once()
            self.work()

    def status(self, report_id):
        row, log = self.store.views.report(report_id)
        return row.status, row.done_at_ms is not None, [(line.at_ms - NOW) // MINUTE for line in log]

    @property
    def trust(self):
        return self.store.views.affiliate("ada").trust_total_bp


@pytest.fixture
def world(tmp_path):
    made = []

    def make(**given):
        made.append(World(tmp_path, **given))
        return made[-1]

    LAST_EXCEPTIONS.clear()
    yield make
    for each in made:
        each.store.close()


def seen(*figures):
    return lambda now_ms: Fetched(Observation(now_ms, *figures))


ABSENT = Fetched(failure=Reason.ABSENT)


def test_section_17_the_normal_flow(world):
    """Enqueued, dequeued, reconciled, and then the queue is empty."""
    it = world(answers=[seen(*MATCHED)])
    report_id = it.submit()
    assert it.queue.snapshot()["ready"] == 1
    it.now_ms += 2
    assert it.work() == ["done"]
    assert it.status(report_id) == ("MATCHED", True, [0])
    assert it.trust == 100
    assert it.queue.dequeue(0) is None
    assert it.queue.snapshot()["depth"] == 0


def test_section_18_a_delayed_retry_enqueues_itself_when_it_is_due(world):
    it = world(answers=[ABSENT, seen(*MATCHED)])
    report_id = it.submit()
    it.work()
    _, [line] = it.store.views.report(report_id)
    assert line.retry_at_ms == NOW + 30 * MINUTE
    it.now_ms += 30 * MINUTE - 10_000
    it.scheduler.run_once()
    assert it.queue.snapshot()["scheduled"] == 1, "queued with what is left of its delay"
    assert it.work() == []
    it.now_ms += 10_000
    assert it.work() == ["done"]
    assert it.status(report_id) == ("MATCHED", True, [0, 30])


def test_a_retry_survives_a_restart(world):
    it = world(answers=[ABSENT, seen(*MATCHED)])
    report_id = it.submit()
    it.work()
    it.restart()
    it.pass_time(31 * MINUTE)
    assert it.status(report_id) == ("MATCHED", True, [0, 30])


def test_data_that_never_comes_is_asked_for_six_times_ever_later(world):
    it = world(answers=[ABSENT])
    report_id = it.submit()
    it.work()
    it.pass_time(24 * HOUR, step_ms=10 * MINUTE)
    status, done, minutes = it.status(report_id)
    assert (status, done) == ("MISSING_PLATFORM_DATA", True)
    assert minutes == [0, 30, 90, 180, 300, 450]
    assert it.trust == 0
    [alert] = it.store.views.alerts(limit=9)
    assert (alert.kind, alert.severity) == ("system_health", "medium")


def test_incomplete_data_is_asked_for_once_more(world):
    it = world(answers=[seen(1_000, 100, None)])
    report_id = it.submit()
    it.work()
    it.pass_time(2 * HOUR)
    assert it.status(report_id) == ("INCOMPLETE_PLATFORM_DATA", True, [0, 15])
    assert it.store.views.alerts(limit=9) == []


def test_a_platform_that_asks_for_time_gets_it(world):
    it = world(answers=[Fetched(failure=Reason.RATE_LIMITED, retry_after_ms=2 * HOUR), seen(*MATCHED)])
    report_id = it.submit()
    it.work()
    it.pass_time(3 * HOUR)
    assert it.status(report_id) == ("MATCHED", True, [0, 120])


class TestBreaker:
    def guarded(self, world, answers):
        it = world(answers=answers)
        store = LocalStore(BreakerSettings(failure_threshold=2, open_cooldown_seconds=60), clock=it.clock)
        it.source = GuardedFetchers(it, lambda name: CircuitBreaker(name, store=store))
        it.restart()
        return it

    def test_an_open_breaker_delays_reports_and_burns_no_attempts(self, world):
        down = Fetched(failure=Reason.UNREACHABLE)
        it = self.guarded(world, [down, down, seen(*MATCHED)])
        first, second, third = (it.submit(post=f"p-{n}") for n in range(3))
        assert it.work() == ["done", "done", "deferred"]
        assert it.status(first)[:2] == it.status(second)[:2] == ("MISSING_PLATFORM_DATA", False)
        assert it.status(third) == (None, False, [])
        it.pass_time(61_000)
        assert it.status(third) == ("MATCHED", True, [1])
        assert it.store.views.report(third)[0].attempts == 1

    def test_a_breaker_that_stays_open_ends_as_missing_data_with_its_reason(self, world):
        it = self.guarded(world, [Fetched(failure=Reason.UNREACHABLE)])
        for number in range(2):
            it.submit(post=f"p-{number}")
        it.work()
        last = it.submit(post="p-9")
        it.work()
        it.now_ms += 24 * HOUR - 20_000
        # Somebody keeps failing, so the breaker is open when the day of this report is over.
        for _ in range(3):
            it.source.fetch(submission().report.post, it.now_ms)
        it.scheduler.run_once()
        it.work()
        row, log = it.store.views.report(last)
        assert (row.status, row.done_at_ms is not None) == ("MISSING_PLATFORM_DATA", True)
        assert [line.reason for line in log] == ["breaker_open"]

    def test_wrong_credentials_are_said_of_every_report(self, world):
        it = self.guarded(world, [Fetched(failure=Reason.AUTH_FAILED)])
        ids = [it.submit(post=f"p-{n}") for n in range(5)]
        it.work()
        assert {it.store.views.report(each)[0].reason for each in ids} == {"auth_failed"}


class TestFailureModes:
    """Section 13, each provoked."""

    def test_a_worker_that_dies_before_it_wrote_leaves_the_attempt_to_the_next(self, world):
        it = world(answers=[seen(*OVERCLAIMED)])
        report_id = it.submit()
        item = it.queue.dequeue(0)
        assert item is not None  # and the worker is gone, with the job in its hands
        it.now_ms += 31_000
        assert it.work() == ["done"]
        assert it.status(report_id)[:2] == ("AFFILIATE_OVERCLAIMED", True)
        assert it.trust == -1_000

    def test_a_worker_that_dies_after_it_wrote_has_the_effect_once(self, world):
        it = world(answers=[seen(*OVERCLAIMED)])
        it.submit()
        item = it.queue.dequeue(0)
        assert it.reconciler.attempt(item.job["affiliate_report_id"], 1) is Outcome.DONE  # and gone before the ack
        it.now_ms += 31_000
        assert it.work() == ["done"]
        assert len(it.asked) == 1, "what was done is not even asked for again"
        assert it.trust == -1_000
        assert len(it.store.views.alerts(limit=9)) == 1

    def test_a_slow_worker_that_lost_its_lease_does_not_write_over_the_next(self, world):
        it = world(answers=[seen(*MATCHED)])
        report_id = it.submit()
        original = it.fetch

        def overtaken(post, now_ms):
            it.fetch = original
            assert it.reconciler.attempt(report_id, 1) is Outcome.DONE
            return Fetched(Observation(now_ms, *OVERCLAIMED))

        it.fetch = overtaken
        assert it.reconciler.attempt(report_id, 1) is Outcome.REPEATED
        assert it.status(report_id)[:2] == ("MATCHED", True)
        assert it.trust == 100

    def test_an_exception_is_never_silent_and_its_report_is_not_stuck(self, world):
        def broken(now_ms):
            raise RuntimeError("a defect")

        it = world(answers=[broken] * 3 + [seen(*MATCHED)])
        report_id = it.submit()
        it.work()
        for _ in range(3):
            it.now_ms += 5_000
            it.work()
        assert it.queue.snapshot()["dead"] == 1
        assert [(each["report_id"], each["type"]) for each in LAST_EXCEPTIONS] == [(report_id, "RuntimeError")] * 3
        assert it.status(report_id) == (None, False, [])
        it.pass_time(11 * MINUTE)
        assert it.status(report_id)[:2] == ("MATCHED", True)

    def test_a_database_that_is_away_for_a_while_costs_nothing(self, world, monkeypatch):
        it = world(answers=[seen(*MATCHED)])
        report_id = it.submit()

        def away(_attempt):
            raise StoreError("no answer")

        with monkeypatch.context() as patch:
            patch.setattr(it.store.attempts, "record", away)
            assert it.work() == ["retried"]
        it.now_ms += 2_000
        assert it.work() == ["done"]
        assert it.status(report_id)[:2] == ("MATCHED", True)
        assert it.trust == 100

    def test_a_job_that_names_no_report_is_buried_with_its_reason(self, world):
        it = world(answers=[seen(*MATCHED)])
        for job in ({}, {"affiliate_report_id": "x", "attempt": 0}, [1], "x", {"affiliate_report_id": 1, "attempt": 1}):
            it.queue.enqueue(job)
        assert it.work() == ["dead"] * 5
        assert "affiliate_report_id" in it.queue.dead_letters()[0].error

    def test_a_job_of_a_report_that_is_not_there_is_dropped(self, world):
        it = world(answers=[seen(*MATCHED)])
        it.queue.enqueue({"affiliate_report_id": "0" * 32, "attempt": 1})
        assert it.work() == ["done"]
        assert it.asked == []

    def test_a_queue_that_lost_everything_is_filled_again_from_the_store(self, world):
        """As when a queue in memory dies with its process, or Redis without a file."""
        it = world(answers=[seen(*MATCHED)])
        ids = [it.submit(post=f"p-{n}") for n in range(5)]
        it.restart()
        assert it.work() == []
        it.pass_time(11 * MINUTE)
        assert {it.status(each)[:2] for each in ids} == {("MATCHED", True)}
        assert it.trust == 500

    def test_a_backlog_longer_than_the_requeue_time_does_not_grow_by_it(self, world):
        """Nobody works for hours: what waits is not queued again and again."""
        it = world(answers=[seen(*MATCHED)])
        for number in range(8):
            it.submit(post=f"p-{number}")
        it.scheduler = RetryScheduler(
            dispatch.StoredRetries(it.store, it.queue), it.queue, SchedulerSettings(1, 10, batch=4), clock=it.clock
        )
        for _ in range(20):
            it.now_ms += HOUR
            it.scheduler.run_once()
        assert it.queue.snapshot()["depth"] == 8
        it.work()
        assert it.store.views.outcomes() == {("MATCHED", True): 8}

    def test_a_full_queue_holds_reports_back_in_the_store(self, world):
        it = world(answers=[seen(*MATCHED)], max_in_memory=2)
        for number in range(6):
            it.submit(post=f"p-{number}", enqueue=False)
        for done in (2, 4):
            with pytest.raises(QueueFull):
                it.scheduler.run_once()
            it.work()
            assert it.store.views.outcomes()["MATCHED", True] == done
        it.scheduler.run_once()
        it.work()
        assert it.store.views.outcomes() == {("MATCHED", True): 6}

    def test_an_urgent_report_of_the_far_future_holds_nobody_up(self, world):
        it = world(answers=[seen(*MATCHED)])
        later = DueReport("f" * 32, 1, NOW + 24 * HOUR, "ada", "clipshare", "high", "c-1")
        dispatch.enqueue(it.queue, later, NOW)
        report_id = it.submit()
        assert it.work() == ["done"]
        assert it.status(report_id)[:2] == ("MATCHED", True)
        assert it.queue.snapshot()["scheduled"] == 1
