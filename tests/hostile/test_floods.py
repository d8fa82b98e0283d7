"""Peers that send much that means little: each frame costs the server the same, however small it is."""

import threading
import time

import pytest

from fila.wire import frames
from tests.hostile.support import MOST_DELAY_MS, MOST_MEMORY, Peer, heard, open_stream, prefixed

ENQUEUE_STREAM = "/fila.v1.FilaService/EnqueueStream"
SECONDS = 3.0

FLOODS = {
    "SETTINGS-ACK": frames.frame(frames.SETTINGS, frames.ACK, 0),
    "PING-ACK": frames.frame(frames.PING, frames.ACK, 0, bytes(8)),
    "PING": frames.frame(frames.PING, 0, 0, bytes(8)),
    "SETTINGS": frames.settings({}),
    "WINDOW_UPDATE": frames.window_update(0, 1) + frames.window_update(1, 1),
    "1-byte DATA": frames.frame(frames.DATA, 0, 1, b"x"),
    "empty calls": b"",
}


def chunks(name):
    """What one peer sends, a piece at a time."""
    if name == "empty calls":
        for start in range(3, 1 << 20, 800):
            yield b"".join(open_stream(number, "/none") for number in range(start, start + 800, 2))
        return
    if name == "1-byte DATA":
        yield frames.frame(frames.DATA, 0, 1, prefixed(bytes(12 << 20))[:5])
    chunk = FLOODS[name] * 4000
    while True:
        yield chunk


def flood(peer, name, until):
    peer.send(open_stream(1, ENQUEUE_STREAM))
    for chunk in chunks(name):
        if time.monotonic() > until or not peer.send(chunk):
            return


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_slows_down_only_itself(server, attack, name):
    with attack(f"flood of {name}", f"4 peers for {SECONDS:.0f} s") as run:
        peers = [Peer(server.addr, timeout=1.0) for _ in range(4)]
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=flood, args=(peer, name, until)) for peer in peers]
        for thread in threads:
            thread.start()
        run.canary.await_calls(60)
        for thread in threads:
            thread.join()
        said = [heard(peer.read(0.1)) for peer in peers]
        for peer in peers:
            peer.close()
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.growth.most < MOST_MEMORY
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS
    if name in {"SETTINGS-ACK", "PING-ACK", "PING", "SETTINGS"}:
        assert all(any(frame.kind == frames.GOAWAY for frame in each) or not each for each in said)
