"""Peers that make the server hold bytes: requests that never end, responses that nobody reads, connections in numbers.

Held to: 256 MiB over idle whatever they do, and 50 ms more for a normal client beside them. Each amount is one at which
a server without budgets goes far beyond that.
"""

import time

import pytest

from fila import Client
from fila.server.app import STREAM_WINDOW
from fila.testing import ServerProcess
from fila.v1 import service_pb2 as pb
from fila.wire import frames
from tests.hostile.support import MIB, MOST_DELAY_MS, MOST_MEMORY, Peer, data_frames, heard, memory, prefixed

ENQUEUE_BATCH = "/fila.v1.FilaService/EnqueueBatch"
ENQUEUE_STREAM = "/fila.v1.FilaService/EnqueueStream"
READ_QUEUE = "/fila.v1.FilaService/ReadQueue"
LEASE = "/fila.v1.FilaService/Lease"
LARGE = 4 * MIB - 300_000


def patient(server, **options):
    """A peer whose sends do not wait for a server that does not read."""
    peer = Peer(server.addr, **options)
    peer.socket.settimeout(0.5)
    return peer


def given(said):
    """How much window each stream was given beyond the first."""
    windows = {}
    for frame in heard(said):
        if frame.kind == frames.WINDOW_UPDATE:
            windows[frame.stream_id] = windows.get(frame.stream_id, 0) + int.from_bytes(frame.payload, "big")
    return windows


def send_as_allowed(peer, streams, size, within_s=6.0):
    """Send a message of so many bytes on each stream, all but its last byte, as the server gives window."""
    left = {stream: prefixed(bytes(size))[:-1] for stream in streams}
    windows = dict.fromkeys(streams, STREAM_WINDOW)
    until = time.monotonic() + within_s
    while time.monotonic() < until and any(left.values()):
        for stream in streams:
            room = min(windows[stream], len(left[stream]))
            if room > 0:
                if not peer.send(*data_frames(stream, left[stream][:room])):
                    return
                left[stream], windows[stream] = left[stream][room:], windows[stream] - room
        for stream, more in given(peer.read(0.05)).items():
            if stream in windows:
                windows[stream] += more


@pytest.fixture
def filled(server):
    """A queue with messages of the largest size."""
    with Client(server.addr) as client:
        client.create_queue("large")
        for _ in range(4):
            client.enqueue("large", None, bytes(LARGE))
    return server


def assert_held(run):
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.growth.most < MOST_MEMORY
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS  # the slowest of all depend on the machine


@pytest.mark.parametrize("connections", [6, pytest.param(15, marks=pytest.mark.slow)])
def test_requests_one_byte_short_of_their_end(server, attack, connections):
    """Windows are given for as many as there is room for; the others wait, and what stalls gives way."""
    with attack("requests one byte short of 16 MiB", f"{connections} connections with 20 each") as run:
        peers = [patient(server) for _ in range(connections)]
        for peer in peers:
            streams = [peer.call(ENQUEUE_BATCH, end=False) for _ in range(20)]
            send_as_allowed(peer, streams, 16 * MIB - 10, within_s=2.0)
        run.canary.await_calls(100)
        for peer in peers:
            peer.close()
    assert_held(run)


def test_batches_released_together(server, attack):
    """As many as have room are complete at once; they are decoded and written one after the other."""
    with attack("batches of 15 MiB released together", "20 connections") as run:
        peers = [patient(server) for _ in range(20)]
        calls = [(peer, peer.call(ENQUEUE_BATCH, end=False)) for peer in peers]
        for peer, stream in calls:
            send_as_allowed(peer, [stream], 15 * MIB, within_s=0.3)
        for peer, stream in calls:
            peer.send(frames.frame(frames.DATA, frames.END_STREAM, stream, b"\0"))
        run.canary.await_calls(50)
        for peer in peers:
            peer.close()
    assert_held(run)


@pytest.mark.parametrize(
    "connections,calls,size",
    [(16, 1000, 65_535), (20, 20, MIB), pytest.param(100, 1000, 65_535, marks=pytest.mark.slow)],
)
def test_small_parts_of_many_requests(server, attack, connections, calls, size):
    """As much of each as its window takes, and no more: as many as would be a gigabyte, or half of one."""
    part = prefixed(bytes(2 * MIB))[:size]
    with attack(f"requests that never end, {size:,} bytes of each", f"{connections} connections with {calls:,}") as run:
        peers = [patient(server) for _ in range(connections)]
        for peer in peers:
            for _ in range(calls):
                stream = peer.call(ENQUEUE_STREAM, end=False)
                if not peer.send(*data_frames(stream, part)):
                    break
        run.canary.await_calls(100)
        for peer in peers:
            peer.close()
    assert_held(run)


