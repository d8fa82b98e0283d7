"""What the broker adds to the contract: fairness, throttle keys, dead letters, life beyond the process."""

import json
import subprocess
import sys
import threading
import time
import uuid

import pytest

from fila import Client
from fila.client import FilaTimeoutError
from fila.jobs import FilaQueue, FilaSettings, QueueFull, QueueSettings, QueueUnavailable
from fila.testing import ServerProcess

LONG = 20.0


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("fila")) as process:
        yield process


@pytest.fixture
def make_queue(shared_server):
    made, name = [], uuid.uuid4().hex

    def make(server=shared_server, queue=name, max_depth=0, **fila):
        fila.setdefault("timeout", 30)
        settings = QueueSettings(max_depth=max_depth, fila=FilaSettings(addr=server.addr, queue=queue, **fila))
        made.append(FilaQueue(settings))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


@pytest.fixture
def client(shared_server):
    with Client(shared_server.addr, timeout=30) as client:
        yield client


def until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def take(queue, count):
    items = []
    for _ in range(count):
        items.append(queue.dequeue(LONG))
        queue.ack(items[-1])
    return items


def test_a_quiet_key_does_not_wait_behind_a_noisy_one(make_queue):
    producer = make_queue()
    for n in range(50):
        producer.enqueue(n, key="noisy")
    producer.enqueue("quiet", key="quiet")
    first = [item.key for item in take(make_queue(max_in_flight=1), 10)]
    assert "quiet" in first


def test_key_priority_headers_and_correlation_are_those_of_the_message(make_queue, client):
    queue = make_queue(throttle_headers=("platform",))
    queue.enqueue({"n": 1}, priority="high", correlation_id="trace-1", key="acme", headers={"platform": "x"})
    assert client.queue_stats(queue._name).config.throttle_headers == ("platform",)
    with client.consume(queue._name) as messages:
        message = next(messages)
        assert message.throttle_keys == ["platform:x"]
        assert (message.fairness_key, message.priority, message.payload) == ("acme", 0, b'{"n":1}')
        assert message.headers["correlation-id"] == "trace-1"


def test_what_was_fetched_and_not_taken_goes_back_with_its_attempts(make_queue):
    queue = make_queue(max_in_flight=8)
    for n in range(4):
        queue.enqueue(n)
    queue.ack(queue.dequeue(LONG))
    queue.close()
    assert [(item.job, item.attempt) for item in take(make_queue(), 3)] == [(1, 1), (2, 1), (3, 1)]


def test_closing_waits_for_no_answer(make_queue, monkeypatch):
    """The broker takes back what is left when the stream ends. One by one, each would wait for a timeout."""
    queue, tried = make_queue(max_in_flight=8), []
    for n in range(4):
        queue.enqueue(n)
    queue.ack(queue.dequeue(LONG))
    until(lambda: queue._deliveries.waiting == 3)

    def release(_queue, message_id, **_):
        tried.append(message_id)
        raise FilaTimeoutError("no answer within 30 s")

    monkeypatch.setattr(queue._client, "release", release)
    queue.close()
    assert not tried
    assert [(item.job, item.attempt) for item in take(make_queue(), 3)] == [(1, 1), (2, 1), (3, 1)]


def test_closing_gives_back_what_comes_after_a_message_that_is_gone(make_queue, client):
    queue = make_queue(max_in_flight=8)
    for n in range(4):
        queue.enqueue(n)
    queue.ack(queue.dequeue(LONG))
    until(lambda: queue._deliveries.waiting == 3)
    client.ack(queue._name, client.peek(queue._name).messages[0].id)
    queue.close()
    assert [(item.job, item.attempt) for item in take(make_queue(), 2)] == [(2, 1), (3, 1)]


