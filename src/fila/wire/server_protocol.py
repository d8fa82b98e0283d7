"""A server's connection on an event loop: time slices, memory that is counted, eviction, and its end in time when the
client's certificate expires.

A call that its caller has left is ended in a slice too: each is a task to cancel and a handler that cleans up, and
peers with thousands of calls may leave at once. Until its turn comes, it receives nothing and answers nothing.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic_ns
from typing import Final, Protocol

from fila.wire.certificate import PeerCertificate, peer_certificate
from fila.wire.events import Event, RequestReceived, StreamEvent
from fila.wire.headers import Headers
from fila.wire.loop_turns import OnTurn
from fila.wire.memory_quota import MemoryQuota
from fila.wire.protocol import RECEIVE_BYTES, Http2Protocol
from fila.wire.server_connection import ServerConnection
from fila.wire.stream import Stream
from fila.wire.time_slice import CALL_UNITS, SLICE_UNITS, RoundRobin
from fila.wire.tls_errors import TLS_ONLY
from fila.wire.tls_layer import address_of

_FIRST_READ_BYTES: Final = 16 << 10
_BYTES_A_UNIT: Final = 64
"""Up to so many bytes for each frame, a peer's frames are small."""

_CALLS_NAMED: Final = 4

CALLS_ENDED_AT_ONCE: Final = SLICE_UNITS // CALL_UNITS
"""Calls that one slice ends: about a millisecond, as long as it takes to begin so many."""

RENEW_S: Final = 5.0
"""So long before its certificate expires, a client is told to connect anew, with the certificate that it has then."""
_DAY_S: Final = 86_400.0


class Server(Protocol):
    """What a connection needs of its server."""

    on_turn: OnTurn

    def connected(self, protocol: "ServerProtocol", address: str) -> None: ...

    def disconnected(self, protocol: "ServerProtocol", address: str) -> None: ...

    def accept(self, protocol: "ServerProtocol", stream: Stream, headers: Headers) -> None: ...


