"""A reader that waits for a claim gets it soon, and costs little while there is none for it."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fila.broker import reading
from fila.broker.broker import Broker
from fila.broker.commands import MakeClaim
from fila.broker.reading import LOOK_EVERY_S, LOOK_LEAST_S, Wanted
from fila.core.claims import Claim
from tests.helpers.broker import START, Driver, incoming

WAIT_MS = 4_000
S = 1_000_000_000


class Waiter:
    """A reader that waits on the driver's clock. Keeps when it asked for a claim, in seconds."""

    def __init__(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[float] = []
        self.at: dict[float, Callable[[], Awaitable[Any]]] = {}
        """What others do, each once that time has come"""
        self._driver = driver
        monkeypatch.setattr(reading, "asyncio", SimpleNamespace(sleep=self._sleep))

    @property
    def passed(self) -> float:
        return (self._driver.now - START) / S

    async def _sleep(self, seconds: float) -> None:
        self._driver.now += int(seconds * S)
        for moment in [moment for moment in self.at if moment <= self.passed]:
            await self.at.pop(moment)()
        await asyncio.sleep(0)

    def claim(self, **wanted: Any) -> Claim | None:
        async def run() -> Claim | None:
            self.broker = Broker(self._driver.engine, self._driver.store, lambda: self._driver.now)
            submit = self._driver.engine.submit

            def note(command: Any) -> None:
                if isinstance(command, MakeClaim):
                    self.asked.append(self.passed)
                submit(command)

            self._driver.engine.submit = note  # type: ignore[method-assign]
            claim = await self.broker.readers.claim(Wanted("q", "g", 0, wait_ms=WAIT_MS, **wanted))
            self.broker.close()
            return claim

        return asyncio.run(run())

    async def enqueue(self) -> None:
        await self.broker.enqueue([incoming("q")])


@pytest.fixture
def waiter(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Waiter:
    return Waiter(driver, monkeypatch)


def test_it_asks_ever_less_often_while_no_message_is_for_it(driver, waiter):
    driver.send("q")
    assert waiter.claim(cap=1) is None
    gaps = [after - before for before, after in zip(waiter.asked, waiter.asked[1:], strict=False)]
    assert gaps[:4] == pytest.approx([LOOK_EVERY_S * factor for factor in (1, 2, 4, 8)])
    assert max(gaps) == pytest.approx(LOOK_LEAST_S)
    assert len(gaps) < 2 * WAIT_MS / 1000 / LOOK_LEAST_S


def test_it_waits_as_long_as_it_was_told_and_no_longer(driver, waiter):
    driver.send("q")
    assert waiter.claim(cap=1) is None
    assert waiter.passed == pytest.approx(WAIT_MS / 1000)


def test_it_does_not_ask_while_the_queue_is_empty(waiter):
    assert waiter.claim() is None
    assert waiter.asked == [0]


def test_what_comes_to_an_empty_queue_is_claimed_at_once(waiter):
    waiter.at[1.0] = waiter.enqueue
    claim = waiter.claim()
    assert claim is not None
    assert claim.size == 1
    assert waiter.passed <= 1.0 + 2 * LOOK_EVERY_S


def test_what_it_may_have_again_is_claimed_soon(driver, waiter):
    driver.send("q")
    driver.pause("q")
    waiter.at[1.0] = lambda: waiter.broker.pause_queue("q", False)
    claim = waiter.claim()
    assert claim is not None
    assert claim.size == 1
    assert waiter.passed <= 1.0 + 2 * LOOK_LEAST_S
