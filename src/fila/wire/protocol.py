"""A connection on an event loop: carries bytes to and fro, hands events to their calls, and sends keepalive PINGs."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Final, Protocol, cast

from fila.wire import frames
from fila.wire.connection import Connection
from fila.wire.events import Event, PeerChanged, StreamEvent
from fila.wire.frames import ConnectionFailed
from fila.wire.malloc import keep_freed_memory
from fila.wire.stream import Buffer

RECEIVE_BYTES: Final = 256 << 10
"""What is read at once. One buffer serves all connections of a loop, for nothing stays in it."""

_SMALL: Final = 16 << 10
"""Up to here, copying once is cheaper than looking at many small parts of a view."""

ALPN: Final = "h2"
"""What TLS calls the protocol."""

MAX_UNREAD_BYTES: Final = 1 << 20
"""Of headers, PINGs and the like, behind a full transport. Messages wait for the peer and are not counted."""

CLOSE_TIMEOUT_S: Final = 1.0
"""How long a peer that does not read keeps a connection that is being closed."""


class Call(Protocol):
    """Whoever handles the events of one stream."""

    def handle(self, event: StreamEvent) -> None: ...


class Http2Protocol(asyncio.BufferedProtocol):
    """One connection of either role. A role says what becomes of events that are not those of a call."""

    def __init__(self, connection: Connection, buffer: memoryview, keepalive: tuple[float, float]) -> None:
        self.connection = connection
        self.transport: asyncio.Transport | None = None
        #: The calls by the numbers of their streams, until they end.
        self.calls: dict[int, Call] = {}
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        self._idle_s, self._answer_s = keepalive
        self._heard_at = self._loop.time()
        self._pinged_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        #: How much is read at once.
        self._read_bytes = RECEIVE_BYTES
        #: Bytes of messages that were written last.
        self._written = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(self._answer_s, self._check_alive)
        self.flush()

    def secured(self, tls: ssl.SSLObject) -> None:
        """The TLS handshake is done."""
        if tls.selected_alpn_protocol() != ALPN:
            self.fail(ConnectionFailed(frames.INADEQUATE_SECURITY, "the peer does not offer h2 (ALPN)"))

    # What arrives.

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer if self._read_bytes == RECEIVE_BYTES else self._buffer[: self._read_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        self._heard_at = self._loop.time()
        data = self._buffer[:nbytes]
        self.handle(self.connection.receive(bytes(data) if nbytes <= _SMALL else data, self._heard_at))
        self.flush()

    def handle(self, events: Iterable[Event]) -> None:
        """Hand events to their calls."""
        for event in events:
            self._dispatch(event)
        while self.connection.sender.pump_again:
            for event in self.connection.pump():
                self._dispatch(event)

    def _dispatch(self, event: Event) -> None:
        if isinstance(event, PeerChanged):
            self._peer_changed()
            return
        call = self.calls.get(event.stream.id)
        if call is None:
            self._handle_new(event)
        else:
            call.handle(event)

    def _peer_changed(self) -> None:
        """SETTINGS or GOAWAY came."""

    def _handle_new(self, event: StreamEvent) -> None:
        """An event of a stream that has no call: of a new one, or of one whose call has ended."""

    # What is written.

    def flush(self) -> None:
        """Write what the connection has to say."""
        connection, transport = self.connection, self.transport
        if transport is None:
            return
        sender = connection.sender
        if connection.out:
            self._written = sender.out_bytes
            out = connection.take_output()
            if sender.paused and self._reads_nothing(out):
                transport.abort()
            if not transport.is_closing():
                if len(out) == 1:
                    transport.write(out[0])
                elif sum(map(len, out)) <= _SMALL:
                    transport.write(b"".join(out))
                else:
                    transport.writelines(out)
        if sender.full and not sender.paused:
            sender.full = False
            self._loop.call_soon(self._pump)  # others have their turn in between
        if connection.closed and not transport.is_closing():
            self.close()

    def _pump(self) -> None:
        self.handle(self.connection.pump())
        self.flush()

    def _reads_nothing(self, out: list[Buffer]) -> bool:
        """Whether the peer goes on asking and does not read: all that is written now are answers without messages."""
        self._unread_bytes += sum(map(len, out))
        return self._unread_bytes > MAX_UNREAD_BYTES

    def pause_writing(self) -> None:
        self.connection.sender.paused = True
        self._unread_bytes = 0

    def resume_writing(self) -> None:
        self.connection.sender.paused = False
        self._pump()

    # The end.

    def fail(self, failure: ConnectionFailed) -> None:
        """End the connection with GOAWAY."""
        self.handle(self.connection.fail(failure))
        self.flush()

    def close(self) -> None:
        """Write what is to be written and close; a peer that does not read is not waited for."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
            self._loop.call_later(CLOSE_TIMEOUT_S, self.transport.abort)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._close_streams(f"the connection was lost: {exc}" if exc else "the connection was closed")

    def _close_streams(self, text: str) -> None:
        self.handle(self.connection.close(text))

    def _check_alive(self) -> None:
        """Keepalive: a peer that is silent for a while gets a PING, and is given up when it does not answer.

        One that has not even sent SETTINGS is not waited for so long.
        """
        now = self._loop.time()
        silent_s = now - self._heard_at
        if (self._pinged_at is not None and self._heard_at < self._pinged_at) or not self.connection.peer.received:
            self.fail(ConnectionFailed(frames.NO_ERROR, "the peer does not answer"))
            return
        if silent_s >= self._idle_s:
            self._pinged_at, wait_s = now, self._answer_s
            self.connection.control.ping()
            self.flush()
        else:
            self._pinged_at, wait_s = None, self._idle_s - silent_s
        self._timer = self._loop.call_later(wait_s, self._check_alive)


def receive_buffer() -> memoryview:
    """For the connections of one event loop."""
    keep_freed_memory()
    return memoryview(bytearray(RECEIVE_BYTES))
