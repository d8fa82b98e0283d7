"""Queues: made, removed, looked at."""

import pytest

from fila.broker.stats import summarize
from fila.core.errors import QueueAlreadyExists, QueueNotFound
from fila.storage.base import Family
from tests.helpers.broker import START, incoming, stats_of


def fill(driver, queue):
    """Put messages of a queue in every place and rows in every family."""
    consumer = driver.join(queue, 3)
    for number in range(5):
        driver.send(queue, headers={"tenant": str(number)}, dedup_key=f"k{number}")
    driver.settle_down()
    driver.nack(queue, consumer.got[0].id)
    driver.nack(queue, consumer.got[1].id, delay_ms=60_000)
    driver.send(queue, delay_ms=60_000)
    driver.settle_down()
    driver.extend(queue, consumer.got[-1].id)
    return consumer


class TestCreating:
    def test_a_queue_is_there_at_once_and_after_a_restart(self, driver):
        driver.create("r", quantum=9, visibility_timeout_ms=123)
        before = driver.queue("r").record
        driver.restart()
        assert driver.queue("r").record == before
        assert before.created_at == START

    def test_a_name_can_be_taken_once(self, driver):
        stored = driver.store.dump()
        with pytest.raises(QueueAlreadyExists, match='queue "q" already exists'):
            driver.create("q", quantum=99)
        assert driver.queue("q").record.quantum == 4
        assert driver.store.dump() == stored


class TestDeleting:
    def test_leaves_nothing_of_the_queue_in_any_family(self, driver):
        empty = driver.store.dump()
        fill(driver, "q")
        filled = driver.store.dump()
        families = {
            Family.MESSAGES,
            Family.LEASES,
            Family.LEASE_EXPIRY,
            Family.SCHEDULED,
            Family.DEDUP,
            Family.ATTEMPTS,
        }
        assert all(filled[family] for family in families)
        driver.delete("q")
        left = driver.store.dump()
        assert all(left[family] == empty[family] for family in families)
        assert left[Family.QUEUES] == {}

    @pytest.mark.parametrize("name", ["qq", "p", "q-", "q q", "Q", "q\u0301"])
    def test_leaves_other_queues_alone(self, driver, name):
        driver.create(name, fairness_header="tenant")
        fill(driver, name)
        before = driver.snapshot()["queues"][name]
        fill(driver, "q")
        driver.delete("q")
        assert driver.snapshot()["queues"][name] == before
        durable = driver.places()
        driver.restart()
        assert driver.places() == durable

    def test_says_how_many_messages_went_with_it(self, driver):
        fill(driver, "q")
        assert driver.delete("q") == 6

    def test_ends_its_consumers_and_no_others(self, driver):
        driver.create("r")
        ended, others = [driver.join("q"), driver.join("q")], driver.join("r")
        driver.delete("q")
        assert [str(one.ended) for one in ended] == ['queue "q" does not exist'] * 2
        assert all(isinstance(one.ended, QueueNotFound) for one in ended)
        assert others.ended is None

    def test_what_does_not_exist_cannot_be_deleted(self, driver):
        with pytest.raises(QueueNotFound, match='queue "r" does not exist'):
            driver.delete("r")

    def test_nothing_of_it_can_be_settled_afterwards(self, driver):
        consumer = fill(driver, "q")
        driver.delete("q")
        (failure,) = driver.ack("q", consumer.got[-1].id)
        assert isinstance(failure.error, QueueNotFound)

    def test_a_queue_of_the_same_name_begins_empty(self, driver):
        consumer = fill(driver, "q")
        driver.delete("q")
        driver.create("q")
        driver.leave(consumer)  # a consumer of the old queue has no part in the new one
        (failure,) = driver.ack("q", consumer.got[-1].id)
        assert "not leased" in str(failure.error)
        seq = driver.send("q", dedup_key="k1")
        driver.advance(120_000)
        assert driver.places() == {seq: "ready"}
        assert driver.queue("q").attempts == {}

    def test_the_broker_goes_on_when_a_deleted_queue_had_leases_and_delays(self, driver):
        fill(driver, "q")
        driver.delete("q")
        driver.advance(120_000)
        assert driver.engine.next_wakeup() is None


class TestLooking:
    def test_a_summary_counts_messages_where_they_are(self, driver):
        driver.enqueue(*[incoming("q", headers={"tenant": key}) for key in "aabc"], incoming("q", delay_ms=5000))
        driver.join("q", 1)
        driver.settle_down()
        summary = summarize(driver.queue("q"))
        assert (summary.name, summary.depth, summary.in_flight, summary.delayed) == ("q", 4, 1, 1)
        assert (summary.active_keys, summary.consumers) == (3, 1)

    def test_stats_name_the_busiest_keys(self, driver):
        for key, count in {"a": 1, "b": 3, "c": 2}.items():
            driver.enqueue(*[incoming("q", headers={"tenant": key, "weight": "7"})] * count)
        found = stats_of(driver.queue("q"), 2)
        assert [(key.fairness_key, key.pending, key.weight) for key in found.keys] == [("b", 3, 7), ("c", 2, 7)]

    def test_counters_say_what_happened(self, driver):
        consumer = driver.join("q", 10)
        driver.enqueue(*[incoming("q")] * 4)
        driver.settle_down()
        first, second, *_ = consumer.take()
        driver.ack("q", first.id)
        driver.nack("q", second.id)
        driver.settle_down()
        driver.now += 30_000_000_000
        driver.tick()
        driver.settle_down()
        driver.leave(consumer)
        driver.settle_down()
        counters = stats_of(driver.queue("q"), 1).counters
        assert (counters.enqueued, counters.acked, counters.nacked) == (4, 1, 1)
        assert (counters.expired, counters.returned, counters.delivered) == (3, 3, 8)

    def test_what_was_looked_at_does_not_change_afterwards(self, driver):
        found = stats_of(driver.queue("q"), 1)
        driver.send("q")
        assert found.counters.enqueued == 0
