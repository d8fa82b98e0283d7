"""Serves calls on any number of connections, and stops without cutting them off."""

import asyncio
import contextlib
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Final

from fila.wire import frames
from fila.wire.connection import Connection, Limits
from fila.wire.context import Context, Method
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import Headers
from fila.wire.lane import SlowLane
from fila.wire.link import FAREWELL_S, Link, receive_buffer
from fila.wire.memory import give_back_memory
from fila.wire.room import PATIENCE_S, Gate, Room, Shares
from fila.wire.turns import OnTurn, ignore_turn

KEEPALIVE_S: Final = (60.0, 20.0)
"""A caller that is silent for the first is asked, and given up when it does not answer within the second."""

_CALLS_NAMED: Final = 4
_LINE_S: Final = 0.005
"""How often those who wait for room are looked at, at most."""
_TRIM_S: Final = 2.0
_TRIM_FROM_BYTES: Final = 16 << 20
"""Memory is given back to the system this long after so much was held and is not any more."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """What all peers together, and each of them, may take of the server."""

    connections: int = 10_000
    #: Of one address.
    peer_connections: int = 1_000
    shares: Shares = field(default_factory=Shares)
    #: Requests that are decoded and not answered yet, in bytes.
    work_bytes: int = 16 << 20


class _WatchedLink(Link):
    """A connection whose work for its peer is measured."""

    on_turn: OnTurn

    def buffer_updated(self, nbytes: int) -> None:
        began = monotonic_ns()
        super().buffer_updated(nbytes)
        self.on_turn("receive", began, self._describe)

    def resume_writing(self) -> None:
        began = monotonic_ns()
        super().resume_writing()
        self.on_turn("send", began, self._describe)

    def _describe(self) -> str:
        """The calls of the connection, of which one has kept the event loop busy."""
        calls = {call.describe() for call in self.connection.streams.values() if isinstance(call, Context)}
        return ", ".join(sorted(calls)[:_CALLS_NAMED]) or "no call"


class Server:
    """Serves methods by their path, `/package.Service/Method`, on any number of addresses."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        keepalive: tuple[float, float] = KEEPALIVE_S,
        on_turn: OnTurn = ignore_turn,
        quotas: Quotas = Quotas(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self.methods: Mapping[bytes, Method] = {path.encode(): method for path, method in methods.items()}
        self.loop = asyncio.get_running_loop()
        self.on_turn = on_turn
        self._limits = limits
        self._keepalive = keepalive
        self._buffer = receive_buffer()
        self._links: set[Link] = set()
        self._listeners: list[asyncio.Server] = []
        self._stopping = False
        self._calls: set[Context] = set()
        self._changed = asyncio.Event()
        self._quotas = quotas
        self.gate = Gate(quotas.work_bytes)
        self.room = Room(quotas.shares)
        self._lane = SlowLane(self.loop)
        self.room.on_freed = self._look_at_line_soon
        self._line_timer: asyncio.TimerHandle | None = None
        self._trim_timer: asyncio.TimerHandle | None = None
        self._of_peers: dict[str, set[Link]] = {}

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Accept connections. Returns the port. Raises OSError.

        The TLS context must offer the protocol `h2` (ALPN).
        """
        listener = await self.loop.create_server(self._connected, host or None, port, ssl=tls, backlog=1024)
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    async def stop(self, grace_s: float) -> None:
        """Accept nothing new, let calls end for so long, then end them with UNAVAILABLE."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        for link in list(self._links):
            link.connection.go_away()
            link.flush()
            self._close_idle(link)
        for call in list(self._calls):
            if call.standing or call.waits:
                call.end()
        await self._until_none(self._calls, grace_s)
        if self._calls:
            await asyncio.gather(*[call.end() for call in self._calls], return_exceptions=True)
        for link in list(self._links):
            link.close()
        await self._until_none(self._links, 2 * FAREWELL_S)
        for timer in (self._line_timer, self._trim_timer):
            if timer is not None:
                timer.cancel()

    def call_ended(self, call: Context, link: Link) -> None:
        self._calls.discard(call)
        self._changed.set()
        self._close_idle(link)

    def _close_idle(self, link: Link) -> None:
        if self._stopping and not link.connection.streams:
            link.close()

    async def _until_none(self, those: Collection[object], within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while those:
                    self._changed.clear()
                    await self._changed.wait()

    def _connected(self) -> Link:
        def accept(headers: Headers) -> Context:
            call = Context(self, link, headers)
            self._calls.add(call)
            return call

        connection = Connection(self._limits, accept)
        link = _WatchedLink(connection, self._buffer, self._keepalive, self._lost, self._made, self._lane)
        link.on_turn = self.on_turn
        return link

    def _made(self, link: Link) -> None:
        assert link.transport is not None
        name = link.transport.get_extra_info("peername")
        address = str(name[0]) if isinstance(name, tuple) else ""
        self._links.add(link)
        same = self._of_peers.setdefault(address, set())
        same.add(link)
        link.connection.account = self.room.open(address, link.connection)
        if len(same) > self._quotas.peer_connections:
            _turn_away(link)
        elif len(self._links) > self._quotas.connections:
            _turn_away(self._dispensable(link))

    def _dispensable(self, newcomer: Link) -> Link:
        """Which connection goes when there are too many: one without calls, of the peer that has most, or the new one
        when its own peer has as many as any.
        """
        most = max(self._of_peers.values(), key=len)
        if newcomer in most:
            return newcomer
        return min(most, key=lambda link: len(link.connection.streams))

    def _lost(self, link: Link) -> None:
        self._links.discard(link)
        account = link.connection.account
        if account is not None:
            address = account.peer.address
            same = self._of_peers.get(address, set())
            same.discard(link)
            if not same:
                self._of_peers.pop(address, None)
            self.room.close(account)
        self._changed.set()
        self._trim_soon()

    def _look_at_line_soon(self) -> None:
        if self._line_timer is None:
            self._line_timer = self.loop.call_later(_LINE_S, self._look_at_line)

    def _look_at_line(self) -> None:
        self._line_timer = None
        self.room.serve_line(self.loop.time())
        self._trim_soon()
        if self.room.line and self._line_timer is None:  # somebody may lose patience
            self._line_timer = self.loop.call_later(PATIENCE_S / 4, self._look_at_line)

    def _trim_soon(self) -> None:
        if self._trim_timer is None and self.room.peak >= _TRIM_FROM_BYTES:
            self._trim_timer = self.loop.call_later(_TRIM_S, self._trim)

    def _trim(self) -> None:
        self._trim_timer = None
        if self.room.held * 2 < self.room.peak:
            self.room.peak = self.room.held
            give_back_memory()
        self._trim_soon()


def _turn_away(link: Link) -> None:
    link.connection.fail(ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many connections"))
    link.flush()
