"""Whoever needs all messages of a queue waits while they are read after a start; nobody else does."""

import asyncio

import pytest

from fila.broker.broker import Broker
from fila.broker.engine import Engine
from fila.broker.journal import Journal
from fila.broker.operators import Sweep
from fila.broker.reading import Wanted
from fila.broker.recovery import CLOCK_KEY, recover
from fila.broker.search import Query
from fila.broker.stats import KeyOrder
from fila.config import JournalConfig, LimitsConfig, SchedulerConfig
from fila.core.errors import StoreCorrupt, StoreFailed
from fila.storage import codec, keys
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from fila.storage.rocks import RocksStorage
from tests.helpers.broker import NODE, Driver, messages_of
from tests.support.packing import reads_of

PENDING = 50
OFF = JournalConfig(enabled=False)


def restarted(scenario, damage=None):
    """Run a scenario with a broker that has just started and knows two messages of each queue."""
    before = Driver(journal=OFF)
    before.create("q", max_attempts=1)
    for _ in range(PENDING + 1):
        before.send("q", b"body")
    consumer = before.join("q", 1)
    before.settle_down()
    (taken,) = consumer.take()
    before.nack("q", taken.id, token=taken.token)  # one is dead
    before.leave(consumer)
    before.settle_down()
    if damage is not None:
        damage(before)

    async def run():
        with reads_of(2):
            state = recover(before.store, NODE, LimitsConfig(), background=True)
            engine = Engine(state, before.store, SchedulerConfig(), Journal(before.store, OFF))
            broker = Broker(engine, before.store, lambda: before.now)
            assert "q" in state.loading
            await scenario(broker)

    asyncio.run(asyncio.wait_for(run(), 30))


async def stats(broker):
    return (await broker.operators.stats("q", KeyOrder())).summary.depth


async def listed(broker):
    found, _ = await broker.operators.list_queues("", 10)
    return next(summary.depth for summary in found if summary.name == "q")


async def peeked(broker):
    return len((await broker.operators.peek("q", Query(), 1000)).matches)


async def deleted(broker):
    return await broker.delete_queue("q", force=True)


async def purged(broker):
    return (await broker.operators.purge("q", Query(), Sweep(), any_queue=True)).done


async def claimed(broker):
    return (await broker.readers.claim(Wanted("q", "readers", 0, 1000))).size


async def held(broker):
    return (await broker.readers.floor("q", "readers")).ready


@pytest.mark.parametrize(
    "call, expected",
    [
        (stats, PENDING),
        (listed, PENDING),
        (peeked, PENDING),
        (deleted, PENDING + 1),
        (purged, PENDING),
        (claimed, PENDING),
        (held, PENDING),
    ],
    ids=["stats", "list", "peek", "delete", "purge", "claim", "floor"],
)
def test_a_call_that_needs_all_messages_has_them(call, expected):
    async def scenario(broker):
        assert await call(broker) == expected

    restarted(scenario)


def test_a_redrive_goes_to_a_queue_that_is_known():
    """What it sends back has an old number, and would be read a second time."""

    async def scenario(broker):
        assert (await broker.operators.redrive("q.dlq", Query(), Sweep())).done == 1
        assert not broker.state.loading
        assert broker.state.queue("q").size == PENDING + 1

    restarted(scenario)


def test_a_queue_is_read_without_being_asked_for():
    async def scenario(broker):
        while broker.state.loading:
            await asyncio.sleep(0)
        assert broker.state.queue("q").ready == PENDING

    restarted(scenario)


def test_a_broken_message_that_is_read_late_ends_the_broker():
    """As it would have refused the start."""

    def damage(driver):
        batch = Batch()
        (key, _), *_ = reversed(list(driver.store.scan(Family.MESSAGES, keys.name("q"), keys.after(keys.name("q")))))
        batch.put(Family.MESSAGES, key, bytes([255]) + codec.message_head(1, 1)[1:])
        driver.store.write(batch)

    async def scenario(broker):
        with pytest.raises(StoreCorrupt):
            await broker.failed

    restarted(scenario, damage)


class Unreadable(MemoryStorage):
    """A store of which so many messages can be read before it fails, once."""

    left = -1

    def scan(self, family, start=b"", end=None):
        found = super().scan(family, start, end)
        return self._until_it_fails(found) if family is Family.MESSAGES else found

    def _until_it_fails(self, found):
        for message in found:
            if not self.left:
                self.left = -1
                raise StoreFailed("could not be read")
            self.left -= 1
            yield message


