"""The SDK for asyncio."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from fila.client.admin import AsyncAdmin
from fila.client.admin_service import AdminService
from fila.client.auth import Auth
from fila.client.bulk import Bulk
from fila.client.consume_stream import ConsumeStream
from fila.client.consumer import AsyncConsumer
from fila.client.encoding import Chunk, OutgoingMessage, encode
from fila.client.endpoint import endpoint_of
from fila.client.errors import ClientClosedError, FilaError
from fila.client.groups import AsyncGroup
from fila.client.journal import AsyncJournalReader, JournalBatch, JournalEntry, JournalOptions, journal_request
from fila.client.message import AsyncConsumeMessage, Delivery, ReadMessage
from fila.client.read_queue import ReadOptions, read_queue
from fila.client.session import Session
from fila.client.settlements import (
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
from fila.client.tls import TLS
from fila.client.transactions import AsyncTransaction


class AsyncClient(AsyncAdmin):
    """A connection to a Fila broker, for use on one event loop.

        async with AsyncClient("localhost:5555") as client:
            await client.enqueue("orders", {"tenant": "acme"}, b"...")
            async for message in client.consume("orders"):
                await message.ack()

    Every method raises FilaError. `addr` is an address, or several of one cluster: "a:5555,b:5555" or a list; the first
    that answers is used, and the client follows when a member names another one. `timeout` is how many seconds a call
    may take, reconnects included. The API key is
    `api_key`, the content of `api_key_file`, $FILA_API_KEY, or the content of $FILA_API_KEY_FILE. `tls` is True for TLS
    with the CAs of the system, or a `TLS`; None takes it from the environment ($FILA_TLS, $FILA_TLS_CA, ...).
    """

    def __init__(
        self,
        addr: str | Sequence[str] = "localhost:5555",
        *,
        timeout: float = 5.0,
        api_key: str | None = None,
        api_key_file: str | Path | None = None,
        tls: TLS | bool | None = None,
    ) -> None:
        self._endpoint = endpoint_of(addr, api_key, api_key_file, tls)
        self._timeout = timeout
        self._opened: Session | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Pending calls raise ClientClosedError, consumers end."""
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
        """Enqueue one message, and return its id once the message is durable. Concurrent calls travel together."""
        chunk = encode(queue, OutgoingMessage(payload, headers, delay_ms, priority, dedup_key))
        [result] = await self._send(chunk)
        if isinstance(result, FilaError):
            raise result
        return result

    async def enqueue_many(self, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> list[str]:
        """Enqueue messages in order, in batches, and return their ids once all are durable.

        Raises EnqueueManyError, with a result for each message, if the broker did not accept some.
        """
        bulk = Bulk(queue, messages)
        in_flight: deque[tuple[Chunk, asyncio.Future[list[str | FilaError]]]] = deque()

        async def oldest() -> None:
            chunk, sent = in_flight.popleft()
            try:
                bulk.add(chunk, await sent)
            except FilaError as error:
                bulk.add(chunk, error)

        try:
            for chunk in bulk.chunks():
                in_flight.append((chunk, self._send(chunk)))
                await asyncio.sleep(0)  # encoding took a while: let the stream write
                if len(in_flight) >= bulk.window:
                    await oldest()
            while in_flight:
                await oldest()
        finally:
            for _, sent in in_flight:
                sent.cancel()
        return bulk.ids()

    def consume(
        self, queue: str, *, max_in_flight: int = 100, auto_extend: bool = True
    ) -> AsyncConsumer[AsyncConsumeMessage]:
        """Messages as they are delivered. At most `max_in_flight` are prefetched or unsettled at any time.

        - The consumer ends with `async with`, `aclose`, or when nothing refers to it any more. The broker then takes
          unsettled messages back, and counts an attempt for those that were handed out.
        - While it is open, the leases of all in-flight messages are extended, unless `auto_extend` is False.
        - Prefetched messages go back to the queue when the program asks for none during a visibility timeout.
        """
        stream = self._consume_stream(queue, max_in_flight)
        return AsyncConsumer(self._session(), stream, stream.take, auto_extend=auto_extend)

    def consume_batches(
        self, queue: str, *, max_in_flight: int = 1000, auto_extend: bool = True
    ) -> AsyncConsumer[list[AsyncConsumeMessage]]:
        """As `consume`, in lists of all prefetched messages. With `ack_many` this is the fastest way to consume."""
        stream = self._consume_stream(queue, max_in_flight)
        return AsyncConsumer(self._session(), stream, stream.take_all, auto_extend=auto_extend)

    async def ack(self, queue: str, message_id: str, lease_id: str | None = None) -> None:
        """Remove a delivered message for good. Raises MessageNotFoundError when the lease has ended."""
        check_one(await self._settle([ack(queue, message_id, lease_id)]))

    async def nack(
        self, queue: str, message_id: str, error: str = "", *, delay_ms: int = 0, lease_id: str | None = None
    ) -> None:
        """Return a delivered message as failed: it is retried after `delay_ms`. Raises MessageNotFoundError."""
        check_one(await self._settle([nack(queue, message_id, error, delay_ms, lease_id)]))

    async def release(self, queue: str, message_id: str, *, delay_ms: int = 0, lease_id: str | None = None) -> None:
        """Return a delivered message without counting an attempt.

        Raises MessageNotFoundError.
        """
        check_one(await self._settle([release(queue, message_id, delay_ms, lease_id)]))

    async def reject(self, queue: str, message_id: str, error: str = "", *, lease_id: str | None = None) -> None:
        """Move a delivered message to the dead-letter queue, regardless of the queue's settings and script.

        Raises MessageNotFoundError.
        """
        check_one(await self._settle([reject(queue, message_id, error, lease_id)]))

    async def extend(self, queue: str, message_id: str, lease_id: str | None = None, extend_ms: int = 0) -> None:
        """Extend a lease to `extend_ms` from now; 0 means the visibility timeout. Raises MessageNotFoundError."""
        check_one(await self._settle([extend(queue, message_id, lease_id, extend_ms)]))

    async def ack_many(self, messages: Iterable[Delivery[Any]]) -> None:
        """Ack messages in few requests. Raises AckManyError if some were not acked."""
        settled = [self._settle(acks) for acks in ack_groups(messages)]
        check_all(await asyncio.gather(*settled, return_exceptions=True))

    def group(self, queue: str, group: str, *, epoch: int = 0) -> AsyncGroup:
        """A reader group: reads a queue in numbered claims, which can be read again until they are acked."""
        return AsyncGroup(lambda: self._session().calls, queue, group, epoch)

    def read_queue(self, queue: str, **options: Unpack[ReadOptions]) -> AsyncIterator[list[ReadMessage]]:
        """The messages of a queue in lists, oldest first. They are not leased and stay in the queue.

        Messages that are delivered or moved meanwhile may be missing. Raises QueueNotFoundError.
        """
        return read_queue(self._session().calls, queue, options)

    def transaction(self, producer: str, number: int) -> AsyncTransaction:
        """A transaction: messages are staged, and enqueued exactly once when it is committed."""
        return AsyncTransaction(lambda: self._session().calls, producer, number)

    def read_journal(self, from_seq: int = 0, **options: Unpack[JournalOptions]) -> AsyncJournalReader[JournalEntry]:
        """The entries of the journal from `from_seq` on (0: the oldest). `JournalOptions` lists the options.

        If the broker no longer has entry `from_seq`, the first entry has a larger number.
        """
        stream = self._session().journal_stream(journal_request(from_seq, options))
        return AsyncJournalReader(stream, JournalBatch.entries)

    def read_journal_batches(
        self, from_seq: int = 0, **options: Unpack[JournalOptions]
    ) -> AsyncJournalReader[JournalBatch]:
        """As `read_journal`, in batches of columns. The first batch is empty and tells the range of the journal."""
        stream = self._session().journal_stream(journal_request(from_seq, options))
        return AsyncJournalReader(stream, lambda batch: [batch])

    @property
    def auth(self) -> Auth:
        """API keys, principals and roles."""
        return self._session().auth

    def _admin(self) -> AdminService:
        return self._session().admin.service

    def _session(self) -> Session:
        if self._closed:
            raise ClientClosedError("the client is closed")
        if self._opened is None:
            addresses, key, tls = self._endpoint
            self._opened = Session(addresses, self._timeout, key, tls)
        return self._opened

    def _send(self, chunk: Chunk) -> asyncio.Future[list[str | FilaError]]:
        sent: asyncio.Future[list[str | FilaError]] = asyncio.get_running_loop().create_future()
        self._session().producer.submit(chunk, sent)
        return sent

    def _settle(self, settlements: Sequence[Settlement]) -> asyncio.Future[Failures]:
        settled: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()
        self._session().settles.submit(settlements, settled)
        return settled

    def _consume_stream(self, queue: str, max_in_flight: int) -> ConsumeStream[AsyncConsumeMessage]:
        return self._session().consume_stream(queue, max_in_flight, AsyncConsumeMessage, self)
