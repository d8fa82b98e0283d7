"""Section 13 of the specification, each failure provoked: a worker killed in the middle, a silent exception, unbounded
growth, starvation by a far-future urgent job. The loss of Redis is in test_redis_outage.py.
"""

import logging
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fila.jobs import (
    LAST_EXCEPTIONS,
    PoolSettings,
    PriorityDelayQueue,
    QueueFull,
    QueueSettings,
    RetryPolicy,
    RunnerSettings,
    WorkerPool,
    backpressure,
)

LONG = 30.0

#: Redis is never away in these tests, however busy the machine is.
PATIENT = 30.0
PROGRAM = Path(__file__).with_name("worker_program.py")


def until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "effects.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE balance (amount INTEGER)")
        connection.execute("INSERT INTO balance VALUES (0)")
        connection.execute("CREATE TABLE attempts (key TEXT PRIMARY KEY, attempt INTEGER)")
    connection.close()
    return path


@pytest.fixture
def start_worker(redis_server, database):
    processes = []

    def start(*fault):
        processes.append(subprocess.Popen([sys.executable, str(PROGRAM), redis_server.url, str(database), *fault]))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def balance(database):
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT amount FROM balance").fetchone()[0]
    finally:
        connection.close()


@pytest.mark.parametrize("moment", ["die-before-commit", "die-before-ack"])
def test_a_worker_killed_in_the_middle_applies_each_effect_once(make_queue, start_worker, database, moment):
    """Before the commit nothing has happened and the next worker does it; after it, the next one finds it done."""
    queue = make_queue(lease_seconds=0.5, redis_health_check_timeout=PATIENT)
    queue.enqueue({"amount": 7})
    dying = start_worker(moment)
    assert dying.wait(LONG) == -9
    assert balance(database) == (7 if moment == "die-before-ack" else 0)
    start_worker()
    until(lambda: queue.snapshot()["claimed"] == 0 and queue.snapshot()["depth"] == 0)
    assert balance(database) == 7


def test_workers_killed_one_after_the_other_lose_and_repeat_nothing(make_queue, start_worker, database):
    queue = make_queue(lease_seconds=0.5, redis_health_check_timeout=PATIENT)
    for amount in range(1, 201):
        queue.enqueue({"amount": amount})
    for _ in range(3):
        worker = start_worker()
        before = balance(database)
        until(lambda before=before: balance(database) > before)
        worker.kill()
        worker.wait()
    worker = start_worker()
    until(lambda: queue.snapshot()["claimed"] == 0 and queue.snapshot()["depth"] == 0)
    worker.terminate()
    assert worker.wait(LONG) == 0
    assert balance(database) == sum(range(1, 201))
    assert queue.snapshot()["dead"] == 0


def test_a_silent_exception_is_logged_counted_and_dead_lettered(caplog):
    LAST_EXCEPTIONS.clear()
    queue = PriorityDelayQueue()
    queue.enqueue({"order": 5}, correlation_id="trace")

    def handler(context):
        raise KeyError("nobody looks")

    run = RunnerSettings(
        retry=RetryPolicy(max_attempts=2, base_seconds=0), failure_fields=lambda item: {"order": item.job["order"]}
    )
    with WorkerPool(queue, handler, PoolSettings(concurrency=1), run):
        until(lambda: queue.snapshot()["dead"] == 1)
    assert [kept["order"] for kept in LAST_EXCEPTIONS] == [5, 5]
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [(record.outcome, record.correlation_id) for record in errors] == [("retried", "trace"), ("dead", "trace")]


def test_growth_is_bounded_and_producers_are_told(caplog):
    queue = PriorityDelayQueue(QueueSettings(max_in_memory=20, warn_depth=10))
    signals = []
    for n in range(20):
        signals.append(backpressure(queue.snapshot()["depth"], 10))
        queue.enqueue(n)
    assert [signal is None for signal in signals] == [True] * 10 + [False] * 10
    assert signals[-1].retry_after_seconds >= 1
    with pytest.raises(QueueFull):
        queue.enqueue("one too many")
    warnings = [record for record in caplog.records if record.getMessage() == "backlog above warn_depth"]
    assert len(warnings) == 1


def test_an_urgent_job_of_the_far_future_starves_nobody():
    queue, done = PriorityDelayQueue(), []
    for n in range(100):
        queue.enqueue(f"urgent {n}", priority="high", delay_seconds=86_400)
    for n in range(10):
        queue.enqueue(n, priority="low")
    with WorkerPool(queue, lambda context: done.append(context.job), PoolSettings(concurrency=1)):
        until(lambda: len(done) == 10)
    assert done == list(range(10))
    assert queue.snapshot()["scheduled"] == 100
