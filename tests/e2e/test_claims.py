"""Claims through the SDK, against a real server that is killed on the way."""

import asyncio
import threading
import time

import pytest

from fila import (
    AsyncClient,
    ClaimLostError,
    Client,
    FailedPreconditionError,
    FencedError,
    InvalidArgumentError,
    OutgoingMessage,
)
from fila.testing import ServerProcess
from tests.e2e.support import contents, eventually


def read(group, number, low=0, high=0):
    return [message for messages in group.read(number, low, high) for message in messages]


def test_a_claim_is_read_again_in_slices_and_acked(client, queue):
    """Slices of a claim are the same however often they are read, and together they are the claim."""
    client.create_queue(queue, fairness_header="tenant")
    ids = client.enqueue_many(queue, [b"%d" % number for number in range(5000)])
    group = client.group(queue, "g", epoch=1)
    assert group.floor().floor == group.floor().last == 0
    claim = group.claim(0, max_messages=4500, lease_ms=60_000)
    assert (claim.number, claim.messages, claim.held, claim.state) == (1, 4500, 4500, "open")
    assert group.claim(0).lease_id == claim.lease_id
    messages = read(group, 1)
    assert [message.id for message in messages] == ids[:4500]
    assert [message.payload for message in messages[:2]] == [b"0", b"1"]
    assert {message.lease_id for message in messages} == {claim.lease_id}
    slices = [read(group, 1, low, min(low + 700, 4500)) for low in range(0, 4500, 700)]
    assert [message.id for part in slices for message in part] == ids[:4500]
    assert client.queue_stats(queue).groups[0].held == 4500
    assert "claim 1 of group" in client.explain(queue, ids[0]).reasons[0].text
    assert group.ack(1).messages == 4500
    eventually(lambda: contents(client, queue) == (500, 0, 0), "what was acked is gone")
    assert group.floor().floor == 1
    with pytest.raises(ClaimLostError):
        read(group, 1)
    with pytest.raises(ClaimLostError):
        group.claim(0)
    assert group.claim(1).messages == 500
    assert group.claim(2) is None


