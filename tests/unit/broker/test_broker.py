"""The broker on an event loop: what comes in one turn is one tick, and time brings the next."""

import asyncio
import gc
from functools import partial

import pytest

from fila.broker.broker import Broker
from fila.broker.commands import AckGroup, Nack, Settle, StageEnqueue
from fila.broker.engine import Engine
from fila.broker.grants import token_text
from fila.broker.journal import Journal
from fila.broker.records import READ_BYTES
from fila.broker.recovery import recover
from fila.broker.scripts import Scripting
from fila.config import JournalConfig, LimitsConfig, SchedulerConfig
from fila.core.errors import QueueNotFound, ShuttingDown, SteppedDown, StoreFailed
from fila.core.transactions import Transactions
from fila.storage.memory import MemoryStorage
from tests.helpers.broker import MS, NODE, START, LateCommitter, WatchedStore, incoming, queue_record


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def on_a_loop(scenario, scripting=None):
    """Run a test with a broker on a loop of its own."""

    def test():
        async def run():
            store, clock = WatchedStore(MemoryStorage()), Clock()
            state = recover(store, NODE, LimitsConfig(), scripting)
            broker = Broker(Engine(state, store, SchedulerConfig(), Journal(store, JournalConfig())), store, clock)
            await broker.create_queue(queue_record("q"))
            await scenario(broker, store, clock)

        asyncio.run(asyncio.wait_for(run(), 30))

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


class Subscriber:
    """Waits for what it is granted."""

    def __init__(self, broker, queue, max_in_flight):
        self._told = asyncio.Event()
        self._reason = None
        self.subscription = broker.subscribe(queue, max_in_flight, self)

    def granted(self):
        self._told.set()

    def flush(self):
        pass

    def ended(self, reason):
        self._reason = reason
        self._told.set()

    async def next(self):
        while (grant := self.subscription.take()) is None:
            if self._reason is not None:
                raise self._reason
            self._told.clear()
            await self._told.wait()
        return grant


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


@on_a_loop
async def test_what_many_ask_in_one_turn_is_one_write(broker, store, clock):
    writes = store.writes
    outcomes = await asyncio.gather(*[broker.enqueue([incoming("q")]) for _ in range(50)])
    assert store.writes == writes + 1
    assert len({seq for (seq,) in outcomes}) == 50


@on_a_loop
async def test_an_error_is_raised_where_the_call_was_made(broker, store, clock):
    with pytest.raises(QueueNotFound):
        await broker.delete_queue("nowhere")
    store.failing = True
    with pytest.raises(StoreFailed):
        await broker.enqueue([incoming("q")])
    store.failing = False
    await broker.enqueue([incoming("q")])


@on_a_loop
async def test_a_caller_that_went_away_does_not_disturb_the_others(broker, store, clock):
    calls = [asyncio.ensure_future(broker.enqueue([incoming("q")])) for _ in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, True, False]
    assert [len(result) for result in (results[0], results[2])] == [1, 1]


@on_a_loop
async def test_a_subscription_waits_for_messages_and_gets_them_as_grants(broker, store, clock):
    subscription = Subscriber(broker, "q", 10)
    waiting = asyncio.ensure_future(subscription.next())
    await turns()
    assert not waiting.done()
    (seq,) = await broker.enqueue([incoming("q", b"body")])
    grant = await waiting
    ((found, lane, record),) = next(broker.records.read(subscription.subscription.queue, grant))
    assert found == seq
    assert record.endswith(b"body")
    assert lane.priority == 5


@on_a_loop
async def test_a_subscriber_is_handed_no_more_until_it_asks_for_the_next(broker, store, clock):
    """So a slow reader leaves messages to the others, whatever its credit."""
    slow = Subscriber(broker, "q", 1000)
    await broker.enqueue([incoming("q")])
    await slow.next()
    await broker.enqueue([incoming("q")] * 20)
    await turns()
    assert len(broker.state.queue("q").leases) == 1
    fast = Subscriber(broker, "q", 5)
    assert len((await fast.next()).members) == 5
    assert len((await slow.next()).members) == 15


