"""Consumers that take as much as they may and go: what they leave behind comes back a little at a time."""

import pytest

from fila import Client
from tests.e2e.support import eventually

MOST = 65_535
"""As many as one consumer may hold"""


@pytest.mark.slow
@pytest.mark.parametrize("handed", [False, True])
def test_a_consumer_that_leaves_all_that_it_may_hold(server, attack, handed):
    """Nobody waits for it: giving back everything at once took 2 s, in which nothing else was done."""
    with Client(server.addr, timeout=60) as client:
        client.create_queue("q", max_attempts=1)
        client.enqueue_many("q", [b"x" * 100] * MOST)
        times = 1 if handed else 3
        amount = f"{times} x 65,535, " + ("handed out" if handed else "prefetched")
        with attack("a consumer that leaves while it holds many messages", amount) as run:
            for _ in range(times):
                with client.consume("q", max_in_flight=MOST) as consumer:
                    eventually(lambda consumer=consumer: consumer.waiting == MOST, "all is prefetched", 120)
                    while handed and consumer.waiting:
                        consumer.take()
                eventually(lambda: client.queue_stats("q").summary.in_flight == 0, "all is back", 120)
            run.canary.await_calls(50)
        assert run.canary.health.failed == 0, run.canary.health.errors
        assert run.canary.health.worst_ms - run.alone.worst_ms < 1500  # giving all back at once took 2 s
        assert client.queue_stats("q.dlq").summary.depth == 0
        assert client.queue_stats("q").summary.depth == MOST
