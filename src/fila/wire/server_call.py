"""A call, as its handler sees it: a task with a deadline, metadata, a status, and an end that is never forgotten."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NoReturn, Protocol

from fila.wire import status
from fila.wire.certificate import PeerCertificate
from fila.wire.events import (
    MessageReceived,
    StreamEnded,
    StreamEvent,
    StreamLost,
    StreamRefused,
    StreamReset,
    StreamWritable,
)
from fila.wire.grpc_request import NotGrpc, RequestRefused, read_request
from fila.wire.headers import Headers
from fila.wire.loop_turns import OnTurn, TimedCoroutine
from fila.wire.method import Aborted, Method
from fila.wire.responder import Responder
from fila.wire.server_protocol import ServerProtocol
from fila.wire.status import Metadata, StatusCode
from fila.wire.stream import EOF, Stream
from fila.wire.waiters import wake
from fila.wire.work_limit import WorkLimit

log = logging.getLogger(__name__)

RESPONSE_BYTES: Final = 1 << 20
"""About how large a response with messages becomes before the next is begun."""
_SMALL_REQUEST_BYTES: Final = 4 << 10


class Host(Protocol):
    """What a call needs of its server."""

    loop: asyncio.AbstractEventLoop
    methods: Mapping[bytes, Method]
    work: WorkLimit
    on_turn: OnTurn
    refuse_peer: Callable[[str], str | None]
    describe_refusal: Callable[[StatusCode, str], Metadata]

    def call_ended(self, call: "ServerCall", protocol: ServerProtocol, stream: Stream) -> None: ...


class ServerCall:
    """One call, as its handler sees it."""

    __slots__ = (
        "_deadline",
        "_expired",
        "_headers",
        "_lost",
        "_method",
        "_protocol",
        "_queued_work",
        "_read_waiter",
        "_responder",
        "_server",
        "_stream",
        "_task",
        "_timer",
        "_work",
        "_write_waiter",
        "connection",
        "on_readable",
        "on_writable",
    )

    def __init__(self, server: Host, protocol: ServerProtocol, stream: Stream, headers: Headers) -> None:
        self._server = server
        self._protocol = protocol
        self.connection: Hashable = protocol  #: What the calls of one connection have in common.
        self._stream = stream
        self._headers = headers
        self._responder = Responder(protocol, stream)
        #: Work of the request that is being answered, and of the one that waits for the server's `WorkLimit`.
        self._work = 0
        self._queued_work = 0
        self._lost = False
        self._expired = False
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._read_waiter: asyncio.Future[None] | None = None
        self._write_waiter: asyncio.Future[None] | None = None
        self._method: Method | None = None
        #: For handlers that are called back: a request may be here; a response may be sent.
        self.on_readable: Callable[[], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        self._task = server.loop.create_task(TimedCoroutine(self._run(), server.on_turn, self.__str__))
        self._task.add_done_callback(self._task_done)

    # For handlers.

    def invocation_metadata(self) -> Metadata:
        """What the caller sent along."""
        return status.read_metadata(self._headers)

    def metadata(self, name: bytes) -> list[str]:
        """The values of one name, whose values are text, of what the caller sent along."""
        return [value.decode(errors="replace") for key, value in self._headers if key == name]

    def peer(self) -> str:
        """The address of the caller."""
        transport = self._protocol.transport
        name = transport.get_extra_info("peername") if transport is not None else None
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")

    @property
    def peer_address(self) -> str:
        """The address of the caller without its port; empty when it is not known."""
        return self._protocol.address

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Have something called when the connection has ended; at once if it has."""
        self._protocol.on_disconnect(callback)

    @property
    def peer_certificate(self) -> PeerCertificate | None:
        """The client certificate that the caller has shown and that was verified; None: there is none."""
        return self._protocol.certificate

    @property
    def connection_lost(self) -> bool:
        """Whether the call ends because its connection did, and not because the caller wanted it to."""
        return self._lost or (self._protocol.lost and not self._responder.ended)

    @property
    def _over(self) -> bool:
        """Whether nothing is received or answered any more."""
        return self._responder.ended or self._protocol.lost

    def time_remaining(self) -> float | None:
        """Seconds until the caller does not wait any more; None when it waits for ever."""
        return None if self._deadline is None else max(0.0, self._deadline - self._server.loop.time())

    async def read(self) -> Any:
        """The next request, or EOF."""
        message = await self._next()
        if message is None:
            return EOF
        assert self._method is not None
        return self.decoded(self._method, message)

    async def write(self, response: Any) -> None:
        """Send a response. Returns when it is on its way, so a slow reader slows down its handler."""
        assert self._method is not None
        self._write_now(self._method.write(response))
        if self._stream.outgoing:
            await self._sent()

    async def peek(self) -> bytes | None:
        """The bytes of the next request, which stays to be read; None when there is none any more."""
        while not self._stream.messages:
            self._check_goes_on()
            if self._stream.remote_closed:
                return None
            waiter = self._read_waiter = self._server.loop.create_future()
            await waiter
        return self._stream.messages[0]

    def serve_as(self, method: Method) -> None:
        """Decode requests and encode responses from now on as another method does, for a handler that hands over."""
        self._method = method

    def take(self) -> Any:
        """The next request, EOF after the last, or None while there is none: `on_readable` is called when there is."""
        if self._over:
            return None
        if not self._stream.messages:
            return EOF if self._stream.remote_closed else None
        assert self._method is not None
        return self.decoded(self._method, self._taken()) if self._enter() else None

    def ready_to_send(self, reserve: int = 0) -> bool:
        """Whether the caller takes a response now; with `reserve`, also whether there is memory to make one of that
        size. If not, `on_writable` is called when it may be so. What has to be read from somewhere is not read before.
        Never once the call is over.
        """
        if self._over:
            return False
        connection = self._protocol.connection
        return connection.can_send(self._stream) and (not reserve or connection.reserve(self._stream, reserve))

    def send_nothing(self) -> None:
        """There is no response after all for which memory was reserved."""
        if self._stream.memory is not None:
            self._stream.memory.finish_response()

    async def until_ready(self, reserve: int = RESPONSE_BYTES) -> None:
        """Wait until the caller takes a response, and there is memory to make one of that size."""
        while not self.ready_to_send(reserve):
            self._check_goes_on()
            await self._sent()

    @property
    def unsent(self) -> bool:
        """Whether some of what was sent waits for the caller."""
        return bool(self._stream.outgoing)

    @property
    def awaits_window(self) -> bool:
        """Whether the caller does not take a response that is to be made."""
        return self._stream.awaits_window

    def send(self, response: Any) -> None:
        """Have a response sent with the next `flush`. While some of it is `unsent`, send no other: `on_writable` says
        when one may be sent. Raises CancelledError when the call is over.
        """
        assert self._method is not None
        self._write_now(self._method.write(response), flush=False)

    def flush(self) -> None:
        """Write what was sent on any call of this connection."""
        self._protocol.flush()

    async def send_initial_metadata(self, metadata: Metadata = ()) -> None:
        """Tell the caller that its call has begun."""
        if self._responder.send_headers(metadata):
            self._protocol.flush()

    def set_trailing_metadata(self, metadata: Metadata) -> None:
        self._responder.trailing = metadata

    async def abort(self, code: StatusCode, details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        """End the call with a status. Raises Aborted, which the handler must let pass."""
        self._set_status(code, details)
        self._responder.trailing = trailing_metadata or self._responder.trailing
        raise Aborted(f"{code.name}: {details}")

    def __str__(self) -> str:
        """What is called; nothing that only the caller knows."""
        return self._path() if self._method is not None else "a call that has not begun"

    # What happens to the stream.

    def handle(self, event: StreamEvent) -> None:
        if self._responder.ended:
            return
        if isinstance(event, MessageReceived | StreamEnded):
            self._readable()
        elif isinstance(event, StreamWritable):
            self._writable()
        elif isinstance(event, StreamRefused):
            self._set_status(event.code, event.text)
            self._responder.trailing = self._server.describe_refusal(event.code, event.text)
            self._responder.finish()
            self._task.cancel()
        elif isinstance(event, StreamReset | StreamLost):
            self._responder.ended = True
            self._lost = isinstance(event, StreamLost)
            self._protocol.end_in_turn(self._task.cancel)

    def _readable(self) -> None:
        if self.on_readable is not None:
            self.on_readable()
        waiter, self._read_waiter = self._read_waiter, None
        wake(waiter)

    def _writable(self) -> None:
        if self.on_writable is not None:
            self.on_writable()
        wake(self._write_waiter)
        if self._read_waiter is not None and self._stream.messages:
            self._readable()  # the request may be decoded now

    # The call.

    async def _run(self) -> None:
        try:
            await self._serve()
        except Aborted:
            self._responder.finish()
        except asyncio.CancelledError:
            if not self._responder.ended:
                self._set_status(*self._why_cancelled())
                self._responder.finish()
        except Exception:
            log.exception("a handler failed", extra={"method": self._path()})
            self._set_status(StatusCode.UNKNOWN, "the call failed")
            self._responder.finish()

    def _task_done(self, _: object) -> None:
        """Also when the task was cancelled before it began."""
        if self._timer is not None:
            self._timer.cancel()
        self._leave()
        if not self._responder.ended:
            self._set_status(*self._why_cancelled())
            self._responder.finish()
        self._server.call_ended(self, self._protocol, self._stream)

    @property
    def standing(self) -> bool:
        return self._method is not None and self._method.standing

    def end(self) -> asyncio.Task[None]:
        """Cancel the handler."""
        self._task.cancel()
        return self._task

    async def _serve(self) -> None:
        self._check_goes_on()
        method = await self._begin()
        request = None
        while not (method.gives_stream or self.ready_to_send()):  # nothing is done for who takes no answer
            self._check_goes_on()
            await self._sent()
        if not method.takes_stream:
            message = await self._next()
            if message is None:
                await self.abort(StatusCode.INTERNAL, "the call has no request")
            request = self.decoded(method, message)
            del message  # it is not kept beside what it was decoded to
        if method.large:
            await self.until_ready()
        response = await method.handler(request, self)
        if not method.gives_stream:
            self._write_now(method.write(response), flush=False)
            if self._stream.outgoing:
                self._protocol.flush()
                await self._sent()
        self._responder.finish()

    async def _begin(self) -> Method:
        """What is called, its deadline set. Aborts a call that cannot be served."""
        why_not = self._protocol.refusal or self._server.refuse_peer(self._protocol.address)
        if why_not is not None:
            await self.abort(StatusCode.UNAUTHENTICATED, why_not)
        try:
            method, timeout_s = read_request(self._headers, self._server.methods)
        except NotGrpc as refusal:
            self._responder.answer_http(refusal.answer)
            raise Aborted from refusal
        except RequestRefused as refusal:
            await self.abort(refusal.code, str(refusal))
        self._method = method
        if timeout_s is not None:
            loop = self._server.loop
            self._deadline = loop.time() + timeout_s
            self._timer = loop.call_at(self._deadline, self._expire)
        return method

    def _check_goes_on(self) -> None:
        """A call that its caller has left may go on until it is cancelled (`end_in_turn`), but gets no further."""
        if self._over:
            raise asyncio.CancelledError

    def _enter(self) -> bool:
        """Whether the next request may be decoded. If not, the handler is called back when it may."""
        size = len(self._stream.messages[0])
        account = self._protocol.connection.account
        assert self._method is not None
        if self._work or account is None or size <= _SMALL_REQUEST_BYTES or not self._method.bulk:
            return True
        if self._queued_work or self._over:
            return False
        work = size * self._method.bulk
        if self._server.work.enter(account, work, self._admitted):
            self._work = work
            return True
        self._queued_work = work
        return False

    def _admitted(self) -> bool:
        work, self._queued_work = self._queued_work, 0
        if self._over or not self._stream.messages or not self.ready_to_send():
            return False
        self._work = work
        self._server.loop.call_soon(self._readable)
        return True

    def _leave(self) -> None:
        """What was decoded last is answered, or will not be."""
        if self._work:
            work, self._work = self._work, 0
            self._server.work.leave(work)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def _why_cancelled(self) -> tuple[StatusCode, str]:
        if self._expired:
            return StatusCode.DEADLINE_EXCEEDED, "the deadline has passed"
        return StatusCode.UNAVAILABLE, "the server is shutting down"

    def decoded(self, method: Method, message: bytes) -> Any:
        """A request of a method. Ends the call when it means nothing."""
        try:
            return method.read(message)
        except Exception as error:
            self._set_status(StatusCode.INTERNAL, "the request cannot be decoded")
            raise Aborted from error

    async def _next(self) -> bytes | None:
        self._check_goes_on()
        while not (self._stream.messages and self._enter()):
            if self._stream.remote_closed and not self._stream.messages:
                return None
            waiter = self._read_waiter = self._server.loop.create_future()
            await waiter
        return self._taken()

    def _taken(self) -> bytes:
        connection = self._protocol.connection
        message = connection.read(self._stream)
        assert message is not None
        if connection.out:
            self._protocol.flush()
        return message

    def _write_now(self, message: bytes, *, flush: bool = True) -> None:
        if self._over or self._stream.local_closed:
            raise asyncio.CancelledError
        self._responder.send(message)
        self._leave()
        if flush:
            self._protocol.flush()

    async def _sent(self) -> None:
        waiter = self._write_waiter = self._server.loop.create_future()
        try:
            await waiter
        finally:
            self._write_waiter = None

    def _set_status(self, code: StatusCode, details: str) -> None:
        self._responder.code, self._responder.details = code, details

    def _path(self) -> str:
        return dict(self._headers).get(b":path", b"").decode(errors="replace")
