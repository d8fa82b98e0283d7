"""Transactions through the SDK, against a real server that is killed on the way."""

import asyncio

import pytest

from fila import AsyncClient, InvalidArgumentError, NotStagedError, OutgoingMessage, QueueNotFoundError, StagedPart
from fila.testing import ServerProcess
from tests.e2e.support import contents, eventually, take


def test_staged_messages_are_enqueued_by_the_commit_and_once(client, queue):
    client.create_queue(queue, fairness_header="tenant")
    transaction = client.transaction(queue, 0)
    messages = [OutgoingMessage(b"%d" % n, {"tenant": f"t{n % 3}"}, priority=n % 2) for n in range(1200)]
    first = transaction.stage(queue, messages[:1100])
    second = transaction.stage(queue, messages[1100:], part="mine")
    transaction.stage(queue, [b"of an attempt that failed"])
    assert (first.messages, second) == (1100, StagedPart("mine", 100))
    assert contents(client, queue) == (0, 0, 0)
    assert transaction.commit([first, second]) is True
    assert contents(client, queue) == (1200, 0, 0)
    assert transaction.commit([first, second]) is False
    again = client.transaction(queue, 0)
    assert again.commit([again.stage(queue, messages)]) is False
    assert contents(client, queue) == (1200, 0, 0)
    taken = take(client, queue, 1200, max_in_flight=1000)
    assert sorted(int(message.payload) for message in taken) == list(range(1200))
    assert {message.headers["tenant"] for message in taken} == {"t0", "t1", "t2"}


def test_a_part_that_is_missing_is_told(client, queue):
    client.create_queue(queue)
    transaction = client.transaction(queue, 1)
    part = transaction.stage(queue, [b"x"])
    with pytest.raises(NotStagedError, match="stage the part again"):
        transaction.commit([part, StagedPart("nobody", 5)])
    with pytest.raises(NotStagedError):
        transaction.commit([StagedPart(part.part, 2)])
    assert transaction.commit([part, StagedPart("empty", 0)])


def test_what_is_refused_is_refused_when_it_is_staged(client, queue):
    client.create_queue(queue, weight_header="w")
    transaction = client.transaction(queue, 1)
    with pytest.raises(QueueNotFoundError):
        transaction.stage("no-such-queue", [b"x"])
    with pytest.raises(InvalidArgumentError, match="message 1 of the batch"):
        transaction.stage(queue, [b"x", OutgoingMessage(b"y", {"w": "heavy"})])
    with pytest.raises(InvalidArgumentError):
        transaction.stage(queue, [b"x"], ttl_ms=-1)
    with pytest.raises(InvalidArgumentError):
        client.transaction("", 1).stage(queue, [b"x"])


def test_what_is_not_committed_in_time_is_dropped(client, queue):
    client.create_queue(queue)
    part = client.transaction(queue, 1).stage(queue, [b"x"], ttl_ms=1)

    def dropped():
        client.enqueue(queue, None, b"something happens, so that the broker looks around")
        # A commit of another part says how much of this one is there, and changes nothing.
        with pytest.raises(NotStagedError) as told:
            client.transaction(queue, 1).commit([StagedPart(part.part, 2)])
        return "0 are staged" in str(told.value)

    eventually(dropped, "what was staged is gone")


def test_every_transaction_is_enqueued_once_while_the_server_is_killed(tmp_path):
    """A writer that stages and commits each number until it is told that it is done, through kills."""
    kills, transactions, size = 6, 25, 800

    async def scenario(server):
        async with AsyncClient(server.addr, timeout=60) as client:
            await client.create_queue("out")
            number = 0
            done = asyncio.Event()

            async def write():
                nonlocal number
                while number < transactions:
                    transaction = client.transaction("writer", number)
                    rows = [b"%d-%d" % (number, row) for row in range(size)]
                    half = size // 2
                    parts = await asyncio.gather(
                        transaction.stage("out", rows[:half]), transaction.stage("out", rows[half:])
                    )
                    await transaction.commit(parts)
                    assert await transaction.commit(parts) is False
                    number += 1
                done.set()

            async def kill():
                for _ in range(kills):
                    before = number
                    while number == before and not done.is_set():
                        await asyncio.sleep(0.005)
                    server.kill()
                    await asyncio.to_thread(server.start)

            await asyncio.wait_for(asyncio.gather(write(), kill()), 120)
            assert (await client.queue_stats("out")).summary.depth == transactions * size
            seen = [m.payload async for messages in client.read_queue("out") for m in messages]
            assert sorted(seen) == sorted(b"%d-%d" % (n, row) for n in range(transactions) for row in range(size))

    with ServerProcess(tmp_path) as server:
        asyncio.run(scenario(server))
        print(server.log)
