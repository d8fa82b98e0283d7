"""What the broker adds to the contract: fairness, throttle keys, dead letters, life beyond the process."""

import uuid

import pytest

from fila import Client
from fila.jobs import FilaQueue, FilaSettings, QueueSettings, QueueUnavailable
from fila.testing import ServerProcess

LONG = 20.0


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("fila")) as process:
        yield process


@pytest.fixture
def make_queue(shared_server):
    made, name = [], uuid.uuid4().hex

    def make(server=shared_server, queue=name, **fila):
        fila.setdefault("timeout", 30)
        made.append(FilaQueue(QueueSettings(fila=FilaSettings(addr=server.addr, queue=queue, **fila))))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


@pytest.fixture
def client(shared_server):
    with Client(shared_server.addr, timeout=30) as client:
        yield client


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


def test_a_foreign_message_is_buried_and_holds_nobody_up(make_queue, client):
    queue = make_queue()
    client.enqueue(queue._name, {"who": "knows"}, b"\x00\xff")
    client.enqueue(queue._name, {"fila-job": "[]"}, b"{}")
    queue.enqueue("a job")
    assert take(queue, 1)[0].job == "a job"
    dead = queue.dead_letters()
    assert [each.item.priority_label for each in dead] == ["unreadable", "unreadable"]
    assert all("is not a job" in each.error for each in dead)


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
    assert any("made by others" in record.getMessage() for record in caplog.records)
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
