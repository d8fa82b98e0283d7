"""The log in memory: it lies only as it was told."""

import asyncio

import pytest

from fila.replicas.log import Entry, InDoubt, LogUnavailable, Refused, TooLong, Truncated
from fila.replicas.memory import Fate, MemoryEngine


def fated(*fates):
    left = list(fates)
    return lambda body: left.pop(0) if left else Fate.STANDS


async def read_some(log, start):
    reader = log.read(start)
    entries = await anext(reader)
    await reader.aclose()
    return entries


def test_what_was_appended_is_read_at_the_positions_that_were_answered():
    async def scenario():
        engine = MemoryEngine()
        one, other = engine.open(), engine.open()
        assert await one.append(b"a", -1) == 0
        assert await other.append(b"b", -1) == 1
        assert await one.end() == 2
        assert await read_some(other, 0) == [Entry(0, b"a"), Entry(1, b"b")]
        assert await read_some(other, 1) == [Entry(1, b"b")]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "fate, answer, stands, late",
    [
        (Fate.STANDS, 0, [b"a"], []),
        (Fate.UNANSWERED, InDoubt, [b"a"], []),
        (Fate.LOST, InDoubt, [], []),
        (Fate.LATE, InDoubt, [], [b"a"]),
        (Fate.TWICE_FIRST, 0, [b"a", b"a"], []),
        (Fate.TWICE_LAST, 1, [b"a", b"a"], []),
        (Fate.AGAIN_LATE, 0, [b"a"], [b"a"]),
        (Fate.REFUSED, Refused, [], []),
        (Fate.UNAVAILABLE, LogUnavailable, [], []),
        (Fate.DENIED, LogUnavailable, [b"a"], []),
    ],
)
def test_a_fate_decides_what_stands_and_what_is_answered(fate, answer, stands, late):
    async def scenario():
        engine = MemoryEngine()
        log = engine.open(fated(fate))
        if isinstance(answer, int):
            assert await log.append(b"a", -1) == answer
        else:
            with pytest.raises(answer):
                await log.append(b"a", -1)
        assert (engine.bodies, engine.late) == (stands, late)

    asyncio.run(scenario())


def test_what_is_late_stands_where_it_is_landed():
    async def scenario():
        engine = MemoryEngine()
        log = engine.open(fated(Fate.LATE))
        with pytest.raises(InDoubt):
            await log.append(b"a", -1)
        await log.append(b"b", -1)
        assert engine.land() == 1
        assert engine.bodies == [b"b", b"a"]

    asyncio.run(scenario())


def test_an_append_that_is_cancelled_before_it_stands_is_late():
    async def scenario():
        engine = MemoryEngine()
        appending = asyncio.ensure_future(engine.open().append(b"a", -1))
        await asyncio.sleep(0)
        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await appending
        assert (engine.bodies, engine.late) == ([], [b"a"])

    asyncio.run(scenario())


def test_a_strict_engine_refuses_what_would_stand_elsewhere():
    async def scenario():
        log = MemoryEngine(strict=True).open()
        await log.append(b"a", -1)
        with pytest.raises(Refused):
            await log.append(b"b", -1)
        assert await log.append(b"b", 0) == 1

    asyncio.run(scenario())


def test_a_reader_waits_for_what_comes():
    async def scenario():
        engine = MemoryEngine()
        log = engine.open()
        reading = asyncio.ensure_future(read_some(log, 0))
        await asyncio.sleep(0)
        assert not reading.done()
        await log.append(b"a", -1)
        assert await reading == [Entry(0, b"a")]

    asyncio.run(scenario())


def test_a_reader_is_told_that_what_it_asks_for_is_cut_off():
    async def scenario():
        engine = MemoryEngine()
        log = engine.open()
        for body in (b"a", b"b", b"c"):
            await log.append(body, -1)
        reader = log.read(0)
        await anext(reader)
        await log.truncate(2)
        assert await log.first() == 2
        assert await log.end() == 3
        with pytest.raises(Truncated) as told:
            await read_some(log, 1)
        assert told.value.first == 2
        assert await read_some(log, 2) == [Entry(2, b"c")]

    asyncio.run(scenario())


def test_an_engine_that_is_away_says_so_and_ends_its_readers():
    async def scenario():
        engine = MemoryEngine()
        log = engine.open()
        reading = asyncio.ensure_future(read_some(log, 0))
        await asyncio.sleep(0)
        engine.fail()
        for refused in (reading, log.append(b"a", -1), log.end(), log.first(), log.truncate(0)):
            with pytest.raises(LogUnavailable):
                await refused
        engine.heal()
        assert await log.append(b"a", -1) == 0

    asyncio.run(scenario())


def test_readers_of_a_closed_log_end_and_others_go_on():
    async def scenario():
        engine = MemoryEngine()
        one, other = engine.open(), engine.open()

        async def read_all():
            return [entries async for entries in one.read(0)]

        reading = asyncio.ensure_future(read_all())
        await asyncio.sleep(0)
        await one.close()
        assert await reading == []
        with pytest.raises(LogUnavailable):
            await one.append(b"a", -1)
        assert await other.append(b"a", -1) == 0

    asyncio.run(scenario())


def test_an_entry_that_is_too_long_is_refused():
    async def scenario():
        log = MemoryEngine(max_entry_bytes=3).open()
        with pytest.raises(TooLong):
            await log.append(b"abcd", -1)
        assert await log.append(b"abc", -1) == 0

    asyncio.run(scenario())


def test_readers_of_an_engine_that_lost_an_entry_read_another_in_its_place():
    async def scenario():
        engine = MemoryEngine()
        log = engine.open()
        for body in (b"a", b"b", b"c"):
            await log.append(body, -1)
        engine.lose(1)
        assert await read_some(log, 0) == [Entry(0, b"a"), Entry(1, b"c")]

    asyncio.run(scenario())
