"""One client's connection with all its streams. `Client` and `AsyncClient` are thin layers over it."""

import asyncio
from typing import Any, TypeVar
from weakref import WeakSet

from fila.client.admin import Admin
from fila.client.admin_service import AdminService
from fila.client.api_key import ApiKey
from fila.client.auth import Auth
from fila.client.connection import Connection
from fila.client.consume_stream import ConsumeStream
from fila.client.errors import ClientClosedError, InvalidArgumentError
from fila.client.finish import finished
from fila.client.in_flight import InFlight
from fila.client.journal import JournalStream
from fila.client.lease_extension import extend_leases
from fila.client.message import Delivery, Settles
from fila.client.producer import Producer
from fila.client.retrying_calls import RetryingCalls
from fila.client.settle_stream import SettleStream
from fila.v1 import admin_pb2, service_pb2
from fila.wire.addresses import Addresses
from fila.wire.tls_context import ClientTls

D = TypeVar("D", bound=Delivery[Any])


class Session:
    """A connection to a broker with its streams. Belongs to the event loop on which it is made."""

    def __init__(
        self, addresses: Addresses, timeout_s: float, key: ApiKey | None = None, tls: ClientTls | None = None
    ) -> None:
        self._connection = Connection(addresses, timeout_s, key, tls)
        self.in_flight = InFlight()
        self.admin = Admin(AdminService(self._connection))
        self.auth = Auth(self._connection)
        self.calls = RetryingCalls(self._connection)
        self.producer = Producer(self._connection)
        self.settles = SettleStream(self._connection, self.in_flight)
        self._consumers: dict[ConsumeStream[Any], list[asyncio.Task[None]]] = {}
        self._journals: WeakSet[JournalStream] = WeakSet()
        self._closing: asyncio.Task[None] | None = None

    @property
    def _closed(self) -> bool:
        return self._closing is not None

    def journal_stream(self, request: admin_pb2.ReadJournalRequest) -> JournalStream:
        """Raises ClientClosedError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        stream = JournalStream(self._connection, request)
        self._journals.add(stream)
        return stream

    def consume_stream(
        self, queue: str, max_in_flight: int, message_type: type[D], client: Settles[Any]
    ) -> ConsumeStream[D]:
        """The messages of a queue as `message_type`, which `client` settles. To be started with `start`.

        Raises InvalidArgumentError or ClientClosedError.
        """
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            request = service_pb2.ConsumeRequest(queue=queue, max_in_flight=max_in_flight or None)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(str(error)) from error
        return ConsumeStream(self._connection, self.settles, self.in_flight, request, message_type, client)

    def start(self, stream: ConsumeStream[Any], auto_extend: bool) -> None:
        """Begin to receive. On a closed session the stream ends at once."""
        if self._closed:
            stream.close()
            return
        stream.auto_extend = auto_extend
        extender = asyncio.create_task(extend_leases(stream, self.in_flight, self.settles))
        self._consumers[stream] = [asyncio.create_task(stream.run()), extender]

    def stop(self, stream: ConsumeStream[Any]) -> list[asyncio.Task[None]]:
        """End a stream: the broker returns what is unsettled at once. Returns the tasks that are still ending."""
        stream.close()
        tasks = self._consumers.pop(stream, [])
        for extender in tasks[1:]:
            extender.cancel()
        return tasks

    async def stopped(self, stream: ConsumeStream[Any]) -> None:
        """End a stream and wait for its end."""
        await finished(self.stop(stream))

    async def stopped_gently(self, stream: ConsumeStream[Any]) -> None:
        """End a stream and wait for its end. The leases of what the application holds are extended until it settles."""
        stream.stop()
        if (tasks := self._consumers.get(stream)) is not None:
            await finished(tasks[:1])
            tasks[1].add_done_callback(lambda _: self._consumers.pop(stream, None))

    async def close(self) -> None:
        """Pending requests fail with ClientClosedError, consumers end. Cancelling the caller does not stop it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        ending = [task for stream in list(self._consumers) for task in self.stop(stream)]
        await finished(ending)
        for journal in list(self._journals):
            journal.close()
        await self.producer.close()
        await self.settles.close()
        await self._connection.close()
