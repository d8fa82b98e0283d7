"""Two-way streams: take a request, have it done, answer it, take the next; and end politely when the server stops.

A request that is refused is answered with its number and the reason, and the stream goes on, unless nothing that comes
after it could succeed either.

A stream is served by callbacks, not by a task that waits: a request that arrives is with the broker in the same turn of
the event loop, and its answer on the way in the turn in which the broker has it.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fila.core.errors import BrokerError, ShuttingDown
from fila.server.status import row_of
from fila.server.types import ServerCall
from fila.wire.status import StatusCode
from fila.wire.stream import EOF

Encode = Callable[[Any], Any]
"""Makes the response of what the broker answered."""

Reply = Callable[[Encode, Any], None]

Ask = Callable[[Any, Reply], None]
"""Has a request done. The reply is called once, later. Raises BrokerError."""

ENDING: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.UNAUTHENTICATED})
"""How a refusal ends its stream: the caller has to come back, or needs another key."""


class Talk(NamedTuple):
    """What a stream is about."""

    ask: Ask
    sequence_of: Callable[[Any], int]
    """The number of a request"""
    refuse: Callable[[int, BrokerError], Any]
    """Makes the response to a request that is refused as a whole."""


class RefusedRequest(NamedTuple):
    """A request that was refused before it was decoded."""

    sequence: int
    error: BrokerError


class Conversation:
    """One two-way stream. Its requests are answered one after the other."""

    def __init__(self, call: ServerCall, talk: Talk) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises the reason when it is not the caller who ended."""
        self._call = call
        self._talk = talk
        self._sequence = 0
        """The number of the request that is under way"""
        self._asking = False
        self._stopping = False
        call.on_readable = call.on_writable = self._go_on
        self._go_on()

    def stop(self) -> None:
        """End after the answer that is under way."""
        self._stopping = True
        self._go_on()

    def _go_on(self) -> None:
        """Take the next request, unless one is under way or the caller does not read its answers."""
        call = self._call
        if self._asking or self.ended.done():
            return
        if self._stopping and not call.unsent:
            self._fail(ShuttingDown())
            return
        if not call.ready_to_send():
            return
        try:
            request = call.take()
            if request is EOF:
                self.ended.set_result(None)
            elif isinstance(request, BrokerError):  # it was refused unseen, and nobody knows its number
                self._fail(request)
            elif request is not None:
                self._asking = True
                self._do(request)
        except Exception as error:  # noqa: BLE001  # whatever it is, it ends this stream and no other
            self._fail(error)

    def _do(self, request: Any) -> None:
        if isinstance(request, RefusedRequest):
            self._sequence = request.sequence
            self._refuse(request.error)
            return
        self._sequence = self._talk.sequence_of(request)
        try:
            self._talk.ask(request, self._answer)
        except BrokerError as error:
            self._refuse(error)

    def _refuse(self, error: BrokerError) -> None:
        """Answer a request with its refusal. The next one has its turn after everybody else: refusing costs next to
        nothing, and somebody who sends nothing but nonsense must not keep others waiting.
        """
        if row_of(error).code in ENDING:
            self._fail(error)
            return
        self._call.send(self._talk.refuse(self._sequence, error))
        self._call.flush()
        asyncio.get_running_loop().call_soon(self._refused)

    def _refused(self) -> None:
        self._asking = False
        self._go_on()

    def _answer(self, encode: Encode, answer: Any) -> None:
        self._asking = False
        if self.ended.done():
            return
        try:
            if isinstance(answer, BrokerError):
                self._asking = True
                self._refuse(answer)
                return
            self._call.send(encode(answer))
            self._call.flush()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
            self._fail(error)
        else:
            self._go_on()

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            self.ended.cancel()
        else:
            self.ended.set_exception(error.with_traceback(None))  # which would keep the request in memory


class Streams:
    """The open two-way streams of one server."""

    def __init__(self) -> None:
        self._open: set[Conversation] = set()
        self._stopping = False

    async def serve(self, call: ServerCall, talk: Talk) -> None:
        """Answer every request of a stream, in order. Raises ShuttingDown when the server stops."""
        if self._stopping:
            raise ShuttingDown
        await call.send_initial_metadata()  # some clients return from opening a stream only when they have these
        conversation = Conversation(call, talk)
        self._open.add(conversation)
        try:
            await conversation.ended
        finally:
            self._open.discard(conversation)
            call.on_readable = call.on_writable = None

    def stop(self) -> None:
        """End the streams: those that wait for a request now, the others after their answer."""
        self._stopping = True
        for conversation in list(self._open):
            conversation.stop()
