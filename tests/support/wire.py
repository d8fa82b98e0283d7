"""Both ends of a connection without a network, and frames as a hostile peer would write them."""

from fila.wire import frames, headers
from fila.wire.connection import Connection, Limits
from fila.wire.stream import Stream

GREETING = frames.PREFACE + frames.settings({})
BEGINNING = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/M"))
REQUEST = headers.encode([*BEGINNING, (b"content-type", b"application/grpc")])


class Recorder(Stream):
    """A stream that writes down what it is told."""

    __slots__ = ("connection", "told")

    def __init__(self, request=()):
        super().__init__()
        self.told = [("request", request)] if request else []

    def got_headers(self, headers, end):
        self.told.append(("headers", headers, end))

    def readable(self):
        self.told.append("readable")

    def writable(self):
        self.told.append("writable")

    def refused(self, error):
        self.told.append(("refused", error.code))

    def lost(self, code, text):
        self.told.append(("lost", code))


class Server:
    """The server's end."""

    def __init__(self, **limits):
        self.accepted = []
        self.connection = Connection(Limits(**limits), self._accept)
        self.said = bytearray()
        self.now = 0.0

    def _accept(self, request):
        self.accepted.append(Recorder(request))
        return self.accepted[-1]

    def hear(self, *data):
        for each in data:
            self.connection.receive(each, self.now)
        return self

    def take(self):
        """What it has to say since the last time."""
        said = b"".join(self.connection.out)
        self.connection.out = []
        return said

    @property
    def verdict(self):
        """The code of the GOAWAY with which it ended, None while it goes on."""
        assert self.connection.closed == (self.connection.failure is not None)
        return None if self.connection.failure is None else self.connection.failure.code


def greeted(**limits):
    server = Server(**limits).hear(GREETING)
    server.take()
    return server


def opened(stream_id=1, **limits):
    """A server with one open stream."""
    server = greeted(**limits).hear(open_stream(stream_id))
    server.take()
    return server


def open_stream(stream_id, block=REQUEST, *, end=False):
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frames.frame(frames.HEADERS, flags, stream_id, block)


def data(stream_id, payload, *, end=False):
    return frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream_id, payload)


def message(payload):
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def parse(said):
    """Frames as (kind, flags, stream, payload)."""
    at, found = 0, []
    while at < len(said):
        length, kind, flags = int.from_bytes(said[at : at + 3], "big"), said[at + 3], said[at + 4]
        stream_id = int.from_bytes(said[at + 5 : at + 9], "big")
        found.append((kind, flags, stream_id, bytes(said[at + 9 : at + 9 + length])))
        at += 9 + length
    assert at == len(said)
    return found


class Pair:
    """A client and a server that hear each other."""

    def __init__(self, client=None, server=None):
        self.server = Server(**(server or {}))
        self.client = Connection(Limits(**(client or {})))
        self.exchange()

    def exchange(self, piece=1 << 30):
        """Until neither has anything to say, in pieces of so many bytes."""
        while self.client.out or self.server.connection.out:
            to_server = b"".join(self.client.out)
            self.client.out = []
            for at in range(0, len(to_server), piece):
                self.server.hear(to_server[at : at + piece])
            to_client = self.server.take()
            for at in range(0, len(to_client), piece):
                self.client.receive(to_client[at : at + piece], 0.0)

    def open(self):
        stream = Recorder()
        self.client.open(stream, REQUEST)
        self.exchange()
        return stream, self.server.accepted[-1]