def test_who_waits_is_told_when_the_client_is_closed(make_queue):
    queue, told = make_queue(), []

    def wait():
        with pytest.raises(QueueUnavailable, match="the client is closed") as error:
            queue.dequeue()
        told.append(error.value)

    waiters = [threading.Thread(target=wait, daemon=True) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    queue._client.close()
    for waiter in waiters:
        waiter.join(LONG)
    assert len(told) == 3
    with pytest.raises(QueueUnavailable):
        queue.dequeue()


@pytest.mark.parametrize("before", ["", "queue.defer(queue.dequeue())"], ids=["unused", "used"])
def test_a_child_of_the_process_is_told_that_the_queue_is_not_its_own(shared_server, before):
    """Whether the parent has taken jobs before the fork or not."""
    program = f"""
import os, signal
from fila.jobs import FilaQueue, FilaSettings, QueueSettings, QueueUnavailable
queue = FilaQueue(QueueSettings(fila=FilaSettings(addr={shared_server.addr!r}, queue={uuid.uuid4().hex!r}, timeout=30)))
queue.enqueue("the parent's")
{before}
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        queue.dequeue()
    except QueueUnavailable as error:
        print(error, flush=True)
    queue.close()
    os._exit(0)
os.waitpid(child, 0)
print(queue.dequeue().job)
queue.close()
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout.splitlines() == [
        "the queue belongs to the parent process: make one after the fork",
        "the parent's",
    ]


def test_a_handler_of_signals_may_enqueue_while_the_broker_is_asked_for_room(make_queue, monkeypatch):
    """What it enqueues takes of the room too."""
    queue, jobs = make_queue(max_depth=3), ["from the handler", "from it too"]
    ask = queue._client.queue_stats

    def asked(*args, **kwargs):
        stats = ask(*args, **kwargs)
        if jobs:
            queue.enqueue(jobs.pop())
        return stats

    monkeypatch.setattr(queue._client, "queue_stats", asked)
    thread = threading.Thread(target=queue.enqueue, args=("interrupted",), daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive()
    with pytest.raises(QueueFull, match="3"):
        queue.enqueue("one too many")


def test_a_foreign_message_is_buried_and_holds_nobody_up(make_queue, client):
    queue = make_queue()
    client.enqueue(queue._name, {"who": "knows"}, b"\x00\xff")
    client.enqueue(queue._name, {"fila-job": "[]"}, b"{}")
    for meta in ("[" * 5000, _meta(at=10**400), _meta(ready="soon"), _meta(label=5), _meta(id=[])):
        client.enqueue(queue._name, {"fila-job": meta}, b"{}")
    queue.enqueue("a job")
    assert take(queue, 1)[0].job == "a job"
    dead = queue.dead_letters()
    assert [each.item.priority_label for each in dead] == ["unreadable"] * 7
    assert all("is not a job" in each.error for each in dead)


def _meta(**changes):
    return json.dumps({"id": "1", "label": "normal", "at": 0, "ready": 0} | changes)


def test_a_foreign_message_is_buried_though_the_log_fails(make_queue, client, monkeypatch):
    queue = make_queue()
    client.enqueue(queue._name, {"who": "knows"}, b"")

    def fail(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr("fila.jobs.broker.queue.logger.exception", fail)
    with pytest.raises(OSError, match="no space"):
        queue.dequeue(LONG)
    assert len(queue.dead_letters()) == 1


def test_dead_letters_of_the_broker_itself_are_seen_too(make_queue, client):
    queue = make_queue()
    client.update_queue(queue._name, max_attempts=1)
    queue.enqueue("given up", correlation_id="c")
    queue.retry(queue.dequeue(LONG), error="boom")
    [dead] = queue.dead_letters()
    assert (dead.item.job, dead.item.correlation_id, dead.error) == ("given up", "c", "boom")
    assert queue.redrive() == 1
    assert take(queue, 1)[0].job == "given up"


def test_an_existing_queue_is_used_as_it_is(make_queue, client, caplog):
    name = uuid.uuid4().hex
    client.create_queue(name, fairness_header="tenant")
    queue = make_queue(queue=name)
    assert client.queue_stats(name).config.fairness_header == "tenant"
    assert any("job keys are ignored" in record.getMessage() for record in caplog.records)
    queue.enqueue(1)
    assert take(queue, 1)[0].job == 1


def test_jobs_and_claims_outlive_the_broker(tmp_path, make_queue):
    with ServerProcess(tmp_path) as server:
        queue = make_queue(server)
        queue.enqueue("held")
        queue.enqueue("waiting", priority="low")
        queue.enqueue("later", delay_seconds=1000)
        held = queue.dequeue(LONG)
        server.kill()
        server.start()
        queue.ack(held)
        assert take(queue, 1)[0].job == "waiting"
        assert queue.snapshot()["scheduled"] == 1
        queue.close()


def test_no_broker_is_a_clear_error():
    with pytest.raises(QueueUnavailable):
        FilaQueue(QueueSettings(fila=FilaSettings(addr="127.0.0.1:1", timeout=0.5)))
