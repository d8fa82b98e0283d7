"""A call, as its handler sees it: a task with a deadline, metadata, a status, and an end that is never forgotten."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn, Protocol

from fila.wire import frames, status
from fila.wire.headers import Headers, encode
from fila.wire.link import Link
from fila.wire.room import Gate
from fila.wire.status import Metadata, StatusCode
from fila.wire.stream import EOF, MessageRefused, Stream
from fila.wire.turns import OnTurn, Steps

log = logging.getLogger(__name__)

_ANSWER: Final = encode(
    [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity")]
)
_METHOD_NOT_ALLOWED: Final = encode([(b":status", b"405"), (b"allow", b"POST"), (b"content-length", b"0")])
_UNSUPPORTED_MEDIA_TYPE: Final = encode([(b":status", b"415"), (b"content-length", b"0")])
_CONTENT_TYPE: Final = re.compile(rb"application/grpc(\+proto)?(;.*)?")
_OK: Final = encode(status.write_status(StatusCode.OK))

RESPONSE_BYTES: Final = 1 << 20
"""About how large a response with messages becomes before the next is begun."""
_SMALL_REQUEST_BYTES: Final = 4 << 10
_NO_METHOD_BYTES: Final = 64 << 10  # of a request that nobody takes

Handler = Callable[[Any, "Context"], Awaitable[Any]]


class Aborted(Exception):
    """Ends a handler whose call has its status already."""


@dataclass(frozen=True, slots=True)
class Method:
    """A handler takes the request, or None when requests come as a stream, and its call.

    It returns the response, or writes any number of them to the call and returns None.
    """

    handler: Handler
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    takes_stream: bool = False
    gives_stream: bool = False
    #: The largest request; None: as large as the connection takes any.
    max_request_bytes: int | None = None
    #: Whether its requests may be large, and are let in one after the other: how much work a byte of them is, beside a
    #: byte of a batch of messages. 0: they are small.
    bulk: int = 0
    #: Whether its response may be large, and is made when there is room for it.
    large: bool = False
    standing: bool = False
    """Whether its calls last until one side goes away. A server that stops does not wait for them."""


class Host(Protocol):
    """What a call needs of its server."""

    loop: asyncio.AbstractEventLoop
    methods: Mapping[bytes, Method]
    gate: Gate
    on_turn: OnTurn

    def call_ended(self, call: "Context", link: Link) -> None: ...


class Context(Stream):
    """One call, as its handler sees it."""

    __slots__ = (
        "_code",
        "_deadline",
        "_details",
        "_gone",
        "_headers",
        "_inside",
        "_late",
        "_link",
        "_method",
        "_queued",
        "_read_waiter",
        "_server",
        "_started",
        "_task",
        "_timer",
        "_trailing",
        "_write_waiter",
        "connection_lost",
        "on_readable",
        "on_writable",
    )

    def __init__(self, server: Host, link: Link, headers: Headers) -> None:
        super().__init__()
        self._server = server
        self._link = link
        self._headers = headers
        self._code = StatusCode.OK
        self._details = ""
        self._trailing: Metadata = ()
        self._started = False
        #: Work of the request that was let in, and of the one that waits for it.
        self._inside = 0
        self._queued = 0
        self._gone = False
        #: Whether the call ended because its connection did, and not because the caller wanted it to.
        self.connection_lost = False
        self._late = False
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._read_waiter: asyncio.Future[None] | None = None
        self._write_waiter: asyncio.Future[None] | None = None
        self._method: Method | None = None
        #: For handlers that are called back: a request may be here; there is room again for responses.
        self.on_readable: Callable[[], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        found = server.methods.get(next((value for name, value in headers if name == b":path"), b""))
        self.max_message_bytes = _NO_METHOD_BYTES if found is None else found.max_request_bytes
        self._task = server.loop.create_task(Steps(self._run(), server.on_turn, self.describe))
        self._task.add_done_callback(self._ended)

    # For handlers.

    def invocation_metadata(self) -> Metadata:
        """What the caller sent along."""
        return status.read_metadata(self._headers)

    def peer(self) -> str:
        """The address of the caller."""
        transport = self._link.transport
        name = transport.get_extra_info("peername") if transport is not None else None
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")

    def time_remaining(self) -> float | None:
        """Seconds until the caller does not wait any more; None when it waits for ever."""
        return None if self._deadline is None else max(0.0, self._deadline - self._server.loop.time())

    async def read(self) -> Any:
        """The next request, or EOF."""
        message = await self._next()
        if message is None:
            return EOF
        assert self._method is not None
        return self._decoded(self._method, message)

    async def write(self, response: Any) -> None:
        """Send a response. Returns when it is on its way, so a slow reader slows down its handler."""
        assert self._method is not None
        self._write_now(self._method.write(response))
        if self.outgoing:
            await self._sent()

    def take(self) -> Any:
        """The next request, EOF after the last, or None while there is none: `on_readable` is called when there is."""
        if not self.messages:
            return EOF if self.remote_closed else None
        assert self._method is not None
        return self._decoded(self._method, self._taken()) if self._enter() else None

    def ready_to_send(self, room: int = 0) -> bool:
        """Whether the caller takes a response now; with `room`, also whether there is room to make one of that size. If
        not, `on_writable` is called when it may be so. What has to be read from somewhere is not read before.
        """
        connection = self._link.connection
        return connection.can_send(self) and (not room or connection.promise(self, room))

    def send_nothing(self) -> None:
        """There is no response after all for the room that was asked for."""
        self._link.connection.keep_promise(self)

    async def room(self, size: int = RESPONSE_BYTES) -> None:
        """Wait until the caller takes a response, and there is room to make one of that size."""
        while not self.ready_to_send(size):
            self._check_goes_on()
            await self._sent()

    def send(self, response: Any) -> None:
        """Have a response sent with the next `flush`. While some of it is left in `outgoing` there is no room for more;
        `on_writable` is called when there is. Raises CancelledError when the call is over.
        """
        assert self._method is not None
        self._write_now(self._method.write(response), flush=False)

    def flush(self) -> None:
        """Write what was sent on any call of this connection."""
        self._link.flush()

    async def send_initial_metadata(self, metadata: Metadata = ()) -> None:
        """Tell the caller that its call has begun."""
        if not self._started:
            self._send_head(metadata)
            self._link.flush()

    def set_trailing_metadata(self, metadata: Metadata) -> None:
        self._trailing = metadata

    async def abort(self, code: StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        """End the call with a status. Raises Aborted, which the handler must let pass."""
        self._code, self._details = code, details
        self._trailing = trailing_metadata or self._trailing
        raise Aborted(f"{code.name}: {details}")

    def describe(self) -> str:
        """What is called; nothing that only the caller knows."""
        return self._path() if self._method is not None else "a call that has not begun"

    # What happens to the stream.

    def readable(self) -> None:
        if self.on_readable is not None:
            self.on_readable()
        waiter = self._read_waiter
        if waiter is not None:
            self._read_waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def writable(self) -> None:
        if self.on_writable is not None:
            self.on_writable()
        waiter = self._write_waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._read_waiter is not None and self.messages:
            self.readable()  # it may be let in now

    def granted(self) -> None:
        self._link.flush()
        self.writable()

    def refused(self, error: MessageRefused) -> None:
        if not self._gone:
            self._code, self._details = error.code, str(error)
            self._finish()
            self._task.cancel()

    def lost(self, code: int | None, text: str) -> None:
        del text
        if not self._gone:
            self._gone = True
            self.connection_lost = code is None
            self._task.cancel()

    # The call.

    async def _run(self) -> None:
        try:
            await self._serve()
        except Aborted:
            self._finish()
        except asyncio.CancelledError:
            if not self._gone:
                self._code, self._details = self._why_cancelled()
                self._finish()
        except Exception:
            log.exception("a handler failed", extra={"method": self._path()})
            self._code, self._details = StatusCode.UNKNOWN, "the call failed"
            self._finish()

    def _ended(self, _: object) -> None:
        """Also when the task was cancelled before it began."""
        if self._timer is not None:
            self._timer.cancel()
        self._leave()
        if not self._gone:
            self._code, self._details = self._why_cancelled()
            self._finish()
        self._server.call_ended(self, self._link)

    @property
    def standing(self) -> bool:
        return self._method is not None and self._method.standing

    def end(self) -> asyncio.Task[None]:
        """Cancel the handler."""
        self._task.cancel()
        return self._task

    async def _serve(self) -> None:
        method = await self._begin()
        request = None
        while not (method.gives_stream or self.ready_to_send()):  # nothing is done for who takes no answer
            self._check_goes_on()
            await self._sent()
        if not method.takes_stream:
            message = await self._next()
            if message is None:
                await self.abort(StatusCode.INTERNAL, "there is no request")
            request = self._decoded(method, message)
            del message  # it is not kept beside what it was decoded to
        if method.large:
            await self.room()
        response = await method.handler(request, self)
        if not method.gives_stream:
            self._write_now(method.write(response), flush=False)
            if self.outgoing:
                self._link.flush()
                await self._sent()
        self._finish()

    async def _begin(self) -> Method:
        """What is called, its deadline set. Aborts a call that cannot be served."""
        found = dict(self._headers)
        if found.get(b":method") != b"POST":
            self._refuse(_METHOD_NOT_ALLOWED)
        if _CONTENT_TYPE.fullmatch(found.get(b"content-type", b"")) is None:
            self._refuse(_UNSUPPORTED_MEDIA_TYPE)
        method = self._method = self._server.methods.get(found.get(b":path", b""))
        if method is None:
            await self.abort(StatusCode.UNIMPLEMENTED, "there is no such method")
        if found.get(b"grpc-encoding", b"identity") != b"identity":
            await self.abort(StatusCode.UNIMPLEMENTED, "compressed messages are not taken")
        if b"grpc-timeout" in found:
            timeout_s = status.read_timeout(found[b"grpc-timeout"])
            if timeout_s is None:
                await self.abort(StatusCode.INTERNAL, "the timeout cannot be read")
            loop = self._server.loop
            self._deadline = loop.time() + timeout_s
            self._timer = loop.call_at(self._deadline, self._expire)
        return method

    def _check_goes_on(self) -> None:
        if self._gone:
            raise asyncio.CancelledError

    def _enter(self) -> bool:
        """Whether the next request may be decoded. If not, the handler is called back when it may."""
        size = len(self.messages[0])
        account = self._link.connection.account
        assert self._method is not None
        if self._inside or account is None or size <= _SMALL_REQUEST_BYTES or not self._method.bulk:
            return True
        if self._queued or self._gone:
            return False
        work = size * self._method.bulk
        if self._server.gate.enter(account, work, self._admitted):
            self._inside = work
            return True
        self._queued = work
        return False

    def _admitted(self) -> bool:
        work, self._queued = self._queued, 0
        if self._gone or not self.messages or not self.ready_to_send():
            return False
        self._inside = work
        self._server.loop.call_soon(self.readable)
        return True

    def _leave(self) -> None:
        """What was decoded last is answered, or will not be."""
        if self._inside:
            work, self._inside = self._inside, 0
            self._server.gate.leave(work)

    def _refuse(self, answer: bytes) -> NoReturn:
        """End what is no call of gRPC with an answer of HTTP. Raises Aborted."""
        self._gone = True
        connection = self._link.connection
        connection.send_headers(self, answer, end=True)
        connection.reset(self, frames.NO_ERROR)
        self.forget()
        self._link.flush()
        raise Aborted

    def _expire(self) -> None:
        self._late = True
        self._task.cancel()

    def _why_cancelled(self) -> tuple[StatusCode, str]:
        if self._late:
            return StatusCode.DEADLINE_EXCEEDED, "the deadline has passed"
        return StatusCode.UNAVAILABLE, "the server is shutting down"

    def _decoded(self, method: Method, message: bytes) -> Any:
        try:
            return method.read(message)
        except Exception as error:
            self._code, self._details = StatusCode.INTERNAL, "the request cannot be decoded"
            raise Aborted from error

    async def _next(self) -> bytes | None:
        while not (self.messages and self._enter()):
            if self.remote_closed and not self.messages:
                return None
            waiter = self._read_waiter = self._server.loop.create_future()
            await waiter
        return self._taken()

    def _taken(self) -> bytes:
        connection = self._link.connection
        message = connection.read(self)
        assert message is not None
        if connection.out:
            self._link.flush()
        return message

    def _write_now(self, message: bytes, *, flush: bool = True) -> None:
        if self._gone or self.local_closed:
            raise asyncio.CancelledError
        if not self._started:
            self._send_head(())
        connection = self._link.connection
        if self.in_hand or self.promised:
            connection.release(self)
            connection.keep_promise(self)
        connection.send_message(self, message)
        self._leave()
        if flush:
            self._link.flush()

    async def _sent(self) -> None:
        waiter = self._write_waiter = self._server.loop.create_future()
        try:
            await waiter
        finally:
            self._write_waiter = None

    def _send_head(self, metadata: Metadata) -> None:
        self._started = True
        block = _ANSWER + encode(status.write_metadata(metadata)) if metadata else _ANSWER
        self._link.connection.send_headers(self, block)

    def _finish(self) -> None:
        """Say how the call ended, once."""
        if self._gone:
            return
        self._gone = True
        connection = self._link.connection
        if self.outgoing:  # it was ended in the middle of a message
            connection.reset(self, frames.CANCEL)
        else:
            block = _OK if self._code is StatusCode.OK else _status_block(self._code, self._details)
            if self._trailing:
                block += encode(status.write_metadata(self._trailing))
            connection.send_headers(self, block if self._started else _ANSWER + block, end=True)
            connection.reset(self, frames.NO_ERROR)  # the caller need not say the rest
        self.forget()
        self._link.flush()

    def _path(self) -> str:
        return dict(self._headers).get(b":path", b"").decode(errors="replace")


@lru_cache(maxsize=64)
def _status_block(code: StatusCode, details: str) -> bytes:
    return encode(status.write_status(code, details))
