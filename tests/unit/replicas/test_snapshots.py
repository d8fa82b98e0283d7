"""Snapshots: what a member writes, which one counts, and how another begins with it."""

import asyncio

import pytest

from fila.core.errors import SteppedDown, StoreFailed
from fila.replicas import snapshots as module
from fila.replicas.entry import Kind, Unreadable, read_entry
from fila.replicas.loading import find_snapshot, load_snapshot, open_replica
from fila.replicas.log import LogUnavailable, Truncated
from fila.replicas.memory import Fate, MemoryEngine
from fila.replicas.owner import take_over
from fila.replicas.replica import MARK_KEY, HalfLoaded, Lost, Mark, Replica, read_mark
from fila.replicas.snapshots import CURRENT_KEY, Current, is_due, read_current, read_manifest, trim, write_snapshot
from fila.replicas.tail import Tail
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from tests.support.faulty import FaultyStorage

SHARD = 5
MIB = 1 << 20


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 20)


def turn():
    return asyncio.sleep(0)


class World:
    """Two logs, and an owner."""

    def __init__(self):
        self.engine = MemoryEngine()
        self.snap_engine = MemoryEngine(max_entry_bytes=110)
        self.log = self.engine.open()
        self.fates = []
        self.snaps = self.snap_engine.open(lambda body: self.fates.pop(0) if self.fates else Fate.STANDS)
        self.store = MemoryStorage()

    async def begin(self, count=3):
        self.tail = Tail(self.log, Replica(self.store, SHARD), turn)
        self.owner = await take_over(self.tail, "m", lambda error: None)
        for number in range(count):
            await self.put(f"key {number}")
        return self

    async def put(self, key, value=b"value"):
        batch = Batch()
        batch.put(Family.MESSAGES, key.encode(), value)
        answer = asyncio.get_running_loop().create_future()
        self.owner.write(batch, answer.set_result)
        assert await answer is None

    async def snapshot(self):
        return await write_snapshot(self.snaps, self.tail.replica, turn)

    async def cut(self):
        """Write a snapshot, have it count, and cut off what it makes superfluous."""
        manifest = await self.snapshot()
        await self.owner.accept(manifest)
        await trim(self.log, self.snaps, self.store, 0)
        return manifest

    async def open(self, store):
        return await open_replica(store, SHARD, self.log, self.snaps, turn)

    def kinds(self):
        return [read_entry(body)[0].kind for body in self.snap_engine.bodies]


def scenario(test):
    def run():
        async def play():
            await test(await World().begin())

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def dump(store):
    return [dict(store.scan(family)) for family in Family]


def filled(*entries):
    store, batch = MemoryStorage(), Batch()
    for family, key, value in entries:
        batch.put(family, key, value)
    store.write(batch)
    return store


@scenario
async def test_a_snapshot_is_chunks_and_then_a_manifest(world):
    manifest = await world.snapshot()
    assert world.kinds() == [Kind.CHUNK] * (len(world.kinds()) - 1) + [Kind.MANIFEST]
    assert manifest.mark == world.tail.replica.mark
    assert (manifest.first, manifest.chunks) == (0, 2)
    assert await find_snapshot(world.snaps, 0) == manifest


@scenario
async def test_whoever_loads_it_has_the_same_but_for_what_is_of_its_own_store(world):
    await world.put("large", b"v" * 500)
    manifest = await world.snapshot()
    store = filled((Family.DEFAULT, b"node", b"mine"), (Family.DEFAULT, b"a", b"old"), (Family.AUDIT, b"old", b"old"))
    await load_snapshot(world.snaps, manifest, store, SHARD, turn)
    assert store.get(Family.DEFAULT, b"node") == b"mine"
    loaded = dump(store)
    del loaded[Family.DEFAULT][b"node"]
    assert loaded == dump(world.store)
    assert read_mark(store) == manifest.mark


@scenario
async def test_a_snapshot_is_of_one_moment_though_the_member_goes_on(world):
    before = dump(world.store)
    writing = asyncio.ensure_future(world.snapshot())
    await asyncio.sleep(0)
    await world.put("later")
    manifest = await writing
    store = MemoryStorage()
    await load_snapshot(world.snaps, manifest, store, SHARD, turn)
    assert dump(store) == before


@pytest.mark.parametrize("fate", [fate for fate in Fate if fate is not Fate.STANDS])
def test_whatever_the_log_does_a_snapshot_can_be_loaded(fate):
    @scenario
    async def play(world):
        world.fates = [fate, fate, Fate.STANDS, fate, fate]
        manifest = await world.snapshot()
        while world.snap_engine.late:
            world.snap_engine.land()
        store = MemoryStorage()
        assert await find_snapshot(world.snaps, 0) == manifest
        await load_snapshot(world.snaps, manifest, store, SHARD, turn)
        assert dump(store) == dump(world.store)

    play()