@pytest.mark.parametrize("window", [0, 1])
@pytest.mark.parametrize("calls", [300, pytest.param(900, marks=pytest.mark.slow)])
def test_responses_that_nobody_takes(filled, attack, window, calls):
    """The store is read when the window is open, and no more than there is room for."""
    request = pb.ReadQueueRequest(queue="large").SerializeToString()
    with attack("reads of 4 MiB messages that the peer does not take", f"{calls} calls, windows of {window}") as run:
        peer = patient(filled, greet=False)
        peer.send(frames.PREFACE, frames.settings({frames.INITIAL_WINDOW_SIZE: window}))
        for _ in range(calls):
            peer.call(READ_QUEUE, request)
        run.canary.await_calls(100)
        peer.close()
    assert_held(run)


@pytest.mark.parametrize("connections", [60, pytest.param(100, marks=pytest.mark.slow)])
def test_open_windows_behind_a_socket_that_nobody_reads(filled, attack, connections):
    """What TCP does not take is counted as well."""
    request = pb.ReadQueueRequest(queue="large").SerializeToString()
    with attack("reads of 4 MiB messages, socket not read", f"{connections} connections with 10 calls each") as run:
        peers = []
        for _ in range(connections):
            peer = patient(filled, greet=False, receive_buffer=4096)
            peer.send(frames.PREFACE, frames.settings({frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}))
            peer.send(frames.window_update(0, 1 << 30))
            for _ in range(10):
                peer.call(READ_QUEUE, request)
            peers.append(peer)
        run.canary.await_calls(100)
        for peer in peers:
            peer.close()
    assert_held(run)


def test_consumers_that_take_nothing(filled, attack):
    """Deliveries are read when the consumer takes them."""
    request = pb.LeaseRequest(queue="large", max_in_flight=100).SerializeToString()
    with attack("consumers of 4 MiB messages that take nothing", "200 streams") as run:
        peer = patient(filled, greet=False)
        peer.send(frames.PREFACE, frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
        for _ in range(200):
            peer.call(LEASE, request)
        run.canary.await_calls(100)
        peer.close()
    assert_held(run)


def test_memory_goes_back_to_the_system(server):
    """After an attack the server is as large as it was, but for what its store keeps."""
    before = memory(server.pid)
    with patient(server) as peer:
        streams = [peer.call(ENQUEUE_BATCH, end=False) for _ in range(4)]
        send_as_allowed(peer, streams, 15 * MIB, within_s=4.0)
    until = time.monotonic() + 20
    while memory(server.pid) - before > 24 * MIB and time.monotonic() < until:
        time.sleep(0.2)
    assert memory(server.pid) - before <= 24 * MIB


def test_a_normal_request_gets_through_while_others_hold_all_the_room(server):
    """Those who wait for room take it from those who hold more and do not use it."""
    peers = [patient(server) for _ in range(6)]
    for peer in peers:
        streams = [peer.call(ENQUEUE_BATCH, end=False) for _ in range(4)]
        send_as_allowed(peer, streams, 16 * MIB - 10, within_s=0.5)
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        for _ in range(3):
            client.enqueue("q", None, bytes(3 * MIB))
        assert client.queue_stats("q").summary.depth == 3
    for peer in peers:
        peer.close()


def test_connections_are_limited_and_a_new_peer_finds_a_place():
    """One address beyond its share is turned away; when all places are taken, the address with most gives one."""
    settings = {"FILA_SERVER__MAX_CONNECTIONS": "20", "FILA_SERVER__MAX_PEER_CONNECTIONS": "15"}
    with ServerProcess(env=settings) as server:
        held = [Peer(server.addr, source="127.0.0.3") for _ in range(15)]
        with Peer(server.addr, source="127.0.0.3") as one_more:
            told = heard(one_more.read(0.5))
        assert told[-1].kind == frames.GOAWAY
        assert int.from_bytes(told[-1].payload[4:8], "big") == frames.ENHANCE_YOUR_CALM
        others = [Peer(server.addr, source="127.0.0.2") for _ in range(8)]
        said = [frame for peer in others for frame in heard(peer.read(0.2))]
        assert not any(frame.kind == frames.GOAWAY for frame in said)
        with Client(server.addr) as client:
            client.create_queue("q")
            client.enqueue("q", None, b"x")
        for peer in (*held, *others):
            peer.close()