def test_bare_messages_are_the_same_ones_without_what_the_broker_adds(client, queue):
    """Of a claim and of a look, in several pieces, with different headers, weights and throttles among them."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight", throttle_headers=["provider"])
    kinds = [{}, {"tenant": "a"}, {"tenant": "b", "weight": "7"}, {"tenant": "b", "provider": "x"}]
    client.enqueue_many(queue, [OutgoingMessage(b"%d" % number * 2000, kinds[number % 4]) for number in range(1500)])
    group = client.group(queue, "g")

    def seen(messages):
        return [(message.enqueued_at_ns, dict(message.headers), message.payload) for message in messages]

    def bare(packed):
        for messages, seqs in packed:
            assert {field.name for message in messages for field, _ in message.ListFields()} <= {"headers", "payload"}
            for message, seq in zip(messages, seqs, strict=True):
                yield seq, dict(message.headers), message.payload

    looked = [message for messages in client.read_queue(queue) for message in messages]
    assert list(bare(client.read_queue_packed(queue, bare=True))) == seen(looked)
    assert group.claim(0).messages == 1500
    assert list(bare(group.read_packed(1, bare=True))) == seen(read(group, 1))
    assert list(bare(group.read_packed(1, 700, 900, bare=True))) == seen(read(group, 1, 700, 900))


def test_an_epoch_fences_off_the_reader_before(client, queue):
    client.create_queue(queue)
    client.enqueue(queue, None, b"x")
    old, new = client.group(queue, "g", epoch=1), client.group(queue, "g", epoch=2)
    assert old.claim(0).number == 1
    assert new.extend(60_000).extended == (1,)
    with pytest.raises(FencedError):
        old.ack(1)
    assert new.ack(1).messages == 1


def test_a_reader_that_waits_is_answered_when_a_message_comes(client, queue):
    client.create_queue(queue)
    group = client.group(queue, "g")
    claims = []
    waiting = threading.Thread(target=lambda: claims.append(group.claim(0, wait_ms=10_000)))
    waiting.start()
    client.enqueue(queue, None, b"x")
    waiting.join(30)
    assert claims[0].messages == 1


def test_what_cannot_be_is_refused_with_words(client, queue):
    client.create_queue(queue)
    group = client.group(queue, "g")
    with pytest.raises(InvalidArgumentError, match="wait_ms"):
        group.claim(0, wait_ms=10_001)
    with pytest.raises(InvalidArgumentError):
        group.claim(-1)
    with pytest.raises(InvalidArgumentError, match="name"):
        client.group(queue, "").claim(0)
    client.enqueue(queue, None, b"x")
    assert group.claim(0).messages == 1
    with pytest.raises(InvalidArgumentError, match="positions 0 to 2"):
        read(group, 1, 0, 2)
    with pytest.raises(FailedPreconditionError, match="holds messages"):
        group.drop()
    group.extend(1)
    eventually(lambda: group.describe(1).state == "expired", "it was let go")
    assert read(group, 1) == []
    group.drop()
    assert group.floor().last == 0


def test_a_look_at_a_queue_takes_nothing(client, queue):
    """All messages that wait, once, in parts that several readers share; with their bodies and without a lease."""
    client.create_queue(queue, fairness_header="tenant")
    ids = [client.enqueue(queue, {"tenant": f"t{n % 7}"}, b"%d" % n, priority=n % 3) for n in range(300)]
    delayed = client.enqueue(queue, {}, b"later", delay_ms=3_600_000)
    newest = client.group(queue, "g").floor().newest
    client.enqueue(queue, {}, b"newer")
    seen = [message for messages in client.read_queue(queue, high=newest) for message in messages]
    assert [message.id for message in seen] == [*ids, delayed]
    assert seen[5].payload == b"5"
    assert (seen[5].headers, seen[5].fairness_key, seen[5].priority) == ({"tenant": "t5"}, "t5", 2)
    assert {message.lease_id for message in seen} == {""}
    parts = [
        [
            message.id
            for messages in client.read_queue(queue, high=newest, part=part, parts=3, ready_only=True)
            for message in messages
        ]
        for part in range(3)
    ]
    assert sorted(one for part in parts for one in part) == ids
    first = [message.id for messages in client.read_queue(queue, max_messages=10) for message in messages]
    assert first == ids[:10]
    assert contents(client, queue) == (302, 0, 1)


def test_a_large_message_is_read_from_a_claim_and_from_a_look(client, queue):
    client.create_queue(queue)
    client.enqueue_many(queue, [b"x" * (3 << 20), b"y" * (3 << 20), b"z"])
    group = client.group(queue, "g")
    assert [len(message.payload) for messages in client.read_queue(queue) for message in messages] == [
        3 << 20,
        3 << 20,
        1,
    ]
    group.claim(0)
    assert [len(message.payload) for message in read(group, 1)] == [3 << 20, 3 << 20, 1]


def test_claims_survive_kills_at_any_point(tmp_path):
    """A reader that knows one number processes every message exactly once while the server is killed."""
    kills, total = 6, 12_000

    async def scenario(server):
        async with AsyncClient(server.addr, timeout=60) as client:
            await client.create_queue("orders", fairness_header="tenant")
            produced, processed = [], []
            done = asyncio.Event()

            async def produce():
                for start in range(0, total, 500):
                    batch = [b"%d" % number for number in range(start, start + 500)]
                    produced.extend(await client.enqueue_many("orders", batch))

            async def consume():
                group = client.group("orders", "g", epoch=1)
                number = 0
                while len(processed) < total:
                    claim = await group.claim(number, max_messages=1500, lease_ms=600_000, wait_ms=200)
                    if claim is None:
                        continue
                    assert claim.state == "open"
                    again = await group.claim(number)
                    assert (again.number, again.lease_id) == (claim.number, claim.lease_id)
                    half = claim.messages // 2
                    rows = []
                    for low, high in ((0, half), (half, claim.messages)):
                        if low < high:
                            rows += [m.id async for messages in group.read(claim.number, low, high) for m in messages]
                    assert rows == [m.id async for messages in group.read(claim.number) for m in messages]
                    assert len(rows) == claim.messages
                    processed.extend(rows)
                    await group.ack(claim.number)
                    number = claim.number
                done.set()

            async def kill():
                for _ in range(kills):
                    before = len(processed)
                    while len(processed) == before and not done.is_set():
                        await asyncio.sleep(0.02)
                    server.kill()
                    await asyncio.to_thread(server.start)

            await asyncio.wait_for(asyncio.gather(produce(), consume(), kill()), 120)
            assert sorted(processed) == sorted(produced)
            assert len(set(processed)) == total
            deadline = time.monotonic() + 30
            while (await client.queue_stats("orders")).summary.in_flight:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            assert (await client.queue_stats("orders")).summary.depth == 0

    with ServerProcess(tmp_path) as server:
        asyncio.run(scenario(server))
        print(server.log)


def test_a_claim_that_expired_while_the_server_was_away_comes_again(server):
    with Client(server.addr, timeout=60) as client:
        client.create_queue("orders")
        ids = client.enqueue_many("orders", [b""] * 10)
        group = client.group("orders", "g")
        group.claim(0, lease_ms=500)
        server.kill()
        time.sleep(0.5)
        server.start()
        assert read(group, 1) == []
        assert group.claim(0).state == "expired"
        eventually(lambda: contents(client, "orders") == (10, 0, 0), "all are back")
        assert group.claim(1).messages == 10
        messages = read(group, 2)
        assert [message.id for message in messages] == ids
        assert {message.attempt_count for message in messages} == {1}
        assert group.ack(2).expired == (1,)
        eventually(lambda: contents(client, "orders") == (0, 0, 0), "all are done")
