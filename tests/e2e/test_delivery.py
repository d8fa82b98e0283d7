"""What is delivered when: the life of a message, delays, priorities, dedup keys."""

import time
from uuid import UUID

from fila import Client, OutgoingMessage
from tests.e2e.support import CLOCKS_S, Inbox, contents, eventually, payloads, take


def test_the_whole_life_of_messages_leaves_the_queue_empty(client, queue):
    """Enqueue, lease over a stream, ack: what arrives is what was sent, and nothing of it remains."""
    client.create_queue(queue)
    ids = [client.enqueue(queue, {"number": str(number)}, b"payload %d" % number) for number in range(10)]
    assert contents(client, queue) == (10, 0, 0)
    with Inbox(client, queue) as inbox:
        messages = inbox.wait(10)
        assert contents(client, queue) == (0, 10, 0)
        assert [message.id for message in messages] == ids
        assert payloads(messages) == [b"payload %d" % number for number in range(10)]
        assert [message.headers for message in messages] == [{"number": str(number)} for number in range(10)]
        assert {(message.fairness_key, message.weight, message.attempt_count) for message in messages} == {
            ("default", 1, 0)
        }
        assert all(message.enqueued_at <= message.leased_at for message in messages)
        client.ack_many(messages)
    assert contents(client, queue) == (0, 0, 0)
    counters = client.queue_stats(queue).counters
    assert (counters.enqueued, counters.delivered, counters.acked, counters.returned) == (10, 10, 10, 0)


def test_ids_are_unique_and_in_the_order_of_time(client, queue):
    """100 messages have 100 ids: UUIDs of version 7 that increase, with the time of the enqueue in them."""
    client.create_queue(queue)
    began_ms = time.time_ns() // 1_000_000
    ids = [client.enqueue(queue) for _ in range(50)] + client.enqueue_many(queue, [b""] * 50)
    ended_ms = time.time_ns() // 1_000_000
    assert ids == sorted(set(ids))
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(7, "specified in RFC 4122")}
    assert all(began_ms - 1000 <= UUID(each).int >> 80 <= ended_ms + 1000 for each in ids)
    assert [message.id for message in take(client, queue, 100)] == ids


def test_bytes_and_text_arrive_as_they_were_sent(client, queue):
    """The broker looks at nothing: every byte in a payload, every character in a header."""
    client.create_queue(queue)
    sent = [b"", bytes(range(256)), b"\x00" * 1000, "grüße".encode(), bytes(1 << 20)]
    headers = {"": "empty name", "name": "", "umlaut-ü": "\x00\n\U0001f600", "long": "x" * 8000}
    for payload in sent:
        client.enqueue(queue, headers, payload)
    received = take(client, queue, len(sent))
    assert payloads(received) == sent
    assert all(message.headers == headers for message in received)


def test_a_delayed_message_is_not_delivered_before_its_time(client, queue):
    """Others overtake it; it comes when its time has come, the earlier one first."""
    client.create_queue(queue)
    asked = time.monotonic()
    client.enqueue(queue, None, b"2 s", delay_ms=2000)
    client.enqueue(queue, None, b"1 s", delay_ms=1000)
    client.enqueue(queue, None, b"now")
    with Inbox(client, queue) as inbox:
        assert payloads(inbox.wait(3)) == [b"now", b"1 s", b"2 s"]
    assert inbox.arrived_at[1] - asked >= 1 - CLOCKS_S
    assert inbox.arrived_at[2] - asked >= 2 - CLOCKS_S
    assert {message.attempt_count for message in inbox.messages} == {0}


