"""Makes calls: one connection, opened when it is needed and again when it was lost."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fila.wire import status
from fila.wire.address import reason_of, split_address
from fila.wire.call import Call, Decode, Encode
from fila.wire.connection import Connection, Limits
from fila.wire.headers import encode
from fila.wire.link import Link, receive_buffer
from fila.wire.status import Metadata, RpcError, StatusCode
from fila.wire.stream import EOF

KEEPALIVE_S: Final = (30.0, 10.0)
"""A server that is silent for the first is asked, and given up when it does not answer within the second."""

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
        address: str,
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        keepalive: tuple[float, float] = KEEPALIVE_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._address = address
        self._limits = limits
        self._keepalive = keepalive
        self._tls = tls
        self._buffer = receive_buffer()
        self._link: Link | None = None
        self._old: set[Link] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: deque[Call] = deque()
        self._look_through_at = _FEW_WAITING
        self._blocks: dict[str, bytes] = {}
        self._closed = False

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
                    raise RpcError(StatusCode.INTERNAL, "there is no response")
                if await call.read() is not EOF:
                    raise RpcError(StatusCode.INTERNAL, "there is more than one response")
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
    ) -> Callable[..., Call]:
        """A method with one request and any number of responses."""

        def call(request: Any, *, timeout: float | None = None, metadata: Metadata = ()) -> Call:
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
    ) -> Callable[..., Call]:
        """A method with any number of requests and responses."""

        def call(*, timeout: float | None = None, metadata: Metadata = ()) -> Call:
            return self._start(self._call(path, request_serializer, response_deserializer, timeout, metadata))

        return call

    async def close(self) -> None:
        """End all calls, then the connection."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        for link in (self._link, *self._old):
            if link is not None:
                for stream in list(link.connection.streams.values()):
                    if isinstance(stream, Call):
                        stream.cancel()
                link.connection.close("the channel was closed")
                link.flush()
                link.close()
        while self._waiting:
            self._waiting.popleft().cancel()
        await asyncio.sleep(0)  # the transport closes in the next turn of the loop

    def _call(
        self, path: str, serialize: Encode | None, deserialize: Decode | None, timeout: float | None, metadata: Metadata
    ) -> Call:
        block = self._blocks.get(path)
        if block is None:
            scheme = b"http" if self._tls is None else b"https"
            block = self._blocks[path] = encode(status.request_headers(path, self._address, scheme))
        if timeout is not None:
            block += encode([(b"grpc-timeout", status.write_timeout(timeout))])
        if metadata:
            block += encode(status.write_metadata(metadata))
        call = Call(self.loop, block, serialize, deserialize)
        if timeout is not None:
            call.expire_after(timeout)
        return call

    def _start(self, call: Call) -> Call:
        if self._closed:
            call.cancel()
            return call
        self._waiting.append(call)
        if len(self._waiting) >= self._look_through_at:
            self._forget_ended()
        self._begin_waiting()
        if self._link is not None:
            self._link.flush()
        return call

    def _begin_waiting(self) -> None:
        """Begin the calls that wait, as many as the server allows."""
        link = self._link
        if link is not None and link.connection.closed:
            return  # it is about to be lost
        self._retire()
        link = self._link
        if link is None:
            if self._waiting and self._connecting is None and not self._closed:
                self._connecting = self.loop.create_task(self._connect())
            return
        connection = link.connection
        while self._waiting and connection.ready and not connection.draining:
            if len(connection.streams) >= connection.peer_max_streams:
                return
            call = self._waiting.popleft()
            if not call.done():
                call.begin(link)

    def _forget_ended(self) -> None:
        """Calls whose time is over do not keep their requests while others wait."""
        self._waiting = deque(call for call in self._waiting if not call.done())
        self._look_through_at = _FEW_WAITING + 2 * len(self._waiting)

    def _retire(self) -> None:
        """A connection that takes no new calls ends with its last one."""
        if self._link is not None and self._link.connection.draining:
            self._old.add(self._link)
            self._link = None
        for link in list(self._old):
            if not link.connection.streams and not link.connection.closed:
                self._old.discard(link)
                link.close()

    async def _connect(self) -> None:
        try:
            host, port = split_address(self._address)
            async with asyncio.timeout(CONNECT_S):
                _, link = await self.loop.create_connection(self._made, host, port, ssl=self._tls)
        except (OSError, ValueError) as error:
            self._connecting = None
            self._fail_waiting(RpcError(StatusCode.UNAVAILABLE, f"cannot connect: {reason_of(error)}"))
            return
        self._connecting = None
        if link.connection.closed:  # it was lost before this turn, when `_lost` did not know it yet
            self._fail_waiting(RpcError(StatusCode.UNAVAILABLE, _CLOSED_BY_SERVER))
            return
        self._link = link
        self._begin_waiting()
        link.flush()

    def _made(self) -> Link:
        connection = Connection(self._limits)
        link = Link(connection, self._buffer, self._keepalive, self._lost)
        connection.on_change = self._begin_waiting
        return link

    def _lost(self, link: Link) -> None:
        self._old.discard(link)
        if link is self._link:
            self._link = None
            ready = link.connection.ready
            if not ready:  # it was no server of ours: trying again at once would not end
                self._fail_waiting(RpcError(StatusCode.UNAVAILABLE, _CLOSED_BY_SERVER))
        self._begin_waiting()

    def _fail_waiting(self, error: RpcError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.fail(error)