@scenario
async def test_two_snapshots_at_once_do_not_disturb_each_other(world):
    manifests = await asyncio.gather(world.snapshot(), world.snapshot())
    assert {read_entry(body)[1][:16] for body in world.snap_engine.bodies[:2]} == {each.nonce for each in manifests}
    for manifest in manifests:
        store = MemoryStorage()
        await load_snapshot(world.snaps, manifest, store, SHARD, turn)
        assert dump(store) == dump(world.store)


@scenario
async def test_a_shard_in_which_nothing_counted_has_no_snapshot(world):
    with pytest.raises(ValueError, match="nothing"):
        await write_snapshot(world.snaps, Replica(MemoryStorage(), SHARD), turn)


@scenario
async def test_a_snapshot_of_an_empty_store_can_be_loaded(world):
    empty = await World().begin(count=0)
    manifest = await empty.snapshot()
    store = filled((Family.AUDIT, b"old", b"old"))
    await load_snapshot(empty.snaps, manifest, store, SHARD, turn)
    assert dump(store) == dump(empty.store)


@scenario
async def test_what_counts_is_in_the_store_of_every_member(world):
    assert read_current(world.store) == Current(-1, -1)
    manifest = await world.snapshot()
    await world.owner.accept(manifest)
    assert read_current(world.store) == Current(0, manifest.mark.position)
    other = await world.open(MemoryStorage())
    await Tail(world.log, other, turn).catch_up()
    assert read_current(other.store) == read_current(world.store)


@scenario
async def test_snapshots_count_in_the_order_in_which_they_begin_and_end(world):
    first = await world.snapshot()
    await world.put("more")
    second = await world.snapshot()
    await world.owner.accept(second)
    tick = world.tail.replica.mark.tick
    for old in (first, second, second._replace(first=99), second._replace(mark=Mark(9, 9, 9, 99))):
        await world.owner.accept(old)
    assert read_current(world.store) == Current(second.first, second.mark.position)
    assert world.tail.replica.mark.tick == tick


@scenario
async def test_an_owner_that_has_ended_accepts_no_snapshot(world):
    manifest = await world.snapshot()
    await take_over(Tail(world.engine.open(), Replica(MemoryStorage(), SHARD), turn), "other", lambda error: None)
    for _ in range(2):
        with pytest.raises(SteppedDown):
            await world.owner.accept(manifest)
    assert read_current(world.store) == Current(-1, -1)


def test_an_accepted_snapshot_that_the_log_refuses_does_not_count():
    async def play():
        world = World()
        fates = []
        world.log = world.engine.open(lambda body: fates.pop(0) if fates else Fate.STANDS)
        await world.begin()
        manifest = await world.snapshot()
        fates.append(Fate.UNAVAILABLE)
        with pytest.raises(StoreFailed):
            await world.owner.accept(manifest)
        assert world.owner.ended is None
        await world.owner.accept(manifest)
        assert read_current(world.store).first == manifest.first

    asyncio.run(play())


@scenario
async def test_accepting_a_snapshot_that_is_cancelled_leaves_the_owner_in_office(world):
    """Whether it counts is decided before the next batch."""
    manifest = await world.snapshot()
    for _ in range(2):
        accepting = asyncio.ensure_future(world.owner.accept(manifest))
        await asyncio.sleep(0)
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
    await world.put("more")
    assert world.owner.ended is None


@scenario
async def test_only_what_counts_is_cut_off(world):
    await world.snapshot()
    await world.put("more")
    await trim(world.log, world.snaps, world.store, 0)
    assert (world.engine.first, world.snap_engine.first) == (0, 0)
    manifest = await world.cut()
    assert world.engine.first == manifest.mark.position + 1
    assert world.snap_engine.first == manifest.first > 0


@scenario
async def test_a_margin_stays_for_those_who_are_a_little_behind(world):
    manifest = await world.snapshot()
    await world.owner.accept(manifest)
    for margin in (100, 2):
        await trim(world.log, world.snaps, world.store, margin)
        assert world.engine.first == max(0, manifest.mark.position + 1 - margin)


@scenario
async def test_who_can_read_on_keeps_what_it_has(world):
    behind = await world.open(MemoryStorage())
    await Tail(world.log, behind, turn).read_to(3)
    await world.put("more")
    manifest = await world.snapshot()
    await world.owner.accept(manifest)
    await trim(world.log, world.snaps, world.store, manifest.mark.position - 3)
    assert world.engine.first == 4
    assert (await world.open(behind.store)).mark == behind.mark


@scenario
async def test_who_is_cut_off_begins_with_a_snapshot(world):
    for store in (MemoryStorage(), filled((Family.AUDIT, b"old", b"old"))):
        await world.cut()
        await world.put("more")
        replica = await world.open(store)
        await Tail(world.log, replica, turn).catch_up()
        assert dump(store) == dump(world.store)


