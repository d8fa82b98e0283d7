"""The SDK for asyncio."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

from fila.client.admin import (
    Explanation,
    HookTrial,
    QueueConfig,
    QueueInfo,
    QueueSettings,
    QueueStats,
    hook_trial,
)
from fila.client.browse import (
    MessageFilter,
    PeekPage,
    Progress,
    Sweep,
    aswept,
    peek_request,
    purge_request,
    redrive_request,
)
from fila.client.bulk import Bulk
from fila.client.encoding import Chunk, OutgoingMessage, encode
from fila.client.errors import ClientClosedError, FilaError
from fila.client.feed import Feed
from fila.client.groups import AsyncGroup, ReadOptions, read_queue
from fila.client.journal import AsyncJournalReader, JournalBatch, JournalEntry, journal_request
from fila.client.message import AsyncConsumeMessage, Delivery, ReadMessage
from fila.client.session import Session
from fila.client.settler import (
    Failures,
    Settlement,
    ack,
    ack_groups,
    check_all,
    check_one,
    extend,
    nack,
    reject,
    release,
)
from fila.client.transactions import AsyncTransaction

T = TypeVar("T")


class AsyncClient:
    """A connection to a Fila broker, for use on one event loop.

        async with AsyncClient("localhost:5555") as client:
            await client.enqueue("orders", {"tenant": "acme"}, b"...")
            async for message in client.consume("orders"):
                await message.ack()

    Every method raises FilaError. `timeout` is how many seconds a call may take, reconnecting included.
    """

    def __init__(self, addr: str = "localhost:5555", *, timeout: float = 5.0) -> None:
        self._addr = addr
        self._timeout = timeout
        self._opened: Session | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls under way raise ClientClosedError, consumers end."""
        self._closed = True
        if self._opened is not None:
            await self._opened.close()

    async def enqueue(
        self,
        queue: str,
        headers: Mapping[str, str] | None = None,
        payload: bytes = b"",
        *,
        delay_ms: int = 0,
        priority: int | None = None,
        dedup_key: str | None = None,
    ) -> str:
        """Enqueue one message and return its id once it is durable. Concurrent calls travel together."""
        chunk = encode(queue, OutgoingMessage(payload, headers, delay_ms, priority, dedup_key))
        [result] = await self._send(chunk)
        if isinstance(result, FilaError):
            raise result
        return result

    async def enqueue_many(self, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> list[str]:
        """Enqueue messages in order, in batches, and return their ids once all are durable.

        Raises EnqueueManyError, with a result for each message, if some were not accepted.
        """
        bulk = Bulk(queue, messages)
        under_way: deque[tuple[Chunk, asyncio.Future[list[str | FilaError]]]] = deque()

        async def oldest() -> None:
            chunk, sent = under_way.popleft()
            try:
                bulk.add(chunk, await sent)
            except FilaError as error:
                bulk.add(chunk, error)

        try:
            for chunk in bulk.chunks():
                under_way.append((chunk, self._send(chunk)))
                await asyncio.sleep(0)  # encoding is long enough: let the stream write
                if len(under_way) >= bulk.window:
                    await oldest()
            while under_way:
                await oldest()
        finally:
            for _, sent in under_way:
                sent.cancel()
        return bulk.ids()

    def consume(
        self, queue: str, *, max_in_flight: int = 100, auto_extend: bool = True
    ) -> "AsyncConsumer[AsyncConsumeMessage]":
        """Messages as they are delivered, never more than `max_in_flight` unsettled ones.

        Ends with `async with`, `aclose`, or when nobody refers to it any more: then the broker takes back what is
        unsettled, and counts an attempt for what was handed out. While it is open, the leases of all unsettled messages
        are extended, unless `auto_extend` is off. What was not handed out goes back when nobody asks for more within a
        visibility timeout.
        """
        feed = self._feed(queue, max_in_flight)
        return AsyncConsumer(self._session(), feed, feed.take, auto_extend=auto_extend)

    def consume_batches(
        self, queue: str, *, max_in_flight: int = 1000, auto_extend: bool = True
    ) -> "AsyncConsumer[list[AsyncConsumeMessage]]":
        """Like `consume`, but lists of all messages that are here. With `ack_many` the fast way to consume."""
        feed = self._feed(queue, max_in_flight)
        return AsyncConsumer(self._session(), feed, feed.take_all, auto_extend=auto_extend)

    async def ack(self, queue: str, message_id: str, lease_id: str | None = None) -> None:
        """Remove a delivered message for good. Raises MessageNotFoundError when it is not held under that lease."""
        check_one(await self._settle([ack(queue, message_id, lease_id)]))

    async def nack(
        self, queue: str, message_id: str, error: str = "", *, delay_ms: int = 0, lease_id: str | None = None
    ) -> None:
        """Give a delivered message back, to be delivered again after `delay_ms`. Raises MessageNotFoundError."""
        check_one(await self._settle([nack(queue, message_id, error, delay_ms, lease_id)]))

    async def release(self, queue: str, message_id: str, *, delay_ms: int = 0, lease_id: str | None = None) -> None:
        """Give a delivered message back as if it had never been delivered: no attempt is counted.

        Raises MessageNotFoundError.
        """
        check_one(await self._settle([release(queue, message_id, delay_ms, lease_id)]))

    async def reject(self, queue: str, message_id: str, error: str = "", *, lease_id: str | None = None) -> None:
        """Move a delivered message to the dead-letter queue, whatever the queue's settings and script would say.

        Raises MessageNotFoundError.
        """
        check_one(await self._settle([reject(queue, message_id, error, lease_id)]))

    async def extend(self, queue: str, message_id: str, lease_id: str | None = None, extend_ms: int = 0) -> None:
        """Let a lease end `extend_ms` from now; 0 means the queue's visibility timeout. Raises MessageNotFoundError."""
        check_one(await self._settle([extend(queue, message_id, lease_id, extend_ms)]))

    async def ack_many(self, messages: Iterable[Delivery[Any]]) -> None:
        """Ack messages in as few requests as possible. Raises AckManyError if some were not acked."""
        settled = [self._settle(acks) for acks in ack_groups(messages)]
        check_all(await asyncio.gather(*settled, return_exceptions=True))

    def group(self, queue: str, group: str, *, epoch: int = 0) -> AsyncGroup:
        """Reads a queue in numbered claims, which can be read again until they are acked."""
        return AsyncGroup(lambda: self._session().calls, queue, group, epoch)

    def read_queue(self, queue: str, **options: Unpack[ReadOptions]) -> AsyncIterator[list[ReadMessage]]:
        """A look at the messages of a queue, oldest first, without taking them.

        Whole lists of them, without a lease. What moves meanwhile may be left out. Raises QueueNotFoundError.
        """
        return read_queue(self._session().calls, queue, options)

    def transaction(self, producer: str, number: int) -> AsyncTransaction:
        """Messages that are staged, and enqueued once when the transaction is committed."""
        return AsyncTransaction(lambda: self._session().calls, producer, number)

    async def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> str:
        """Create a queue, with its dead-letter queue, and return its id. Raises QueueAlreadyExistsError."""
        return await self._session().admin.create_queue(name, settings)

    async def ensure_queue(self, name: str, **settings: Unpack[QueueSettings]) -> bool:
        """Create a queue unless there is one of that name, which stays as it is. Returns whether it was created."""
        return await self._session().admin.ensure_queue(name, settings)

    async def update_queue(self, name: str, **settings: Unpack[QueueSettings]) -> QueueConfig:
        """Change settings of a live queue; they hold for what happens from then on. Raises QueueNotFoundError."""
        return await self._session().admin.update_queue(name, settings)

    async def delete_queue(self, name: str, *, force: bool = False) -> int:
        """Delete a queue with its dead-letter queue and return how many messages went with them.

        Raises QueueNotFoundError, or FailedPreconditionError when there are dead letters, unless `force` is set.
        """
        return await self._session().admin.delete_queue(name, force)

    async def pause_queue(self, name: str) -> None:
        """Deliver nothing of a queue until it is resumed, also over restarts. Raises QueueNotFoundError."""
        await self._session().admin.pause_queue(name)

    async def resume_queue(self, name: str) -> None:
        """Deliver again. Raises QueueNotFoundError."""
        await self._session().admin.resume_queue(name)

    async def peek(
        self,
        queue: str,
        *,
        limit: int = 100,
        newest: bool = False,
        payload_bytes: int = 0,
        cursor: str = "",
        **chosen: Unpack[MessageFilter],
    ) -> PeekPage:
        """Look at messages without taking them, oldest first, or newest. Raises QueueNotFoundError.

        As much of each payload comes along as `payload_bytes` says. Hand the cursor of a page over to go on behind it.
        """
        request = peek_request(queue, newest, payload_bytes, cursor, chosen)
        return await self._session().browser.peek(request, limit)

    async def redrive(
        self,
        dlq: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Send dead letters back to the queue that they came from, oldest first, and return how many. Leased ones stay.

        At most `count`, and no more than `rate` a second. With `dry_run` they are only counted. Raises
        QueueNotFoundError, or InvalidArgumentError when it is no dead-letter queue.
        """
        request = redrive_request(dlq, chosen)
        return await aswept(self._session().browser.redrive(request, Sweep(count, dry_run, rate)), on_progress)

    async def purge(
        self,
        queue: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        any_queue: bool = False,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Remove messages for good, oldest first, and return how many. Leased ones stay.

        Options as for `redrive`. Raises QueueNotFoundError, or InvalidArgumentError when it is no dead-letter queue,
        unless `any_queue` is set.
        """
        request = purge_request(queue, any_queue, chosen)
        return await aswept(self._session().browser.purge(request, Sweep(count, dry_run, rate)), on_progress)

    async def set_config(self, key: str, value: str) -> None:
        """Set an entry of the runtime configuration. Raises InvalidArgumentError."""
        await self._session().admin.set_config(key, value)

    async def get_config(self, key: str) -> str | None:
        """An entry of the runtime configuration, if it is set."""
        return await self._session().admin.get_config(key)

    async def list_config(self, prefix: str = "") -> dict[str, str]:
        """The entries of the runtime configuration whose keys begin with `prefix`."""
        return await self._session().admin.list_config(prefix)

    async def delete_config(self, key: str) -> bool:
        """Remove an entry of the runtime configuration. Returns whether there was one."""
        return await self._session().admin.delete_config(key)

    async def explain(self, queue: str, message_id: str = "", *, fairness_key: str = "") -> Explanation:
        """Why a message, the first one of a fairness key, or the next one of all is still waiting.

        Raises QueueNotFoundError, or MessageNotFoundError when there is no such message.
        """
        return await self._session().admin.explain(queue, message_id, fairness_key)

    async def try_hook(
        self,
        queue: str,
        script: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        payload_size: int = 0,
        attempts: int = 1,
        error: str = "",
        next_messages: int = 0,
    ) -> list[HookTrial]:
        """What a script, or the queue's own, would decide about a message, or about so many that come next.

        Decides nothing. Raises InvalidArgumentError, with line and reason, for a script that cannot be used.
        """
        request = hook_trial(queue, script, headers, payload_size, attempts, error, next_messages)
        return await self._session().admin.try_hook(request)

    def read_journal(
        self,
        from_seq: int = 0,
        *,
        last: int = 0,
        max_entries: int = 0,
        queue: str = "",
        follow: bool = False,
    ) -> AsyncJournalReader[JournalEntry]:
        """What happened, entry by entry, from `from_seq` on (0: the oldest), or the last so many.

        `queue` leaves out what is not of that queue. With `follow` it goes on with what happens from now on, over
        restarts of the broker, until it is closed. Entries before the oldest that the broker has kept are left out:
        then the first number is larger than `from_seq`.
        """
        feed = self._session().journal(journal_request(from_seq, last, max_entries, queue, follow))
        return AsyncJournalReader(feed, JournalBatch.entries)

    def read_journal_batches(
        self,
        from_seq: int = 0,
        *,
        last: int = 0,
        max_entries: int = 0,
        queue: str = "",
        follow: bool = False,
    ) -> AsyncJournalReader[JournalBatch]:
        """Like `read_journal`, but in pieces, in columns. The first one is empty and says what there is."""
        feed = self._session().journal(journal_request(from_seq, last, max_entries, queue, follow))
        return AsyncJournalReader(feed, lambda batch: [batch])

    async def list_queues(self) -> list[QueueInfo]:
        """All queues, in the order of their names."""
        return await self._session().admin.list_queues()

    async def queue_stats(
        self, name: str, max_keys: int = 20, *, sort: str = "pending", offset: int = 0, key_prefix: str = ""
    ) -> QueueStats:
        """A queue in detail, with a page of its fairness keys. Raises QueueNotFoundError.

        `sort` is "pending", "delivered", "weight" or "oldest", each with the largest first, or "name".
        """
        return await self._session().admin.queue_stats(name, max_keys, sort, offset, key_prefix)

    def _session(self) -> Session:
        if self._closed:
            raise ClientClosedError("the client is closed")
        if self._opened is None:
            self._opened = Session(self._addr, self._timeout)
        return self._opened

    def _send(self, chunk: Chunk) -> asyncio.Future[list[str | FilaError]]:
        sent: asyncio.Future[list[str | FilaError]] = asyncio.get_running_loop().create_future()
        self._session().producer.submit(chunk, sent)
        return sent

    def _settle(self, settlements: Sequence[Settlement]) -> asyncio.Future[Failures]:
        settled: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()
        self._session().settler.submit(settlements, settled)
        return settled

    def _feed(self, queue: str, max_in_flight: int) -> Feed[AsyncConsumeMessage]:
        return self._session().feed(queue, max_in_flight, AsyncConsumeMessage, self)


class AsyncConsumer(Generic[T]):
    """What a queue delivers, as an async iterator. Ends with `aclose`, or when nobody refers to it any more."""

    def __init__(self, session: Session, feed: Feed[Any], take: Callable[[], T | None], *, auto_extend: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._feed = feed
        self._take = take
        session.start(feed, auto_extend)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while True:
            if (taken := self._take()) is None:
                arrived: asyncio.Future[bool] = self._loop.create_future()
                self._feed.notify(arrived)
                if not await arrived:
                    raise StopAsyncIteration
                continue
            isolated = self._feed.isolated
            if isolated is None or not (taken is isolated or taken == [isolated]):
                return taken
            written: asyncio.Future[bool] = self._loop.create_future()
            self._feed.confirm(isolated, written)
            if await written:
                return taken

    async def aclose(self) -> None:
        """End the stream: the broker returns what is unsettled at once, and counts an attempt for what was handed."""
        await self._session.stopped(self._feed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._session.stop, self._feed)