@on_a_loop
async def test_a_subscriber_that_has_taken_all_counts_as_one_that_waits(broker, store, clock):
    """From then on nobody's wait is for want of a consumer, as it is while it is busy."""
    idle = broker.state.queue("q").ledger.idle
    subscriber = Subscriber(broker, "q", 10)
    (seq,) = await broker.enqueue([incoming("q")])
    await turns()
    acks = [AckGroup("q", [broker.state.ids.text(seq)])]
    await broker.settle(lambda reply: Settle(reply, acks=acks))
    await turns()
    assert idle.on is True
    await subscriber.next()
    assert subscriber.subscription.take() is None
    assert idle.on is False


@on_a_loop
async def test_only_the_wait_for_a_lease_is_a_timer(broker, store, clock):
    """Expiry needs no command to come: the broker wakes by itself."""
    await broker.create_queue(queue_record("r", visibility_timeout_ms=20))
    subscription = Subscriber(broker, "r", 1)
    await broker.enqueue([incoming("r")])
    first = await subscription.next()
    clock.now += 20 * MS
    second = await subscription.next()
    assert second.token != first.token
    assert broker.state.queue("r").attempts == dict.fromkeys(second.members, 1)


@on_a_loop
async def test_a_delay_ends_without_a_command(broker, store, clock):
    subscription = Subscriber(broker, "q", 1)
    await broker.enqueue([incoming("q", delay_ms=20)])
    waiting = asyncio.ensure_future(subscription.next())
    await turns()
    assert not waiting.done()
    clock.now += 20 * MS
    assert len((await waiting).members) == 1


class HookClock:
    """Stands still, and is moved at one of the looks at it."""

    def __init__(self):
        self.now = self.looks = 0

    def __call__(self):
        self.looks -= 1
        if self.looks == 0:
            self.now += 1000 * MS
        return self.now


@pytest.mark.parametrize("look", range(1, 13))
def test_a_message_that_waits_for_its_hook_needs_nothing_else_to_come(look):
    """The time for hooks may come at any moment: also while the broker works out how long to sleep."""
    clock = HookClock()

    async def scenario(broker, store, _):
        script = "function on_enqueue(message) return {fairness_key = 'k'} end"
        await broker.create_queue(queue_record("slow", script=script))
        broker.state.scripts.budget.spend(6 * MS)
        clock.looks = look
        await broker.enqueue([incoming("slow")])
        assert clock.looks <= 0

    on_a_loop(scenario, Scripting(clock_ns=clock))()


@on_a_loop
async def test_what_a_subscriber_held_goes_back_when_it_unsubscribes(broker, store, clock):
    subscription = Subscriber(broker, "q", 1)
    await broker.enqueue([incoming("q")])
    await subscription.next()
    broker.unsubscribe(subscription.subscription)
    await turns()
    queue = broker.state.queue("q")
    assert (queue.ready, len(queue.leases), len(queue.consumers)) == (1, 0, 0)


@on_a_loop
async def test_deleting_a_queue_wakes_its_subscribers(broker, store, clock):
    subscription = Subscriber(broker, "q", 1)
    waiting = asyncio.ensure_future(subscription.next())
    await turns()
    await broker.delete_queue("q")
    with pytest.raises(QueueNotFound):
        await waiting


@on_a_loop
async def test_large_messages_are_read_a_few_at_a_time(broker, store, clock):
    """However many a grant holds, no more than a few of the largest are in memory for it."""
    body = bytes(READ_BYTES)
    for _ in range(40):
        await broker.enqueue([incoming("q", body)])
    subscription = Subscriber(broker, "q", 40)
    grant = await subscription.next()
    sizes = [len(piece) for piece in broker.records.read(subscription.subscription.queue, grant)]
    assert sizes == [1] * 40


@on_a_loop
async def test_small_messages_are_read_many_at_a_time(broker, store, clock):
    await broker.enqueue([incoming("q", b"x")] * 1000)
    subscription = Subscriber(broker, "q", 1000)
    grant = await subscription.next()
    pieces = list(broker.records.read(subscription.subscription.queue, grant))
    assert sum(map(len, pieces)) == 1000
    assert len(pieces) < 10


