"""What an attack on a real server needs: a peer that keeps no rules, a canary beside it, and the server's memory.

Rules of this file:
- The canary is a process of its own: an attack that keeps the test's interpreter busy does not count as a slow server.
- A peer is a plain socket. It builds frames by hand and answers nothing by itself: no window, no ping, no settings.
- Memory is what the kernel says of the server's process (VmRSS and its high-water mark), not what the server says.
"""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from fila.wire import frames, headers

MIB = 1 << 20
GREETING = frames.PREFACE + frames.settings({})
#: What hostile peers may cost the server beyond what it takes when idle, and what a normal client may notice of them.
MOST_MEMORY = 256 * MIB
MOST_DELAY_MS = 50.0


class Peer:
    """A connection to the server on which anything may be sent."""

    def __init__(
        self,
        addr: str,
        *,
        greet: bool = True,
        receive_buffer: int | None = None,
        timeout: float = 10.0,
        source: str = "",
    ):
        host, port = addr.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer is not None:  # before the connection is made, so that TCP's own window is small
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.socket.connect((host, int(port)))
        self.sent = 0
        self._next_stream = 1
        if greet:
            self.send(GREETING)

    def send(self, *data: bytes) -> bool:
        """Returns whether the connection took it: a server may end one that misbehaves, and may stop reading."""
        try:
            for piece in data:
                self.socket.sendall(piece)
                self.sent += len(piece)
        except OSError:
            return False
        return True

    def call(self, path: str, *messages: bytes, end: bool = True, extra: tuple[tuple[bytes, bytes], ...] = ()) -> int:
        """Open a stream with these messages on it. Returns its number."""
        stream_id, self._next_stream = self._next_stream, self._next_stream + 2
        self.send(open_stream(stream_id, path, extra))
        for message in messages:
            self.send(*data_frames(stream_id, prefixed(message)))
        if end:
            self.send(frames.frame(frames.DATA, frames.END_STREAM, stream_id, b""))
        return stream_id

    def read(self, timeout: float = 1.0) -> bytes:
        """What the server says until it is silent for so long, or ends the connection."""
        self.socket.settimeout(timeout)
        said = bytearray()
        try:
            while piece := self.socket.recv(1 << 16):
                said += piece
        except OSError:
            pass
        return bytes(said)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_stream(stream_id: int, path: str, extra: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    block = headers.encode(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"localhost"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            *extra,
        ]
    )
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)


def data_frames(stream_id: int, content: bytes, size: int = frames.MIN_FRAME_BYTES) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield frames.frame(frames.DATA, 0, stream_id, content[at : at + size])


def prefixed(message: bytes) -> bytes:
    """A message as gRPC frames it: uncompressed, with its length."""
    return b"\0" + len(message).to_bytes(4, "big") + message


class Heard(NamedTuple):
    """One frame that the server sent."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


def heard(said: bytes) -> list[Heard]:
    """The frames in what a server said, the last of which may be cut off."""
    at, found = 0, []
    while at + frames.HEADER_BYTES <= len(said):
        length = int.from_bytes(said[at : at + 3], "big")
        stream_id = int.from_bytes(said[at + 5 : at + 9], "big") & frames.MAX_STREAM_ID
        found.append(Heard(said[at + 3], said[at + 4], stream_id, said[at + 9 : at + 9 + length]))
        at += frames.HEADER_BYTES + length
    return found


@dataclass(frozen=True, slots=True)
class Health:
    """What a canary saw."""

    calls: int
    failed: int
    errors: list[str]
    p50_ms: float
    p99_ms: float
    worst_ms: float


class Canary:
    """A well-behaved client beside an attack: enqueues, consumes and acks one message after the other, and notes how
    long each took.

        with Canary(server.addr) as canary:
            attack()
            canary.await_calls(100)
        assert canary.health.failed == 0
    """

    def __init__(self, addr: str, *, queue: str = "canary", interval_ms: int = 10) -> None:
        self._command = [sys.executable, "-m", "tests.hostile.canary", addr, queue, str(interval_ms)]
        self._process: subprocess.Popen[str] | None = None
        self.health = Health(0, 0, [], 0.0, 0.0, 0.0)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready"
        return self

    def await_calls(self, count: int) -> None:
        """Wait until the canary has made so many more calls. What an attack holds open is held open meanwhile."""
        assert self._process is not None
        assert self._process.stdout is not None
        for _ in range(count):
            assert self._process.stdout.readline().strip() == "called"

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        said, _ = self._process.communicate("", timeout=60)  # the end of its input tells it to report
        self.health = Health(**json.loads(said.splitlines()[-1]))


def canary_alone(addr: str, calls: int = 50) -> Health:
    """What a canary sees while nobody attacks: what the health beside an attack is compared with."""
    with Canary(addr) as canary:
        canary.await_calls(calls)
    return canary.health


def memory(pid: int) -> int:
    """Bytes that a process has in memory."""
    return _status(pid, "VmRSS")


def _status(pid: int, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@dataclass(slots=True)
class Growth:
    """How much memory a process took beyond what it had before."""

    before: int
    most: int = 0


@contextmanager
def watched(pid: int) -> Iterator[Growth]:
    """The growth of a process while the block runs; `most` is its peak, known at the end of the block."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the high-water mark starts anew
    growth = Growth(memory(pid))
    try:
        yield growth
    finally:
        growth.most = _status(pid, "VmHWM") - growth.before
