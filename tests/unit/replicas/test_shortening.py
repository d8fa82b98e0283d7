"""A log is cut off when it has become much longer than what is stored."""

import asyncio

import pytest

from fila.core.errors import StoreFailed
from fila.replicas import shortening, snapshots
from fila.replicas.loading import open_replica
from fila.replicas.memory import Fate, MemoryEngine
from fila.replicas.owner import take_over
from fila.replicas.replica import Replica
from fila.replicas.shortening import keep_short
from fila.replicas.tail import Tail
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage

SHARD = 5
STEPS = 200


def turn():
    return asyncio.sleep(0)


class World:
    def __init__(self):
        self.engine, self.snap_engine = MemoryEngine(), MemoryEngine()
        self.log, self.snaps = self.engine.open(), self.snap_engine.open()
        self.store = MemoryStorage()

    async def begin(self):
        self.tail = Tail(self.log, Replica(self.store, SHARD), turn)
        self.owner = await take_over(self.tail, "m", lambda error: None)
        self.keeping = asyncio.ensure_future(
            keep_short(self.log, self.snaps, self.tail.replica, self.owner, lambda: 100, turn, turn)
        )
        return self

    async def put(self, size):
        """Always in the same place, so that the store stays small."""
        batch = Batch()
        batch.put(Family.MESSAGES, b"key", bytes(size))
        answer = asyncio.get_running_loop().create_future()
        self.owner.write(batch, answer.set_result)
        error = await answer
        for _ in range(STEPS):
            await asyncio.sleep(0)
        return error

    async def end(self):
        self.keeping.cancel()
        await asyncio.gather(self.keeping, return_exceptions=True)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(snapshots, "MIN_LOG_BYTES", 2000)
    monkeypatch.setattr(shortening, "MARGIN_BYTES", 700)


def scenario(test):
    def run():
        async def play():
            world = await World().begin()
            try:
                await test(world)
            finally:
                await world.end()

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@scenario
async def test_a_log_that_is_not_long_stays(world):
    for _ in range(10):
        await world.put(10)
    assert (world.engine.first, world.snap_engine.end) == (0, 0)


@scenario
async def test_a_long_one_is_cut_off_and_a_new_member_has_everything(world):
    for _ in range(30):
        await world.put(300)
    kept = sum(map(len, world.engine.bodies))
    assert world.engine.first > 10
    assert 700 < kept < 4000
    assert world.snap_engine.first > 0
    store = MemoryStorage()
    replica = await open_replica(store, SHARD, world.log, world.snaps, turn)
    await Tail(world.log, replica, turn).catch_up()
    assert list(store.scan(Family.MESSAGES)) == list(world.store.scan(Family.MESSAGES))
    assert replica.mark == world.tail.replica.mark


@scenario
async def test_a_margin_stays(world):
    while world.engine.first == 0:
        await world.put(300)
    before = snapshots.read_current(world.store).position + 1 - world.engine.first
    assert before == int(700 / world.tail.replica.entry_bytes) > 0


@scenario
async def test_what_fails_is_tried_again(world):
    scan = world.store.scan

    def failing(*args):
        raise StoreFailed("unreadable")

    world.store.scan = failing
    for _ in range(10):
        await world.put(300)
    assert (world.engine.first, world.keeping.done()) == (0, False)
    world.store.scan = scan
    await world.put(300)
    assert world.engine.first > 0


def test_a_log_that_is_away_is_waited_for():
    async def play():
        world = World()
        fates = []
        world.log = world.engine.open(lambda body: fates.pop(0) if fates else Fate.STANDS)
        await world.begin()
        world.snap_engine.fail()
        for _ in range(10):
            await world.put(300)
        world.snap_engine.heal()
        fates.append(Fate.UNAVAILABLE)  # of the tick with which the snapshot counts
        for _ in range(STEPS):
            await asyncio.sleep(0)
        await world.put(300)
        await world.put(300)
        assert world.engine.first > 0
        assert world.owner.ended is None
        await world.end()

    asyncio.run(play())


@scenario
async def test_who_owns_no_more_cuts_nothing_off(world):
    await world.owner.close()
    await asyncio.wait_for(world.keeping, 1)
