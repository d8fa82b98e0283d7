"""Who holds a message and for how long: visibility timeouts, acks, nacks, consumers that go away."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fila import Client, MessageNotFoundError
from tests.e2e.support import CLOCKS_S, Inbox, contents, payloads, take

HOLD = """
import sys, time
from fila import Client
consumer = Client(sys.argv[1]).consume(sys.argv[2], max_in_flight=3)
for message in consumer:
    print(message.id, flush=True)
"""


def test_an_unsettled_message_comes_back_after_its_timeout(client, queue):
    """Not before the timeout and soon after it, with one more attempt and under another lease."""
    client.create_queue(queue, visibility_timeout_ms=1000)
    message_id = client.enqueue(queue, {"tenant": "acme"}, b"job")
    began = time.monotonic()
    with Inbox(client, queue) as inbox:
        first, second, third = inbox.wait(3)
    assert [message.id for message in (first, second, third)] == [message_id] * 3
    assert [message.attempt_count for message in (first, second, third)] == [0, 1, 2]
    assert len({first.lease_id, second.lease_id, third.lease_id}) == 3
    assert (second.payload, second.headers) == (b"job", {"tenant": "acme"})
    assert inbox.arrived_at[1] - began >= 1 - CLOCKS_S
    assert inbox.arrived_at[2] - began >= 2 - CLOCKS_S
    assert inbox.arrived_at[1] - inbox.arrived_at[0] < 10  # a timeout that is not the queue's own would be 30 s


def test_an_ack_before_the_timeout_prevents_redelivery(client, queue):
    """Of two messages that were leased together, only the one that was not acked comes back."""
    client.create_queue(queue, visibility_timeout_ms=1000)
    done, forgotten = client.enqueue_many(queue, [b"done", b"forgotten"])
    with Inbox(client, queue, on_message=lambda message: message.ack() if message.id == done else None) as inbox:
        assert [message.id for message in inbox.wait(4)] == [done, forgotten, forgotten, forgotten]
    assert client.queue_stats(queue).counters.acked == 1


def test_the_lease_of_a_long_job_is_extended(client, queue):
    """While its consumer lives, a message is not delivered again, however much longer than the timeout it takes."""
    client.create_queue(queue, visibility_timeout_ms=2000)
    job = client.enqueue(queue, None, b"long job")
    with Inbox(client, queue, max_in_flight=1, auto_extend=True) as worker:
        [held] = worker.wait(1)
        other = client.enqueue(queue, None, b"forgotten")
        with Inbox(client, queue, max_in_flight=1) as forgetful:
            # The other message, whose lease nobody extends, is the clock: it expires twice.
            assert [message.id for message in forgetful.wait(3)] == [other] * 3
            held.ack()
            assert [message.id for message in worker.messages[:1]] == [job]
            assert job not in [message.id for message in forgetful.messages]


def test_a_lease_lasts_as_long_as_it_was_extended(client, queue):
    """`extend` moves the end of a lease, away from the queue's own timeout."""
    client.create_queue(queue, visibility_timeout_ms=1000)
    client.enqueue(queue, None, b"job")
    with Inbox(client, queue) as inbox:
        [first] = inbox.wait(1)
        asked = time.monotonic()
        first.extend(3000)
        back = inbox.wait(2)[1]
        assert back.attempt_count == 1
        assert inbox.arrived_at[1] - asked >= 3 - CLOCKS_S


def test_each_queue_has_its_own_timeout(client, queue):
    """A queue with a short timeout returns its messages while those of another stay leased."""
    client.create_queue(f"{queue}-short", visibility_timeout_ms=500)
    client.create_queue(f"{queue}-long", visibility_timeout_ms=600_000)
    client.create_queue(f"{queue}-default")
    for each in ("short", "long", "default"):
        client.enqueue(f"{queue}-{each}")
    with Inbox(client, f"{queue}-long") as long, Inbox(client, f"{queue}-short") as short:
        [held] = long.wait(1)
        short.wait(4)
        assert contents(client, f"{queue}-long") == (0, 1, 0)
        held.ack()
        assert len(long.messages) == 1
    timeouts = [client.queue_stats(f"{queue}-{each}").config.visibility_timeout_ms for each in ("short", "default")]
    assert timeouts == [500, 30_000]


def test_a_late_ack_is_refused_and_leaves_the_next_holder_alone(client, queue):
    """Once a lease has ended, its holder can neither ack, nack nor extend; the next lease is not touched."""
    client.create_queue(queue, visibility_timeout_ms=4000)
    client.enqueue(queue, None, b"job")
    with Inbox(client, queue) as inbox:
        late, current = inbox.wait(2)
        for settle in (late.ack, late.nack, late.extend):
            with pytest.raises(MessageNotFoundError):
                settle()
        assert contents(client, queue) == (0, 1, 0)
        current.ack()
    assert contents(client, queue) == (0, 0, 0)


def test_a_message_is_settled_once(client, queue):
    """After an ack there is nothing to ack, nack or extend, with the lease or without."""
    client.create_queue(queue)
    client.enqueue(queue, None, b"job")
    with Inbox(client, queue) as inbox:
        [message] = inbox.wait(1)
        message.ack()
        for settle in (message.ack, message.nack, message.extend):
            with pytest.raises(MessageNotFoundError):
                settle()
        with pytest.raises(MessageNotFoundError):
            client.ack(queue, message.id)
    assert contents(client, queue) == (0, 0, 0)
    assert client.queue_stats(queue).counters.acked == 1