class ServerProtocol(Http2Protocol):
    """Serves one connection. What it does in one go is measured (`OnTurn`)."""

    connection: ServerConnection

    def __init__(
        self,
        server: Server,
        connection: ServerConnection,
        buffer: memoryview,
        keepalive: tuple[float, float],
        quota: MemoryQuota,
        slices: RoundRobin,
    ) -> None:
        super().__init__(connection, buffer, keepalive)
        self._server = server
        self._on_turn = server.on_turn
        self._quota = quota
        self._slices = slices
        #: The peer's, without its port.
        self.address = ""
        #: Why no call of this connection is served; None: they are.
        self.refusal: str | None = None
        #: What the peer has shown of itself, and was verified.
        self.certificate: PeerCertificate | None = None
        #: Nobody is there any more: calls receive and answer nothing, and end when it is their turn.
        self.lost = False
        self._certificate_timer: asyncio.TimerHandle | None = None
        #: What is to be called when the connection has ended; None: it has.
        self._on_lost: list[Callable[[], None]] | None = []
        #: How to end the calls that their caller has left.
        self._left: deque[Callable[[], object]] = deque()
        #: Bytes that were written and that the peer has not read.
        self._unread = 0
        #: More is read at once from a peer whose frames are large.
        self._read_bytes = _FIRST_READ_BYTES
        connection.reader.max_work_units = SLICE_UNITS
        connection.on_granted = self._granted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.address = address_of(transport)
        self.connection.charge(self._quota.open(self.address, self))
        super().connection_made(transport)
        self._server.connected(self, self.address)

    def secured(self, tls: ssl.SSLObject) -> None:
        super().secured(tls)
        self.certificate = peer_certificate(tls)
        if self.certificate is not None:
            ends = self.certificate.not_after
            # One that ends sooner is the best that the client has: to ask it again at once would never end.
            self._await_expiry(ends - RENEW_S if ends - time.time() > RENEW_S else ends)

    def _await_expiry(self, renewal: float) -> None:
        """Send GOAWAY then: new calls go over a new connection, and those that are open may end on this one."""
        left_s = renewal - time.time()
        if left_s > 0:
            self._certificate_timer = self._loop.call_later(min(left_s, _DAY_S), self._await_expiry, renewal)
        elif not self.connection.draining:
            self.connection.go_away()
            self.flush()

    def refuse_plaintext(self) -> None:
        """The peer does not speak TLS."""
        self.refusal = TLS_ONLY

    def connection_lost(self, exc: Exception | None) -> None:
        self._free_unread()
        if self._certificate_timer is not None:
            self._certificate_timer.cancel()
        self.lost = True
        super().connection_lost(exc)
        self._server.disconnected(self, self.address)
        callbacks, self._on_lost = self._on_lost, None
        for callback in callbacks or ():
            callback()

    def _close_streams(self, text: str) -> None:
        """In a slice: of all the connections that are lost at once, one in each turn of the loop."""
        self._slices.add(partial(self._close_now, text))

    def _close_now(self, text: str) -> bool:
        super()._close_streams(text)
        if self.connection.account is not None:
            self._quota.close(self.connection.account)
        return False

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Have something called when the connection has ended; at once if it has."""
        if self._on_lost is None:
            callback()
        else:
            self._on_lost.append(callback)

    def _handle_new(self, event: StreamEvent) -> None:
        if isinstance(event, RequestReceived):
            self._server.accept(self, event.stream, event.headers)

    # Time slices.

    def buffer_updated(self, nbytes: int) -> None:
        began = monotonic_ns()
        reader = self.connection.reader
        now = self._loop.time()
        if now != self._heard_at:  # a new turn of the loop
            reader.work_units = 0
        before = reader.work_units
        super().buffer_updated(nbytes)
        self.relieve()
        if reader.has_backlog:
            self._wait_for_slice()
        elif nbytes == self._read_bytes < RECEIVE_BYTES and (reader.work_units - before) * _BYTES_A_UNIT < nbytes:
            self._read_bytes = min(4 * self._read_bytes, RECEIVE_BYTES)
        self._on_turn("receive", began, self._describe)

    def _wait_for_slice(self) -> None:
        """There is more to do than one slice allows: read nothing before it is done."""
        if self.transport is not None and not self.transport.is_closing():
            self._read_bytes = _FIRST_READ_BYTES
            self.transport.pause_reading()
            self._slices.add(self._run_slice)

    def _run_slice(self) -> bool:
        """Whether there is still more to do."""
        if self.lost:
            return False
        connection, transport = self.connection, self.transport
        self._heard_at, connection.reader.work_units = self._loop.time(), 0
        self.handle(connection.receive(b"", self._heard_at))
        self.flush()
        self.relieve()
        if transport is None or transport.is_closing():
            return False
        if not connection.reader.has_backlog:
            transport.resume_reading()
        return connection.reader.has_backlog

    def end_in_turn(self, end: Callable[[], object]) -> None:
        """Have a call ended that its caller has left: soon, and only so many in each turn of the loop."""
        self._left.append(end)
        if len(self._left) == 1:
            self._slices.add(self._end_calls)

    def _end_calls(self) -> bool:
        """Whether there are more to end."""
        for _ in range(min(CALLS_ENDED_AT_ONCE, len(self._left))):
            self._left.popleft()()
        return bool(self._left)

    # Memory.

    def relieve(self) -> None:
        """Evict calls, of this connection or of others, when more is held than allowed."""
        account = self.connection.account
        if account is not None and account.over:
            self._quota.relieve(account)

    def evict(self) -> bool:
        """End the call that holds most, or the connection when what it does not read is more than that. Many callers
        share a connection between parts of one program: it does not end for what one of them holds.
        """
        connection = self.connection
        largest = connection.largest
        held = 0 if largest is None or largest.memory is None else largest.memory.held
        if connection.closed:
            return False
        if self._unread > held and connection.limits_floods:
            self._tell(connection.close("the peer does not read"))
            if self.transport is not None:
                self.transport.abort()
            return True
        if largest is None or not held:
            return False
        self._tell(connection.evict(largest))
        self.flush()
        return True

    def _tell(self, events: Iterable[Event]) -> None:
        """Hand events to their calls and no more: what they make room for is sent by whoever has made the connection
        hold too much, once it does not. A call that is sent for here would end another, inside of this one.
        """
        for event in events:
            self._dispatch(event)

    def _granted(self, stream: Stream) -> None:
        self.handle(self.connection.grant(stream))
        self.flush()

    def pause_writing(self) -> None:
        super().pause_writing()
        account = self.connection.account
        if account is not None and self.transport is not None:
            # A part of what was just written may keep all of it.
            self._unread = max(self.transport.get_write_buffer_size(), self._written)
            account.take(self._unread)
            if account.over:
                self._loop.call_soon(self.relieve)  # it is in the middle of writing

    def resume_writing(self) -> None:
        began = monotonic_ns()
        self._free_unread()
        super().resume_writing()
        self._on_turn("send", began, self._describe)

    def _free_unread(self) -> None:
        if self._unread and self.connection.account is not None:
            self.connection.account.give(self._unread)
        self._unread = 0

    def _describe(self) -> str:
        """The calls of the connection, of which one has kept the event loop busy."""
        calls = {str(call) for call in self.calls.values()}
        return ", ".join(sorted(calls)[:_CALLS_NAMED]) or "no call"
