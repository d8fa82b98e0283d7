"""Which queue the settings choose: section 2.1 of the specification, with the broker as a third."""

import importlib.util

import pytest

from fila.jobs import (
    FilaSettings,
    PriorityDelayQueue,
    QueueSettings,
    QueueUnavailable,
    RedisQueue,
    create_queue,
    factory,
)

NOWHERE = "redis://:secret@127.0.0.1:1/0"


def test_memory_is_what_nobody_asked_for(monkeypatch):
    for variable in ("USE_REDIS_QUEUE", "USE_FILA_QUEUE"):
        monkeypatch.delenv(variable, raising=False)
    assert isinstance(create_queue(), PriorityDelayQueue)


def test_the_environment_is_asked_when_no_settings_are_given(monkeypatch):
    monkeypatch.setenv("USE_REDIS_QUEUE", "true")
    monkeypatch.setenv("REDIS_URL", NOWHERE)
    monkeypatch.setenv("QUEUE_ON_OUTAGE", "memory")
    queue = create_queue()
    assert isinstance(queue, RedisQueue)
    queue.close()


def test_a_redis_that_is_not_there_means_memory_with_a_warning_when_that_was_asked_for(caplog):
    queue = create_queue(QueueSettings(use_redis=True, redis_url=NOWHERE, on_outage="memory"))
    assert queue.snapshot()["redis_active"] is False
    queue.enqueue("in memory")
    item = queue.dequeue(0)
    assert item.job == "in memory"
    queue.ack(item)
    queue.close()
    assert any("using in-memory queue" in record.getMessage() for record in caplog.records)


def test_a_redis_that_is_not_there_is_refused():
    with pytest.raises(QueueUnavailable) as refused:
        create_queue(QueueSettings(use_redis=True, redis_url=NOWHERE))
    assert "secret" not in str(refused.value)


def test_without_the_package_memory_is_used_or_refused(monkeypatch, caplog):
    monkeypatch.setattr(factory, "find_spec", lambda name: None if name == "redis" else importlib.util.find_spec(name))
    assert isinstance(create_queue(QueueSettings(use_redis=True, on_outage="memory")), PriorityDelayQueue)
    assert any("not installed" in record.getMessage() for record in caplog.records)
    with pytest.raises(QueueUnavailable, match="not installed"):
        create_queue(QueueSettings(use_redis=True))


def test_a_broker_is_never_replaced_by_memory():
    with pytest.raises(QueueUnavailable):
        create_queue(QueueSettings(fila=FilaSettings(addr="127.0.0.1:1", timeout=0.3)))
