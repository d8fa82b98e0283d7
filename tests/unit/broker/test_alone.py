"""Commands that have a tick to themselves: however many come, everything else goes on."""

import asyncio
from functools import partial
from typing import Any

import pytest

from fila.broker.broker import Broker
from fila.broker.commands import CommitTransaction, SetConfig, StageEnqueue
from tests.helpers.broker import MS, Driver, incoming


class Crowd:
    """Clients that ask again as soon as they are answered, each time for a command that has a tick to itself."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.answered = 0
        self._driver = driver
        for number in range(size):
            self._ask(number)

    def _ask(self, number: int) -> None:
        self._driver.engine.submit(SetConfig(f"of-{number}", "x", partial(self._answer, number)))

    def _answer(self, number: int, _: object) -> None:
        self.answered += 1
        self._ask(number)

    def ticks(self, count: int) -> None:
        for _ in range(count):
            self._driver.engine.tick_in_turn(self._driver.now)


@pytest.fixture(params=[1, 2, 5])
def crowd(request: pytest.FixtureRequest, driver: Driver) -> Any:
    """Lets them begin, when everything that was asked before is done."""

    def begin() -> Crowd:
        crowd = Crowd(driver, request.param)
        crowd.ticks(1)
        return crowd

    driver.settle_down()
    return begin


def stage(driver: Driver, producer: str, sequence: int = 1, **rest: int) -> None:
    driver.ask(lambda reply: StageEnqueue(producer, 1, "a", sequence, [incoming("q")], reply, **rest))


class TestACrowd:
    def test_does_not_hold_up_deliveries(self, driver, crowd):
        driver.send("q")
        present = crowd()
        consumer = driver.join("q")
        present.ticks(1)
        assert len(consumer.got) == 1

    def test_does_not_hold_up_what_was_delayed(self, driver, crowd):
        consumer = driver.join("q")
        driver.send("q", delay_ms=50)
        present = crowd()
        driver.now += 50 * MS
        present.ticks(3)  # it becomes ready, one of them, it is delivered
        assert len(consumer.got) == 1

    def test_does_not_hold_up_the_end_of_a_lease(self, driver, crowd):
        driver.join("q")
        seq = driver.send("q")
        driver.settle_down()
        present = crowd()
        driver.now += 30_000 * MS
        present.ticks(1)
        assert driver.queue("q").leases.find(seq) is None

    def test_does_not_hold_up_chores(self, driver, crowd):
        for sequence in range(1, 4):
            stage(driver, "p", sequence)
        driver.ask(lambda reply: CommitTransaction("p", 1, [("a", 3)], reply))
        crowd().ticks(5)
        assert driver.queue("q").ready == 3

    def test_does_not_hold_up_the_sweep(self, driver, crowd):
        stage(driver, "p", ttl_ms=1)
        present = crowd()
        driver.now += 2_000 * MS
        present.ticks(1)
        assert not driver.state.transactions.size

    def test_has_half_of_the_ticks_while_there_is_something_else_to_do(self, driver, crowd):
        for sequence in range(1, 11):
            stage(driver, "p", sequence)
        driver.ask(lambda reply: CommitTransaction("p", 1, [("a", 10)], reply))
        present = crowd()
        present.ticks(9)
        assert present.answered == 5
        assert driver.queue("q").ready == 5

    def test_has_all_ticks_while_there_is_nothing_else_to_do(self, driver, crowd):
        present = crowd()
        present.ticks(10)
        assert present.answered == 11

    def test_has_all_ticks_while_the_store_fails(self, driver, crowd):
        """What nobody waits for rests then, and a tick for it would do nothing."""
        driver.send("q")
        present = crowd()
        driver.store.failing = True
        present.ticks(1)
        driver.join("q")
        present.ticks(10)
        assert present.answered == 12


def test_many_can_commit_at_once():
    """Each waits for ticks that enqueue what it has committed, and takes none of them."""

    async def run() -> None:
        driver = Driver()
        driver.create("q")
        broker = Broker(driver.engine, driver.store, lambda: driver.now)
        for producer in "abc":
            for sequence in range(1, 6):
                command = partial(StageEnqueue, producer, 1, "x", sequence, [incoming("q")])
                await broker.stage(command)
        commits = asyncio.gather(*(broker.commit_transaction(producer, 1, [("x", 5)]) for producer in "abc"))
        for _ in range(200):
            await asyncio.sleep(0)
        assert commits.done()
        assert commits.result() == [False] * 3
        assert driver.queue("q").ready == 15
        broker.close()

    asyncio.run(run())
