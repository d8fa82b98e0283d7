"""A dead letter whose past cannot be read: nothing of it moves, and it is tried again."""

from typing import Any

import pytest

from fila.broker.attempts import death_of
from fila.core.errors import StoreFailed
from fila.storage.base import Family
from fila.storage.memory import MemoryStorage
from tests.helpers.broker import Delivered, Driver, Recipient


class Forgetful(MemoryStorage):
    """A store that cannot say which attempts there were."""

    failing = False

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Any:
        if self.failing and family is Family.ATTEMPTS:
            raise StoreFailed("this part cannot be read")
        return super().scan(family, start, end)


@pytest.fixture
def store() -> Forgetful:
    return Forgetful()


@pytest.fixture
def driver(store: Forgetful) -> Driver:
    driver = Driver(store)
    driver.create("m", max_attempts=1)
    return driver


@pytest.fixture
def consumer(driver: Driver) -> Recipient:
    return driver.join("m", 1)


def hold(driver: Driver, consumer: Recipient) -> Delivered:
    driver.settle_down()
    (held,) = consumer.take()
    return held


def test_a_message_that_cannot_be_buried_comes_back_in_memory_and_on_disk(driver, store, consumer):
    seq = driver.send("m", b"body")
    held = hold(driver, consumer)
    store.failing = True
    assert driver.nack("m", held.id) == []
    store.failing = False
    assert (driver.queue("m").size, driver.queue("m.dlq").size) == (1, 0)
    driver.restart()
    assert (driver.queue("m").attempts, driver.queue("m.dlq").size) == ({seq: 1}, 0)


def test_one_that_is_acked_after_that_does_not_come_back(driver, store, consumer):
    driver.send("m", b"body")
    held = hold(driver, consumer)
    store.failing = True
    driver.nack("m", held.id)
    store.failing = False
    assert driver.ack("m", hold(driver, consumer).id) == []
    driver.restart()
    assert driver.places() == {}


def test_it_is_buried_with_all_of_its_past_at_the_next_failure(driver, store, consumer):
    seq = driver.send("m", b"body")
    held = hold(driver, consumer)
    store.failing = True
    driver.nack("m", held.id)
    store.failing = False
    driver.nack("m", hold(driver, consumer).id)
    assert (driver.queue("m").size, driver.queue("m.dlq").size) == (0, 1)
    death = death_of(driver.store, "m.dlq", seq)
    assert death is not None
    assert [number for number, _ in death.attempts] == [1, 2]


def test_a_lease_that_ends_meanwhile_ends_no_broker(driver, store, consumer):
    seq = driver.send("m", b"body")
    hold(driver, consumer)
    store.failing = True
    driver.advance(30_001)
    assert consumer.seqs == [seq]
    assert driver.queue("m.dlq").size == 0
