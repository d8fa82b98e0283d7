"""A server that starts with more messages than it reads before it serves."""

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import contents, eventually

PENDING, LATER = 60_000, 1_000
AT_ONCE = 10_000


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A server that was killed with a large backlog; some of it was leased."""
    with ServerProcess(tmp_path_factory.mktemp("large")) as server:
        with Client(server.addr, timeout=60) as client:
            client.create_queue("orders")
            for first in range(0, PENDING, AT_ONCE):
                client.enqueue_many("orders", [b"%d" % number for number in range(first, first + AT_ONCE)])
        server.kill()
        yield server


def drain(client, count):
    """The numbers of all messages, in the order in which they come. Each is acked."""
    numbers = []
    with client.consume_batches("orders", max_in_flight=4000) as batches:
        for batch in batches:
            numbers += [int(message.payload) for message in batch]
            client.ack_many(batch)
            if len(numbers) >= count:
                return numbers
    raise AssertionError("the deliveries ended")


def test_a_large_queue_is_served_in_order_while_it_is_read(killed):
    """What arrives meanwhile stands behind all that was there; each message comes once. After another kill in between,
    too: what was acked before stays gone.
    """
    killed.start()
    with Client(killed.addr, timeout=60) as client:
        client.enqueue_many("orders", [b"%d" % number for number in range(PENDING, PENDING + LATER)])
        first = drain(client, PENDING // 2)
        left = PENDING + LATER - len(first)
        eventually(lambda: contents(client, "orders") == (left, 0, 0), "what the consumer still held goes back")
        eventually(lambda: "all messages are read" in killed.log, "the server says that it knows all messages")
    killed.kill()
    killed.start()
    with Client(killed.addr, timeout=60) as client:
        assert contents(client, "orders") == (left, 0, 0)
        rest = drain(client, left)
        assert contents(client, "orders") == (0, 0, 0)
    assert first + rest == list(range(PENDING + LATER))
