"""The SDK for programs that block: the same session, on an event loop in a background thread.

Single messages are sent and settled without it, by the thread that calls (`direct`).
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack
from uuid import uuid4

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
    peek_request,
    purge_request,
    redrive_request,
    swept,
)
from fila.client.bulk import Bulk
from fila.client.connection import ENQUEUE_STREAM, SETTLE
from fila.client.direct import Direct
from fila.client.encoding import Chunk, OutgoingMessage, encode
from fila.client.errors import FilaError
from fila.client.feed import Feed
from fila.client.groups import AsyncGroup, Group, Packed, ReadOptions, blocking, read_queue, read_queue_packed
from fila.client.journal import JournalBatch, JournalEntry, JournalReader, journal_request
from fila.client.message import ConsumeMessage, Delivery, ReadMessage
from fila.client.producer import Enqueue, EnqueueCodec
from fila.client.reply import ThreadReply
from fila.client.session import Session
from fila.client.settler import (
    Failures,
    Settle,
    SettleCodec,
    Settlement,
    ack,
    ack_groups,
    check_all,
    check_one,
    extend,
    forget_settled,
    nack,
    reject,
    release,
)
from fila.client.thread import LoopThread, shared_loop_thread
from fila.client.transactions import AsyncTransaction, Transaction

T = TypeVar("T")


class Client:
    """A connection to a Fila broker. May be used by several threads; their calls travel together.

        with Client("localhost:5555") as client:
            client.enqueue("orders", {"tenant": "acme"}, b"...")
            for message in client.consume("orders"):
                message.ack()

    Every method raises FilaError. `timeout` is how many seconds a call may take, reconnecting included.
    """

    def __init__(self, addr: str = "localhost:5555", *, timeout: float = 5.0) -> None:
        self._timeout_s = timeout
        self._thread = shared_loop_thread()
        self._enqueues = Direct(addr, ENQUEUE_STREAM, EnqueueCodec(uuid4().hex), timeout)
        self._settles = Direct(addr, SETTLE, SettleCodec(), timeout)
        self._hang_up = weakref.finalize(self, _close_all, (self._enqueues, self._settles))
        self._session = self._thread.run(_open(addr, timeout))
        self._let_go = weakref.finalize(self, self._thread.spawn, self._session.close)
        self._hang_up.atexit = self._let_go.atexit = False  # what runs at the end of a program may still use it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Calls under way in other threads raise ClientClosedError, consumers end."""
        self._hang_up()
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
        """Enqueue one message and return its id once it is durable."""
        chunk = encode(queue, OutgoingMessage(payload, headers, delay_ms, priority, dedup_key))
        [result] = self._send_one(chunk).result()
        if isinstance(result, FilaError):
            raise result
        return result

    def enqueue_many(self, queue: str, messages: Iterable[OutgoingMessage | bytes]) -> list[str]:
        """Enqueue messages in order, in batches, and return their ids once all are durable.

        Raises EnqueueManyError, with a result for each message, if some were not accepted.
        """
        bulk = Bulk(queue, messages)
        under_way: deque[tuple[Chunk, ThreadReply[list[str | FilaError]]]] = deque()

        def oldest() -> None:
            chunk, sent = under_way.popleft()
            try:
                bulk.add(chunk, sent.result())
            except FilaError as error:
                bulk.add(chunk, error)

        for chunk in bulk.chunks():
            under_way.append((chunk, self._send(chunk)))
            if len(under_way) >= bulk.window:
                oldest()
        while under_way:
            oldest()
        return bulk.ids()

    def consume(self, queue: str, *, max_in_flight: int = 100, auto_extend: bool = True) -> "Consumer[ConsumeMessage]":
        """Messages as they are delivered, never more than `max_in_flight` unsettled ones.

        Ends with `with`, `close`, or when nobody refers to it any more: then the broker takes back what is
        unsettled, and counts an attempt for what was handed out. While it is open, the leases of all unsettled messages
        are extended, unless `auto_extend` is off. What was not handed out goes back when nobody asks for more within a
        visibility timeout.
        """
        feed = self._session.feed(queue, max_in_flight, ConsumeMessage, self)
        return Consumer(self._thread, self._session, feed, feed.take, auto_extend=auto_extend)

    def consume_batches(
        self, queue: str, *, max_in_flight: int = 1000, auto_extend: bool = True
    ) -> "Consumer[list[ConsumeMessage]]":
        """Like `consume`, but lists of all messages that are here. With `ack_many` the fast way to consume."""
        feed = self._session.feed(queue, max_in_flight, ConsumeMessage, self)
        return Consumer(self._thread, self._session, feed, feed.take_all, auto_extend=auto_extend)

    def ack(self, queue: str, message_id: str, lease_id: str | None = None) -> None:
        """Remove a delivered message for good. Raises MessageNotFoundError when it is not held under that lease."""
        check_one(self._settle_one(ack(queue, message_id, lease_id)).result())

    def nack(
        self, queue: str, message_id: str, error: str = "", *, delay_ms: int = 0, lease_id: str | None = None
    ) -> None:
        """Give a delivered message back, to be delivered again after `delay_ms`. Raises MessageNotFoundError."""
        check_one(self._settle_one(nack(queue, message_id, error, delay_ms, lease_id)).result())

    def release(self, queue: str, message_id: str, *, delay_ms: int = 0, lease_id: str | None = None) -> None:
        """Give a delivered message back as if it had never been delivered: no attempt is counted.

        Raises MessageNotFoundError.
        """
        check_one(self._settle_one(release(queue, message_id, delay_ms, lease_id)).result())

    def reject(self, queue: str, message_id: str, error: str = "", *, lease_id: str | None = None) -> None:
        """Move a delivered message to the dead-letter queue, whatever the queue's settings and script would say.

        Raises MessageNotFoundError.
        """
        check_one(self._settle_one(reject(queue, message_id, error, lease_id)).result())

    def extend(self, queue: str, message_id: str, lease_id: str | None = None, extend_ms: int = 0) -> None:
        """Let a lease end `extend_ms` from now; 0 means the queue's visibility timeout. Raises MessageNotFoundError."""
        check_one(self._settle_one(extend(queue, message_id, lease_id, extend_ms)).result())

    def ack_many(self, messages: Iterable[Delivery[Any]]) -> None:
        """Ack messages in as few requests as possible. Raises AckManyError if some were not acked."""
        check_all([settled.result() for settled in [self._settle(acks) for acks in ack_groups(messages)]])

    def group(self, queue: str, group: str, *, epoch: int = 0) -> Group:
        """Reads a queue in numbered claims, which can be read again until they are acked."""
        return Group(self._thread, AsyncGroup(lambda: self._session.calls, queue, group, epoch))

    def read_queue(self, queue: str, **options: Unpack[ReadOptions]) -> Iterator[list[ReadMessage]]:
        """A look at the messages of a queue, oldest first, without taking them.

        Whole lists of them, without a lease. What moves meanwhile may be left out. Raises QueueNotFoundError.
        """
        return blocking(self._thread, read_queue(self._session.calls, queue, options))

    def read_queue_packed(self, queue: str, *, bare: bool = False, **options: Unpack[ReadOptions]) -> Iterator[Packed]:
        """As `read_queue`, but messages as they came, for those who make something else of them than objects.

        Bare ones have headers and payload only, which is less work for both sides.
        """
        return blocking(self._thread, read_queue_packed(self._session.calls, queue, options, bare=bare))

    def transaction(self, producer: str, number: int) -> Transaction:
        """Messages that are staged, and enqueued once when the transaction is committed."""
        return Transaction(self._thread, AsyncTransaction(lambda: self._session.calls, producer, number))

    def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> str:
        """Create a queue, with its dead-letter queue, and return its id. Raises QueueAlreadyExistsError."""
        return self._thread.run(self._session.admin.create_queue(name, settings))

    def ensure_queue(self, name: str, **settings: Unpack[QueueSettings]) -> bool:
        """Create a queue unless there is one of that name, which stays as it is. Returns whether it was created."""
        return self._thread.run(self._session.admin.ensure_queue(name, settings))

    def update_queue(self, name: str, **settings: Unpack[QueueSettings]) -> QueueConfig:
        """Change settings of a live queue; they hold for what happens from then on. Raises QueueNotFoundError."""
        return self._thread.run(self._session.admin.update_queue(name, settings))

    def delete_queue(self, name: str, *, force: bool = False) -> int:
        """Delete a queue with its dead-letter queue and return how many messages went with them.

        Raises QueueNotFoundError, or FailedPreconditionError when there are dead letters, unless `force` is set.
        """
        return self._thread.run(self._session.admin.delete_queue(name, force))

    def pause_queue(self, name: str) -> None:
        """Deliver nothing of a queue until it is resumed, also over restarts. Raises QueueNotFoundError."""
        self._thread.run(self._session.admin.pause_queue(name))

    def resume_queue(self, name: str) -> None:
        """Deliver again. Raises QueueNotFoundError."""
        self._thread.run(self._session.admin.resume_queue(name))

    def peek(
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
        return self._thread.run(self._session.browser.peek(request, limit))

    def redrive(
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
        steps = self._session.browser.redrive(request, Sweep(count, dry_run, rate))
        return swept(blocking(self._thread, steps), on_progress)

    def purge(
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
        steps = self._session.browser.purge(request, Sweep(count, dry_run, rate))
        return swept(blocking(self._thread, steps), on_progress)

    def set_config(self, key: str, value: str) -> None:
        """Set an entry of the runtime configuration. Raises InvalidArgumentError."""
        self._thread.run(self._session.admin.set_config(key, value))

    def get_config(self, key: str) -> str | None:
        """An entry of the runtime configuration, if it is set."""
        return self._thread.run(self._session.admin.get_config(key))

    def list_config(self, prefix: str = "") -> dict[str, str]:
        """The entries of the runtime configuration whose keys begin with `prefix`."""
        return self._thread.run(self._session.admin.list_config(prefix))

    def delete_config(self, key: str) -> bool:
        """Remove an entry of the runtime configuration. Returns whether there was one."""
        return self._thread.run(self._session.admin.delete_config(key))

    def explain(self, queue: str, message_id: str = "", *, fairness_key: str = "") -> Explanation:
        """Why a message, the first one of a fairness key, or the next one of all is still waiting.

        Raises QueueNotFoundError, or MessageNotFoundError when there is no such message.
        """
        return self._thread.run(self._session.admin.explain(queue, message_id, fairness_key))

    def try_hook(
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
        return self._thread.run(self._session.admin.try_hook(request))

    def read_journal(
        self,
        from_seq: int = 0,
        *,
        last: int = 0,
        max_entries: int = 0,
        queue: str = "",
        follow: bool = False,
    ) -> JournalReader[JournalEntry]:
        """What happened, entry by entry, from `from_seq` on (0: the oldest), or the last so many.

        `queue` leaves out what is not of that queue. With `follow` it goes on with what happens from now on, over
        restarts of the broker, until it is closed. Entries before the oldest that the broker has kept are left out:
        then the first number is larger than `from_seq`.
        """
        feed = self._session.journal(journal_request(from_seq, last, max_entries, queue, follow))
        return JournalReader(self._thread, feed, JournalBatch.entries)

    def read_journal_batches(
        self,
        from_seq: int = 0,
        *,
        last: int = 0,
        max_entries: int = 0,
        queue: str = "",
        follow: bool = False,
    ) -> JournalReader[JournalBatch]:
        """Like `read_journal`, but in pieces, in columns. The first one is empty and says what there is."""
        feed = self._session.journal(journal_request(from_seq, last, max_entries, queue, follow))
        return JournalReader(self._thread, feed, lambda batch: [batch])

    def list_queues(self) -> list[QueueInfo]:
        """All queues, in the order of their names."""
        return self._thread.run(self._session.admin.list_queues())

    def queue_stats(
        self, name: str, max_keys: int = 20, *, sort: str = "pending", offset: int = 0, key_prefix: str = ""
    ) -> QueueStats:
        """A queue in detail, with a page of its fairness keys. Raises QueueNotFoundError.

        `sort` is "pending", "delivered", "weight" or "oldest", each with the largest first, or "name".
        """
        return self._thread.run(self._session.admin.queue_stats(name, max_keys, sort, offset, key_prefix))

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
        forget_settled(self._session.held, (settlement,))
        if not self._settles.submit(Settle(settled, self._deadline(), (settlement,))):
            self._thread.post(self._session.settler.submit, (settlement,), settled)
        return settled

    def _settle(self, settlements: Sequence[Settlement]) -> ThreadReply[Failures]:
        settled: ThreadReply[Failures] = ThreadReply()
        self._thread.ask(self._session.settler.submit, settlements, settled)
        return settled


class Consumer(Generic[T]):
    """What a queue delivers, as an iterator. Ends with `close`, or when nobody refers to it any more."""

    def __init__(
        self,
        thread: LoopThread,
        session: Session,
        feed: Feed[Any],
        take: Callable[[], T | None],
        *,
        auto_extend: bool,
    ) -> None:
        self._thread = thread
        self._session = session
        self._feed = feed
        self._take = take
        thread.post(session.start, feed, auto_extend)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while (taken := self.take()) is None:
            if not self.wait():
                raise StopIteration
        return taken

    def take(self) -> T | None:
        """What comes next, if it is here already."""
        while (taken := self._take()) is not None:
            isolated = self._feed.isolated
            if isolated is None or not (taken is isolated or taken == [isolated]):
                return taken
            written: ThreadReply[bool] = ThreadReply()
            self._thread.ask(self._feed.confirm, isolated, written)
            if written.result():
                return taken
        return None

    def wait(self) -> bool:
        """Wait until there is something to take. Returns False when there will be no more."""
        arrived: ThreadReply[bool] = ThreadReply()
        self._thread.ask(self._feed.notify, arrived)
        return arrived.result()

    @property
    def waiting(self) -> int:
        """How many messages are here and not taken."""
        return self._feed.waiting

    def close(self) -> None:
        """End the stream: the broker returns what is unsettled at once, and counts an attempt for what was handed."""
        self._thread.finish(lambda: self._session.stopped(self._feed))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._thread.here:
            self._thread.post(self._session.stop, self._feed)


def _close_all(directs: Iterable[Direct[Any]]) -> None:
    for direct in directs:
        direct.close()


async def _open(addr: str, timeout_s: float) -> Session:
    return Session(addr, timeout_s)
