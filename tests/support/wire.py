"""Both ends of a connection without a network, and frames as a hostile peer would write them."""

from fila.wire import frames, headers
from fila.wire.client_connection import ClientConnection
from fila.wire.events import (
    HeadersReceived,
    MessageReceived,
    PeerChanged,
    RequestReceived,
    StreamEnded,
    StreamLost,
    StreamRefused,
    StreamReset,
    StreamWritable,
)
from fila.wire.limits import Limits
from fila.wire.server_connection import ServerConnection
from fila.wire.stream import Stream

GREETING = frames.PREFACE + frames.settings({})
BEGINNING = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/M"))
REQUEST_HEADERS = (*BEGINNING, (b"content-type", b"application/grpc"))
REQUEST = headers.encode(REQUEST_HEADERS)


class Log:
    """The events of one end of a connection."""

    def __init__(self):
        self.events = []

    def of(self, stream):
        """What happened to a stream, in short."""
        return [
            SHORT[type(event)](event)
            for event in self.events
            if not isinstance(event, PeerChanged) and event.stream is stream
        ]


SHORT = {
    RequestReceived: lambda event: ("request", event.headers),
    HeadersReceived: lambda event: ("headers", event.headers, event.end),
    MessageReceived: lambda _: "readable",
    StreamEnded: lambda _: "ended",
    StreamWritable: lambda _: "writable",
    StreamRefused: lambda event: ("refused", event.code),
    StreamReset: lambda event: ("lost", event.code),
    StreamLost: lambda _: ("lost", None),
}


class Server:
    """The server's end."""

    def __init__(self, **limits):
        self.log = Log()
        self.connection = ServerConnection(Limits(**limits))
        self.connection.on_granted = lambda stream: self.handle(self.connection.grant(stream))
        self.said = bytearray()
        self.now = 0.0

    def hear(self, *data):
        for each in data:
            self.handle(self.connection.receive(each, self.now))
            account = self.connection.account
            if account is not None and account.over:
                account.quota.relieve(account)
        return self

    def handle(self, events):
        self.log.events += events
        while self.connection.sender.pump_again:
            self.log.events += self.connection.pump()

    @property
    def accepted(self):
        return [event.stream for event in self.log.events if isinstance(event, RequestReceived)]

    def evict(self):
        """As the connection of a server does."""
        stream = self.connection.largest
        if self.connection.closed or stream is None or not stream.memory.held:
            return False
        self.handle(self.connection.evict(stream))
        self.connection.reset(stream, frames.ENHANCE_YOUR_CALM)
        return True

    def take(self):
        """What it has to say since the last time."""
        return b"".join(self.connection.take_output())

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
        self.client = ClientConnection(Limits(**(client or {})))
        self.log = Log()
        self.exchange()

    def exchange(self, piece=1 << 30):
        """Until neither has anything to say, in pieces of so many bytes."""
        while self.client.out or self.server.connection.out:
            to_server = b"".join(self.client.take_output())
            for at in range(0, len(to_server), piece):
                self.server.hear(to_server[at : at + piece])
            to_client = self.server.take()
            for at in range(0, len(to_client), piece):
                self.hear(to_client[at : at + piece])

    def hear(self, data):
        """What the client hears."""
        self.log.events += self.client.receive(data, 0.0)

    def open(self):
        stream = Stream()
        self.client.open(stream, REQUEST)
        self.exchange()
        return stream, self.server.accepted[-1]
