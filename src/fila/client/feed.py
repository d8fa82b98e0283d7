"""Reads one Lease stream ahead of its consumer and reconnects it.

It reads messages as they come, so that prefetched ones are known and extended too; `max_in_flight` bounds them. When
the connection is lost, what was read but not taken is given back: by the broker if it noticed the loss, else by a nack.
Handing it out would be a second delivery for nothing, since its lease is most likely gone.
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

#: The metadata of a Lease call by which the broker says how long its leases last.
VISIBILITY_TIMEOUT = "fila-visibility-timeout-ms"

D = TypeVar("D", bound=Delivery[Any])


class Feed(Generic[D]):
    """What one consumer is delivered. Lives on one event loop, but for `take` and `take_all`."""

    def __init__(
        self,
        connection: Connection,
        settler: Settler,
        held: HeldLeases,
        request: service_pb2.LeaseRequest,
        make: tuple[type[D], Settles[Any]],
    ) -> None:
        self._connection = connection
        self._settler = settler
        self._held = held
        self._request = request
        self._make = make
        #: Whether somebody extends the leases of what is delivered.
        self.keeps_leases = True
        self._messages: deque[D] = deque()
        self._waiting: list[Reply] = []
        self._ended = False
        self._opened = asyncio.Event()
        self._timeout_changed = asyncio.Event()
        self._visibility_s = 0.0
        self._call: Call | None = None
        self._task: asyncio.Task[Any] | None = None
        self._error: FilaError | None = None

    @property
    def queue(self) -> str:
        return self._request.queue

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
        """The next message, if it is here already. Callable from any thread, as a deque pops atomically."""
        try:
            return self._messages.popleft()
        except IndexError:
            return None

    def take_all(self) -> list[D] | None:
        """All messages that are here, if any. Callable from any thread."""
        taken: list[D] = []
        try:
            while True:
                taken.append(self._messages.popleft())
        except IndexError:
            return taken or None

    def notify(self, reply: Reply) -> None:
        """`reply` gets True when there are messages, False when the feed was closed, or the FilaError that ended it.

        Several may wait: all of them are told, and those who then find nothing ask again.
        """
        self._waiting = [other for other in self._waiting if not other.done()]
        self._waiting.append(reply)
        self._tell()

    def close(self) -> None:
        """Nothing more is delivered."""
        self._ended = True
        self._messages.clear()
        self._held.forget_owner(self)
        self._opened.set()
        self._tell()
        if self._call is not None:
            self._call.cancel()
        elif self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Receive until closed, or until the broker refuses."""
        self._task = asyncio.current_task()
        backoff = Backoff()
        try:
            while not self._ended:
                try:
                    await self._receive(backoff)
                except RpcError as error:
                    if not was_lost(error):
                        raise self._connection.translated(error) from error
                self._give_back(self.take_all() or [])
                await asyncio.sleep(backoff.next_wait_s())
        except FilaError as error:
            self._fail(error)
        except Exception as error:
            self._fail(InternalError(f"the consumer failed: {error!r}"))
            raise

    async def _receive(self, backoff: Backoff) -> None:
        """Live through one stream. Raises RpcError."""
        call = self._call = self._connection.open_lease(self._request)
        try:
            self._note(await call.initial_metadata())

            def deliver(data: bytes) -> None:
                backoff.reset()
                response = service_pb2.LeaseResponse.FromString(data)
                if response.visibility_timeout_ms:
                    self._note_timeout(response.visibility_timeout_ms)
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
        self._messages.extend(delivered)
        self._tell()

    def _give_back(self, messages: list[D]) -> None:
        if messages:
            nacks = [Nack(each.queue, each.lease_id, (each.id,), "", 0) for each in messages]
            self._settler.submit(nacks, NoReply())

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
