"""Makes calls: one connection, opened when it is needed and again when it was lost, where somebody answers."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from fila.wire import frames, status
from fila.wire.address import reason_of, split_address
from fila.wire.addresses import Addresses
from fila.wire.client_call import ClientCall, Decode, Encode
from fila.wire.client_connection import ClientConnection
from fila.wire.client_protocol import ClientProtocol
from fila.wire.headers import encode
from fila.wire.limits import Limits
from fila.wire.protocol import receive_buffer
from fila.wire.status import Metadata, RpcError, StatusCode, TlsFailed
from fila.wire.stream import EOF
from fila.wire.tls_context import ClientTls, TlsFilesError
from fila.wire.tls_errors import explain
from fila.wire.tls_layer import TlsLayer

KEEPALIVE_S: Final = (30.0, 10.0)
"""A server that is silent for the first gets a PING, and is given up when it does not answer within the second."""

CONNECT_S: Final = 20.0

_CLOSED_BY_SERVER: Final = "the server closed the connection"
_FEW_WAITING: Final = 64
"""Up to here, nobody looks through the calls that wait for those that have ended."""


class Channel:
    """Calls to one server. To be made on the event loop that uses it.

    A call that finds no connection waits for one; when that cannot be made, it fails with UNAVAILABLE.
    """

    def __init__(
        self,
        addresses: str | Addresses,
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        keepalive: tuple[float, float] = KEEPALIVE_S,
        tls: ClientTls | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._addresses = addresses if isinstance(addresses, Addresses) else Addresses(addresses)
        self._limits = limits
        self._keepalive = keepalive
        self._tls = tls
        self._buffer = receive_buffer()
        self._current: ClientProtocol | None = None
        self._retired: set[ClientProtocol] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: deque[ClientCall] = deque()
        self._look_through_at = _FEW_WAITING
        self._blocks: dict[tuple[str, str], bytes] = {}
        self._closed = False
        #: Metadata of every call, besides its own. Asked for when a call begins.
        self.credentials: Callable[[], Metadata] = tuple
        #: Told of each call that the server ends with an error.
        self.on_refused: Callable[[RpcError], None] | None = None
        #: Told of the trailing metadata of each call that ends well, if it has any.
        self.on_answered: Callable[[Metadata], None] | None = None

    def unary_unary(
        self,
        path: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        **_: Any,
    ) -> Callable[..., Awaitable[Any]]:
        """A method with one request and one response. Takes the arguments that generated stubs give."""

        async def call(request: Any, *, metadata: Metadata = (), **options: float | None) -> Any:
            timeout = options.get("timeout")
            call = self._call(path, request_serializer, response_deserializer, timeout, metadata)
            call.send_only(request)
            self._start(call)
            try:
                response = await call.read()
                if response is EOF:
                    raise RpcError(StatusCode.INTERNAL, "the call ended without a response")
                if await call.read() is not EOF:
                    raise RpcError(StatusCode.INTERNAL, "the call has more than one response")
            finally:
                call.cancel()
            return response

        return call

    def unary_stream(
        self,
        path: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        **_: Any,
    ) -> Callable[..., ClientCall]:
        """A method with one request and any number of responses."""

        def call(request: Any, *, timeout: float | None = None, metadata: Metadata = ()) -> ClientCall:
            call = self._call(path, request_serializer, response_deserializer, timeout, metadata)
            call.send_only(request)
            return self._start(call)

        return call

    def stream_stream(
        self,
        path: str,
        request_serializer: Encode | None = None,
        response_deserializer: Decode | None = None,
        **_: Any,
    ) -> Callable[..., ClientCall]:
        """A method with any number of requests and responses."""

        def call(*, timeout: float | None = None, metadata: Metadata = ()) -> ClientCall:
            return self._start(self._call(path, request_serializer, response_deserializer, timeout, metadata))

        return call

    @property
    def calls(self) -> int:
        """Calls that are open or wait."""
        protocols = self._retired if self._current is None else (self._current, *self._retired)
        return len(self._waiting) + sum(len(protocol.connection.streams) for protocol in protocols)

    async def close(self) -> None:
        """End all calls, then the connection."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        for protocol in (self._current, *self._retired):
            if protocol is not None:
                protocol.cancel_calls()
                protocol.handle(protocol.connection.close("the channel was closed"))
                protocol.flush()
                protocol.close()
        while self._waiting:
            self._waiting.popleft().cancel()
        await asyncio.sleep(0)  # the transport closes in the next turn of the loop

    def _call(
        self, path: str, serialize: Encode | None, deserialize: Decode | None, timeout: float | None, metadata: Metadata
    ) -> ClientCall:
        address = self._addresses.current
        block = self._blocks.get((path, address))
        if block is None:
            scheme = b"http" if self._tls is None else b"https"
            block = self._blocks[path, address] = encode(status.request_headers(path, address, scheme))
        if timeout is not None:
            block += encode([(b"grpc-timeout", status.write_timeout(timeout))])
        if metadata := (*self.credentials(), *metadata):
            block += encode(status.write_metadata(metadata))
        call = ClientCall(self.loop, block, serialize, deserialize)
        call.on_refused = self.on_refused
        call.on_answered = self.on_answered
        if timeout is not None:
            call.expire_after(timeout)
        return call

    def _start(self, call: ClientCall) -> ClientCall:
        if self._closed:
            call.cancel()
            return call
        self._waiting.append(call)
        if len(self._waiting) >= self._look_through_at:
            self._forget_ended()
        self._begin_waiting()
        if self._current is not None:
            self._current.flush()
        return call

    def _begin_waiting(self) -> None:
        """Begin the calls that wait, as many as the server allows."""
        protocol = self._current
        if protocol is not None and protocol.connection.closed:
            return  # it is about to be lost
        self._retire()
        protocol = self._current
        if protocol is None:
            if self._waiting and self._connecting is None and not self._closed:
                self._connecting = self.loop.create_task(self._connect())
            return
        connection = protocol.connection
        while self._waiting and connection.can_open:
            call = self._waiting.popleft()
            if not call.done():
                call.begin(protocol)

    def _forget_ended(self) -> None:
        """Calls whose time is over do not keep their requests while others wait."""
        self._waiting = deque(call for call in self._waiting if not call.done())
        self._look_through_at = _FEW_WAITING + 2 * len(self._waiting)

    def _retire(self) -> None:
        """A connection that takes no new calls ends with its last one."""
        if self._current is not None and self._current.connection.draining:
            self._retired.add(self._current)
            self._current = None
        for protocol in list(self._retired):
            if not protocol.connection.streams and not protocol.connection.closed:
                self._retired.discard(protocol)
                protocol.close()

    def move(self) -> None:
        """Make the calls that come from now on at the address that is in use now. Those that are open go on."""
        if self._current is not None:
            self._retired.add(self._current)
            self._current = None
        self._begin_waiting()

    async def _connect(self) -> None:
        protocol = failure = None
        addresses = self._addresses.in_turn()
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_S / len(addresses)):
                    protocol = await self._open(*split_address(address))
                self._addresses.use(address)
                break
            except (OSError, ValueError) as error:
                failure = self._failure(error, address)
        self._connecting = None
        if protocol is None:
            assert failure is not None
            self._fail_waiting(failure)
            return
        if protocol.connection.closed:  # it was lost before this turn, when `_lost` did not know it yet
            self._addresses.leave(address)
            self._fail_waiting(self._why_lost(protocol))
            return
        self._current = protocol
        self._begin_waiting()
        protocol.flush()

    async def _open(self, host: str, port: int) -> ClientProtocol:
        """Raises OSError, of which SSLError is one, or TlsFilesError."""
        tls = self._tls
        if tls is None:
            _, protocol = await self.loop.create_connection(self._made, host, port)
            return protocol
        wrap = partial(tls.context().wrap_bio, server_hostname=tls.server_name or host)
        protocol = self._made()
        _, layer = await self.loop.create_connection(lambda: TlsLayer(protocol, wrap, protocol.secured), host, port)
        try:
            await asyncio.shield(layer.handshake)
        except asyncio.CancelledError:  # also when it takes too long
            layer.abort()
            raise
        return protocol

    def _failure(self, error: OSError | ValueError, address: str) -> RpcError:
        if isinstance(error, ssl.SSLError):
            assert self._tls is not None
            return TlsFailed(explain(error, self._tls.server_name or split_address(address)[0]))
        if isinstance(error, TlsFilesError):
            return TlsFailed(str(error))
        return RpcError(StatusCode.UNAVAILABLE, f"cannot connect: {reason_of(error)}")

    def _why_lost(self, protocol: ClientProtocol) -> RpcError:
        """Of a connection that ended before the server's SETTINGS came."""
        failure = protocol.connection.failure
        if isinstance(protocol.lost_by, ssl.SSLError):
            return TlsFailed(explain(protocol.lost_by))
        if failure is not None and failure.code == frames.INADEQUATE_SECURITY:
            return TlsFailed(str(failure))
        return RpcError(StatusCode.UNAVAILABLE, _CLOSED_BY_SERVER)

    def _made(self) -> ClientProtocol:
        connection = ClientConnection(self._limits)
        return ClientProtocol(connection, self._buffer, self._keepalive, self._begin_waiting, self._lost)

    def _lost(self, protocol: ClientProtocol) -> None:
        self._retired.discard(protocol)
        if protocol is self._current:
            self._current = None
            failure = protocol.connection.failure
            insecure = failure is not None and failure.code == frames.INADEQUATE_SECURITY
            if insecure or not protocol.connection.peer.received:  # trying again at once would not end
                self._addresses.leave(self._addresses.current)  # whoever takes connections there is no server
                self._fail_waiting(self._why_lost(protocol))
        self._begin_waiting()

    def _fail_waiting(self, error: RpcError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.fail(error)