def test_settling_without_a_lease_id(client, queue):
    """Whoever knows the queue and the message id may settle what is leased, and nothing else."""
    client.create_queue(queue)
    message_id = client.enqueue(queue, None, b"job")
    with pytest.raises(MessageNotFoundError):
        client.ack(queue, message_id)  # nobody holds it
    with Inbox(client, queue) as inbox:
        inbox.wait(1)
        client.nack(queue, message_id, "not yet")
        assert inbox.wait(2)[1].attempt_count == 1
        client.ack(queue, message_id)
    assert contents(client, queue) == (0, 0, 0)


def test_consumers_share_a_queue(client, queue, shared_server):
    """No message goes to two consumers, each gets some, and none holds more than it asked for."""
    client.create_queue(queue)
    ids = client.enqueue_many(queue, [b"%d" % number for number in range(40)])
    with (
        Client(shared_server.addr) as second,
        Inbox(client, queue, max_in_flight=5, auto_extend=True) as left,
        Inbox(second, queue, max_in_flight=3, auto_extend=True) as right,
    ):
        left.wait(5)
        right.wait(3)
        assert contents(client, queue) == (32, 8, 0)
        while ids:
            held = [message for message in (*left.messages, *right.messages) if message.id in ids]
            assert len(held) <= 8
            if held:
                held[0].ack()
                ids.remove(held[0].id)
        delivered = [message.id for message in (*left.messages, *right.messages)]
    assert len(delivered) == len(set(delivered)) == 40
    assert contents(client, queue) == (0, 0, 0)


@pytest.mark.parametrize("max_in_flight", [1, 7])
def test_no_more_is_in_flight_than_the_consumer_asked_for(client, queue, max_in_flight):
    """A consumer that settles nothing is given `max_in_flight` messages; each one settled makes room for one."""
    client.create_queue(queue)
    client.enqueue_many(queue, [b"%d" % number for number in range(20)])
    with Inbox(client, queue, max_in_flight=max_in_flight, auto_extend=True) as inbox:
        for settled in range(20 - max_in_flight):
            inbox.wait(max_in_flight + settled)
            assert contents(client, queue) == (20 - max_in_flight - settled, max_in_flight, 0)
            inbox.messages[settled].ack()
        inbox.wait(20)
    assert payloads(inbox.messages) == [b"%d" % number for number in range(20)]


def test_a_killed_consumer_returns_what_it_holds_at_once(client, queue, shared_server):
    """SIGKILL of a consumer: what it had in hands is delivered to others long before the timeout, as one more attempt,
    and each message alone, since one of them may be the cause.
    """
    client.create_queue(queue, visibility_timeout_ms=3_600_000)
    ids = client.enqueue_many(queue, [b"%d" % number for number in range(3)])
    holder = subprocess.Popen([sys.executable, "-c", HOLD, shared_server.addr, queue], stdout=subprocess.PIPE)
    try:
        assert [holder.stdout.readline().decode().strip() for _ in ids] == ids
        assert contents(client, queue) == (0, 3, 0)
        time.sleep(0.2)  # until the last report is sent
        os.kill(holder.pid, signal.SIGKILL)
        with Inbox(client, queue) as inbox:
            for number, message_id in enumerate(ids, 1):
                message = inbox.wait(number)[-1]
                assert (message.id, message.attempt_count, message.isolation) == (message_id, 1, "suspect")
                message.ack()
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert client.queue_stats(queue).counters.returned == 3


def test_a_consumer_that_leaves_returns_what_it_holds_at_once(client, queue):
    """Closing a consumer is enough; what it had settled stays settled."""
    client.create_queue(queue, visibility_timeout_ms=3_600_000)
    client.enqueue_many(queue, [b"done", b"held"])
    with Inbox(client, queue) as inbox:
        done, held = inbox.wait(2)
        done.ack()
    [back] = take(client, queue, 1)
    assert (back.id, back.attempt_count) == (held.id, 1)
    assert contents(client, queue) == (0, 0, 0)


def test_a_nacked_message_is_delivered_again(client, queue):
    """At once, ahead of what came later in its key, and with one attempt more for each nack."""
    client.create_queue(queue)
    first, second = client.enqueue_many(queue, [b"first", b"second"])
    with Inbox(client, queue, max_in_flight=1) as inbox:
        for attempt in range(3):
            message = inbox.wait(attempt + 1)[attempt]
            assert (message.id, message.attempt_count) == (first, attempt)
            message.nack("failed")
        inbox.wait(4)[3].ack()
        last = inbox.wait(5)[4]
        assert (last.id, last.attempt_count) == (second, 0)
    assert client.queue_stats(queue).counters.nacked == 3


def test_a_nack_with_a_delay_keeps_the_message_back(client, queue):
    """It is not delivered before the delay is over; others are."""
    client.create_queue(queue)
    first, second = client.enqueue_many(queue, [b"first", b"second"])
    with Inbox(client, queue, max_in_flight=1) as inbox:
        [message] = inbox.wait(1)
        asked = time.monotonic()
        message.nack("later", delay_ms=1500)
        inbox.wait(2)[1].ack()
        back = inbox.wait(3)[2]
        assert [message.id for message in inbox.messages] == [first, second, first]
        assert inbox.arrived_at[2] - asked >= 1.5 - CLOCKS_S
        assert back.attempt_count == 1
