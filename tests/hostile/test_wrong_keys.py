"""Peers that guess keys: they wait for each answer, everybody with a key does not."""

import pytest

from fila import Client
from fila.v1 import service_pb2
from tests.hostile.support import MOST_DELAY_MS, MOST_MEMORY, Peer

PEERS = 20
CALLS = 90
"""Of each peer, at once."""


@pytest.fixture
def guarded(server, monkeypatch):
    with Client(server.addr) as client:
        key = client.auth.create_key("canary", ["admin"]).token
    monkeypatch.setenv("FILA_API_KEY", key)  # of the canary
    return server


def test_a_flood_of_wrong_keys_holds_nobody_up(guarded, attack):
    """Also not at the address of those who guess: a valid key does not wait."""
    request = service_pb2.EnqueueRequest(queue="canary", payload=bytes(1000)).SerializeToString()
    with attack("wrong keys", f"{PEERS} peers with {CALLS} calls each") as run:
        peers = [Peer(guarded.addr) for _ in range(PEERS)]
        for number in range(CALLS):
            for peer in peers:
                guess = f"Bearer fila_canary-aaaaaa_{number:064x}".encode()
                peer.call("/fila.v1.FilaService/Enqueue", request, extra=((b"authorization", guess),))
        run.canary.await_calls(100)
        for peer in peers:
            peer.close()
        run.canary.await_calls(20)
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS
    assert run.growth.most < MOST_MEMORY
    assert 0 < guarded.log.count("login failed") < 30, "a flood of guesses floods the log"
