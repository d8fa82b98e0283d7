"""The watchdog: turns of the event loop are counted by kind and length, and long ones are logged with what they did."""

import asyncio

import pytest
from structlog.testing import capture_logs

from fila.telemetry import catalog
from fila.telemetry.loop_watchdog import BOUNDS, KINDS, LOG_EVERY_NS, WINDOW_NS, LoopWatchdog
from fila.wire.loop_turns import TimedCoroutine

MS = 1_000_000


class Clock:
    def __init__(self):
        self.now = 10**12

    def __call__(self):
        return self.now


class Watched:
    def __init__(self, slow_ms=0):
        self.clock = Clock()
        self.turns = LoopWatchdog(slow_ms, self.clock)

    def turn(self, kind, ms, doing="something"):
        began = self.clock.now
        self.clock.now += int(ms * MS)
        self.turns.ended(kind, began, lambda: doing)

    def told(self, metric):
        samples = {catalog.TURNS_TAKEN: [], catalog.LONGEST_TURN: []}
        self.turns.collect(samples)
        return {kind: value for (kind,), value in samples[metric]}


def test_every_turn_is_in_the_bucket_of_its_length():
    watched = Watched()
    for ms in (0.1, 1, 1.5, 20, 21, 60_000):
        watched.turn("tick", ms)
    spread = watched.told(catalog.TURNS_TAKEN)["tick"]
    by_bound = dict(zip((*BOUNDS, "more"), spread.counts, strict=True))
    assert {bound: count for bound, count in by_bound.items() if count} == {
        0.001: 2,
        0.002: 1,
        0.02: 1,
        0.05: 1,
        "more": 1,
    }
    assert spread.total == pytest.approx(60.0436)


def test_the_longest_turn_is_told_for_one_to_two_windows():
    watched = Watched()
    watched.turn("call", 300)
    watched.turn("call", 2)
    assert watched.told(catalog.LONGEST_TURN) == dict.fromkeys(KINDS, 0) | {"call": 0.3}
    watched.clock.now += WINDOW_NS
    watched.turn("call", 7)
    assert watched.told(catalog.LONGEST_TURN)["call"] == 0.3
    watched.clock.now += WINDOW_NS
    assert watched.told(catalog.LONGEST_TURN)["call"] == 0.007
    watched.clock.now += 3 * WINDOW_NS
    assert watched.told(catalog.LONGEST_TURN)["call"] == 0


def test_a_slow_turn_is_logged_with_what_it_did_and_not_more_than_one_a_second():
    watched = Watched(slow_ms=100)
    with capture_logs() as logs:
        watched.turn("tick", 99, "quick")
        watched.turn("tick", 100, "2 Enqueue")
        watched.turn("call", 500, "untold")
        watched.clock.now += LOG_EVERY_NS
        watched.turn("call", 250, "/fila.v1.FilaAdmin/ListConfig")
    assert [(entry["kind"], entry["ms"], entry["doing"], entry["slow_turns_not_logged"]) for entry in logs] == [
        ("tick", 100, "2 Enqueue", 0),
        ("call", 250, "/fila.v1.FilaAdmin/ListConfig", 1),
    ]


def test_nothing_is_logged_when_no_turn_counts_as_slow():
    watched = Watched(slow_ms=0)
    with capture_logs() as logs:
        watched.turn("tick", 60_000)
    assert logs == []


def test_each_step_of_a_call_is_a_turn_however_it_ends():
    ended = []

    async def work():
        await asyncio.sleep(0)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            raise

    async def run():
        steps = TimedCoroutine(work(), lambda kind, began, describe: ended.append((kind, describe())), lambda: "it")
        task = asyncio.create_task(steps)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert ended == [("call", "it")] * 4
