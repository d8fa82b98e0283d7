"""A call, as its caller sees it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fila.wire import frames, status
from fila.wire.client_protocol import ClientProtocol
from fila.wire.events import (
    HeadersReceived,
    MessageReceived,
    StreamEnded,
    StreamEvent,
    StreamLost,
    StreamRefused,
    StreamReset,
    StreamWritable,
)
from fila.wire.headers import Headers
from fila.wire.status import Metadata, RpcError, StatusCode, UnreadableResponse
from fila.wire.stream import EOF, Stream
from fila.wire.waiters import wake

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class ClientCall:
    """One call with any number of messages each way.

    A call that was cancelled here raises CancelledError wherever it is waited for; one that ended otherwise, RpcError.
    """

    __slots__ = (
        "_block",
        "_cancelled",
        "_decode",
        "_encode",
        "_error",
        "_finished",
        "_first",
        "_initial",
        "_loop",
        "_protocol",
        "_read_waiter",
        "_stream",
        "_take",
        "_timer",
        "_trailing",
        "_trouble",
        "_waiters",
        "on_answered",
        "on_refused",
        "on_writable",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, block: bytes, encode: Encode | None, decode: Decode | None
    ) -> None:
        self._stream = Stream()
        self._loop = loop
        self._block = block
        self._encode = encode
        self._decode = decode
        self._first: bytes | None = None
        self._protocol: ClientProtocol | None = None
        self._initial: Metadata | None = None
        self._trailing: Metadata = ()
        self._error: RpcError | None = None
        self._finished = False
        self._cancelled = False
        self._timer: asyncio.TimerHandle | None = None
        self._read_waiter: asyncio.Future[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._take: Callable[[Any], None] | None = None
        self._trouble: Exception | None = None
        #: For callers that are called back: a request may be sent.
        self.on_writable: Callable[[], None] | None = None
        #: Told of the status with which the server ended the call, before anybody else is.
        self.on_refused: Callable[[RpcError], None] | None = None
        #: Told of the trailing metadata of a call that ended well, if it has any.
        self.on_answered: Callable[[Metadata], None] | None = None

    # For callers.

    async def write(self, request: Any) -> None:
        """Send a request. Returns when it is on its way."""
        message = self._encode(request) if self._encode is not None else request
        while self._protocol is None or self._stream.outgoing:
            self._check_alive()
            await self._change()
        self._check_alive()
        self._protocol.connection.send_message(self._stream, message)
        self._protocol.flush()
        while self._stream.outgoing:
            await self._change()
        if self._cancelled:
            raise asyncio.CancelledError

    async def done_writing(self) -> None:
        """Say that no more requests follow."""
        while self._protocol is None and not self._finished:
            await self._change()
        if self._protocol is not None and not self._finished:
            self._protocol.connection.end(self._stream)
            self._protocol.flush()

    async def read(self) -> Any:
        """The next response, or EOF after the last. Raises RpcError when the call ended with another status than OK."""
        while not self._stream.messages:
            if self._cancelled:
                raise asyncio.CancelledError
            if self._finished:
                if self._error is not None:
                    raise self._error
                return EOF
            waiter = self._read_waiter = self._loop.create_future()
            await waiter
        response = self._next()
        assert self._protocol is not None
        if self._protocol.connection.out:
            self._protocol.flush()
        return response

    async def pull(self, make_room: Callable[[int], Awaitable[None]]) -> Any:
        """As `read`, of a message that comes when there is room for it: until then no more than a window of it is here.
        `make_room` is told its size, if that is known.
        """
        stream = self._stream
        stream.pulled = True
        while not (stream.messages or stream.coming or self._finished):
            waiter = self._read_waiter = self._loop.create_future()
            await waiter
        if not self._finished:
            await make_room(len(stream.messages[0]) if stream.messages else stream.coming)
        stream.pulled = False
        if self._protocol is not None:
            self._protocol.connection.pull(stream)
            self._protocol.flush()
        try:
            return await self.read()
        finally:
            stream.pulled = True

    async def each(self, take: Callable[[Any], None]) -> None:
        """Hand each response over in the turn of the event loop in which it arrives. Returns after the last one.

        Raises RpcError as `read` does, or what `take` raised, after which the call has ended.
        """
        self._take = take
        self._hand_over()
        if self._protocol is not None:
            self._protocol.flush()
        await self._end_of_call()
        if self._trouble is not None:
            raise self._trouble
        if self._cancelled:
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error

    @property
    def has_room(self) -> bool:
        """Whether a request can be sent now. `on_writable` is called when that may have changed."""
        stream = self._stream
        begun = self._protocol is not None and not self._finished
        return begun and not (stream.outgoing or stream.local_closed or stream.closed)

    @property
    def local_closed(self) -> bool:
        """Whether this side has said that no more requests follow."""
        return self._stream.local_closed

    def send(self, request: Any) -> None:
        """Send a request. Only while `has_room`."""
        assert self._protocol is not None
        self._protocol.connection.send_message(
            self._stream, self._encode(request) if self._encode is not None else request
        )
        self._protocol.flush()

    def end(self) -> None:
        """Say that no more requests follow. Only while `has_room`."""
        assert self._protocol is not None
        self._protocol.connection.end(self._stream)
        self._protocol.flush()

    def cancel(self) -> bool:
        """End the call. Whoever waits for it is cancelled."""
        if self._finished:
            return False
        self._cancelled = True
        self._end(RpcError(StatusCode.CANCELLED, "the call was cancelled here"), frames.CANCEL)
        return True

    def lose(self) -> None:
        """End the call because the connection of whoever it is made for was lost: the server may want to know."""
        if not self._finished:
            self._cancelled = True
            self._end(RpcError(StatusCode.CANCELLED, "the caller is gone"), frames.CONNECT_ERROR)

    def done(self) -> bool:
        return self._finished

    async def code(self) -> StatusCode:
        await self._end_of_call()
        return self._error.code() if self._error is not None else StatusCode.OK

    async def details(self) -> str:
        await self._end_of_call()
        return self._error.details() if self._error is not None else ""

    async def initial_metadata(self) -> Metadata:
        while self._initial is None and not self._finished:
            await self._change()
        return self._initial or ()

    async def trailing_metadata(self) -> Metadata:
        await self._end_of_call()
        return self._trailing

    # For the channel.

    def begin(self, protocol: ClientProtocol) -> None:
        """Open the stream."""
        self._protocol = protocol
        protocol.connection.open(self._stream, self._block)
        protocol.calls[self._stream.id] = self
        if self._first is not None:
            protocol.connection.send_message(self._stream, self._first, end=True)
            self._first = None
        self._tell()

    def send_only(self, request: Any) -> None:
        """The only request, which goes together with the opening of the stream."""
        self._first = self._encode(request) if self._encode is not None else request

    def expire_after(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._expire)

    def fail(self, error: RpcError) -> None:
        self._end(error, frames.CANCEL)

    # What happens to the stream.

    def handle(self, event: StreamEvent) -> None:
        if isinstance(event, MessageReceived):
            self._readable()
        elif isinstance(event, StreamWritable):
            self._tell()
        elif isinstance(event, HeadersReceived):
            self._take_headers(event.headers, event.end)
        elif isinstance(event, StreamEnded):
            self._finish(RpcError(StatusCode.INTERNAL, "the call ended without a status"))
        elif isinstance(event, StreamRefused):
            self._end(RpcError(event.code, event.text), frames.CANCEL)
        elif isinstance(event, StreamReset):
            self._finish(status.from_reset(event.code))
        elif isinstance(event, StreamLost):
            self._finish(RpcError(StatusCode.UNAVAILABLE, event.text))

    def _take_headers(self, headers: Headers, end: bool) -> None:
        if self._initial is None and not end:
            self._initial = status.read_metadata(headers)
            if dict(headers).get(b":status") != b"200":
                self._end(RpcError(*status.read_status(headers)), frames.CANCEL)
            self._tell()
        elif not end:
            self._end(RpcError(StatusCode.INTERNAL, "headers in the middle of a call"), frames.PROTOCOL_ERROR)
        else:
            code, details = status.read_status(headers)
            self._trailing = status.read_metadata(headers)
            error = None if code is StatusCode.OK else RpcError(code, details, self._trailing)
            if error is not None and self.on_refused is not None:
                self.on_refused(error)
            elif error is None and self._trailing and self.on_answered is not None:
                self.on_answered(self._trailing)
            self._finish(error)

    def _readable(self) -> None:
        if self._take is not None:
            self._hand_over()
        waiter, self._read_waiter = self._read_waiter, None
        wake(waiter)

    def _next(self) -> Any:
        """The next response, which is here."""
        assert self._protocol is not None
        message = self._protocol.connection.read(self._stream)
        if self._decode is None or message is None:
            return message
        try:
            return self._decode(message)
        except Exception as error:
            raise UnreadableResponse(StatusCode.INTERNAL, f"the response cannot be read: {error!r}") from error

    def _hand_over(self) -> None:
        assert self._take is not None
        while self._stream.messages:
            try:
                self._take(self._next())
            except Exception as error:  # noqa: BLE001  # it goes to whoever waits for the end
                self._trouble = error
                self._stream.discard()
                self.cancel()

    def _expire(self) -> None:
        self._end(RpcError(StatusCode.DEADLINE_EXCEEDED, "the deadline has passed"), frames.CANCEL)

    def _end(self, error: RpcError, code: int) -> None:
        """End the call from here."""
        if not self._finished:
            self._stream.discard()
            self._finish(error, code)
            if self._protocol is not None:
                self._protocol.flush()

    def _finish(self, error: RpcError | None, code: int = frames.NO_ERROR) -> None:
        """The call has ended. What this side did not say is not wanted any more: RST_STREAM, unless both have ended."""
        if self._finished:
            return
        self._finished = True
        self._error = error
        if self._timer is not None:
            self._timer.cancel()
        self._readable()
        self._tell()
        if self._protocol is not None:
            self._protocol.connection.reset(self._stream, code)
            self._protocol.call_ended(self._stream.id)

    def _check_alive(self) -> None:
        if self._cancelled:
            raise asyncio.CancelledError
        if self._finished:
            raise self._error or RpcError(StatusCode.OK, "the call has ended")

    async def _change(self) -> None:
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    async def _end_of_call(self) -> None:
        while not self._finished:
            await self._change()

    def _tell(self) -> None:
        if self.on_writable is not None:
            self.on_writable()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            wake(waiter)
