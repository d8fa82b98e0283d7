"""Everything that a client keeps, put together. Both faces of the SDK stand on it."""

import asyncio
from typing import Any, TypeVar
from weakref import WeakSet

from fila.client.admin import Admin
from fila.client.browse import Browser
from fila.client.connection import Connection
from fila.client.errors import ClientClosedError, InvalidArgumentError
from fila.client.feed import Feed
from fila.client.finish import finished
from fila.client.groups import Calls
from fila.client.held import HeldLeases
from fila.client.journal import JournalFeed
from fila.client.keeper import keep_leases
from fila.client.message import Delivery, Settles
from fila.client.producer import Producer
from fila.client.settler import Settler
from fila.v1 import admin_pb2, service_pb2

D = TypeVar("D", bound=Delivery[Any])


class Session:
    """One connection to a broker with its streams. Lives on one event loop, where it must be made."""

    def __init__(self, addr: str, timeout_s: float) -> None:
        self._connection = Connection(addr, timeout_s)
        self.held = HeldLeases()
        self.admin = Admin(self._connection)
        self.browser = Browser(self._connection)
        self.calls = Calls(self._connection)
        self.producer = Producer(self._connection)
        self.settler = Settler(self._connection, self.held)
        self._feeds: dict[Feed[Any], list[asyncio.Task[None]]] = {}
        self._journals: WeakSet[JournalFeed] = WeakSet()
        self._closing: asyncio.Task[None] | None = None

    @property
    def _closed(self) -> bool:
        return self._closing is not None

    def journal(self, request: admin_pb2.ReadJournalRequest) -> JournalFeed:
        """What the journal holds. Raises ClientClosedError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        feed = JournalFeed(self._connection, request)
        self._journals.add(feed)
        return feed

    def feed(self, queue: str, max_in_flight: int, kind: type[D], client: Settles[Any]) -> Feed[D]:
        """What `client` will be delivered as messages of this kind. Raises InvalidArgumentError, ClientClosedError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            request = service_pb2.ConsumeRequest(queue=queue, max_in_flight=max_in_flight)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(str(error)) from error
        return Feed(self._connection, self.settler, self.held, request, (kind, client))

    def start(self, feed: Feed[Any], auto_extend: bool) -> None:
        """Begin to receive. On a closed session the feed is over at once."""
        if self._closed:
            feed.close()
            return
        feed.keeps_leases = auto_extend
        keeper = asyncio.create_task(keep_leases(feed, self.held, self.settler))
        self._feeds[feed] = [asyncio.create_task(feed.run()), keeper]

    def stop(self, feed: Feed[Any]) -> list[asyncio.Task[None]]:
        """End the stream: the broker returns what is unsettled at once. Returns what is still ending."""
        feed.close()
        tasks = self._feeds.pop(feed, [])
        for keeper in tasks[1:]:
            keeper.cancel()
        return tasks

    async def stopped(self, feed: Feed[Any]) -> None:
        await finished(self.stop(feed))

    async def close(self) -> None:
        """What is under way fails with ClientClosedError, feeds end. Who is cancelled here stops nothing of it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        ending = [task for feed in list(self._feeds) for task in self.stop(feed)]
        await finished(ending)
        for journal in list(self._journals):
            journal.close()
        await self.producer.close()
        await self.settler.close()
        await self._connection.close()
