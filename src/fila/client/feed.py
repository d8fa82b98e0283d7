"""Reads one Consume stream ahead of its consumer and reconnects it.

It reads messages as they come, so that prefetched ones are known and extended too; `max_in_flight` bounds them. It
tells the broker how many of them the application was handed, so that no attempt is counted for the others when the
consumer leaves or its process dies:

- A report counts all that was handed so far. It is sent when something was handed, and then no more often than every
  `REPORT_EVERY_S`: reports are no work to speak of, however fast messages are.
- A message that is delivered alone, because it is suspected of killing its consumers, is reported before the
  application has it (`confirm`): if the process dies of it, the broker knows.
- An application that does not ask for messages for long is sent none (`pause`): what it was handed stays its own, and
  the rest goes to others. The stream is opened again when it asks.

When the connection is lost, what was read but not taken is given back: by the broker if it noticed the loss, else by a
release. Handing it out would be a second delivery for nothing, since its lease is most likely gone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from fila.client.backoff import Backoff
from fila.client.connection import Connection, was_lost
from fila.client.errors import FilaError, InternalError
from fila.client.held import HeldLeases
from fila.client.message import Delivery, Settles
from fila.client.reply import NoReply, Reply
from fila.client.settler import Nack, Settler
from fila.v1 import messages_pb2, service_pb2
from fila.wire.call import Call
from fila.wire.status import Metadata, RpcError

#: The metadata of a Consume call by which the broker says how long its leases last.
VISIBILITY_TIMEOUT = "fila-visibility-timeout-ms"

#: The broker learns within this time what the application was handed.
REPORT_EVERY_S = 0.005

D = TypeVar("D", bound=Delivery[Any])


class Feed(Generic[D]):
    """What one consumer is delivered. Lives on one event loop, but for `take`, `take_all` and `isolated`."""

    def __init__(
        self,
        connection: Connection,
        settler: Settler,
        held: HeldLeases,
        request: service_pb2.ConsumeRequest,
        make: tuple[type[D], Settles[Any]],
    ) -> None:
        self._connection = connection
        self._settler = settler
        self._held = held
        self._request = request
        self._make = make
        #: Whether somebody extends the leases of what is delivered.
        self.keeps_leases = True
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
        self._call: Call | None = None
        self._task: asyncio.Task[Any] | None = None
        self._error: FilaError | None = None

    @property
    def queue(self) -> str:
        return self._request.queue

    @property
    def waiting(self) -> int:
        """How many messages are here and not taken."""
        return len(self._messages)

    async def visibility_timeout_s(self) -> float:
        """How long a lease of the queue lasts, once the broker has said it. 0 when nothing is delivered any more."""
        await self._opened.wait()
        return 0.0 if self._ended else self._visibility_s

    async def stays_for(self, seconds: float) -> bool:
        """Wait for so long. Returns False at once when the broker says that leases last for another time."""
        self._timeout_changed.clear()
        try:
            await asyncio.wait_for(self._timeout_changed.wait(), seconds)
        except TimeoutError:
            return True
        return False

    def take(self) -> D | None:
        """The next message, if it is here already. Callable from any thread, as a deque pops atomically.

        Whoever takes the one that is `isolated` awaits `confirm` before the application has it.
        """
        self._asked = True
        try:
            message = self._messages.popleft()
        except IndexError:
            return None
        if not self._report_due:
            self._have_reported()
        return message

    def take_all(self) -> list[D] | None:
        """All messages that are here, if any. Callable from any thread."""
        self._asked = True
        taken: list[D] = []
        try:
            while True:
                taken.append(self._messages.popleft())
        except IndexError:
            if not taken:
                return None
        if not self._report_due:
            self._have_reported()
        return taken

    def notify(self, reply: Reply) -> None:
        """`reply` gets True when there are messages, False when the feed was closed, or the FilaError that ended it.

        Several may wait: all of them are told, and those who then find nothing ask again.
        """
        self._asked = True
        self._paused = False
        self._resumed.set()
        self._waiting = [other for other in self._waiting if not other.done()]
        self._waiting.append(reply)
        self._tell()

    def was_asked(self) -> bool:
        """Whether somebody has asked for messages since the last time, or waits for one."""
        asked, self._asked = self._asked, False
        return asked or any(not reply.done() for reply in self._waiting)

    def confirm(self, message: D, reply: Reply) -> None:
        """Report the message that is delivered alone, and tell `reply` when that is written: True, or False when its
        stream has ended, and with it the lease.
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
        """Have nothing delivered until somebody asks. What was not handed goes back; what was stays."""
        call = self._call
        if self._paused or call is None or not call.has_room:
            return
        self._paused = True
        self._resumed.clear()
        self._report()
        for message in self._drop():
            self._held.forget(message.queue, message.lease_id, (message.id,))
        call.end()

    def close(self) -> None:
        """Nothing more is delivered."""
        self._ended = True
        self._report()
        self._drop()
        self._held.forget_owner(self)
        self._opened.set()
        self._resumed.set()
        self._tell()
        if self._call is not None:
            self._call.cancel()
        elif self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Receive until closed, or until the broker refuses."""
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
                self._give_back(self._drop())
                if self._paused:
                    await self._resumed.wait()
                else:
                    await asyncio.sleep(backoff.next_wait_s())
        except FilaError as error:
            self._fail(error)
        except Exception as error:
            self._fail(InternalError(f"the consumer failed: {error!r}"))
            raise

    async def _receive(self, backoff: Backoff) -> None:
        """Live through one stream. Raises RpcError."""
        call = self._call = self._connection.open_consume()
        self._received = self._reported = 0
        try:
            await call.write(self._request)
            self._note(await call.initial_metadata())

            def deliver(data: bytes) -> None:
                backoff.reset()
                response = service_pb2.LeaseResponse.FromString(data)
                if response.visibility_timeout_ms:
                    self._note_timeout(response.visibility_timeout_ms)
                if not call.local_closed:  # else it was on its way, and goes back
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
        kind, client = self._make
        queue = self._request.queue
        delivered = [kind(client, queue, message) for message in messages]
        if self.keeps_leases:
            leases: dict[str, list[str]] = {}
            for message in delivered:
                leases.setdefault(message.lease_id, []).append(message.id)
            for lease_id, message_ids in leases.items():
                self._held.add(self, queue, lease_id, message_ids)
        self._received += len(delivered)
        self.isolated = delivered[0] if len(delivered) == 1 and delivered[0].isolation else None
        self._messages.extend(delivered)
        self._tell()

    def _have_reported(self) -> None:
        """Report some time soon. Callable from any thread; once it was called, not again before that is done."""
        self._report_due = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._report_in_time)

    def _report_in_time(self) -> None:
        assert self._loop is not None
        rest_s = self._reported_at + REPORT_EVERY_S - self._loop.time()
        if rest_s > 0:
            self._loop.call_later(rest_s, self._report)
        else:
            self._report()

    def _report(self) -> None:
        """Tell the broker what the application was handed."""
        self._report_due = False
        handed = self._received - len(self._messages) - (self.isolated is not None and not self._messages)
        call = self._call
        if handed > self._reported and call is not None and call.has_room:
            assert self._loop is not None
            self._reported, self._reported_at = handed, self._loop.time()
            call.send(service_pb2.ConsumeRequest(handed=handed))

    def _drop(self) -> list[D]:
        """Take away what nobody was handed."""
        dropped: list[D] = []
        while self._messages:
            try:
                dropped.append(self._messages.pop())
            except IndexError:  # somebody has taken the last one
                break
        self._received -= len(dropped)
        self.isolated = None
        return dropped

    def _give_back(self, messages: list[D]) -> None:
        if messages:
            releases = [Nack(each.queue, each.lease_id, (each.id,), "", 0, release=True) for each in messages]
            self._settler.submit(releases, NoReply())

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
