"""What every engine's log must do, and nothing less: the rule of `fila.replicas` rests on it."""

import asyncio
import gc
import os
import threading
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from fila.replicas.log import Entry, InDoubt, LogError, LogUnavailable, Refused, TooLong, Truncated
from tests.contract.logs import IN_MEMORY, REMOTE, SOON_MS

WAIT_S = 60
"""Far longer than anything here takes."""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Starts an engine when it is asked for."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(REMOTE[name](tmp_path_factory.mktemp(name))))


@pytest.fixture(params=[*IN_MEMORY, *REMOTE])
def subject(request, running):
    """Each log there is, empty."""
    found = IN_MEMORY.get(request.param) or running(request.param)
    found.renew()
    return found


@pytest.fixture(params=REMOTE)
def remote(request, running):
    """Each log that is reached over a network, empty."""
    found = running(request.param)
    found.renew()
    yield found
    found.proxy.mend()


@asynccontextmanager
async def opened(subject, **options):
    log = await subject.open(**options)
    try:
        yield log
    finally:
        await log.close()


async def take(log, start, count):
    """So many entries from a position on."""
    entries = []
    async with aclosing(log.read(start)) as batches, asyncio.timeout(WAIT_S):
        async for batch in batches:
            assert batch, "a reader hands out an empty list"
            entries += batch
            if len(entries) >= count:
                return entries
    raise AssertionError(f"the reader ended after {len(entries)} entries")


async def fill(log, count, after=-1):
    for number in range(count):
        after = await log.append(f"entry {number}".encode(), after)
    return after


async def surely(log, body):
    """Append it, on a machine that is slow too: where an append may wait for a moment only, it may be in doubt."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(InDoubt, LogUnavailable, Refused):
                return await log.append(body, await log.end() - 1)


async def test_an_empty_log(subject):
    async with opened(subject) as log:
        assert (await log.first(), await log.end()) == (0, 0)


async def test_positions_are_consecutive_from_zero_on_and_entries_are_read_in_their_order(subject):
    async with opened(subject) as log:
        bodies = [f"entry {number}".encode() for number in range(50)]
        after = -1
        for number, body in enumerate(bodies):
            after = await log.append(body, after)
            assert after == number
        assert await take(log, 0, 50) == [Entry(position, body) for position, body in enumerate(bodies)]
        assert (await log.first(), await log.end()) == (0, 50)


async def test_reading_begins_in_the_middle(subject):
    async with opened(subject) as log:
        await fill(log, 10)
        assert await take(log, 7, 3) == [Entry(position, f"entry {position}".encode()) for position in (7, 8, 9)]


async def test_a_reader_waits_for_what_comes(subject):
    async with opened(subject) as writer, opened(subject) as reader:
        reading = asyncio.create_task(take(reader, 0, 3))
        await asyncio.sleep(0.1)
        assert not reading.done()
        await fill(writer, 3)
        assert [entry.position for entry in await reading] == [0, 1, 2]


async def test_a_reader_may_begin_behind_the_end(subject):
    async with opened(subject) as log:
        reading = asyncio.create_task(take(log, 2, 1))
        await fill(log, 3)
        assert await reading == [Entry(2, b"entry 2")]


async def test_several_readers_of_one_log(subject):
    async with opened(subject) as log:
        await fill(log, 5)
        first, second = await asyncio.gather(take(log, 0, 5), take(log, 3, 2))
        assert first[3:] == second


async def test_two_logs_on_one_engine_hold_each_its_own(remote):
    """As those of ticks and of snapshots."""
    async with opened(remote) as log, opened(remote, other="_snaps") as snaps, opened(remote, other="_snaps") as again:
        assert await log.append(b"in the log", -1) == 0
        assert await snaps.append(b"beside it", -1) == 0
        assert await take(log, 0, 1) == [Entry(0, b"in the log")]
        assert await take(again, 0, 1) == [Entry(0, b"beside it")]


async def test_any_bytes_are_an_entry(subject):
    async with opened(subject) as log:
        bodies = [bytes(range(256)), b"\0", b"\xff" * 1000]
        for position, body in enumerate(bodies):
            await log.append(body, position - 1)
        assert [entry.body for entry in await take(log, 0, 3)] == bodies


async def test_another_member_sees_what_was_acknowledged(subject):
    async with opened(subject) as one, opened(subject) as other:
        for number in range(20):
            await one.append(b"x", number - 1)
            assert await other.end() == number + 1


async def test_two_writers_at_once(subject):
    """Nobody's entry is lost, none stands twice, and all see the same order."""
    async with opened(subject) as one, opened(subject) as other:

        async def write(log, name, told):
            for number in range(30):
                body = f"{name} {number}".encode()
                while True:
                    try:
                        told[await log.append(body, await log.end() - 1)] = body
                        break
                    except Refused:
                        pass

        told_one, told_other = {}, {}
        await asyncio.gather(write(one, "one", told_one), write(other, "other", told_other))
        assert not told_one.keys() & told_other.keys()
        read = await take(one, 0, 60)
        assert read == [Entry(*pair) for pair in sorted((told_one | told_other).items())]
        assert await take(other, 0, 60) == read


