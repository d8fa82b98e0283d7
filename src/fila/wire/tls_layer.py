"""TLS between a TCP transport and a protocol: an `ssl.SSLObject` between two buffers in memory.

Rules of this file:
- The protocol is told of its connection before the handshake, so every limit on connections holds for handshakes too.
- Nothing is written before the handshake is done. What the protocol writes meanwhile waits.
- A peer that begins with HTTP/2 in plaintext is handed to the protocol as it is, if that refuses every call of such a
  peer (`on_plaintext`): a status is an error that every gRPC client shows. Others get a sentence, and are closed.
- A handshake takes at most `HANDSHAKE_S`. On a server its steps are taken round robin with those of others, one in a
  turn of the event loop: a step signs with the private key, which takes up to a millisecond.
- A connection that breaks the rules of TLS gets an alert and is closed. The protocol is told why.
- A server lingers (lingering close): it sends its alert, ends its side, and drops what still comes for up to `LINGER_S`
  or `LINGER_BYTES`. Closed at once, the peer's next bytes would be answered with a reset, which takes the alert away
  before the peer has read why it was refused.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, cast

from fila.wire import frames
from fila.wire.tls_errors import CLOSED_DURING_HANDSHAKE, TLS_ONLY

HANDSHAKE_S: Final = 10.0
LINGER_S: Final = 1.0
LINGER_BYTES: Final = 256 << 10

_HANDSHAKE_RECORD: Final = 0x16
"""The first byte of everyone who speaks TLS."""

_BAD_REQUEST: Final = (
    f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(TLS_ONLY) + 1}\r\n"
    f"Connection: close\r\n\r\n{TLS_ONLY}\n"
).encode()

_READ_BYTES: Final = 16 << 10
"""Of protocols that have no buffer of their own."""

Wrap = Callable[[ssl.MemoryBIO, ssl.MemoryBIO], ssl.SSLObject]
"""Makes the TLS state of one connection from what comes and what goes."""

OnSecured = Callable[[ssl.SSLObject], None]


class HandshakeFailed(ConnectionError):
    """The connection ended during the handshake. Trying again may help, unlike with an `ssl.SSLError`."""


class PlaintextReceived(HandshakeFailed):
    """The peer does not speak TLS."""


class Scheduler(Protocol):
    """When the steps of handshakes are taken."""

    def begin(self, layer: "TlsLayer", address: str) -> None: ...

    def step(self, run: Callable[[], bool]) -> None: ...

    def end(self, layer: "TlsLayer", failure: Exception | None) -> None: ...


class TlsLayer(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a TCP transport, and the transport of another protocol."""

    def __init__(
        self,
        inner: asyncio.BufferedProtocol | asyncio.Protocol,
        wrap: Wrap,
        on_secured: OnSecured,
        scheduler: Scheduler | None = None,
        on_plaintext: Callable[[], None] | None = None,
    ) -> None:
        asyncio.Transport.__init__(self)
        self._inner = inner
        self._buffered = inner if isinstance(inner, asyncio.BufferedProtocol) else None
        self._buffer = memoryview(bytearray(0 if self._buffered else _READ_BYTES))
        self._wrap = wrap
        self._on_secured = on_secured
        #: A server has one: its handshakes take turns.
        self._scheduler = scheduler
        self._on_plaintext = on_plaintext
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object: ssl.SSLObject | None = None
        self._loop = asyncio.get_running_loop()
        self._tcp: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._secured = False
        self._plaintext = False
        self._reading_paused = False
        self._failure: Exception | None = None
        #: How many bytes are still dropped before the connection is cut; None unless it lingers.
        self._linger: int | None = None
        #: What was written before the handshake was done.
        self._early: list[bytes] = []
        #: For a client, who waits for it. Raises SSLError or HandshakeFailed.
        self.handshake: asyncio.Future[None] = self._loop.create_future()
        self.handshake.add_done_callback(_look_at_failure)

    # The protocol of a TCP transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(HANDSHAKE_S, self._time_out)
        self._inner.connection_made(self)
        if self._scheduler is not None:
            self._scheduler.begin(self, address_of(transport))
        else:
            self._object = self._wrap(self._incoming, self._outgoing)
            self._shake_hands()

    def get_buffer(self, sizehint: int) -> Any:
        if self._buffered is not None:
            # The protocol's own: what is in it is copied before anything is decrypted into it.
            self._buffer = memoryview(self._buffered.get_buffer(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        if self._linger is not None:
            self._drop(nbytes)
            return
        if self._secured:
            self._incoming.write(data)
            self._decrypt()
            return
        if self._plaintext and self._buffered is not None:
            self._buffered.buffer_updated(nbytes)
            return
        if self._object is None:
            if data[0] != _HANDSHAKE_RECORD:
                self._take_plaintext(data)
                return
            self._object = self._wrap(self._incoming, self._outgoing)
        self._incoming.write(data)
        if self._scheduler is None:
            self._shake_hands()
        elif self._tcp is not None:
            self._tcp.pause_reading()
            self._scheduler.step(self._shake_hands)

    def eof_received(self) -> bool:
        if self._linger is not None:
            return False
        if self._secured or self._plaintext:
            self._inner.eof_received()
        else:
            self._fail(HandshakeFailed(CLOSED_DURING_HANDSHAKE))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        failure = self._failure or exc
        self._end_handshake(failure or HandshakeFailed(CLOSED_DURING_HANDSHAKE))
        if self._timer is not None:
            self._timer.cancel()
        self._inner.connection_lost(failure)
        self._tcp = self._object = None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # The handshake.

    def _shake_hands(self) -> bool:
        """Take the next step. Returns False: it is called again when there is more from the peer."""
        tcp, state = self._tcp, self._object
        if tcp is None or state is None or self.is_closing():
            return False
        try:
            state.do_handshake()
        except ssl.SSLWantReadError:
            self._flush(tcp)
            tcp.resume_reading()
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._flush(tcp)
            self._begin(state)
        return False

    def _begin(self, state: ssl.SSLObject) -> None:
        self._secured = True
        self._end_handshake(None)
        self._on_secured(state)
        early, self._early = self._early, []
        if early and not self.is_closing():
            self.write(b"".join(early))
        self._go_on()

    def _end_handshake(self, failure: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.handshake.done():
            return
        if failure is None:
            self.handshake.set_result(None)
        else:
            self.handshake.set_exception(failure)
        if self._scheduler is not None:
            self._scheduler.end(self, failure)

    def _take_plaintext(self, data: memoryview) -> None:
        """Tell a peer that does not speak TLS so, in the protocol that it speaks."""
        failure = PlaintextReceived("the peer does not speak TLS")
        if self._on_plaintext is None or self._buffered is None or data[:3] != frames.PREFACE[:3]:
            if self._tcp is not None:
                self._tcp.write(_BAD_REQUEST)
            self._fail(failure)
            return
        self._plaintext = True
        self._end_handshake(failure)
        self._on_plaintext()
        early, self._early = self._early, []
        self.writelines(early)
        self._buffered.buffer_updated(len(data))

    def _time_out(self) -> None:
        self._fail(HandshakeFailed("the TLS handshake takes too long"))

    def _fail(self, failure: Exception) -> None:
        """Send the alert, if there is one, and close."""
        self._failure = self._failure or failure
        tcp = self._tcp
        if tcp is None or self.is_closing():
            return
        self._flush(tcp)
        if self._scheduler is None or not tcp.can_write_eof():
            tcp.close()
            return
        self._linger = LINGER_BYTES
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_S, tcp.abort)
        tcp.write_eof()
        tcp.resume_reading()

    def _drop(self, nbytes: int) -> None:
        self._linger = (self._linger or 0) - nbytes
        if self._linger <= 0 and self._tcp is not None:
            self._tcp.abort()

    # What is read and written.

    def _decrypt(self) -> None:
        state = self._object
        try:
            while state is not None and self._secured and not self._reading_paused and self._linger is None:
                if not (self._read_into(state, self._buffered) if self._buffered else self._read(state)):
                    return
                state = self._object
        except ssl.SSLError as error:
            self._fail(error)

    def _read_into(self, state: ssl.SSLObject, inner: asyncio.BufferedProtocol) -> bool:
        """Fill the protocol's buffer. Whether there may be more."""
        buffer = memoryview(inner.get_buffer(-1))
        size, at = len(buffer), 0
        more = True
        try:
            while at < size:
                count = state.read(size - at, buffer[at:])
                if not count:  # close_notify
                    self.close()
                    more = False
                    break
                at += cast("int", count)
                if not (self._incoming.pending or state.pending()):  # asked, it would raise: dearer than to look
                    more = False
                    break
        except ssl.SSLWantReadError:
            more = False
        if at:
            inner.buffer_updated(at)
        return more

    def _read(self, state: ssl.SSLObject) -> bool:
        try:
            data = state.read(_READ_BYTES)
        except ssl.SSLWantReadError:
            return False
        if not data:
            self._inner.eof_received()
            self.close()
            return False
        cast("asyncio.Protocol", self._inner).data_received(data)
        return True

    def _flush(self, tcp: asyncio.Transport) -> None:
        if self._outgoing.pending:
            tcp.write(self._outgoing.read())

    # The transport of the protocol above.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._object if self._secured else default
        return default if self._tcp is None else self._tcp.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        tcp, state = self._tcp, self._object
        if tcp is None or self.is_closing():
            return
        if self._plaintext:
            tcp.write(data)
            return
        if not self._secured or state is None:
            self._early.append(bytes(data))
            return
        view = memoryview(data)
        at, size = 0, len(view)
        try:
            while at < size:
                at += state.write(view[at:])
        except ssl.SSLError as error:
            self._fail(error)
            return
        tcp.write(self._outgoing.read())

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._reading_paused = True
        if self._tcp is not None and self._linger is None:
            self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._loop.call_soon(self._go_on)  # the protocol may be in the middle of something

    def _go_on(self) -> None:
        """Decrypt what is here, then read more."""
        self._decrypt()
        if self._tcp is not None and not self._reading_paused and not self.is_closing():
            self._tcp.resume_reading()

    def is_reading(self) -> bool:
        return not self._reading_paused

    def close(self) -> None:
        """Say goodbye (close_notify) and close. The peer's is not waited for: HTTP says itself where it ends."""
        tcp, state = self._tcp, self._object
        if tcp is None or self.is_closing():
            return
        if self._secured and state is not None:
            with suppress(ssl.SSLError):  # it wants to read the peer's; ours is written
                state.unwrap()
            self._flush(tcp)
        tcp.close()

    def abort(self) -> None:
        if self._tcp is not None:
            self._tcp.abort()

    def is_closing(self) -> bool:
        return self._tcp is None or self._linger is not None or self._tcp.is_closing()

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0 if self._tcp is None else self._tcp.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._tcp is not None:
            self._tcp.set_write_buffer_limits(high, low)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._inner


def address_of(transport: asyncio.BaseTransport) -> str:
    """The peer's address without its port; empty when it is not known."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""


def _look_at_failure(handshake: "asyncio.Future[None]") -> None:
    """A server does not wait for it, and asyncio would complain that nobody did."""
    if not handshake.cancelled():
        handshake.exception()
