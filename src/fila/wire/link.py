"""A connection on an event loop: carries bytes to and fro, and notices when the peer is gone."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from fila.wire import frames
from fila.wire.connection import Connection
from fila.wire.frames import ConnectionFailed
from fila.wire.lane import TURN_UNITS, SlowLane
from fila.wire.memory import keep_freed_memory
from fila.wire.stream import Buffer

RECEIVE_BYTES: Final = 256 << 10
"""What is read at once. One buffer serves all connections of a loop, for nothing stays in it."""

_FIRST_READ_BYTES: Final = 16 << 10
_BYTES_A_UNIT: Final = 64
"""Up to so many bytes for each frame, a peer's frames are small."""

_SMALL: Final = 16 << 10
"""Up to here, copying once is cheaper than looking at many small parts of a view."""

MAX_UNREAD_BYTES: Final = 1 << 20
"""Of headers, pings and the like, behind a full transport. Messages wait for the peer and are not counted."""

FAREWELL_S: Final = 1.0
"""How long a peer that does not read keeps a connection that ends."""


class Link(asyncio.BufferedProtocol):
    """One connection. `on_made` is called once, when it is there, and then `on_lost`, when it is gone."""

    def __init__(
        self,
        connection: Connection,
        buffer: memoryview,
        keepalive: tuple[float, float],
        on_lost: Callable[["Link"], None],
        on_made: Callable[["Link"], None] = lambda _: None,
        lane: SlowLane | None = None,
    ) -> None:
        self.connection = connection
        self.transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        self._idle_s, self._answer_s = keepalive
        self._on_lost = on_lost
        self._on_made = on_made
        self._heard_at = self._loop.time()
        self._pinged_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._written = 0
        #: More is read at once from a peer whose frames are large.
        self._read_bytes = RECEIVE_BYTES if lane is None else _FIRST_READ_BYTES
        self._lane = lane
        if lane is not None:
            connection.most_units = TURN_UNITS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.connection.on_news = self.flush
        self.connection.on_given_up = self.transport.abort
        self._on_made(self)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self.connection.fail(ConnectionFailed(frames.INADEQUATE_SECURITY, "the peer does not offer h2"))
        self._timer = self._loop.call_later(self._answer_s, self._check)
        self.flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer if self._read_bytes == RECEIVE_BYTES else self._buffer[: self._read_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        connection = self.connection
        now = self._loop.time()
        if now != self._heard_at:
            self._heard_at, connection.units = now, 0
        before = connection.units
        connection.receive(bytes(data) if nbytes <= _SMALL else data, now)
        self.flush()
        if connection.behind:
            self._slow_down()
        elif nbytes == self._read_bytes < RECEIVE_BYTES and (connection.units - before) * _BYTES_A_UNIT < nbytes:
            self._read_bytes = min(4 * self._read_bytes, RECEIVE_BYTES)

    def _slow_down(self) -> None:
        """There is more to do than one turn allows: read nothing before it is done."""
        if self._lane is not None and self.transport is not None and not self.transport.is_closing():
            self._read_bytes = _FIRST_READ_BYTES
            self.transport.pause_reading()
            self._lane.add(self._have_turn)

    def _have_turn(self) -> bool:
        """Whether there is still more to do."""
        connection, transport = self.connection, self.transport
        self._heard_at, connection.units = self._loop.time(), 0
        connection.receive(b"", self._heard_at)
        self.flush()
        if transport is None or transport.is_closing():
            return False
        if not connection.behind:
            transport.resume_reading()
        return connection.behind

    def flush(self) -> None:
        """Write what the connection has to say."""
        connection, transport = self.connection, self.transport
        out = connection.out
        if transport is None:
            return
        if out:
            connection.out = []
            self._written, connection.out_bytes = connection.out_bytes, 0
            if connection.paused and self._is_deaf(out):
                transport.abort()
            if not transport.is_closing():
                if len(out) == 1:
                    transport.write(out[0])
                elif sum(map(len, out)) <= _SMALL:
                    transport.write(b"".join(out))
                else:
                    transport.writelines(out)
        if connection.hungry and not connection.paused:
            connection.hungry = False
            self._loop.call_soon(self._go_on)  # others have their turn in between
        if connection.closed and not transport.is_closing():
            self.close()

    def _go_on(self) -> None:
        self.connection.pump()
        self.flush()

    def _is_deaf(self, out: list[Buffer]) -> bool:
        """Whether the peer goes on asking and does not read: all that is written now are answers without messages."""
        self._unread_bytes += sum(map(len, out))
        return self._unread_bytes > MAX_UNREAD_BYTES

    def pause_writing(self) -> None:
        self.connection.paused = True
        self._unread_bytes = 0
        account = self.connection.account
        if account is not None and self.transport is not None:
            # A part of what was just written may keep all of it.
            self.connection.unread = max(self.transport.get_write_buffer_size(), self._written)
            account.take(self.connection.unread)
            if account.over:
                self._loop.call_soon(account.room.relieve, account)  # it is in the middle of writing

    def resume_writing(self) -> None:
        self.connection.paused = False
        self._free_buffered()
        self.connection.pump()
        self.flush()

    def _free_buffered(self) -> None:
        if self.connection.unread and self.connection.account is not None:
            self.connection.account.give(self.connection.unread)
        self.connection.unread = 0

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._free_buffered()
        self.connection.close(f"the connection was lost: {exc}" if exc else "the connection was closed")
        self._on_lost(self)

    def close(self) -> None:
        """Write what is to be written and close; a peer that does not read is not waited for."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
            self._loop.call_later(FAREWELL_S, self.transport.abort)

    def _check(self) -> None:
        """A peer that has not said anything for a while is asked, and given up when it does not answer.

        One that has not even greeted is not waited for so long.
        """
        now = self._loop.time()
        silent_s = now - self._heard_at
        if (self._pinged_at is not None and self._heard_at < self._pinged_at) or not self.connection.ready:
            self.connection.fail(ConnectionFailed(frames.NO_ERROR, "the peer does not answer"))
            self.flush()
            return
        if silent_s >= self._idle_s:
            self._pinged_at, wait_s = now, self._answer_s
            self.connection.ping()
            self.flush()
        else:
            self._pinged_at, wait_s = None, self._idle_s - silent_s
        self._timer = self._loop.call_later(wait_s, self._check)


def receive_buffer() -> memoryview:
    """For the connections of one event loop."""
    keep_freed_memory()
    return memoryview(bytearray(RECEIVE_BYTES))
