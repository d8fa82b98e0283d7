"""Requests that are small to send and large to handle, and probes beside idle connections."""

import socket
import time
import urllib.request

import pytest

from fila import Client
from fila.internal import wire_pb2
from fila.server.app import STREAM_WINDOW
from fila.testing import ServerProcess
from fila.v1 import admin_pb2, service_pb2
from fila.wire import frames
from tests.hostile.support import MIB, MOST_DELAY_MS, MOST_MEMORY, Peer, heard

SERVICE = "/fila.v1.FilaService/"
ADMIN = "/fila.v1.FilaAdmin/"

BOMBS = {
    "1.8 million headers in a message": (SERVICE + "Enqueue", b"\x12\x00" * 1_800_000),
    "1.8 million headers in a batch": (
        SERVICE + "EnqueueBatch",
        wire_pb2.EncodedEnqueueBatch(queue="canary", messages=[b"\x12\x00" * 1_800_000]).SerializeToString(),
    ),
    "8 million empty messages": (SERVICE + "EnqueueBatch", b"\x0a\x00" * (8 * MIB - 10)),
    "8 million empty acks": (SERVICE + "Settle", b"\x0a\x00" * (8 * MIB - 10)),
    "8 million parts of a transaction": (SERVICE + "CommitTransaction", b"\x1a\x00" * (8 * MIB - 10)),
    "8 million ids in a filter": (ADMIN + "Peek", b"\x12\xf6\xff\xff\x07" + b"\x3a\x00" * (8 * MIB - 5)),
    "metadata of 60 KiB": (ADMIN + "ListQueues", b""),
}


def send_all(peer, stream, content):
    """As the server gives window."""
    window, at, until = STREAM_WINDOW, 0, time.monotonic() + 10
    while at < len(content) and time.monotonic() < until:
        part = content[at : at + min(window, 16_384)]
        if part:
            if not peer.send(frames.frame(frames.DATA, 0, stream, part)):
                return
            window, at = window - len(part), at + len(part)
            continue
        said = heard(peer.read(0.05))
        if any(frame.kind == frames.RST_STREAM or frame.flags & frames.END_STREAM for frame in said if frame.stream_id):
            return
        window += sum(
            int.from_bytes(frame.payload, "big")
            for frame in said
            if frame.kind == frames.WINDOW_UPDATE and frame.stream_id == stream
        )


@pytest.mark.parametrize("name", BOMBS)
def test_a_request_of_very_many_parts_is_refused_before_it_is_decoded(server, attack, name):
    path, content = BOMBS[name]
    extra = ((b"token", b"x" * 60_000),) if not content else ()
    with attack(name, f"{len(content) / MIB:.1f} MiB, 3 times") as run:
        for _ in range(3):
            with Peer(server.addr) as peer:
                stream = peer.call(path, end=False, extra=extra)
                send_all(peer, stream, b"\0" + len(content).to_bytes(4, "big") + content)
                peer.send(frames.frame(frames.DATA, frames.END_STREAM, stream, b""))
                said = peer.read(0.3)
            assert not any(frame.kind == frames.GOAWAY for frame in heard(said))
        run.canary.await_calls(30)
    assert run.canary.health.failed == 0
    assert run.growth.most < MOST_MEMORY
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS


def test_a_large_configuration_is_listed_beside_a_canary(server, attack):
    """In pages, of which none holds up others."""
    with attack("ListConfig", "2,000 entries of 16 KB, 5 times") as run, Client(server.addr, timeout=60) as client:
        for number in range(2000):
            client.set_config(f"key-{number:05}", "x" * 16_000)
        for _ in range(5):
            assert len(client.list_config("key-")) == 2000
        run.canary.await_calls(30)
    assert run.canary.health.failed == 0
    assert run.growth.most < MOST_MEMORY


def test_probes_are_answered_beside_idle_connections():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ServerProcess(config=f'[telemetry]\nprometheus_listen = "127.0.0.1:{port}"\n'):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for _ in range(5):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
                assert answer.status == 200
        for each in idle:
            each.close()


def test_a_watcher_does_not_delay_a_stop(server):
    """Neither one that takes no answer."""
    request = b""
    with Peer(server.addr) as watcher, Peer(server.addr, greet=False) as closed:
        closed.send(frames.PREFACE, frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
        for peer in (watcher, closed):
            peer.call("/grpc.health.v1.Health/Watch", request)
        listing = admin_pb2.ListQueuesRequest().SerializeToString()
        closed.call(ADMIN + "ListQueues", listing)
        watcher.read(0.3)
        server.stop(timeout=8)  # the grace is 10 s


def test_acks_of_messages_that_nobody_holds_beside_a_canary(server, attack):
    """Each is looked up in the store, a few in a tick."""
    with Client(server.addr) as client:
        client.create_queue("orders")
        ids = [client.enqueue("orders", None, b"waits") for _ in range(100)]
    known = service_pb2.SettleRequest(
        sequence=1, acks=[service_pb2.AckGroup(queue="orders", message_ids=ids * 15)]
    ).SerializeToString()
    with attack("acks of messages that nobody holds", "8 peers, 8 batches of 1,500 each") as run:
        peers = [Peer(server.addr) for _ in range(8)]
        for peer in peers:
            for _ in range(8):
                peer.call(SERVICE + "Settle", known)
        run.canary.await_calls(100)
        for peer in peers:
            peer.close()
    assert run.canary.health.failed == 0
    assert run.growth.most < MOST_MEMORY
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS
    with Client(server.addr) as client:
        assert client.queue_stats("orders").summary.depth == 100