@pytest.mark.parametrize("behind", [-1, 0, 1, 5])
async def test_an_entry_that_would_not_stand_right_behind_what_was_read(subject, behind):
    """Either it is refused and stands nowhere, or it stands at the end, and its position says so."""
    async with opened(subject) as log:
        await fill(log, 3)
        if subject.refuses:
            with pytest.raises(Refused):
                await log.append(b"late", behind)
            assert await log.end() == 3
        else:
            assert await log.append(b"late", behind) == 3
            assert (await take(log, 3, 1))[0].body == b"late"


async def test_a_cut_log_takes_no_entry_at_a_place_that_has_gone(subject):
    async with opened(subject) as log:
        await fill(log, 10)
        await log.truncate(8)
        if subject.refuses:
            with pytest.raises(Refused):
                await log.append(b"late", 3)
        assert await log.append(b"next", 9) == 10


async def test_an_append_without_an_answer_is_in_doubt_and_stands_once_at_most(remote):
    async with opened(remote, through_proxy=True, append_timeout_ms=SOON_MS) as log, opened(remote) as other:
        before = await surely(log, b"before")
        remote.proxy.swallows_answers = True
        with pytest.raises(InDoubt):
            await log.append(b"doubtful", before)
        remote.proxy.cut()
        remote.proxy.mend()
        await asyncio.sleep(2 * SOON_MS / 1000)  # time for a second copy to arrive
        assert [entry.body for entry in await take(other, before, 2)] == [b"before", b"doubtful"]
        assert await other.end() == before + 2
        assert await surely(log, b"after") >= before + 2


async def test_an_append_that_did_not_arrive_is_in_doubt_too(remote):
    async with opened(remote, through_proxy=True, append_timeout_ms=SOON_MS) as log, opened(remote) as other:
        before = await surely(log, b"before")
        remote.proxy.swallows_requests = True
        with pytest.raises(InDoubt):
            await log.append(b"lost", before)
        remote.proxy.cut()
        remote.proxy.mend()
        await asyncio.sleep(2 * SOON_MS / 1000)
        assert await other.end() == before + 1
        assert await surely(log, b"after") >= before + 1


async def test_a_connection_cut_under_an_append(remote):
    """In doubt, or unavailable and nowhere: never acknowledged and lost."""
    async with opened(remote, through_proxy=True, append_timeout_ms=SOON_MS) as log:
        position, bodies = -1, []
        for number in range(40):
            if number % 8 == 7:
                remote.proxy.cut()
                remote.proxy.mend()
            body = f"entry {number}".encode()
            while True:
                try:
                    position = await log.append(body, position)
                    bodies.append((position, body))
                    break
                except (InDoubt, Refused, LogUnavailable):
                    async with asyncio.timeout(WAIT_S):
                        while (end := await end_of(log)) is None:
                            await asyncio.sleep(0.05)
                    position = end - 1
        read = await take(log, 0, await log.end())
        assert set(bodies) <= {(entry.position, entry.body) for entry in read}
        assert [entry.position for entry in read] == list(range(len(read)))


async def end_of(log):
    try:
        return await log.end()
    except LogUnavailable:
        return None


async def test_a_cancelled_append_leaves_a_log_that_works(remote):
    async with opened(remote, through_proxy=True) as log, opened(remote) as other:
        await log.append(b"before", -1)
        remote.proxy.swallows_answers = True
        appending = asyncio.create_task(log.append(b"doubtful", 0))
        await asyncio.sleep(0.3)
        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await appending
        remote.proxy.cut()
        remote.proxy.mend()
        assert (await take(other, 1, 1))[0].body == b"doubtful"
        assert await log.append(b"after", 1) == 2


async def test_a_reader_goes_on_through_cut_connections(remote):
    """Each entry is read once."""
    async with opened(remote) as writer, opened(remote, through_proxy=True) as reader:
        reading = asyncio.create_task(take(reader, 0, 40))
        for number in range(40):
            if number % 10 == 5:
                remote.proxy.cut()
                await asyncio.sleep(0.05)
                remote.proxy.mend()
            await writer.append(b"%d" % number, number - 1)
            await asyncio.sleep(0.01)
        assert [int(entry.body) for entry in await reading] == list(range(40))


async def test_a_reader_behind_a_connection_that_is_silent_goes_on_after_it(remote):
    async with opened(remote) as writer, opened(remote, through_proxy=True) as reader:
        reading = asyncio.create_task(take(reader, 0, 2))
        await writer.append(b"first", -1)
        await asyncio.sleep(0.3)
        remote.proxy.swallows_answers = True
        await writer.append(b"second", 0)
        await asyncio.sleep(0.3)
        remote.proxy.cut()
        remote.proxy.mend()
        assert [entry.body for entry in await reading] == [b"first", b"second"]


