"""A call, as its caller sees it."""

import asyncio
from collections.abc import Callable
from typing import Any

from fila.wire import frames, status
from fila.wire.headers import Headers
from fila.wire.link import Link
from fila.wire.status import Metadata, RpcError, StatusCode, UnreadableResponse
from fila.wire.stream import EOF, MessageRefused, Stream

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class Call(Stream):
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
        "_link",
        "_loop",
        "_read_waiter",
        "_take",
        "_timer",
        "_trailing",
        "_trouble",
        "_waiters",
        "on_writable",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, block: bytes, encode: Encode | None, decode: Decode | None
    ) -> None:
        super().__init__()
        self._loop = loop
        self._block = block
        self._encode = encode
        self._decode = decode
        self._first: bytes | None = None
        self._link: Link | None = None
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
        #: For callers that are called back: there may be room for a request.
        self.on_writable: Callable[[], None] | None = None

    # For callers.

    async def write(self, request: Any) -> None:
        """Send a request. Returns when it is on its way."""
        message = self._encode(request) if self._encode is not None else request
        while self._link is None or self.outgoing:
            self._check_alive()
            await self._change()
        self._check_alive()
        self._link.connection.send_message(self, message)
        self._link.flush()
        while self.outgoing:
            await self._change()
        if self._cancelled:
            raise asyncio.CancelledError

    async def done_writing(self) -> None:
        """Say that no more requests follow."""
        while self._link is None and not self._finished:
            await self._change()
        if self._link is not None and not self._finished:
            self._link.connection.end(self)
            self._link.flush()

    async def read(self) -> Any:
        """The next response, or EOF after the last. Raises RpcError when the call ended with another status than OK."""
        while not self.messages:
            if self._cancelled:
                raise asyncio.CancelledError
            if self._finished:
                if self._error is not None:
                    raise self._error
                return EOF
            waiter = self._read_waiter = self._loop.create_future()
            await waiter
        response = self._next()
        assert self._link is not None
        if self._link.connection.out:
            self._link.flush()
        return response

    async def each(self, take: Callable[[Any], None]) -> None:
        """Hand each response over in the turn of the event loop in which it arrives. Returns after the last one.

        Raises RpcError as `read` does, or what `take` raised, after which the call has ended.
        """
        self._take = take
        self._hand_over()
        if self._link is not None:
            self._link.flush()
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
        return self._link is not None and not (self.outgoing or self._finished or self.local_closed)

    def send(self, request: Any) -> None:
        """Send a request. To be called while there is room."""
        assert self._link is not None
        self._link.connection.send_message(self, self._encode(request) if self._encode is not None else request)
        self._link.flush()

    def end(self) -> None:
        """Say that no more requests follow. To be called while there is room."""
        assert self._link is not None
        self._link.connection.end(self)
        self._link.flush()

    def cancel(self) -> bool:
        """End the call. Whoever waits for it is cancelled."""
        if self._finished:
            return False
        self._cancelled = True
        self._end(RpcError(StatusCode.CANCELLED, "the call was cancelled here"), frames.CANCEL)
        return True

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

    def begin(self, link: Link) -> None:
        """Open the stream."""
        self._link = link
        link.connection.open(self, self._block)
        if self._first is not None:
            link.connection.send_message(self, self._first, end=True)
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

    def got_headers(self, headers: Headers, end: bool) -> None:
        if self._initial is None and not end:
            self._initial = status.read_metadata(headers)
            if dict(headers).get(b":status") != b"200":
                self._end(RpcError(*status.read_status(headers)), frames.CANCEL)
            self._tell()
            return
        if self._finished:
            return
        if not end:
            self._end(RpcError(StatusCode.INTERNAL, "headers in the middle of a call"), frames.PROTOCOL_ERROR)
            return
        code, details = status.read_status(headers)
        self._trailing = status.read_metadata(headers)
        self._finish(None if code is StatusCode.OK else RpcError(code, details, self._trailing))
        if self._link is not None and not self.local_closed:
            self._link.connection.reset(self, frames.NO_ERROR)  # what we did not say is not wanted any more

    def readable(self) -> None:
        if self.remote_closed and not self._finished:
            self._finish(RpcError(StatusCode.INTERNAL, "the call ended without a status"))
        if self._take is not None:
            self._hand_over()
        waiter = self._read_waiter
        if waiter is not None:
            self._read_waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def writable(self) -> None:
        self._tell()

    def refused(self, error: MessageRefused) -> None:
        self._end(RpcError(error.code, str(error)), frames.CANCEL)

    def lost(self, code: int | None, text: str) -> None:
        if not self._finished:
            self._finish(RpcError(StatusCode.UNAVAILABLE, text) if code is None else status.from_reset(code))

    def _next(self) -> Any:
        """The next response, which is here."""
        assert self._link is not None
        message = self._link.connection.read(self)
        if self._decode is None or message is None:
            return message
        try:
            return self._decode(message)
        except Exception as error:
            raise UnreadableResponse(StatusCode.INTERNAL, f"the response cannot be read: {error!r}") from error

    def _hand_over(self) -> None:
        assert self._take is not None
        while self.messages:
            try:
                self._take(self._next())
            except Exception as error:  # noqa: BLE001  # it goes to whoever waits for the end
                self._trouble = error
                self.forget()
                self.cancel()

    def _expire(self) -> None:
        self._end(RpcError(StatusCode.DEADLINE_EXCEEDED, "the deadline has passed"), frames.CANCEL)

    def _end(self, error: RpcError, code: int) -> None:
        """End the call from here."""
        if self._finished:
            return
        self.forget()
        self._finish(error)
        if self._link is not None:
            self._link.connection.reset(self, code)
            self._link.flush()

    def _finish(self, error: RpcError | None) -> None:
        self._finished = True
        self._error = error
        if self._timer is not None:
            self._timer.cancel()
        self.readable()
        self._tell()

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
            if not waiter.done():
                waiter.set_result(None)
