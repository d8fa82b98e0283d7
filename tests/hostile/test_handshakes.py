"""TLS handshakes that are slow, cut off or never end: they cost little, they end, and a canary does not notice."""

import socket
import ssl
import time

import pytest

from fila.testing import ServerProcess
from fila.wire.handshakes import MOST
from fila.wire.tls_layer import HANDSHAKE_S
from tests.hostile.support import GREETING, MOST_DELAY_MS, MOST_MEMORY, Peer
from tests.support.certificates import Authority, grpc_credentials

PEERS = 1_000
SOURCES = 4
"""Addresses: no one of them has too many connections."""


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def server(authority, monkeypatch):
    pair = authority.server()
    monkeypatch.setenv("FILA_TLS_CA", authority.ca)  # of the canary
    config = f'[tls]\ncert = "{pair.cert}"\nkey = "{pair.key}"\n'
    with ServerProcess(config=config, credentials=grpc_credentials(authority)) as process:
        yield process


def client_hello():
    """What a client begins with."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    outgoing = ssl.MemoryBIO()
    state = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        state.do_handshake()
    return outgoing.read()


HELLO = client_hello()

BEGINNINGS = {
    "silence": b"",
    "one byte": HELLO[:1],
    "half a ClientHello": HELLO[: len(HELLO) // 2],
    "a ClientHello and no more": HELLO,
    "a ClientHello, then garbage": HELLO + b"\x17\x03\x03\x00\x10" + b"?" * 16,
    "plaintext HTTP/2": GREETING,
    "noise": b"\x16" + bytes(range(1, 200)),
}


def strangers(addr, beginning):
    """Connections that begin like this."""
    peers = [Peer(addr, greet=False, source=f"127.0.1.{1 + n % SOURCES}") for n in range(PEERS)]
    for peer in peers:
        peer.send(beginning)
    return peers


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_thousand_handshakes_that_do_not_end(server, attack, kind):
    with attack(f"TLS: {kind}", f"{PEERS} connections") as run:
        peers = strangers(server.addr, BEGINNINGS[kind])
        run.canary.await_calls(150)
    for peer in peers:
        peer.close()
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.delay_ms < MOST_DELAY_MS
    assert run.growth.most < MOST_MEMORY


def test_a_slow_handshake_ends_in_time(server):
    """A byte now and then does not keep it open."""
    with Peer(server.addr, greet=False) as peer:
        began = time.monotonic()
        for byte in HELLO:
            if not peer.send(bytes([byte])) or ended(peer):
                break
            time.sleep(0.3)
        assert HANDSHAKE_S - 1 < time.monotonic() - began < HANDSHAKE_S + 5


def ended(peer):
    peer.socket.settimeout(0)
    try:
        return peer.socket.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_beyond_the_limit_the_address_with_most_loses_its_oldest(server, authority):
    """Others get in however many handshakes one address has begun."""
    greedy = [Peer(server.addr, greet=False, source="127.0.1.1") for _ in range(MOST - 100)]
    others = [Peer(server.addr, greet=False, source=f"127.0.2.{1 + n % 4}") for n in range(150)]
    deadline = time.monotonic() + 5
    while sum(map(ended, greedy[:50])) < 50 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(ended, greedy[:40]))
    assert not any(map(ended, others))
    context = ssl.create_default_context(cafile=authority.ca)
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
        assert secure.version() == "TLSv1.3"
    for peer in (*greedy, *others):
        peer.close()