def started_again(store):
    """A driver of which some messages were sent before a restart, and nearly none read after it."""
    one = Driver(store, journal=OFF, background=True)
    one.create("q")
    sent = [one.send("q", b"body") for _ in range(PENDING)]
    one.restart()
    assert "q" in one.state.loading
    return one, sent


@pytest.mark.parametrize("left", [0, 1, 2, 3, 7])
def test_what_could_not_be_read_is_read_later(left):
    """Nothing is left out, and nothing is taken in twice."""
    store = Unreadable()
    with reads_of(2):
        one, sent = started_again(store)
        store.left = left
        while one.engine.has_work(one.now):
            one.tick()
        assert "q" in one.state.loading  # it rests, though nobody asked for anything
        one.now = one.engine.next_wakeup()
        one.settle_down()
        assert not one.state.loading
        consumer = one.join("q", 2 * PENDING)
        one.settle_down()
        assert consumer.seqs == sent


def test_a_store_that_failed_is_opened_anew_while_a_queue_is_read(tmp_path, monkeypatch):
    """It cannot be opened while somebody reads it."""
    store = RocksStorage(tmp_path / "store")
    try:
        with reads_of(2):
            one, sent = started_again(store)
            one.tick()  # it has begun to read
            with monkeypatch.context() as broken:
                broken.setattr(RocksStorage, "_write", fails)
                with pytest.raises(StoreFailed):
                    one.send("q", b"body")
            sent.append(one.send("q", b"body"))
            assert "q" in one.state.loading
            one.advance(1000)
            assert not one.state.loading
            assert sorted(messages_of(one.queue("q"))) == sent
            del one
    finally:
        store.close()


def test_a_store_is_free_for_others_once_a_broker_is_closed(tmp_path):
    """Also if it was read at that time."""
    store = RocksStorage(tmp_path / "store")

    async def close():
        broker = Broker(one.engine, store, lambda: one.now)
        broker.close()
        RocksStorage(tmp_path / "store").close()

    with reads_of(2):
        one, _ = started_again(store)
        one.tick()
        assert "q" in one.state.loading
        asyncio.run(close())


def fails(*_):
    raise OSError("an input or output error")


def test_large_messages_are_read_a_few_at_a_time(monkeypatch):
    """However many may be read: a thousand could be gigabytes."""
    monkeypatch.setattr("fila.broker.recovery.BYTES_FIRST", 500)
    monkeypatch.setattr("fila.broker.loading.BYTES_AT_ONCE", 300)
    one = Driver(journal=OFF, background=True)
    one.create("q")
    for _ in range(PENDING):
        one.send("q", b"x" * 100)
    one.restart()
    assert one.queue("q").ready == 5
    one.tick()
    assert one.queue("q").ready == 8
    one.settle_down()
    assert one.queue("q").ready == PENDING
    one.background = False
    one.restart()
    assert one.queue("q").ready == PENDING


def test_a_queue_with_messages_of_later_than_the_broker_knows_is_read_whole():
    """New ones would get the same numbers."""
    one = Driver(journal=OFF, background=True)
    one.create("q")
    sent = [one.send("q") for _ in range(PENDING)]
    batch = Batch()
    batch.delete(Family.DEFAULT, CLOCK_KEY)
    one.store.write(batch)
    with reads_of(2):
        one.restart()
        one.now -= 3_600_000_000_000
        sent.append(one.send("q"))
        one.settle_down()
    assert sorted(messages_of(one.queue("q"))) == sent


def test_keys_that_have_only_newer_messages_are_looked_at_once():
    """There may be a hundred thousand of them, and the others are served meanwhile."""
    one = Driver(journal=OFF, background=True)
    one.create("q", fairness_header="tenant")
    before = [one.send("q", headers={"tenant": "old"}) for _ in range(PENDING)]
    with reads_of(2):
        one.restart()
        new = [one.send("q", headers={"tenant": f"new-{number}"}) for number in range(20)]
        drr = one.queue("q").drr
        assert (len(drr), drr.parked) == (21, 0)
        consumer = one.join("q", 2 * PENDING)
        one.tick()
        assert consumer.seqs
        assert drr.parked == 20
        one.settle_down()
    assert consumer.seqs[:PENDING] == before
    assert sorted(consumer.seqs[PENDING:]) == new
    assert not drr.parked
