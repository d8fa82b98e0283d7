"""Serves calls on any number of connections, and stops without cutting them off."""

import asyncio
import contextlib
import ssl
from collections.abc import Collection, Mapping
from time import monotonic_ns
from typing import Final

from fila.wire.connection import Connection, Limits
from fila.wire.context import Context, Method
from fila.wire.headers import Headers
from fila.wire.link import FAREWELL_S, Link, receive_buffer
from fila.wire.turns import OnTurn, ignore_turn

KEEPALIVE_S: Final = (60.0, 20.0)
"""A caller that is silent for the first is asked, and given up when it does not answer within the second."""

_CALLS_NAMED: Final = 4


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
            if call.standing:
                call.end()
        await self._until_none(self._calls, grace_s)
        if self._calls:
            await asyncio.gather(*[call.end() for call in self._calls], return_exceptions=True)
        for link in list(self._links):
            link.close()
        await self._until_none(self._links, 2 * FAREWELL_S)

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
        link = _WatchedLink(connection, self._buffer, self._keepalive, self._lost, self._links.add)
        link.on_turn = self.on_turn
        return link

    def _lost(self, link: Link) -> None:
        self._links.discard(link)
        self._changed.set()
