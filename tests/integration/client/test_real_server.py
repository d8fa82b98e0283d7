"""The SDK against a real server process that is killed, stopped and started again."""

import asyncio
import threading
import time

import pytest

from fila import AsyncClient, Client, FilaError, OutgoingMessage, QueueNotFoundError
from fila.testing import ServerProcess


@pytest.fixture
def server(tmp_path):
    with ServerProcess(tmp_path) as process:
        yield process
        print(process.log)


def drain(client: Client, queue: str) -> list[bytes]:
    """Payloads of all that is in the queue, acked."""
    payloads: list[bytes] = []
    consumer = client.consume_batches(queue)
    deadline = time.monotonic() + 60

    def close_when_empty():
        while not is_empty(client, queue) and time.monotonic() < deadline:
            time.sleep(0.05)
        consumer.close()

    watch = threading.Thread(target=close_when_empty)
    watch.start()
    for batch in consumer:
        payloads += [message.payload for message in batch]
        client.ack_many(batch)
    watch.join()
    return payloads


def is_empty(client: Client, queue: str) -> bool:
    found = client.queue_stats(queue).summary
    return found.depth == found.in_flight == 0


@pytest.mark.parametrize("stop", ["kill", "stop"])
def test_every_enqueue_of_a_producer_that_outlives_the_server_is_there_once(server, stop):
    """Answers are lost with the server, and what is sent again after the restart is recognised."""

    async def produce() -> list[str]:
        async with AsyncClient(server.addr, timeout=30) as client:
            await client.create_queue("q")
            bulk = asyncio.create_task(client.enqueue_many("q", [f"bulk {n}".encode() for n in range(40_000)]))
            singles = [asyncio.create_task(client.enqueue("q", None, f"single {n}".encode())) for n in range(500)]
            for _ in range(3):
                await asyncio.sleep(0.1)
                await asyncio.to_thread(getattr(server, stop))
                await asyncio.to_thread(server.start)
            return [*await bulk, *await asyncio.gather(*singles)]

    ids = asyncio.run(produce())
    assert len(set(ids)) == len(ids) == 40_500
    with Client(server.addr) as client:
        payloads = drain(client, "q")
    assert len(payloads) == 40_500
    assert len(set(payloads)) == 40_500
    bulk = [int(payload.split()[1]) for payload in payloads if payload.startswith(b"bulk")]
    assert bulk == sorted(bulk)


def test_a_consumer_outlives_the_server_and_sees_everything(server):
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q", visibility_timeout_ms=2000)
        client.enqueue_many("q", [str(n).encode() for n in range(3000)])
        seen: set[bytes] = set()
        killed = False
        for message in client.consume("q", max_in_flight=50):
            seen.add(message.payload)
            try:
                message.ack()
            except FilaError:
                continue  # it comes again
            if len(seen) > 500 and not killed:
                killed = True
                server.kill()
                server.start()
            if len(seen) == 3000:
                break
        assert killed
        assert client.queue_stats("q").summary.depth <= 1


def test_leases_are_kept_alive_longer_than_the_visibility_timeout(server):
    with Client(server.addr) as client:
        client.create_queue("q", visibility_timeout_ms=2000)
        client.enqueue_many("q", [b"x"] * 20)
        consumer = client.consume("q", max_in_flight=20)
        first = next(consumer)
        time.sleep(5)
        held = [first, *(next(consumer) for _ in range(19))]
        client.ack_many(held)
        assert {message.attempt_count for message in held} == {0}


def test_leases_are_kept_alive_when_the_visibility_timeout_is_lowered(server):
    with Client(server.addr) as client:
        client.create_queue("q", visibility_timeout_ms=60_000)
        consumer = client.consume("q")
        client.enqueue("q")
        old = next(consumer)
        client.update_queue("q", visibility_timeout_ms=2000)
        client.enqueue("q")
        new = next(consumer)
        time.sleep(5)
        client.ack_many([old, new])
        assert client.queue_stats("q").counters.expired == 0


def test_without_extension_a_lease_ends(server):
    with Client(server.addr) as client:
        client.create_queue("q", visibility_timeout_ms=200)
        client.enqueue("q")
        consumer = client.consume("q", auto_extend=False)
        assert [next(consumer).attempt_count, next(consumer).attempt_count] == [0, 1]


def test_ending_a_consumer_returns_what_it_held(server):
    """An attempt is counted for what was handed out and not settled, and for nothing else."""
    with Client(server.addr) as client:
        client.create_queue("q")
        client.enqueue_many("q", [b"x"] * 10)
        with client.consume("q") as consumer:
            next(consumer).ack()
            kept = next(consumer).id
        with client.consume("q") as consumer:
            attempts = {message.id: message.attempt_count for message in (next(consumer) for _ in range(9))}
        assert {message_id for message_id, count in attempts.items() if count} == {kept}


def test_messages_arrive_as_they_were_sent(server):
    with Client(server.addr) as client:
        client.create_queue("q", fairness_header="tenant", weight_header="share", quantum=2)
        sent = OutgoingMessage(b"\x00\xff", {"tenant": "acme", "share": "3", "empty": "", "ü": "→"}, priority=2)
        [message_id] = client.enqueue_many("q", [sent])
        message = next(client.consume("q"))
        assert (message.id, message.payload, message.headers) == (message_id, sent.payload, sent.headers)
        assert (message.fairness_key, message.weight, message.priority) == ("acme", 3, 2)
        assert (message.queue, message.attempt_count) == ("q", 0)
        assert message.enqueued_at <= message.leased_at
        assert client.delete_queue("q") == 1
        with pytest.raises(QueueNotFoundError):
            client.queue_stats("q")


def test_a_dedup_key_names_the_first_message(server):
    with Client(server.addr) as client:
        client.create_queue("q")
        assert client.enqueue("q", dedup_key="k") == client.enqueue("q", dedup_key="k")
        assert client.queue_stats("q").summary.depth == 1