def test_delays_and_dedup_keys_are_kept_over_a_restart(server):
    """A delay counts from the enqueue, not from the restart, and is neither lost nor cut short by it."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        asked = time.monotonic()
        first = client.enqueue("orders", None, b"soon", delay_ms=6000, dedup_key="order-1")
        client.enqueue("orders", None, b"much later", delay_ms=3_600_000)
        server.restart()
        assert client.enqueue("orders", None, b"soon, again", dedup_key="order-1") == first
        client.enqueue("orders", None, b"now")
        with Inbox(client, "orders") as inbox:
            assert payloads(inbox.wait(2)) == [b"now", b"soon"]
            assert inbox.arrived_at[1] - asked >= 6 - CLOCKS_S
            client.ack_many(inbox.messages)
        assert contents(client, "orders") == (1, 0, 1)
        server.kill()
        server.start()
        assert client.enqueue("orders", None, b"soon, again", dedup_key="order-1") == first
        assert contents(client, "orders") == (1, 0, 1)


def test_priority_orders_messages_inside_a_key(client, queue):
    """Lower numbers first, first in first out within one priority, 5 when nothing is said."""
    client.create_queue(queue)
    for name, priority in [("a", 10), ("b", None), ("c", 0), ("d", 5), ("e", 255), ("f", 0), ("g", 10)]:
        client.enqueue(queue, None, name.encode(), priority=priority)
    assert b"".join(payloads(take(client, queue, 7, max_in_flight=1))) == b"cfbdage"


def test_priority_does_not_cross_keys(client, queue):
    """Urgent messages of one tenant do not hold up those of another."""
    client.create_queue(queue, fairness_header="tenant", quantum=1)
    client.enqueue_many(queue, [OutgoingMessage(b"", {"tenant": "urgent"}, priority=0) for _ in range(50)])
    client.enqueue_many(queue, [OutgoingMessage(b"", {"tenant": "patient"}, priority=10) for _ in range(50)])
    first = [message.fairness_key for message in take(client, queue, 100, max_in_flight=1)[:20]]
    assert 9 <= first.count("patient") <= 11


def test_a_dedup_key_is_answered_with_the_first_id(client, queue):
    """Inside the window nothing is enqueued a second time, also when the first was consumed; other queues differ."""
    client.create_queue(queue)
    client.create_queue(f"{queue}-other")
    first = client.enqueue(queue, None, b"first", dedup_key="order-1")
    assert client.enqueue(queue, None, b"second", dedup_key="order-1") == first
    batch = [OutgoingMessage(b"third", dedup_key="order-1"), OutgoingMessage(b"else", dedup_key="order-2")]
    again, other = client.enqueue_many(queue, batch)
    assert again == first
    assert other != first
    assert client.enqueue(f"{queue}-other", None, b"", dedup_key="order-1") != first
    assert payloads(take(client, queue, 2)) == [b"first", b"else"]
    assert client.enqueue(queue, None, b"fourth", dedup_key="order-1") == first
    assert contents(client, queue) == (0, 0, 0)


def test_a_dedup_key_is_forgotten_after_its_window(client, queue):
    """Afterwards the same key is a new message."""
    client.create_queue(queue, dedup_window_ms=1000)
    asked = time.monotonic()
    first = client.enqueue(queue, None, b"first", dedup_key="order-1")
    eventually(lambda: client.enqueue(queue, None, b"second", dedup_key="order-1") != first, "a new message")
    assert time.monotonic() - asked >= 1 - CLOCKS_S
    assert contents(client, queue) == (2, 0, 0)


def test_a_consumer_that_waits_is_given_what_comes(client, queue):
    """No polling: the stream is open before there is anything to deliver."""
    client.create_queue(queue)
    with Inbox(client, queue) as inbox:
        eventually(lambda: client.queue_stats(queue).summary.consumers == 1, "the consumer is there")
        for number in range(5):
            message_id = client.enqueue(queue, None, b"%d" % number)
            assert inbox.wait(number + 1)[number].id == message_id


def test_a_deleted_queue_takes_its_messages_with_it(client, queue):
    """A queue of the same name begins empty: nothing waiting, leased, delayed or remembered is left."""
    client.create_queue(queue)
    first = client.enqueue(queue, None, b"old", dedup_key="order-1")
    client.enqueue(queue, None, b"old", delay_ms=500)
    with Inbox(client, queue) as inbox:
        [held] = inbox.wait(1)
        assert client.delete_queue(queue) == 2
        client.create_queue(queue)
        assert contents(client, queue) == (0, 0, 0)
        assert client.enqueue(queue, None, b"new", delay_ms=1000, dedup_key="order-1") != first
    [message] = take(client, queue, 1)
    assert message.payload == b"new"
    assert held.id != message.id
    assert contents(client, queue) == (0, 0, 0)