@on_a_loop
async def test_what_the_grant_no_longer_holds_is_not_read(broker, store, clock):
    """Whether it was acked or came back: another consumer may have it by now."""
    outcomes = await broker.enqueue([incoming("q", bytes(READ_BYTES))] * 10)
    subscription = Subscriber(broker, "q", 10)
    grant = await subscription.next()
    pieces = broker.records.read(subscription.subscription.queue, grant)
    first = next(pieces)
    acked, nacked = (broker.state.ids.text(outcomes[at]) for at in (3, 5))
    acks, nacks = [AckGroup("q", [acked])], [Nack("q", nacked, delay_ms=1000)]
    assert await broker.settle(lambda reply: Settle(reply, acks=acks, nacks=nacks)) == []
    read = [seq for piece in [first, *pieces] for seq, _, _ in piece]
    assert read == [seq for at, seq in enumerate(outcomes) if at not in {3, 5}]


@on_a_loop
async def test_what_was_just_written_is_delivered_as_it_was_and_again_from_the_store(broker, store, clock):
    """A waiting consumer is served from memory; whoever comes after it reads the same bytes from the store."""
    subscription = Subscriber(broker, "q", 10)
    await broker.enqueue([incoming("q", b"one"), incoming("q", b"two")])
    first = [
        record
        for piece in broker.records.read(subscription.subscription.queue, await subscription.next())
        for _, _, record in piece
    ]
    broker.unsubscribe(subscription.subscription)
    again = Subscriber(broker, "q", 10)
    second = [
        record for piece in broker.records.read(again.subscription.queue, await again.next()) for _, _, record in piece
    ]
    assert first == second
    assert [record[-3:] for record in second] == [b"one", b"two"]


class TestDealtOut:
    """What several consumers are handed in one tick."""

    @staticmethod
    def test_is_read_once_for_all_of_them_in_the_order_of_the_store():
        @on_a_loop
        async def scenario(broker, store, clock):
            seqs = list(await broker.enqueue([incoming("q", b"%03d" % number) for number in range(60)]))
            subscribers = [Subscriber(broker, "q", 20) for _ in range(3)]
            reads, read = [], store.get_many
            store.get_many = lambda family, wanted: reads.extend(wanted) or read(family, wanted)
            grants = [await subscriber.next() for subscriber in subscribers]
            assert [len(grant.members) for grant in grants] == [20, 20, 20]
            found = {
                seq: record[-3:]
                for subscriber, grant in zip(subscribers, grants, strict=True)
                for piece in broker.records.read(subscriber.subscription.queue, grant)
                for seq, _, record in piece
            }
            assert found == {seq: b"%03d" % number for number, seq in enumerate(seqs)}
            assert len(reads) == 60
            assert reads == sorted(reads)

        scenario()

    @staticmethod
    def test_comes_to_each_of_them_when_it_cannot_be_read_together():
        """Whoever reads then finds out by itself; nobody waits for ever."""

        @on_a_loop
        async def scenario(broker, store, clock):
            await broker.enqueue([incoming("q")] * 4)
            subscribers = [Subscriber(broker, "q", 2) for _ in range(2)]
            read = store.get_many

            def broken(family, wanted):
                raise StoreFailed("a bad block")

            store.get_many = broken
            grants = [await subscriber.next() for subscriber in subscribers]
            with pytest.raises(StoreFailed):
                next(broker.records.read(subscribers[0].subscription.queue, grants[0]))
            store.get_many = read
            assert len(next(broker.records.read(subscribers[1].subscription.queue, grants[1]))) == 2

        scenario()


def test_the_hot_path_leaves_nothing_to_the_garbage_collector():
    """What goes in circles stays until the collector comes by: messages would be kept for nothing, and collecting them
    would be the main work of a queue with many keys.
    """

    @on_a_loop
    async def scenario(broker, store, clock):
        await broker.create_queue(queue_record("many", fairness_header="tenant"))
        subscriber = Subscriber(broker, "many", 1000)

        async def live():
            headers = [{"tenant": str(number)} for number in range(10)]
            await broker.enqueue([incoming("many", headers=headers[number % 10]) for number in range(50)])
            held = 0
            while held < 50:
                grant = await subscriber.next()
                held += len(grant.members)
                ids = [broker.state.ids.text(seq) for seq in grant.members]
                acks = [AckGroup("many", ids, token_text(grant.token))]
                assert await broker.settle(lambda reply, acks=acks: Settle(reply, acks=acks)) == []

        await live()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await live()
            gc.collect()
            found = {type(each) for each in gc.garbage if type(each).__module__.startswith("fila.")}
            # Clients that other tests left end in threads of their own, meanwhile. The broker imports neither of these.
            left = {each.__name__ for each in found if not each.__module__.startswith(("fila.client.", "fila.wire."))}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left == set()

    scenario()


