"""Both faces of the SDK against a broker that loses requests and answers."""

import asyncio
import gc
import threading
import time

import pytest

from fila import (
    AckManyError,
    AsyncClient,
    Client,
    ClientClosedError,
    EnqueueManyError,
    FilaTimeoutError,
    InvalidArgumentError,
    MessageNotFoundError,
    QueueNotFoundError,
    UnavailableError,
)
from tests.helpers.scripted_broker import ScriptedBroker, serving


def scenario(test):
    """Runs an async test with a broker and a client."""

    def run():
        async def main():
            broker = ScriptedBroker()
            async with serving(broker) as addr, AsyncClient(addr) as client:
                await test(broker, client)

        asyncio.run(main())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


async def until(condition, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_an_enqueue_whose_request_or_answer_is_lost_is_enqueued_once(loss):
    @scenario
    async def run(broker, client):
        await client.enqueue("q", payload=b"first")
        broker.script.extend([loss, loss])
        assert await client.enqueue("q", payload=b"second") == "id-2"
        assert broker.enqueued == [b"first", b"second"]
        assert broker.sequences == [1, 2, 2, 2]

    run()


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_many_batches_under_way_survive_losses_in_order(loss):
    @scenario
    async def run(broker, client):
        broker.script.extend(["", loss, "", "", loss, "", loss])
        payloads = [str(n).encode() for n in range(6000)]
        ids = await client.enqueue_many("q", payloads)
        assert broker.enqueued == payloads
        assert ids == [f"id-{n + 1}" for n in range(6000)]

    run()


@scenario
async def test_concurrent_enqueues_share_batches(broker, client):
    ids = await asyncio.gather(*[client.enqueue("q", payload=str(n).encode()) for n in range(1000)])
    assert len(set(ids)) == 1000
    assert broker.batches <= 20


@scenario
async def test_a_lone_enqueue_is_sent_at_once(broker, client):
    await client.enqueue("q")
    began = time.perf_counter()
    for _ in range(20):
        await client.enqueue("q")
    assert broker.batches == 21
    assert time.perf_counter() - began < 2.0


def test_an_enqueue_without_an_answer_times_out_and_is_not_sent_again():
    async def main():
        broker = ScriptedBroker()
        async with serving(broker) as addr, AsyncClient(addr, timeout=2) as client:
            await client.enqueue("q", payload=b"a")
            broker.script.append("ignore")
            with pytest.raises(FilaTimeoutError):
                await client.enqueue("q", payload=b"b")
            broker.script.append("lose request")
            assert await client.enqueue("q", payload=b"c") == "id-3"
            assert broker.enqueued == [b"a", b"b", b"c"]
            assert broker.sequences == [1, 2, 3, 3]

    asyncio.run(main())


def test_without_a_broker_calls_end_in_time_and_say_why():
    async def main():
        async with AsyncClient("127.0.0.1:1", timeout=0.3) as client:
            with pytest.raises(FilaTimeoutError, match=r"0\.3 s \(.*refused"):
                await client.enqueue("q")
            with pytest.raises(FilaTimeoutError):
                await client.ack("q", "x")
            with pytest.raises(EnqueueManyError) as raised:
                await client.enqueue_many("q", [b"x"] * 20_000)
            assert all(isinstance(each, FilaTimeoutError) for each in raised.value.results)
            with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
                await client.list_queues()

    asyncio.run(main())


def test_what_was_not_sent_before_its_deadline_is_never_sent():
    async def main():
        broker = ScriptedBroker()
        async with serving(broker) as addr:
            pass
        async with AsyncClient(addr, timeout=0.2) as client:
            with pytest.raises(FilaTimeoutError):
                await client.enqueue("q", payload=b"too early")
            async with serving(broker, addr):
                for _ in range(50):
                    try:
                        await client.enqueue("q", payload=b"in time")
                        break
                    except FilaTimeoutError:
                        continue
                assert set(broker.enqueued) == {b"in time"}

    asyncio.run(main())


@scenario
async def test_a_cancelled_enqueue_disturbs_nobody(broker, client):
    await client.enqueue("q")
    tasks = [asyncio.create_task(client.enqueue("q", payload=str(n).encode())) for n in range(10)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(each, str) for each in results) == 9


@scenario
async def test_a_batch_that_the_broker_cannot_read_fails_alone(broker, client):
    await client.enqueue("q")
    first = asyncio.create_task(client.enqueue_many("q", [str(n).encode() for n in range(2000)]))
    await asyncio.sleep(0)
    poison = asyncio.create_task(client.enqueue("q", payload=b"poison"))
    await asyncio.sleep(0.05)
    last = asyncio.create_task(client.enqueue_many("q", [str(n).encode() for n in range(2000, 3000)]))
    results = await asyncio.gather(first, poison, last, return_exceptions=True)
    assert isinstance(results[1], InvalidArgumentError)
    assert await client.enqueue("q", payload=b"still alive")
    assert len(set(broker.enqueued)) == len(broker.enqueued)


@scenario
async def test_enqueue_many_names_what_was_refused(broker, client):
    with pytest.raises(EnqueueManyError) as raised:
        await client.enqueue_many("none", [b"a", b"b"])
    assert list(raised.value.failed) == [0, 1]
    with pytest.raises(EnqueueManyError) as raised:
        await client.enqueue_many("q", [b"a", b"b", "c", b"d"])
    assert raised.value.results[:2] == ["id-1", "id-2"]
    assert isinstance(raised.value.failed[2], InvalidArgumentError)
    assert await client.enqueue_many("q", []) == []
    with pytest.raises(QueueNotFoundError):
        await client.enqueue("none")


@pytest.mark.parametrize("loss", ["lose request", "lose answer"])
def test_an_ack_whose_request_or_answer_is_lost_is_carried_out(loss):
    @scenario
    async def run(broker, client):
        broker.held |= {"a", "b"}
        broker.script.append(loss)
        await asyncio.gather(client.ack("q", "a"), client.ack("q", "b"))
        assert broker.acked == ["a", "b"]

    run()


@scenario
async def test_settling_what_is_not_held_is_an_error_for_the_one_who_does(broker, client):
    broker.held |= {"a", "b"}
    results = await asyncio.gather(
        client.ack("q", "a"),
        client.nack("q", "x"),
        client.extend("q", "b"),
        client.ack("q", "a"),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [type(None), MessageNotFoundError, type(None), MessageNotFoundError]


@scenario
async def test_consumed_messages_are_settled_through_themselves(broker, client):
    broker.to_deliver.put_nowait(["a", "b", "c"])
    consumer = client.consume("q")
    a, b, c = [await anext(consumer) for _ in range(3)]
    await a.ack()
    await b.nack("no")
    await c.extend(1000)
    assert (broker.acked, broker.nacked, broker.extended) == (["a"], ["b"], ["c"])
    with pytest.raises(AckManyError) as raised:
        await client.ack_many([a, c])
    assert list(raised.value.failed) == ["a"]


@scenario
async def test_a_consumer_of_no_queue_is_told_at_once(broker, client):
    with pytest.raises(QueueNotFoundError):
        await anext(client.consume("none"))


@scenario
async def test_a_consumer_reconnects_and_gives_back_what_it_had_not_taken(broker, client):
    consumer = client.consume("q")
    broker.to_deliver.put_nowait(["taken", "not taken"])
    assert (await anext(consumer)).id == "taken"
    broker.to_deliver.put_nowait(None)
    await until(lambda: broker.nacked == ["not taken"])
    broker.to_deliver.put_nowait(["after"])
    assert (await anext(consumer)).id == "after"


@scenario
async def test_batches_hold_all_that_is_there(broker, client):
    broker.to_deliver.put_nowait(["a"])
    broker.to_deliver.put_nowait(["b", "c"])
    consumer = client.consume_batches("q")
    await until(lambda: len(broker.held) == 3)
    await asyncio.sleep(0.05)
    assert [each.id for each in await anext(consumer)] == ["a", "b", "c"]


@pytest.mark.parametrize("auto_extend", [True, False])
def test_leases_of_taken_and_prefetched_messages_are_kept_alive(auto_extend):
    async def main():
        broker = ScriptedBroker(visibility_timeout_ms=150)
        async with serving(broker) as addr, AsyncClient(addr) as client:
            broker.to_deliver.put_nowait(["taken", "settled", "prefetched", "gone"])
            consumer = client.consume("q", auto_extend=auto_extend)
            await anext(consumer)
            await (await anext(consumer)).ack()
            broker.held.discard("gone")
            if not auto_extend:
                await asyncio.sleep(0.3)
                assert broker.extended == []
                return
            await until(lambda: set(broker.extended) == {"taken", "prefetched"})
            await until(
                lambda: len(client._session().in_flight) == 2
            )  # "gone" is dropped once its extension is refused

    asyncio.run(main())


@scenario
async def test_the_broker_is_told_what_was_handed_out(broker, client):
    """What was handed out, not what was prefetched; and not once for each of many messages."""
    broker.to_deliver.put_nowait([str(number) for number in range(1000)])
    async with client.consume("q") as consumer:
        for _ in range(900):
            await anext(consumer)
        await until(lambda: broker.handed and broker.handed[-1] == 900)
        assert broker.handed == sorted(set(broker.handed))
        assert len(broker.handed) < 450


@scenario
async def test_leaving_the_loop_ends_the_stream(broker, client):
    broker.to_deliver.put_nowait(["a", "b"])
    async for _ in client.consume("q"):
        break
    gc.collect()
    await until(lambda: broker.open_leases == 0)


@scenario
async def test_closing_fails_what_is_under_way_and_ends_consumers(broker, client):
    await client.enqueue("q")
    broker.script.append("ignore")
    consumer = client.consume("q")
    waiting = [
        asyncio.create_task(client.enqueue("q")),
        asyncio.create_task(client.list_queues()),
        asyncio.create_task(anext(consumer, "ended")),
    ]
    await asyncio.sleep(0.05)
    await client.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results[:2]] == [ClientClosedError, ClientClosedError]
    assert results[2] == "ended"
    for call in (client.enqueue("q"), client.ack("q", "a"), client.list_queues()):
        with pytest.raises(ClientClosedError):
            await call
    with pytest.raises(ClientClosedError):
        client.consume("q")
    await client.close()


class TestBlocking:
    """The blocking face, with the broker on a loop in another thread."""

    @pytest.fixture
    def broker(self):
        ready, stop = threading.Event(), asyncio.Event()
        state = {}

        async def main():
            state["broker"] = ScriptedBroker()
            state["loop"] = asyncio.get_running_loop()
            async with serving(state["broker"]) as state["addr"]:
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=asyncio.run, args=(main(),))
        thread.start()
        ready.wait()
        state["broker"].addr = state["addr"]
        state["broker"].deliver = lambda ids: state["loop"].call_soon_threadsafe(
            state["broker"].to_deliver.put_nowait, ids
        )
        yield state["broker"]
        state["loop"].call_soon_threadsafe(stop.set)
        thread.join()

    def test_calls_return_what_the_broker_answered(self, broker):
        with Client(broker.addr) as client:
            broker.script.append("lose answer")
            assert client.enqueue("q", {"h": "v"}, b"x") == "id-1"
            assert client.enqueue_many("q", [b"y"] * 1200) == [f"id-{n + 2}" for n in range(1200)]
            with pytest.raises(QueueNotFoundError):
                client.enqueue("none")
            with pytest.raises(QueueNotFoundError):
                next(client.consume("none"))
            assert client.queue_stats("q").config.visibility_timeout_ms == 30_000

    def test_consuming_and_settling(self, broker):
        with Client(broker.addr) as client:
            broker.deliver(["a", "b", "c"])
            seen = []
            for message in client.consume("q"):
                message.ack()
                seen.append(message.id)
                if len(seen) == 3:
                    break
            assert broker.acked == seen == ["a", "b", "c"]
            asyncio.run(until(lambda: broker.open_leases == 0))
            broker.deliver(["d", "e"])
            with client.consume_batches("q") as batches:
                client.ack_many(next(batches))
            assert broker.acked == ["a", "b", "c", "d", "e"]

    def test_threads_share_a_client(self, broker):
        with Client(broker.addr) as client:
            ids: list[str] = []
            threads = [
                threading.Thread(target=lambda: ids.extend(client.enqueue("q") for _ in range(50))) for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(ids)) == 400

    def test_closing_releases_a_blocked_thread(self, broker):
        client = Client(broker.addr, timeout=30)
        broker.script.append("ignore")
        outcomes: list[object] = []

        def enqueue():
            try:
                client.enqueue("q")
            except ClientClosedError as error:
                outcomes.append(error)

        threads = [
            threading.Thread(target=enqueue),
            threading.Thread(target=lambda: outcomes.append(list(client.consume("q")))),
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        client.close()
        for thread in threads:
            thread.join(5)
        assert not any(thread.is_alive() for thread in threads)
        assert len(outcomes) == 2
        client.close()
        with pytest.raises(ClientClosedError):
            client.enqueue("q")
        with pytest.raises(ClientClosedError):
            client.list_queues()
