"""One Consume stream: prefetches messages for its consumer, and reconnects with backoff.

- It reads messages as they arrive, up to `max_in_flight`, so that the leases of prefetched messages are extended too.
- It reports to the broker how many messages the application was handed, so that the broker counts no attempt for the
  others when the consumer leaves or its process dies. A report counts all that was handed so far. It is sent after a
  message was handed, and no more often than every `REPORT_EVERY_S`, so that reports cost little at any rate.
- A message that the broker delivers alone, because it may have killed its consumers, is reported before the application
  has it (`confirm`). If the process dies of it, the broker knows.
- An application that has not asked for messages for long is sent none (`pause`). What it was handed stays its own, the
  prefetched messages go to other consumers. The stream is opened again when the application asks.
- When the connection is lost, prefetched messages are released: by the broker if it noticed, else by us. Handing them
  out would mean a second delivery for nothing, since their lease has most likely ended.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from fila.client.backoff import Backoff
from fila.client.connection import Connection, was_lost
from fila.client.errors import FilaError, InternalError
from fila.client.in_flight import InFlight
from fila.client.message import Delivery, Settles
from fila.client.reply import NoReply, Reply
from fila.client.settle_stream import SettleStream
from fila.client.settlements import Nack
from fila.v1 import messages_pb2, service_pb2
from fila.wire.client_call import ClientCall
from fila.wire.status import Metadata, RpcError

#: The metadata of a Consume call by which the broker says how long its leases last.
VISIBILITY_TIMEOUT = "fila-visibility-timeout-ms"

#: The broker learns within this time what the application was handed.
REPORT_EVERY_S = 0.005

D = TypeVar("D", bound=Delivery[Any])


class ConsumeStream(Generic[D]):
    """The messages of one consumer. Belongs to one event loop, except `take`, `take_all` and `isolated`."""

    def __init__(
        self,
        connection: Connection,
        settles: SettleStream,
        in_flight: InFlight,
        request: service_pb2.ConsumeRequest,
        message_type: type[D],
        client: Settles[Any],
    ) -> None:
        self._connection = connection
        self._settles = settles
        self._in_flight = in_flight
        self._request = request
        self._message_type = message_type
        self._client = client
        #: Whether the leases of delivered messages are extended.
        self.auto_extend = True
        #: The message that is delivered alone, until its report is written.
        self.isolated: D | None = None
        self._messages: deque[D] = deque()
        self._received = 0
        self._reported = 0
        self._report_due = False
        self._reported_at = 0.0
        self._asked = True
        self._paused = False
        self._resumed = asyncio.Event()
        self._waiting: list[Reply] = []
        self._ended = False
        self._opened = asyncio.Event()
        self._timeout_changed = asyncio.Event()
        self._visibility_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._call: ClientCall | None = None
        self._task: asyncio.Task[Any] | None = None
        self._error: FilaError | None = None

    @property
    def queue(self) -> str:
        return self._request.queue

    @property
    def waiting(self) -> int:
        """How many prefetched messages there are."""
        return len(self._messages)

    async def visibility_timeout_s(self) -> float:
        """The visibility timeout of the queue, once the broker has told it. 0: the stream ended and holds nothing."""
        await self._opened.wait()
        return 0.0 if self._ended and not self._in_flight.holds(self) else self._visibility_s

    async def stays_for(self, seconds: float) -> bool:
        """Wait for so long. Returns False as soon as the broker tells another visibility timeout."""
        self._timeout_changed.clear()
        try:
            await asyncio.wait_for(self._timeout_changed.wait(), seconds)
        except TimeoutError:
            return True
        return False

    def take(self) -> D | None:
        """The next prefetched message, if there is one. Callable from any thread, as a deque pops atomically.

        Whoever takes the `isolated` message must wait for `confirm` before the application gets it.
        """
        self._asked = True
        try:
            message = self._messages.popleft()
        except IndexError:
            return None
        if not self._report_due:
            self._schedule_report()
        return message

    def take_all(self) -> list[D] | None:
        """All prefetched messages, if any. Callable from any thread."""
        self._asked = True
        taken: list[D] = []
        try:
            while True:
                taken.append(self._messages.popleft())
        except IndexError:
            if not taken:
                return None
        if not self._report_due:
            self._schedule_report()
        return taken

    def notify(self, reply: Reply) -> None:
        """`reply` gets True when there are messages, False when the stream was closed, or the FilaError that ended it.

        Several callers may wait. All of them are told, and those who then find no message ask again.
        """
        self._asked = True
        self._paused = False
        self._resumed.set()
        self._waiting = [other for other in self._waiting if not other.done()]
        self._waiting.append(reply)
        self._tell()

    def was_asked(self) -> bool:
        """Whether the application has asked for messages since the last call, or waits for one."""
        asked, self._asked = self._asked, False
        return asked or any(not reply.done() for reply in self._waiting)

    def confirm(self, message: D, reply: Reply) -> None:
        """Report the isolated message. `reply` gets True when the report is written, False when the stream has ended
        and the lease with it.
        """
        call = self._call
        if self.isolated is not message or call is None or not call.has_room:
            reply.set_result(False)
            return
        self.isolated = None
        self._report()
        assert self._loop is not None
        # The loop writes what was sent in this turn before it comes to the next one.
        self._loop.call_soon(self._loop.call_soon, reply.set_result, True)

    def pause(self) -> None:
        """Give prefetched messages back, and receive none until the application asks. What it was handed stays."""
        call = self._call
        if self._paused or call is None or not call.has_room:
            return
        self._paused = True
        self._resumed.clear()
        self._report()
        for message in self._take_back():
            self._in_flight.forget(message.queue, message.lease_id, (message.id,))
        call.end()

    def stop(self) -> None:
        """Receive no more, and give prefetched messages back. What the application was handed stays its own."""
        call = self._call
        if call is not None and not call.has_room:
            self.close()  # it cannot be ended in order, so no lease of it can be kept
            return
        self._report()
        self._ended = True
        for message in self._take_back():
            self._in_flight.forget(message.queue, message.lease_id, (message.id,))
        self._opened.set()
        self._resumed.set()
        self._tell()
        if call is not None:
            call.end()
        elif self._task is not None:
            self._task.cancel()  # paused, or before another try: what was handed may still be leased

    def close(self) -> None:
        """End the stream."""
        self._ended = True
        self._report()
        self._take_back()
        self._in_flight.forget_owner(self)
        self._opened.set()
        self._resumed.set()
        self._tell()
        if self._call is not None:
            self._call.cancel()
        elif self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Receive until closed, or until the broker refuses the stream."""
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        backoff = Backoff()
        try:
            while not self._ended:
                try:
                    await self._receive(backoff)
                except RpcError as error:
                    if not was_lost(error):
                        raise self._connection.translated(error) from error
                self._release(self._take_back())
                if self._paused:
                    await self._resumed.wait()
                else:
                    await asyncio.sleep(backoff.next_wait_s())
        except FilaError as error:
            self._fail(error)
        except Exception as error:
            self._fail(InternalError(f"the consumer failed unexpectedly: {error!r}"))
            raise

    async def _receive(self, backoff: Backoff) -> None:
        """Use one stream, from opening it to its end. Raises RpcError."""
        call = self._call = self._connection.open_consume()
        self._received = self._reported = 0
        try:
            await call.write(self._request)
            self._note(await call.initial_metadata())

            def deliver(data: bytes) -> None:
                backoff.reset()
                response = service_pb2.ConsumeResponse.FromString(data)
                if response.visibility_timeout_ms:
                    self._note_timeout(response.visibility_timeout_ms)
                if not call.local_closed:  # else it was sent before the broker saw the end: it goes back
                    self._deliver(response.messages)

            await call.each(deliver)
        finally:
            self._call = None
            call.cancel()

    def _note(self, metadata: Metadata) -> None:
        for key, value in metadata:
            if key == VISIBILITY_TIMEOUT and str(value).isdecimal():
                self._note_timeout(int(value))

    def _note_timeout(self, timeout_ms: int) -> None:
        self._opened.set()
        if self._visibility_s != timeout_ms / 1000:
            self._visibility_s = timeout_ms / 1000
            self._timeout_changed.set()

    def _deliver(self, messages: Iterable[messages_pb2.Message]) -> None:
        message_type, client, queue = self._message_type, self._client, self._request.queue
        delivered = [message_type(client, queue, message) for message in messages]
        if self.auto_extend:
            leases: dict[str, list[str]] = {}
            for message in delivered:
                leases.setdefault(message.lease_id, []).append(message.id)
            for lease_id, message_ids in leases.items():
                self._in_flight.add(self, queue, lease_id, message_ids)
        self._received += len(delivered)
        self.isolated = delivered[0] if len(delivered) == 1 and delivered[0].isolation else None
        self._messages.extend(delivered)
        self._tell()

    def _schedule_report(self) -> None:
        """Report soon. Callable from any thread, and not again before the report is sent."""
        self._report_due = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._report_when_due)

    def _report_when_due(self) -> None:
        assert self._loop is not None
        wait_s = self._reported_at + REPORT_EVERY_S - self._loop.time()
        if wait_s > 0:
            self._loop.call_later(wait_s, self._report)
        else:
            self._report()

    def _report(self) -> None:
        """Tell the broker how many messages the application was handed."""
        self._report_due = False
        handed = self._received - len(self._messages) - (self.isolated is not None and not self._messages)
        call = self._call
        if handed > self._reported and call is not None and call.has_room:
            assert self._loop is not None
            self._reported, self._reported_at = handed, self._loop.time()
            call.send(service_pb2.ConsumeRequest(handed=handed))

    def _take_back(self) -> list[D]:
        """Remove and return the prefetched messages."""
        dropped: list[D] = []
        while self._messages:
            try:
                dropped.append(self._messages.pop())
            except IndexError:  # somebody has taken the last one
                break
        self._received -= len(dropped)
        self.isolated = None
        return dropped

    def _release(self, messages: list[D]) -> None:
        if messages:
            releases = [Nack(each.queue, each.lease_id, (each.id,), "", 0, release=True) for each in messages]
            self._settles.submit(releases, NoReply())

    def _fail(self, error: FilaError) -> None:
        self._error = error
        self._ended = True
        self._opened.set()
        self._tell()

    def _tell(self) -> None:
        if not self._waiting or not (self._messages or self._ended):
            return
        waiting, self._waiting = self._waiting, []
        for reply in waiting:
            if reply.done():
                continue
            if self._error is not None and not self._messages:
                reply.set_exception(self._error)
            else:
                reply.set_result(bool(self._messages))
