"""Peers that speak no HTTP/2, or stop in the middle of it."""

import os

from tests.hostile.support import MOST_MEMORY, Peer

PEERS = 40


def test_noise_and_half_a_greeting_cost_nothing(server, attack):
    """Random bytes, HTTP/1, TLS and cut greetings are ended or left alone; the others notice nothing."""
    greetings = [os.urandom(4096), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\0\x01", b"PRI * HT"]
    with attack("random bytes instead of HTTP/2", f"{PEERS} peers") as run:
        peers = [Peer(server.addr, greet=False) for _ in range(PEERS)]
        for number, peer in enumerate(peers):
            peer.send(greetings[number % len(greetings)])
        said = [peer.read(0.05) for peer in peers[:4]]
        run.canary.await_calls(50)
        for peer in peers:
            peer.close()
    assert b"\x07" in said[1], "a peer that speaks HTTP/1 is told GOAWAY"
    assert run.canary.health.failed == 0
    assert run.growth.most < MOST_MEMORY
