"""Two-way streams: take a request, have it done, answer it, take the next; and end politely when the server stops.

A stream is served by callbacks, not by a task that waits: a request that arrives is with the broker in the same turn of
the event loop, and its answer on the way in the turn in which the broker has it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from fila.core.errors import BrokerError, ShuttingDown
from fila.server.types import ServerCall
from fila.wire.stream import EOF

Encode = Callable[[Any], Any]
"""Makes the response of what the broker answered."""

Reply = Callable[[Encode, Any], None]

Ask = Callable[[Any, Reply], None]
"""Has a request done. The reply is called once, later. Raises BrokerError."""


class Conversation:
    """One two-way stream. Its requests are answered one after the other."""

    def __init__(self, call: ServerCall, ask: Ask) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises the reason when it is not the caller who ended."""
        self._call = call
        self._ask = ask
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
            elif isinstance(request, BrokerError):  # it was refused before it was decoded
                self._fail(request)
            elif request is not None:
                self._asking = True
                self._ask(request, self._answer)
        except Exception as error:  # noqa: BLE001  # whatever it is, it ends this stream and no other
            self._fail(error)

    def _answer(self, encode: Encode, answer: Any) -> None:
        self._asking = False
        if self.ended.done():
            return
        if isinstance(answer, BrokerError):
            self._fail(answer)
            return
        try:
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

    async def serve(self, call: ServerCall, ask: Ask) -> None:
        """Answer every request of a stream, in order. Raises ShuttingDown when the server stops."""
        if self._stopping:
            raise ShuttingDown
        conversation = Conversation(call, ask)
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
