"""Trying a script takes a bounded time, whatever the script does."""

import asyncio
from collections.abc import Iterator

import pytest

from fila.broker import dry_run
from fila.broker.broker import Broker
from fila.broker.dry_run import BUDGET_MS, Subject, TriedMessage, try_on
from fila.broker.records import READ_FIRST
from fila.lua.hooks import DryRun
from fila.lua.limits import HookLimits
from tests.helpers.broker import Driver

ON_ENQUEUE = "function on_enqueue(msg) return {fairness_key = msg.headers.tenant} end "
ON_FAILURE = "function on_failure(msg) return {action = 'dlq'} end "
MS = 1_000_000


def subjects(count: int) -> list[Subject]:
    return [Subject(f"m{number}", {"tenant": "t"}, 1) for number in range(count)]


def trials(source: str, count: int, step_ms: int) -> tuple[list[TriedMessage], int]:
    """What comes of a script that takes so long on each message, and how many messages were taken for it."""
    script = DryRun(source, "q", HookLimits.of(), lambda _: None)
    now = taken = 0

    def each() -> Iterator[Subject]:
        nonlocal now, taken
        for one in subjects(count):
            taken += 1
            yield one
            now += step_ms * MS

    return [one for one in try_on(script, each(), lambda: now) if one is not None], taken


def errors(trial: TriedMessage) -> list[str]:
    return [part.error for part in (trial.on_enqueue, trial.on_failure) if part is not None]


def test_all_messages_are_tried_while_there_is_time():
    told, _ = trials(ON_ENQUEUE + ON_FAILURE, 1000, 0)
    assert [one.message_id for one in told] == [f"m{number}" for number in range(1000)]
    assert not any(error for one in told for error in errors(one))


@pytest.mark.parametrize("source", [ON_ENQUEUE, ON_FAILURE, ON_ENQUEUE + ON_FAILURE])
def test_when_time_is_over_the_next_message_says_so_and_is_the_last(source):
    told, taken = trials(source, 1000, BUDGET_MS // 4)
    *tried, last = told
    assert [one.message_id for one in tried] == ["m0", "m1", "m2", "m3"]
    assert not any(error for one in tried for error in errors(one))
    assert last.message_id == "m4"
    assert all("not tried, nor the messages after it: 4 dry runs before it" in error for error in errors(last))
    assert len(errors(last)) == len(errors(tried[0]))
    assert taken == 5


def test_the_first_message_is_tried_however_long_it_took_to_get_it():
    script = DryRun(ON_ENQUEUE, "q", HookLimits.of(), lambda _: None)
    clock = iter([0, 2 * BUDGET_MS * MS])
    (told,) = (one for one in try_on(script, iter(subjects(1)), lambda: next(clock)) if one is not None)
    assert errors(told) == [""]


def ids_of_next(driver: Driver, count: int) -> list[str]:
    async def run() -> list[str]:
        broker = Broker(driver.engine, driver.store, lambda: driver.now)
        return [one.message_id for one in await broker.operators.try_hooks("q", ON_ENQUEUE, Subject("", {}, 0), count)]

    return asyncio.run(run())


class TestTheMessagesOfAQueue:
    @pytest.fixture(autouse=True)
    def reads(self, driver, monkeypatch):
        """How many messages are read at a time."""
        reads, get_many = [], driver.store.get_many

        def noted(family, keys):
            wanted = list(keys)
            reads.append(len(wanted))
            return get_many(family, wanted)

        monkeypatch.setattr(driver.store, "get_many", noted)
        return reads

    def test_are_tried_in_the_order_of_their_delivery(self, driver, monkeypatch):
        monkeypatch.setattr(dry_run, "BUDGET_MS", 60_000)
        sent = [driver.id(driver.send("q")) for _ in range(3 * READ_FIRST)]
        assert ids_of_next(driver, 2 * READ_FIRST + 1) == sent[: 2 * READ_FIRST + 1]

    def test_are_not_read_when_there_is_no_time_to_try_them(self, driver, monkeypatch, reads):
        monkeypatch.setattr(dry_run, "BUDGET_MS", 0)
        first, second, *_ = [driver.id(driver.send("q")) for _ in range(3 * READ_FIRST)]
        assert ids_of_next(driver, 3 * READ_FIRST) == [first, second]
        assert reads == [READ_FIRST]
