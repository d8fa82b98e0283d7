"""The SDK for programs that block: a session on an event loop in a background thread.

Single messages are sent and settled without the loop, by the calling thread (`blocking_exchange`).
"""

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self, Unpack
from uuid import uuid4

from fila.client.admin import Admin
from fila.client.auth import BlockingAuth
from fila.client.blocking_admin import BlockingAdmin
from fila.client.blocking_exchange import BlockingExchange
from fila.client.bulk import Bulk
from fila.client.connection import ENQUEUE_STREAM, SETTLE
from fila.client.consumer import Consumer
from fila.client.encoding import Chunk, OutgoingMessage, encode
from fila.client.endpoint import Endpoint, endpoint_of
from fila.client.errors import FilaError
from fila.client.groups import AsyncGroup, Group
from fila.client.journal import JournalBatch, JournalEntry, JournalOptions, JournalReader, journal_request
from fila.client.loop_thread import blocking_iterator, shared_loop_thread
from fila.client.message import ConsumeMessage, Delivery, ReadMessage
from fila.client.producer import Enqueue, EnqueueCodec
from fila.client.read_queue import Packed, ReadOptions, read_queue, read_queue_packed
from fila.client.reply import ThreadReply
from fila.client.session import Session
from fila.client.settle_stream import Settle, SettleCodec, forget_settled
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
from fila.client.transactions import AsyncTransaction, Transaction