class TestStopping:
    @staticmethod
    def test_finishes_what_was_asked_takes_no_more_and_ends_deliveries():
        @on_a_loop
        async def scenario(broker, store, clock):
            subscription = Subscriber(broker, "q", 1)
            waiting = asyncio.ensure_future(subscription.next())
            asked = [asyncio.ensure_future(broker.enqueue([incoming("q")])) for _ in range(3)]
            await asyncio.sleep(0)
            await broker.stop()
            assert len(await asyncio.gather(*asked)) == 3
            with pytest.raises(ShuttingDown):
                await waiting
            with pytest.raises(ShuttingDown):
                await broker.enqueue([incoming("q")])
            with pytest.raises(ShuttingDown):
                Subscriber(broker, "q", 1)
            broker.close()

        scenario()

    @staticmethod
    def test_leaves_leases_to_the_next_start():
        @on_a_loop
        async def scenario(broker, store, clock):
            subscription = Subscriber(broker, "q", 1)
            (seq,) = await broker.enqueue([incoming("q")])
            await subscription.next()
            await broker.stop()
            broker.unsubscribe(subscription.subscription)
            await turns()
            broker.close()
            state = recover(store, NODE, LimitsConfig())
            assert seq in state.queue("q").leases

        scenario()

    @staticmethod
    def test_touches_nothing_once_it_is_closed():
        @on_a_loop
        async def scenario(broker, store, clock):
            Subscriber(broker, "q", 1)
            await broker.enqueue([incoming("q", delay_ms=1)])
            clock.now += 5 * MS
            await broker.stop()
            broker.close()
            writes = store.writes
            await asyncio.sleep(0.01)
            assert store.writes == writes

        scenario()


def in_flight(scenario):
    """As `on_a_loop`, with ticks that are in flight until `committer.finish`."""

    def test():
        async def run():
            store, clock = WatchedStore(MemoryStorage()), Clock()
            committer = LateCommitter(store)
            committer.prompt = True
            journal = Journal(store, JournalConfig())
            engine = Engine(recover(store, NODE, LimitsConfig()), store, SchedulerConfig(), journal, committer)
            broker = Broker(engine, store, clock)
            await broker.create_queue(queue_record("q"))
            committer.prompt = False
            await scenario(broker, store, committer)

        asyncio.run(asyncio.wait_for(run(), 30))

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


