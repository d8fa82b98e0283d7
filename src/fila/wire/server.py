"""Serves calls on any number of connections, and stops without cutting them off."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.handshakes import Handshakes, OnFailed, ignore_failure
from fila.wire.headers import Headers
from fila.wire.limits import Limits
from fila.wire.loop_turns import OnTurn, ignore_turn
from fila.wire.malloc import give_back_memory
from fila.wire.memory_quota import PREEMPT_AFTER_S, MemoryQuota, Shares
from fila.wire.method import UNKNOWN_METHOD_BYTES, Method
from fila.wire.protocol import CLOSE_TIMEOUT_S, receive_buffer
from fila.wire.server_call import ServerCall
from fila.wire.server_connection import ServerConnection
from fila.wire.server_protocol import ServerProtocol
from fila.wire.status import Metadata, StatusCode
from fila.wire.stream import Stream
from fila.wire.time_slice import RoundRobin
from fila.wire.tls_layer import TlsLayer
from fila.wire.work_limit import WorkLimit

KEEPALIVE_S: Final = (60.0, 20.0)
"""A caller that is silent for the first gets a PING, and is given up when it does not answer within the second."""

_RESERVATIONS_S: Final = 0.005
"""How often calls that wait for memory are looked at, at most."""
_TRIM_S: Final = 2.0
_TRIM_FROM_BYTES: Final = 16 << 20
"""Memory is given back to the system this long after so much was held and is not any more."""


CurrentContext = Callable[[], ssl.SSLContext]
"""Certificates may be renewed while a server runs."""

RefusePeer = Callable[[str], str | None]
"""Why a peer of this address is not served; None: it is. Asked for each call, so the answer may change."""


DescribeRefusal = Callable[[StatusCode, str], Metadata]
"""The trailers of a call that is refused for what its request looks like, before a handler has seen all of it."""


def say_no_more(_code: StatusCode, _text: str) -> Metadata:
    """For servers whose refusals have a status alone."""
    return ()


def serve_everyone(_address: str) -> None:
    """For servers that refuse nobody."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """What all peers together, and each of them, may take of the server."""

    connections: int = 10_000
    #: Of one address.
    peer_connections: int = 1_000
    shares: Shares = field(default_factory=Shares)
    #: Requests that are decoded and not answered yet, in bytes.
    work_bytes: int = 16 << 20


class Server:
    """Serves methods by their path, `/package.Service/Method`, on any number of addresses."""

    #: What handlers are given.
    call_type: type[ServerCall] = ServerCall

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        keepalive: tuple[float, float] = KEEPALIVE_S,
        on_turn: OnTurn = ignore_turn,
        quotas: Quotas = Quotas(),  # noqa: B008 - it cannot be changed
        refuse_peer: RefusePeer = serve_everyone,
        on_handshake_failed: OnFailed = ignore_failure,
        describe_refusal: DescribeRefusal = say_no_more,
    ) -> None:
        self.serve(methods)
        self.loop = asyncio.get_running_loop()
        self.on_turn = on_turn
        self.refuse_peer = refuse_peer
        self.describe_refusal = describe_refusal
        self._limits = limits
        self._keepalive = keepalive
        self._buffer = receive_buffer()
        self._protocols: set[ServerProtocol] = set()
        self._listeners: list[asyncio.Server] = []
        self._stopping = False
        self._calls: set[ServerCall] = set()
        self._changed = asyncio.Event()
        self._quotas = quotas
        self.work = WorkLimit(quotas.work_bytes)
        self.memory = MemoryQuota(quotas.shares)
        self.memory.on_freed = self._serve_reservations_soon
        self._slices = RoundRobin(self.loop)
        self._handshakes = Handshakes(RoundRobin(self.loop), on_handshake_failed)
        self._reservations_timer: asyncio.TimerHandle | None = None
        self._trim_timer: asyncio.TimerHandle | None = None
        self._by_address: dict[str, set[ServerProtocol]] = {}

    def serve(self, methods: Mapping[str, Method]) -> None:
        """Serve these methods from now on."""
        self.methods: Mapping[bytes, Method] = {path.encode(): method for path, method in methods.items()}

    async def listen(self, host: str, port: int, tls: CurrentContext | None = None, *, shared: bool = False) -> int:
        """Accept connections. Returns the port. Raises OSError.

        Each new connection uses the TLS context that `tls` returns then, which must offer the protocol `h2` (ALPN).
        A `shared` port is that of several processes, among which the system spreads connections.
        """
        make = self._make_protocol if tls is None else partial(self._make_tls, tls)
        listener = await self.loop.create_server(make, host or None, port, backlog=1024, reuse_port=shared or None)
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    async def listen_unix(self, path: str) -> None:
        """Accept connections of this machine at a path, whose folder says who may connect. Raises OSError."""
        self._listeners.append(await self.loop.create_unix_server(self._make_protocol, path, backlog=1024))

    async def stop(self, grace_s: float) -> None:
        """Accept nothing new, let calls end for so long, then end them with UNAVAILABLE."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        for protocol in list(self._protocols):
            protocol.connection.go_away()
            protocol.flush()
            self._close_idle(protocol)
        for call in list(self._calls):
            if call.standing or call.awaits_window:
                call.end()
        await self._until_none(self._calls, grace_s)
        if self._calls:
            await asyncio.gather(*[call.end() for call in self._calls], return_exceptions=True)
        for protocol in list(self._protocols):
            protocol.close()
        await self._until_none(self._protocols, 2 * CLOSE_TIMEOUT_S)
        for timer in (self._reservations_timer, self._trim_timer):
            if timer is not None:
                timer.cancel()

    def _close_idle(self, protocol: ServerProtocol) -> None:
        if self._stopping and not protocol.connection.streams:
            protocol.close()

    async def _until_none(self, those: Collection[object], within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while those:
                    self._changed.clear()
                    await self._changed.wait()

    # Connections.

    def _make_protocol(self) -> ServerProtocol:
        connection = ServerConnection(self._limits, self._max_request_bytes)
        return ServerProtocol(self, connection, self._buffer, self._keepalive, self.memory, self._slices)

    def _make_tls(self, tls: CurrentContext) -> TlsLayer:
        protocol = self._make_protocol()
        wrap = partial(tls().wrap_bio, server_side=True)
        return TlsLayer(protocol, wrap, protocol.secured, self._handshakes, protocol.refuse_plaintext)

    def connected(self, protocol: ServerProtocol, address: str) -> None:
        self._protocols.add(protocol)
        same = self._by_address.setdefault(address, set())
        same.add(protocol)
        if len(same) > self._quotas.peer_connections:
            _turn_away(protocol)
        elif len(self._protocols) > self._quotas.connections:
            _turn_away(self._dispensable(protocol))

    def _dispensable(self, newcomer: ServerProtocol) -> ServerProtocol:
        """Which connection goes when there are too many: one without calls, of the peer that has most, or the new one
        when its own peer has as many as any.
        """
        most = max(self._by_address.values(), key=len)
        if newcomer in most:
            return newcomer
        return min(most, key=lambda protocol: len(protocol.connection.streams))

    def disconnected(self, protocol: ServerProtocol, address: str) -> None:
        self._protocols.discard(protocol)
        same = self._by_address.get(address, set())
        same.discard(protocol)
        if not same:
            self._by_address.pop(address, None)
        self._changed.set()
        self._trim_soon()

    # Calls.

    def _max_request_bytes(self, headers: Headers) -> int | None:
        method = self.methods.get(next((value for name, value in headers if name == b":path"), b""))
        return UNKNOWN_METHOD_BYTES if method is None else method.max_request_bytes

    def accept(self, protocol: ServerProtocol, stream: Stream, headers: Headers) -> None:
        call = protocol.calls[stream.id] = self.call_type(self, protocol, stream, headers)
        self._calls.add(call)

    def call_ended(self, call: ServerCall, protocol: ServerProtocol, stream: Stream) -> None:
        protocol.calls.pop(stream.id, None)
        self._calls.discard(call)
        self._changed.set()
        self._close_idle(protocol)

    # Memory.

    def _serve_reservations_soon(self) -> None:
        if self._reservations_timer is None:
            self._reservations_timer = self.loop.call_later(_RESERVATIONS_S, self._serve_reservations)

    def _serve_reservations(self) -> None:
        self._reservations_timer = None
        self.memory.serve_queue(self.loop.time())
        self._trim_soon()
        if self.memory.queue and self._reservations_timer is None:  # one may be old enough to evict others
            self._reservations_timer = self.loop.call_later(PREEMPT_AFTER_S / 4, self._serve_reservations)

    def _trim_soon(self) -> None:
        if self._trim_timer is None and self.memory.peak >= _TRIM_FROM_BYTES:
            self._trim_timer = self.loop.call_later(_TRIM_S, self._trim)

    def _trim(self) -> None:
        self._trim_timer = None
        if self.memory.held * 2 < self.memory.peak:
            self.memory.peak = self.memory.held
            give_back_memory()
        self._trim_soon()


def _turn_away(protocol: ServerProtocol) -> None:
    protocol.fail(ConnectionFailed(frames.ENHANCE_YOUR_CALM, "too many connections"))
