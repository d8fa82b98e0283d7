"""Jobs with API keys that may do no more than they must: `consumer` runs jobs, `producer` enqueues them."""

import logging
import subprocess
import sys
import time

import pytest

from fila import Client
from fila.jobs import App, PoolSettings, QueueSettings, QueueUnavailable, Reject, RetryPolicy
from fila.jobs.app import AppSettings
from fila.jobs.broker.queue import FilaQueue
from fila.jobs.metrics import Counters
from fila.jobs.settings import FilaSettings
from fila.testing import ServerProcess
from tests.e2e.support import eventually

QUEUE = "jobs.mail"
DENIED = "may not count jobs"

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def server():
    with ServerProcess() as process:
        yield process


@pytest.fixture
def keys(server):
    """By role; also that of an admin, who has made the queue."""
    with Client(server.addr) as client:
        admin = client.auth.create_key("root", ["admin"]).token
    with Client(server.addr, api_key=admin) as client:
        client.create_queue(QUEUE, fairness_header="fila-job-key", max_attempts=0)
        made = {role: client.auth.create_key(role, [f"{role}:jobs.**"]).token for role in ("consumer", "producer")}
    return made | {"admin": admin}


@pytest.fixture
def app_with(server, keys, monkeypatch):
    """An app whose queue is used with the key of a role."""

    def make(role, **settings):
        monkeypatch.setenv("FILA_API_KEY", keys[role])
        where = QueueSettings(fila=FilaSettings(addr=server.addr), **settings)
        return App(settings=AppSettings(queue=where, hooks=(Counters(),)))

    return make


def ended(server, keys):
    with Client(server.addr, api_key=keys["admin"]) as client:
        info = client.queue_stats(QUEUE, 1).summary
        return info.depth == info.in_flight == 0 and client.queue_stats(f"{QUEUE}.dlq", 1).summary.depth


def told(caplog):
    return [record for record in caplog.records if DENIED in record.getMessage()]


def complaints(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_producer_enqueues_and_a_consumer_runs_and_settles(server, keys, app_with, caplog):
    caplog.set_level(logging.INFO, "fila.jobs")
    ran, tries = [], []

    def tasks(app):
        @app.task(queue=QUEUE, name="run")
        def run(number):
            ran.append(number)

        @app.task(queue=QUEUE, name="again", retry=RetryPolicy(base_seconds=0.01))
        def again():
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("once")

        @app.task(queue=QUEUE, name="bad")
        def bad():
            raise Reject("never")

        return run, again, bad

    producer = app_with("producer")
    run, again, bad = tasks(producer)
    for number in range(120):  # the depth is looked at after 100
        run.enqueue(number)
    again.enqueue()
    bad.enqueue()
    assert len(told(caplog)) == 1
    producer.close()
    caplog.clear()

    consumer = app_with("consumer")
    tasks(consumer)
    worker = consumer.worker(PoolSettings(concurrency=2, poll_timeout=0.1))
    worker.start()
    try:
        eventually(lambda: ended(server, keys) == 1, "all jobs are settled, one is dead")
        time.sleep(1)  # many polls find nothing
    finally:
        worker.stop()
        consumer.close()
    assert sorted(ran) == list(range(120))
    assert len(tries) == 2
    assert len(told(caplog)) == 1
    assert not [text for text in complaints(caplog) if "dequeue" in text or "depth of the queue" in text]


def test_a_limit_of_depth_that_cannot_be_watched_is_told_and_jobs_are_taken(app_with, caplog):
    app = app_with("producer", max_depth=1)
    for number in range(3):
        app.queue(QUEUE).enqueue(number)
    app.close()
    assert [record.levelname for record in told(caplog)] == ["WARNING"]


def test_a_consumer_that_does_not_wait_gets_what_is_there_and_drains_when_it_is_shut_down(app_with):
    producer = app_with("producer")
    for number in range(3):
        producer.queue(QUEUE).enqueue(number)
    producer.close()
    queue = app_with("consumer").queue(QUEUE)
    seen = [eventually(lambda: queue.dequeue(0), "the first job")]
    queue.shutdown()
    while (item := queue.dequeue()) is not None:
        seen.append(item)
    for item in seen:
        queue.ack(item)
    queue.close()
    assert sorted(item.job for item in seen) == [0, 1, 2]


def test_a_key_that_nobody_knows_is_an_error_at_the_start(server, keys, monkeypatch):
    monkeypatch.setenv("FILA_API_KEY", f"fila_nobody-aaaaaa_{0:064x}")
    with pytest.raises(QueueUnavailable):
        FilaQueue(QueueSettings(fila=FilaSettings(addr=server.addr, queue=QUEUE)))


def test_the_command_runs_with_the_key_of_a_consumer(server, keys, app_with, tmp_path):
    program = f"import pathlib\nfrom fila.jobs import App\napp = App()\n@app.task(queue={QUEUE!r})\n"
    (tmp_path / "shop.py").write_text(f"{program}def touch():\n    pathlib.Path('done').touch()\n")
    env = {"FILA_JOBS_URL": f"fila://{server.addr}", "PATH": "/usr/bin", "PYTHONUNBUFFERED": "1"}
    enqueue = [sys.executable, "-c", "import shop; shop.touch.enqueue()"]
    subprocess.run(enqueue, cwd=tmp_path, env=env | {"FILA_API_KEY": keys["producer"]}, check=True, timeout=60)
    command = [sys.executable, "-m", "fila.cli.main", "worker", "shop:app"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, env=env | {"FILA_API_KEY": keys["consumer"]}, stderr=log) as worker,
    ):
        try:
            eventually((tmp_path / "done").exists, "the job ran")
        finally:
            worker.terminate()
    text = (tmp_path / "log").read_text()
    assert worker.returncode == 0, text
    assert text.count(DENIED) == 1, text