class TestInFlight:
    @staticmethod
    def test_what_comes_meanwhile_is_one_tick_when_it_has_landed():
        @in_flight
        async def scenario(broker, store, committer):
            ticks = []
            broker.after_tick = ticks.append
            first = asyncio.ensure_future(broker.enqueue([incoming("q")]))
            await turns()
            others = [asyncio.ensure_future(broker.enqueue([incoming("q")])) for _ in range(3)]
            await turns()
            assert not first.done()
            assert not ticks
            committer.finish()
            await turns()
            assert first.done()
            assert ticks == [1]
            committer.finish()
            await asyncio.gather(*others)
            await turns()
            assert ticks == [1, 3]

        scenario()

    @staticmethod
    def test_a_consumer_that_went_meanwhile_is_told_nothing_and_holds_nothing():
        @in_flight
        async def scenario(broker, store, committer):
            subscriber = Subscriber(broker, "q", 1)
            await turns()
            asked = asyncio.ensure_future(broker.enqueue([incoming("q")]))
            await turns()
            broker.unsubscribe(subscriber.subscription)
            committer.finish()
            await asked
            await turns()
            committer.finish()
            await turns()
            assert not subscriber._told.is_set()
            assert broker.state.queue("q").ready == 1
            assert not broker.state.queue("q").attempts

        scenario()

    @staticmethod
    def test_a_consumer_that_went_is_not_told_that_its_queue_is_deleted():
        @in_flight
        async def scenario(broker, store, committer):
            subscriber = Subscriber(broker, "q", 1)
            await turns()
            deleted = asyncio.ensure_future(broker.delete_queue("q"))
            await turns()
            broker.unsubscribe(subscriber.subscription)
            committer.finish()
            assert await deleted == 0
            assert not subscriber._told.is_set()

        scenario()

    @staticmethod
    def test_stopping_waits_for_the_landing_and_does_what_came_before():
        @in_flight
        async def scenario(broker, store, committer):
            first = asyncio.ensure_future(broker.enqueue([incoming("q")]))
            await turns()
            second = asyncio.ensure_future(broker.enqueue([incoming("q")]))
            await turns()
            stopping = asyncio.ensure_future(broker.stop())
            await turns()
            assert not stopping.done()
            with pytest.raises(ShuttingDown):
                await broker.enqueue([incoming("q")])
            for _ in range(2):
                committer.finish()
                await turns()
            await stopping
            assert len(await first) == len(await second) == 1
            broker.close()

        scenario()

    @staticmethod
    def test_a_broker_that_is_deposed_tells_all_and_ends():
        @in_flight
        async def scenario(broker, store, committer):
            subscriber = Subscriber(broker, "q", 1)
            waiting = asyncio.ensure_future(subscriber.next())
            asked = [asyncio.ensure_future(broker.enqueue([incoming("q")]))]
            await turns()
            asked += [asyncio.ensure_future(broker.enqueue([incoming("q")]))]
            await turns()
            stored = store.dump()
            committer.finish(SteppedDown("ask another"))
            answers = await asyncio.gather(waiting, *asked, return_exceptions=True)
            assert [type(answer) for answer in answers] == [SteppedDown] * 3
            with pytest.raises(SteppedDown):
                await broker.enqueue([incoming("q")])
            with pytest.raises(SteppedDown):
                Subscriber(broker, "q", 1)
            with pytest.raises(SteppedDown):
                await broker.failed
            assert not broker.ready
            assert store.dump() == stored
            await broker.stop()
            broker.close()

        scenario()

    @staticmethod
    def test_a_broker_that_is_stopping_ends_when_it_is_deposed():
        @in_flight
        async def scenario(broker, store, committer):
            asked = asyncio.ensure_future(broker.enqueue([incoming("q")]))
            await turns()
            stopping = asyncio.ensure_future(broker.stop())
            await turns()
            committer.finish(SteppedDown("ask another"))
            await stopping
            with pytest.raises(SteppedDown):
                await asked
            assert isinstance(broker.failed.exception(), SteppedDown)
            broker.close()

        scenario()

    @staticmethod
    def test_who_commits_a_transaction_looks_again_when_the_tick_has_landed_and_not_before(monkeypatch):
        @in_flight
        async def scenario(broker, store, committer):
            committer.prompt = True
            for sequence in range(1, 6):
                await broker.stage(partial(StageEnqueue, "p", 1, "x", sequence, [incoming("q")]))
            looks = []
            find = broker.state.transactions.find
            monkeypatch.setattr(Transactions, "find", lambda _, name: looks.append(name) or find(name))
            committer.prompt = False
            commit = asyncio.ensure_future(broker.commit_transaction("p", 1, [("x", 5)]))
            while not commit.done():
                await turns()
                before = len(looks)
                await turns(50)
                assert len(looks) == before
                committer.finish()
                await turns()
            assert not commit.result()
            broker.close()

        scenario()

    @staticmethod
    def test_a_broker_that_is_told_that_another_has_taken_over_ends():
        @on_a_loop
        async def scenario(broker, store, clock):
            subscriber = Subscriber(broker, "q", 1)
            waiting = asyncio.ensure_future(subscriber.next())
            await turns()
            broker.step_down(SteppedDown("ask another"))
            broker.step_down(SteppedDown("ask another"))
            with pytest.raises(SteppedDown, match="ask another"):
                await waiting
            with pytest.raises(SteppedDown):
                await broker.enqueue([incoming("q")])
            with pytest.raises(SteppedDown):
                await broker.failed
            broker.close()

        scenario()