@scenario
async def test_a_snapshot_in_the_middle_of_others_is_found(world):
    for number in range(5):
        manifest = await world.snapshot()
        await world.put(f"more {number}")
    unfinished = asyncio.ensure_future(world.snapshot())
    while world.kinds()[-1] is Kind.MANIFEST:
        await asyncio.sleep(0)
    unfinished.cancel()
    assert await find_snapshot(world.snaps, 0) == manifest
    assert await find_snapshot(world.snaps, manifest.mark.position + 1) == manifest
    assert await find_snapshot(world.snaps, manifest.mark.position + 2) is None


@scenario
async def test_a_snapshot_whose_beginning_is_cut_off_is_not_used(world):
    await world.snapshot()
    world.snap_engine.truncate(1)
    assert await find_snapshot(world.snaps, 0) is None


@scenario
async def test_an_empty_log_of_snapshots_has_none(world):
    assert await find_snapshot(world.snaps, 0) is None


@scenario
async def test_a_log_that_is_cut_off_without_a_snapshot_stops_the_member(world):
    world.engine.truncate(2)
    with pytest.raises(Lost, match="begins at 2, and there is no snapshot"):
        await world.open(MemoryStorage())


@scenario
async def test_a_log_that_is_cut_off_meanwhile_is_to_be_opened_again(world):
    """The snapshot that is found makes only the newer log readable."""
    await world.cut()
    end = world.snaps.end

    async def end_later():
        world.snaps.end = end
        await world.put("more")
        world.engine.truncate(world.engine.end - 1)
        world.snap_engine.truncate(world.snap_engine.end)
        return await end()

    world.snaps.end = end_later
    with pytest.raises(Truncated):
        await world.open(MemoryStorage())


@scenario
async def test_whoever_dies_while_loading_loads_again(world):
    manifest = await world.cut()
    failing = FaultyStorage(MemoryStorage(), fail_on=3)
    with pytest.raises(StoreFailed):
        await world.open(failing)
    with pytest.raises(HalfLoaded):
        Replica(failing, SHARD)
    assert (await world.open(failing)).mark == manifest.mark
    assert [key for key, _ in failing.scan(Family.MESSAGES)] == [b"key 0", b"key 1", b"key 2"]


@scenario
async def test_half_a_snapshot_is_nothing_where_the_log_goes_back_to_the_beginning(world):
    store = filled((Family.DEFAULT, MARK_KEY, b"\0"), (Family.MESSAGES, b"half", b""))
    replica = await world.open(store)
    await Tail(world.log, replica, turn).catch_up()
    assert dump(store) == dump(world.store)


@scenario
async def test_a_snapshot_that_lacks_a_chunk_or_is_of_others_is_not_loaded(world):
    manifest = await world.snapshot()
    body = world.snap_engine.bodies.pop(0)
    with pytest.raises(Lost, match=r"chunk 0 .* is missing"):
        await load_snapshot(world.snaps, manifest, MemoryStorage(), SHARD, turn)
    world.snap_engine.bodies.insert(0, body)
    with pytest.raises(Lost, match="missing"):
        await load_snapshot(world.snaps, manifest, MemoryStorage(), SHARD + 1, turn)
    with pytest.raises(Lost, match="crc"):
        await load_snapshot(world.snaps, manifest._replace(crc=1), MemoryStorage(), SHARD, turn)
    world.snap_engine.bodies[0] = b"junk"
    with pytest.raises(Unreadable, match="position 0 of the log of snapshots"):
        await load_snapshot(world.snaps, manifest, MemoryStorage(), SHARD, turn)


@scenario
async def test_a_log_that_is_away_is_told_and_waited_for_where_that_helps(world):
    writing = asyncio.ensure_future(world.snapshot())
    world.snap_engine.fail()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    with pytest.raises(LogUnavailable):
        await find_snapshot(world.snaps, 0)
    world.snap_engine.heal()
    manifest = await writing
    assert await find_snapshot(world.snaps, 0) == manifest


@pytest.mark.parametrize("log, stored, due", [(256, 10, False), (257, 10, True), (300, 150, False), (301, 150, True)])
def test_a_snapshot_is_due_when_the_log_is_much_longer_than_what_is_stored(log, stored, due):
    assert is_due(log * MIB, stored * MIB) is due


@pytest.mark.parametrize("body", [b"", bytes(60), bytes(69), bytes(70)])
def test_a_manifest_that_cannot_be_read_is_not_guessed(body):
    with pytest.raises(Unreadable):
        read_manifest(body)


@pytest.mark.parametrize("stored", [b"", b"\x02" + bytes(16), b"\x01" + bytes(17)])
def test_a_note_that_cannot_be_read_is_not_guessed(stored):
    with pytest.raises(Unreadable, match="damaged"):
        read_current(filled((Family.DEFAULT, CURRENT_KEY, stored)))
