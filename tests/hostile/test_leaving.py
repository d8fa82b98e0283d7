"""Peers that take as much as they may and go: what they leave behind comes back, and ends, a little at a time."""

import pytest

from fila import Client
from fila.v1 import service_pb2
from tests.e2e.support import eventually
from tests.hostile.support import MOST_DELAY_MS, MOST_MEMORY, Peer

MOST = 65_535
"""As many as one consumer may hold"""
PEERS = 100
CALLS = 90
"""Of each peer, at once."""


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


def consumers(client):
    return next(queue.consumers for queue in client.list_queues() if queue.name == "q")


def test_peers_that_leave_with_many_open_calls(server, attack):
    """Nobody waits for it: ending all calls in one turn of the event loop took half a second."""
    with Client(server.addr, timeout=60) as client:
        client.create_queue("q")
        request = service_pb2.LeaseRequest(queue="q", max_in_flight=1).SerializeToString()
        peers = [Peer(server.addr) for _ in range(PEERS)]
        for _ in range(CALLS):
            for peer in peers:
                peer.call("/fila.v1.FilaService/Lease", request)
        eventually(lambda: consumers(client) == PEERS * CALLS, "all consume", 120)
        with attack("peers that leave with many open calls", f"{PEERS} peers with {CALLS} consumers each") as run:
            for peer in peers:
                peer.close()
            eventually(lambda: consumers(client) == 0, "all have left", 120)
            run.canary.await_calls(50)
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS
    assert run.growth.most < MOST_MEMORY