async def test_what_was_truncated_is_told_and_what_follows_can_be_read(subject):
    async with opened(subject) as log:
        last = await fill(log, 20)
        await log.truncate(10)
        first = await log.first()
        assert first == 10
        with pytest.raises(Truncated) as error:
            await take(log, 3, 1)
        assert error.value.first == first
        assert [entry.position for entry in await take(log, first, 10)] == list(range(10, last + 1))
        assert await log.end() == 20


async def test_truncating_everything_keeps_the_end(subject):
    async with opened(subject) as log, opened(subject) as other:
        await fill(log, 5)
        await log.truncate(5)
        assert await other.end() == 5
        assert await other.append(b"next", 4) == 5
        assert (await take(other, 5, 1))[0].body == b"next"
        await log.truncate(2)  # has gone already
        assert await log.first() in {4, 5}


async def test_truncating_beyond_the_end_keeps_what_comes(subject):
    async with opened(subject) as log:
        await fill(log, 3)
        with suppress(LogUnavailable):
            await log.truncate(100)
        assert await log.append(b"next", 2) == 3
        assert (await take(log, 3, 1))[0].body == b"next"


async def test_truncation_under_a_reader_that_is_ahead(subject):
    async with opened(subject) as writer, opened(subject) as reader:
        reading = asyncio.create_task(take(reader, 0, 60))
        for number in range(60):
            await writer.append(b"x", number - 1)
            if number % 20 == 19:
                async with asyncio.timeout(WAIT_S):
                    while await reader.end() <= number:
                        await asyncio.sleep(0.01)
                await asyncio.sleep(0.5)  # the reader has it
                await writer.truncate(number - 5)
        assert [entry.position for entry in await reading] == list(range(60))


async def test_the_largest_entry_and_one_byte_more(subject):
    async with opened(subject) as log:
        largest = os.urandom(log.max_entry_bytes)
        assert await log.append(largest, -1) == 0
        with pytest.raises(TooLong, match=str(len(largest) + 1)):
            await log.append(largest + b"x", 0)
        assert await log.append(b"next", 0) == 1
        assert [entry.body for entry in await take(log, 0, 2)] == [largest, b"next"]


async def test_many_large_entries_are_read_in_lists_that_fit_in_memory(subject):
    async with opened(subject) as log:
        body = bytes(log.max_entry_bytes // 2)
        for number in range(20):
            await log.append(body, number - 1)
        sizes = []
        async with aclosing(log.read(0)) as batches:
            async for batch in batches:
                sizes.append(sum(len(entry.body) for entry in batch))
                if sum(sizes) == 20 * len(body):
                    break
        assert max(sizes) <= 32 << 20


async def test_closing_ends_readers_and_refuses_what_comes_after(subject):
    log = await subject.open()
    await fill(log, 2)
    seen = []

    async def read():
        async for batch in log.read(0):
            seen.extend(batch)

    reading = asyncio.create_task(read())
    async with asyncio.timeout(WAIT_S):
        while len(seen) < 2:
            await asyncio.sleep(0.01)
        await log.close()
        await reading
        for use in (log.append(b"x", 1), log.end(), log.first(), log.truncate(1)):
            with pytest.raises(LogUnavailable):
                await use
        assert [batch async for batch in log.read(0)] == []
        await log.close()


async def test_closing_ends_an_append_that_waits(remote):
    log = await remote.open(through_proxy=True)
    await log.append(b"before", -1)
    remote.proxy.swallows_answers = True
    appending = asyncio.create_task(log.append(b"doubtful", 0))
    await asyncio.sleep(0.2)
    async with asyncio.timeout(WAIT_S):
        await log.close()
        with pytest.raises(InDoubt):
            await appending


async def test_closing_lets_go_of_tasks_threads_and_sockets(remote):
    async def use():
        async with opened(remote, through_proxy=True) as log:
            end = await log.end()
            await fill(log, 3, end - 1)
            await take(log, end, 3)
            await log.truncate(end)

    await use()
    tasks, before = asyncio.all_tasks(), held()
    for _ in range(3):
        await use()
    assert asyncio.all_tasks() == tasks
    async with asyncio.timeout(WAIT_S):
        while held() > before:
            gc.collect()
            await asyncio.sleep(0.05)


def held():
    """Threads of this process, but for those of the proxy, and its sockets and other open files."""
    threads = [thread for thread in threading.enumerate() if "(_pump)" not in thread.name]
    return len(threads), len(list(Path("/proc/self/fd").iterdir()))


async def test_an_engine_that_cannot_be_reached(remote):
    async with opened(remote, through_proxy=True, append_timeout_ms=SOON_MS) as log:
        before = await surely(log, b"x")
        remote.proxy.cut()
        with pytest.raises((InDoubt, LogUnavailable)):
            await log.append(b"y", before)
        for ask in (log.end, log.first):
            with pytest.raises(LogUnavailable):
                await ask()
    with pytest.raises(LogError):
        await remote.open(through_proxy=True, append_timeout_ms=SOON_MS)
