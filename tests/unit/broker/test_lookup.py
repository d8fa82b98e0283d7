"""What is said of messages that somebody settles and nobody holds: whether they still exist."""

import pytest

from fila.broker.commands import AckGroup, Enqueue, Settle
from fila.broker.lookup import LOOKUPS_A_TICK
from fila.core.errors import LeaseEnded, MessageGone, MessageNotFound, StoreCorrupt, StoreFailed
from fila.storage.base import Family
from tests.helpers.broker import NODE, Driver, incoming


@pytest.fixture
def driver():
    driver = Driver()
    driver.create("q", max_attempts=1)
    return driver


def bury(driver):
    driver.leave(driver.consumer)
    driver.settle_down()


def redrive(driver):
    bury(driver)
    driver.redrive("q.dlq")


def said(driver, held, queue="q"):
    (failure,) = driver.ack(queue, held.id, token=held.token)
    return type(failure.error)


class TestAMessageThatNobodyHolds:
    @pytest.mark.parametrize("happens", [bury, redrive])
    @pytest.mark.parametrize("queue", ["q", "q.dlq"])
    @pytest.mark.parametrize("restarts", [False, True])
    def test_exists_in_its_queue_or_as_a_dead_letter(self, driver, held, happens, queue, restarts):
        happens(driver)
        if restarts:
            driver.restart()
        assert said(driver, held, queue) is LeaseEnded

    def test_is_gone_once_it_was_acked(self, driver, held):
        assert driver.ack("q", held.id) == []
        assert said(driver, held) is MessageGone
        driver.restart()
        assert said(driver, held) is MessageGone

    def test_is_gone_once_it_was_purged(self, driver, held):
        bury(driver)
        driver.purge("q.dlq")
        assert said(driver, held) is said(driver, held, "q.dlq") is MessageGone

    @pytest.mark.parametrize("text", [f"ffffffff-ffff-7000-8000-{NODE:012x}", f"01ffffff-ffff-7000-8000-{NODE:012x}"])
    def test_never_was_if_its_id_is_of_the_future(self, driver, held, text):
        (failure,) = driver.ack("q", text)
        assert type(failure.error) is MessageGone

    @pytest.mark.parametrize("error", [StoreFailed("no"), StoreCorrupt("no")])
    def test_is_not_said_to_be_gone_if_the_store_cannot_tell(self, driver, held, monkeypatch, error):
        def fail(*_):
            raise error

        bury(driver)
        monkeypatch.setattr(driver.store, "has_any", fail)
        assert said(driver, held) is MessageNotFound


class TestManyOfThem:
    def gone(self, driver, count):
        """Ids of messages that were acked."""
        ids = [driver.id(driver.send("q")) for _ in range(count)]
        driver.join("q", count)
        driver.settle_down()
        assert driver.ack("q", *ids) == []
        return ids

    def ask(self, driver, ids):
        return driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", ids)]))

    def test_are_looked_up_a_few_in_a_tick_whoever_asks(self, driver, monkeypatch):
        ids = self.gone(driver, 200)
        looked_up = []
        has_any = driver.store.has_any

        def count(family: Family, start: bytes, end: bytes) -> bool:
            looked_up.append(start)
            return has_any(family, start, end)

        monkeypatch.setattr(driver.store, "has_any", count)
        first, second = self.ask(driver, ids), self.ask(driver, ids)
        ticks = 0
        while not (first and second):
            before = len(looked_up)
            driver.tick()
            ticks += 1
            assert 0 < len(looked_up) - before <= 2 * LOOKUPS_A_TICK
            assert driver.engine.has_work(driver.now) != bool(first and second)
        assert ticks == -(-2 * len(ids) // LOOKUPS_A_TICK)
        for (failures,) in (first, second):
            assert [(failure.message_id, type(failure.error)) for failure in failures] == [
                (message_id, MessageGone) for message_id in ids
            ]
        assert driver.engine.queued == 0

    def test_do_not_hold_up_others(self, driver):
        ids = self.gone(driver, 200)
        slow = self.ask(driver, ids)
        driver.tick()
        sent = driver.submit(lambda reply: Enqueue([incoming("q")], reply))
        driver.tick()
        assert sent
        assert not slow

    def test_are_answered_while_the_store_refuses_writes(self, driver):
        ids = self.gone(driver, 200)
        asked = self.ask(driver, ids)
        driver.tick()
        driver.store.failing = True
        for _ in range(10):
            driver.tick()
        ((failures),) = asked
        assert len(failures) == 200

    def test_are_answered_before_the_broker_stops(self, driver):
        asked = self.ask(driver, self.gone(driver, 200))
        driver.engine.finish(driver.now)
        ((failures),) = asked
        assert {type(failure.error) for failure in failures} == {MessageGone}

    def test_are_bounded_by_what_may_wait(self):
        driver = Driver(max_queued_commands=300)
        driver.create("q", max_attempts=1)
        ids = self.gone(driver, 200)
        first = self.ask(driver, ids)
        driver.tick()
        second = self.ask(driver, ids)
        driver.tick()
        ((refused),) = second
        assert {type(failure.error) for failure in refused} == {MessageNotFound}
        driver.settle_down()
        ((told),) = first
        assert {type(failure.error) for failure in told} == {MessageGone}