class Client(BlockingAdmin):
    """A connection to a Fila broker. Threads may share it; their concurrent calls travel together.

        with Client("localhost:5555") as client:
            client.enqueue("orders", {"tenant": "acme"}, b"...")
            for message in client.consume("orders"):
                message.ack()

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
        endpoint = endpoint_of(addr, api_key, api_key_file, tls)
        addresses, key, secure = endpoint
        self._timeout_s = timeout
        self._thread = shared_loop_thread()
        codec = EnqueueCodec(uuid4().hex)
        self._enqueues = BlockingExchange(addresses, ENQUEUE_STREAM, codec, timeout, key, secure)
        self._settles = BlockingExchange(addresses, SETTLE, SettleCodec(), timeout, key, secure)
        self._close_exchanges = weakref.finalize(self, _close_all, (self._enqueues, self._settles))
        self._session = self._thread.run(_open(endpoint, timeout))
        self._close_session = weakref.finalize(self, self._thread.spawn, self._session.close)
        # An exit handler of the program may still use the client.
        self._close_exchanges.atexit = self._close_session.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Pending calls of other threads raise ClientClosedError, consumers end."""
        self._close_exchanges()
        self._thread.finish(self._session.close)

    def enqueue(
        self,
        queue: str,
        headers: Mapping[str, str] | None = None,
        payload: bytes = b"",
        *,
        delay_ms: int = 0,
        priority: int | None = None,
        dedup_key: str | None = None,
    ) -> str:
        """Enqueue one message, and return its id once the message is durable."""
        chunk = encode(queue, OutgoingMessage(payload, headers, delay_ms, priority, dedup_key))
        [result] = self._send_one(chunk).result()
        if isinstance(result, FilaError):
            raise result
        return result

    def enqueue_many(self, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> list[str]:
        """Enqueue messages in order, in batches, and return their ids once all are durable.

        Raises EnqueueManyError, with a result for each message, if the broker did not accept some.
        """
        bulk = Bulk(queue, messages)
        in_flight: deque[tuple[Chunk, ThreadReply[list[str | FilaError]]]] = deque()

        def oldest() -> None:
            chunk, sent = in_flight.popleft()
            try:
                bulk.add(chunk, sent.result())
            except FilaError as error:
                bulk.add(chunk, error)

        for chunk in bulk.chunks():
            in_flight.append((chunk, self._send(chunk)))
            if len(in_flight) >= bulk.window:
                oldest()
        while in_flight:
            oldest()
        return bulk.ids()

    def consume(self, queue: str, *, max_in_flight: int = 100, auto_extend: bool = True) -> Consumer[ConsumeMessage]:
        """Messages as they are delivered. At most `max_in_flight` are prefetched or unsettled at any time.

        - The consumer ends with `with`, `close`, or when nothing refers to it any more. The broker then takes unsettled
          messages back, and counts an attempt for those that were handed out.
        - While it is open, the leases of all in-flight messages are extended, unless `auto_extend` is False.
        - Prefetched messages go back to the queue when the program asks for none during a visibility timeout.
        """
        stream = self._session.consume_stream(queue, max_in_flight, ConsumeMessage, self)
        return Consumer(self._thread, self._session, stream, stream.take, auto_extend=auto_extend)

    def consume_batches(
        self, queue: str, *, max_in_flight: int = 1000, auto_extend: bool = True
    ) -> Consumer[list[ConsumeMessage]]:
        """As `consume`, in lists of all prefetched messages. With `ack_many` this is the fastest way to consume."""
        stream = self._session.consume_stream(queue, max_in_flight, ConsumeMessage, self)
        return Consumer(self._thread, self._session, stream, stream.take_all, auto_extend=auto_extend)

    def ack(self, queue: str, message_id: str, lease_id: str | None = None) -> None:
        """Remove a delivered message for good. Raises MessageNotFoundError when the lease has ended."""
        check_one(self._settle_one(ack(queue, message_id, lease_id)).result())

    def nack(
        self, queue: str, message_id: str, error: str = "", *, delay_ms: int = 0, lease_id: str | None = None
    ) -> None:
        """Return a delivered message as failed: it is retried after `delay_ms`. Raises MessageNotFoundError."""
        check_one(self._settle_one(nack(queue, message_id, error, delay_ms, lease_id)).result())

    def release(self, queue: str, message_id: str, *, delay_ms: int = 0, lease_id: str | None = None) -> None:
        """Return a delivered message without counting an attempt.

        Raises MessageNotFoundError.
        """
        check_one(self._settle_one(release(queue, message_id, delay_ms, lease_id)).result())

    def reject(self, queue: str, message_id: str, error: str = "", *, lease_id: str | None = None) -> None:
        """Move a delivered message to the dead-letter queue, regardless of the queue's settings and script.

        Raises MessageNotFoundError.
        """
        check_one(self._settle_one(reject(queue, message_id, error, lease_id)).result())

    def extend(self, queue: str, message_id: str, lease_id: str | None = None, extend_ms: int = 0) -> None:
        """Extend a lease to `extend_ms` from now; 0 means the visibility timeout. Raises MessageNotFoundError."""
        check_one(self._settle_one(extend(queue, message_id, lease_id, extend_ms)).result())

    def ack_many(self, messages: Iterable[Delivery[Any]]) -> None:
        """Ack messages in few requests. Raises AckManyError if some were not acked."""
        check_all([settled.result() for settled in [self._settle(acks) for acks in ack_groups(messages)]])

    def group(self, queue: str, group: str, *, epoch: int = 0) -> Group:
        """A reader group: reads a queue in numbered claims, which can be read again until they are acked."""
        return Group(self._thread, AsyncGroup(lambda: self._session.calls, queue, group, epoch))

    def read_queue(self, queue: str, **options: Unpack[ReadOptions]) -> Iterator[list[ReadMessage]]:
        """The messages of a queue in lists, oldest first. They are not leased and stay in the queue.

        Messages that are delivered or moved meanwhile may be missing. Raises QueueNotFoundError.
        """
        return blocking_iterator(self._thread, read_queue(self._session.calls, queue, options))

    def read_queue_packed(self, queue: str, *, bare: bool = False, **options: Unpack[ReadOptions]) -> Iterator[Packed]:
        """As `read_queue`, as protobuf messages, for callers that convert them to something else.

        Bare messages have headers and payload only, which is less work for both sides.
        """
        return blocking_iterator(self._thread, read_queue_packed(self._session.calls, queue, options, bare=bare))

    def transaction(self, producer: str, number: int) -> Transaction:
        """A transaction: messages are staged, and enqueued exactly once when it is committed."""
        return Transaction(self._thread, AsyncTransaction(lambda: self._session.calls, producer, number))

    def read_journal(self, from_seq: int = 0, **options: Unpack[JournalOptions]) -> JournalReader[JournalEntry]:
        """The entries of the journal from `from_seq` on (0: the oldest). `JournalOptions` lists the options.

        If the broker no longer has entry `from_seq`, the first entry has a larger number.
        """
        stream = self._session.journal_stream(journal_request(from_seq, options))
        return JournalReader(self._thread, stream, JournalBatch.entries)

    def read_journal_batches(self, from_seq: int = 0, **options: Unpack[JournalOptions]) -> JournalReader[JournalBatch]:
        """As `read_journal`, in batches of columns. The first batch is empty and tells the range of the journal."""
        stream = self._session.journal_stream(journal_request(from_seq, options))
        return JournalReader(self._thread, stream, lambda batch: [batch])

    @property
    def auth(self) -> BlockingAuth:
        """API keys, principals and roles."""
        return BlockingAuth(self._thread, self._session.auth)

    def _admin(self) -> Admin:
        return self._session.admin

    def _deadline(self) -> float:
        return monotonic() + self._timeout_s

    def _send_one(self, chunk: Chunk) -> ThreadReply[list[str | FilaError]]:
        sent: ThreadReply[list[str | FilaError]] = ThreadReply()
        if not self._enqueues.submit(Enqueue(sent, self._deadline(), chunk)):
            self._thread.ask(self._session.producer.submit, chunk, sent)
        return sent

    def _send(self, chunk: Chunk) -> ThreadReply[list[str | FilaError]]:
        sent: ThreadReply[list[str | FilaError]] = ThreadReply()
        self._thread.ask(self._session.producer.submit, chunk, sent)
        return sent

    def _settle_one(self, settlement: Settlement) -> ThreadReply[Failures]:
        self._thread.check()
        settled: ThreadReply[Failures] = ThreadReply()
        forget_settled(self._session.in_flight, (settlement,))
        if not self._settles.submit(Settle(settled, self._deadline(), (settlement,))):
            self._thread.post(self._session.settles.submit, (settlement,), settled)
        return settled

    def _settle(self, settlements: Sequence[Settlement]) -> ThreadReply[Failures]:
        settled: ThreadReply[Failures] = ThreadReply()
        self._thread.ask(self._session.settles.submit, settlements, settled)
        return settled


def _close_all(exchanges: Iterable[BlockingExchange[Any]]) -> None:
    for exchange in exchanges:
        exchange.close()


async def _open(endpoint: Endpoint, timeout_s: float) -> Session:
    return Session(endpoint.addresses, timeout_s, endpoint.key, endpoint.tls)
