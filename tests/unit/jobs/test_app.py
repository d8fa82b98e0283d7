"""Tasks: how they are declared, enqueued and run, without any server."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fila.jobs import (
    App,
    AppSettings,
    Defer,
    InvalidJob,
    InvalidSettings,
    QueueSettings,
    Reject,
    Retry,
    RetryPolicy,
    TaskNotFound,
    UnknownPriority,
    current_job,
)
from fila.testing import VirtualJobs


@pytest.fixture
def app():
    return App(settings=AppSettings(retry=RetryPolicy(max_attempts=3, base_seconds=60, jitter=0)))


@pytest.fixture
def jobs(app):
    with VirtualJobs(app) as jobs:
        yield jobs


def test_a_task_is_still_a_function(app):
    @app.task
    def add(a, b=1):
        """Adds."""
        return a + b

    assert add(2, b=3) == 5
    assert add.__doc__ == "Adds."


def test_an_enqueued_task_is_run_with_its_arguments(app, jobs):
    ran = []

    @app.task
    def note(*args, flag=False, **more):
        ran.append((args, flag, more))

    note.enqueue(1, "two", flag=True, other=[3])
    assert ran == []
    assert jobs.run() == ["done"]
    assert ran == [((1, "two"), True, {"other": [3]})]


def test_a_coroutine_function_is_a_task_too(app, jobs):
    ran = []

    @app.task()
    async def note(n):
        await asyncio.sleep(0)
        ran.append(n)

    note.enqueue(7)
    assert jobs.run() == ["done"]
    assert ran == [7]


def test_options_of_a_task_and_of_one_call(app, jobs):
    @app.task(queue="reports", priority="low", key=lambda affiliate, n: affiliate, headers=lambda *_: {"platform": "x"})
    def reconcile(affiliate, n):
        pass

    item = reconcile.enqueue("acme", 1)
    assert (item.priority_label, item.key, dict(item.headers)) == ("low", "acme", {"platform": "x"})
    urgent = reconcile.options(priority="high", correlation_id="trace").enqueue("acme", 2)
    assert (urgent.priority_label, urgent.correlation_id) == ("high", "trace")
    assert app.queue_names() == ["reports"]
    with pytest.raises(UnknownPriority):
        reconcile.options(priority="whenever").enqueue("acme", 3)


@pytest.mark.parametrize(
    "when",
    [90, timedelta(seconds=90), datetime.fromtimestamp(1_700_000_090, UTC)],
    ids=["seconds", "timedelta", "datetime"],
)
def test_a_scheduled_task_runs_at_its_time(app, jobs, when):
    ran = []

    @app.task
    def note():
        ran.append(jobs.clock())

    note.schedule(when)
    assert jobs.run() == []
    assert jobs.advance(89) == []
    assert jobs.advance(1) == ["done"]
    assert ran == [1_700_000_090]


def test_a_time_in_the_past_is_now_and_one_without_a_zone_is_refused(app, jobs):
    @app.task
    def note():
        pass

    for past in (datetime(2001, 1, 1, tzinfo=UTC), timedelta(seconds=-5), -5):
        note.schedule(past)
        assert jobs.run() == ["done"]
    with pytest.raises(InvalidJob, match="delay_seconds is nan"):
        note.schedule(float("nan"))
    with pytest.raises(InvalidJob, match="time zone"):
        note.schedule(datetime(2001, 1, 1))  # noqa: DTZ001


def test_async_programs_enqueue_without_blocking(app, jobs):
    ran = []

    @app.task
    def note(n):
        ran.append(n)

    async def main():
        await asyncio.gather(note.enqueue_async(1), note.schedule_async(5, 2))

    asyncio.run(main())
    assert jobs.run() == ["done"]
    jobs.advance(5)
    assert ran == [1, 2]


def test_wrong_arguments_are_refused_where_they_are_given(app, jobs):
    @app.task(name="send")
    def send(to, subject="hello"):
        pass

    with pytest.raises(TypeError, match="task send: missing a required argument: 'to'"):
        send.enqueue()
    with pytest.raises(InvalidJob, match=r"task send: argument 'to'\['when'\] is a datetime, which JSON cannot hold"):
        send.enqueue({"when": datetime.now(UTC)})
    with pytest.raises(InvalidJob, match="argument 'subject' is a set"):
        send.enqueue("x", subject={1})
    assert jobs.waiting == 0


def test_failures_wait_longer_each_time_and_are_given_up(app, jobs):
    tries = []

    @app.task
    def fails():
        tries.append((jobs.clock() - 1_700_000_000) / 60)
        raise ValueError("no")

    fails.enqueue()
    assert jobs.advance(hours=1) == ["retried", "retried", "dead"]
    assert tries == [0, 1, 3]
    [dead] = jobs.dead_letters()
    assert "ValueError: no" in dead.error


def test_a_task_says_what_should_become_of_its_job(app, jobs):
    left = iter([Retry("soon", delay_seconds=5), Defer("closed", delay_seconds=7), Reject("hopeless")])
    attempts = []

    @app.task
    def moody():
        attempts.append((jobs.clock() - 1_700_000_000, current_job().attempt))
        raise next(left)

    moody.enqueue()
    assert jobs.advance(60) == ["retried", "deferred", "dead"]
    assert attempts == [(0, 1), (5, 2), (12, 2)]


def test_a_task_may_have_a_policy_of_its_own(app, jobs):
    @app.task(retry=RetryPolicy(max_attempts=1))
    def once():
        raise ValueError

    once.enqueue()
    assert jobs.run() == ["dead"]


def test_jobs_of_a_job_inherit_its_correlation(app, jobs):
    seen = []

    @app.task
    def child():
        seen.append(current_job().correlation_id)

    @app.task
    def parent():
        seen.append(current_job().correlation_id)
        child.enqueue()

    parent.options(correlation_id="trace").enqueue()
    assert jobs.run() == ["done", "done"]
    assert seen == ["trace", "trace"]
    assert child.enqueue().correlation_id not in {None, "trace"}


def test_a_job_of_an_unknown_task_is_not_lost(app, jobs):
    app.queue().enqueue({"task": "gone", "args": [], "kwargs": {}})
    app.queue().enqueue({"task": "gone"})
    app.queue().enqueue("nothing at all")
    assert jobs.run() == ["retried"] * 3


def test_a_job_that_cannot_be_read_is_rejected(app, jobs):
    @app.task(name="t")
    def t():
        pass

    app.queue().enqueue({"task": "t", "args": "x", "kwargs": {}})
    assert jobs.run() == ["dead"]


def test_two_tasks_cannot_have_one_name(app):
    @app.task(name="same")
    def one():
        pass

    with pytest.raises(ValueError, match="'same'"):
        app.task(name="same")(print)


def test_a_worker_needs_tasks(app):
    with pytest.raises(TaskNotFound):
        app.worker()


def test_jobs_that_enqueue_themselves_for_ever_are_noticed(app, jobs, monkeypatch):
    monkeypatch.setattr("fila.testing.jobs._MAX_JOBS", 50)

    @app.task
    def again():
        again.enqueue()

    again.enqueue()
    with pytest.raises(RuntimeError, match="for ever"):
        jobs.run()


def test_virtual_jobs_leave_the_app_as_it_was():
    app = App(settings=AppSettings(queue=QueueSettings()))

    @app.task
    def note():
        pass

    before = app.queue()
    with VirtualJobs(app) as jobs:
        note.enqueue()
        assert jobs.waiting == 1
    assert app.queue() is before
    assert before.snapshot()["depth"] == 0


def test_queues_of_other_names_have_places_of_their_own():
    settings = QueueSettings().named("mail")
    assert settings.redis_ready_key == "fila:jobs:ready/mail"
    assert settings.redis_scheduled_key == "fila:jobs:scheduled/mail"


def test_an_app_that_does_not_say_where_its_jobs_are_kept_is_refused(monkeypatch):
    """Memory would take the jobs, and no other process would ever see them."""
    for name in ("FILA_JOBS_URL", "USE_FILA_QUEUE", "USE_REDIS_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    app = App()

    @app.task
    def note():
        pass

    with pytest.raises(InvalidSettings, match="does not say where its jobs are kept"):
        note.enqueue()
    monkeypatch.setenv("FILA_JOBS_URL", "memory://")
    note.enqueue()
    assert app.queue().snapshot()["depth"] == 1


def test_an_app_has_one_place_for_its_jobs():
    assert App("memory://").queue().snapshot()["backend"] == "memory"
    with pytest.raises(InvalidSettings, match="contradict"):
        App("memory://", AppSettings(queue=QueueSettings()))
