"""A server stays awake for a moment after few messages, and for no longer."""

import asyncio

import pytest

from fila.server import busy_poll
from fila.server.busy_poll import FEW, BusyPoll


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(busy_poll, "perf_counter", lambda: now[0])
    return now


def turns_awake(clock, events):
    """Whether the event loop was kept awake in each turn. `events`: the time of each turn, and messages of its tick."""

    async def main():
        looked = []
        watch = BusyPoll(1.0)
        for now, messages in events:
            clock[0] = now
            if messages is not None:
                watch.begin(messages)
            await asyncio.sleep(0)
            looked.append(watch._polling)
        return looked

    return asyncio.run(main())


def test_it_ends_when_its_time_is_over(clock):
    assert turns_awake(clock, [(0, 1), (0.5, None), (0.9, None), (1.0, None), (1.1, None)]) == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_each_tick_begins_it_anew(clock):
    assert turns_awake(clock, [(0, 1), (0.9, FEW), (1.5, None), (1.9, None), (9, 1)]) == [True, True, True, False, True]


@pytest.mark.parametrize("messages", [0, FEW + 1, 500])
def test_only_few_messages_are_worth_it(clock, messages):
    assert turns_awake(clock, [(0, messages), (0.1, None)]) == [False, False]


def test_a_loop_that_is_kept_awake_is_asked_again_in_each_turn(clock, monkeypatch):
    yields = []
    monkeypatch.setattr(busy_poll, "_yield_processor", lambda: yields.append(clock[0]))
    turns_awake(clock, [(0, 1), (0.2, None), (0.4, None), (2, None)])
    assert yields == [0, 0.2, 0.4]
