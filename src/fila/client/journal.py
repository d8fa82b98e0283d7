"""The broker's journal: what happened, in order.

It comes in pieces of whole columns, as the broker keeps it. `JournalBatch` is such a piece, for those who want columns;
`JournalEntry` is one row of it, for those who want to look at what happened one by one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from fila.client.arguments import made
from fila.client.backoff import Backoff
from fila.client.connection import Connection, read_until, was_lost
from fila.client.errors import no_answer, unreadable
from fila.client.thread import LoopThread
from fila.v1 import admin_pb2
from fila.wire.status import RpcError
from fila.wire.stream import EOF

KINDS = {0: ""} | {
    number: name.removeprefix("JOURNAL_KIND_").lower() for name, number in admin_pb2.JournalKind.items() if number
}

T = TypeVar("T")

_NS_PER_MS = 1_000_000
_TAIL_BITS = 48


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that happened. What does not apply is 0 or empty."""

    #: Counts from 1, over restarts too.
    seq: int
    #: Nanoseconds since the epoch, as all times here.
    at_ns: int
    #: "started", "counted", "consumers", "enqueued", "due", "leased", "acked", "nacked", "expired", "returned",
    #: "released", "dead", "redriven", "dropped", "created", "updated", "deleted" or "configured".
    kind: str
    queue: str
    fairness_key: str
    priority: int
    #: Of the fairness key.
    weight: int
    message_id: str
    #: When the message was enqueued.
    enqueued_at_ns: int
    #: The attempt that begins or ends, from 1. Of redriven and dropped messages: those that failed.
    attempt: int
    #: Bytes of the payload; of enqueued messages.
    size: int
    #: Of enqueued and leased messages.
    cost: int
    #: When the delay or the lease ends.
    until_ns: int
    #: Messages ("counted", "deleted") or consumers ("consumers").
    count: int
    #: What a dead message died of: "nacked", "expired" or "returned".
    cause: str
    #: The queue that a dead or redriven message moved to.
    target: str
    #: What else there is to say, as an object of JSON.
    note: str
    #: For how long throttles held up a leased message since it was ready.
    throttled_ns: int

    @property
    def at(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.at_ns // 1000)


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Entries that were read together, in columns by the names of `JournalEntry`'s fields."""

    #: The oldest entry that the broker has.
    first_available_seq: int
    #: The number of the next entry that it will write.
    next_seq: int
    #: Where to read on.
    position: int
    #: Whether the broker writes a journal now.
    enabled: bool
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["seq"])

    def check(self) -> None:
        """Raises ValueError when its columns are not of one length."""
        if len(set(map(len, self.columns.values()))) > 1:
            raise ValueError("columns of the journal differ in length")

    def entries(self) -> list[JournalEntry]:
        return [JournalEntry(*row) for row in zip(*self.columns.values(), strict=True)]


class JournalFeed:
    """Reads one ReadJournal stream, and with `follow` goes on after the connection was lost. On one event loop."""

    def __init__(self, connection: Connection, request: admin_pb2.ReadJournalRequest) -> None:
        self._connection = connection
        self._request = request
        self._left = request.max_entries or None
        self._call: Any = None
        self._closed = False

    async def next(self) -> JournalBatch | None:
        """The next piece; None when there is no more, or when the feed was closed. Raises FilaError."""
        backoff = Backoff()
        timeout_s = self._connection.timeout_s
        # Whoever follows may wait for ever: nothing may happen for as long.
        deadline = None if self._request.follow else asyncio.get_running_loop().time() + timeout_s
        while not self._ended():
            try:
                if self._call is None:
                    self._call = self._connection.open_journal(self._request)
                response = await read_until(self._call, deadline)
            except asyncio.CancelledError:
                if self._ended():
                    return None
                raise
            except TimeoutError as error:
                self.close()
                raise no_answer(timeout_s) from error
            except RpcError as error:
                self._call = None
                if self._ended():
                    return None
                if not (self._request.follow and was_lost(error)):
                    raise self._connection.translated(error) from error
                await asyncio.sleep(backoff.next_wait_s())
                continue
            return None if response is EOF else self._taken(self._read(response))
        return None

    def _read(self, response: admin_pb2.ReadJournalResponse) -> JournalBatch:
        """Raises InternalError for columns that do not fit each other."""
        try:
            batch = read_batch(response)
            batch.check()
        except (IndexError, ValueError) as error:
            self.close()
            raise unreadable(error) from error
        return batch

    def close(self) -> None:
        """There is no more. Whoever waits for more is told so."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _ended(self) -> bool:
        return self._closed or self._left == 0

    def _taken(self, batch: JournalBatch) -> JournalBatch:
        """Note where to go on if the connection is lost."""
        self._request.from_seq, self._request.last = batch.position, 0
        if self._left is not None:
            self._left = self._request.max_entries = self._left - len(batch)
        return batch


def journal_request(
    from_seq: int, last: int, max_entries: int, queue: str, follow: bool
) -> admin_pb2.ReadJournalRequest:
    """Raises InvalidArgumentError."""
    return made(
        admin_pb2.ReadJournalRequest,
        from_seq=from_seq,
        last=last,
        max_entries=max_entries,
        queue=queue,
        follow=follow,
    )


def read_batch(response: admin_pb2.ReadJournalResponse) -> JournalBatch:
    """The entries of a response, in columns."""
    columns: dict[str, list[Any]] = {name: [] for name in JournalEntry.__slots__}
    to_id = message_ids(response.store)
    for record in response.records:
        lanes = record.lanes
        for section in record.sections:
            rows = section.rows
            places = [lanes[number] for number in _spread(section.lanes, rows)]
            seqs = _spread(section.message_seqs, rows)
            columns["seq"] += range(section.first_seq, section.first_seq + rows)
            columns["at_ns"] += [record.at_ns] * rows
            columns["kind"] += [KINDS.get(section.kind, str(section.kind))] * rows
            columns["queue"] += [lane.queue for lane in places]
            columns["fairness_key"] += [lane.fairness_key for lane in places]
            columns["priority"] += [lane.priority for lane in places]
            columns["weight"] += [lane.weight for lane in places]
            columns["message_id"] += map(to_id, seqs) if section.message_seqs else [""] * rows
            columns["enqueued_at_ns"] += seqs
            columns["attempt"] += _spread(section.attempts, rows)
            columns["size"] += _spread(section.sizes, rows)
            columns["cost"] += _spread(section.costs, rows)
            columns["until_ns"] += _spread(section.until_ns, rows)
            columns["count"] += _spread(section.counts, rows)
            columns["cause"] += [KINDS.get(cause, "") for cause in _spread(section.causes, rows)]
            targets = [lanes[number].queue for number in section.targets]
            columns["target"] += targets * rows if len(targets) == 1 else targets or [""] * rows
            columns["note"] += section.notes or [""] * rows
            columns["throttled_ns"] += _spread(section.throttled_ns, rows)
    return JournalBatch(response.first_available_seq, response.next_seq, response.position, response.enabled, columns)


def _spread(column: Sequence[int], rows: int) -> Sequence[int]:
    """A value for each row."""
    return column if len(column) == rows else [column[0] if column else 0] * rows


def message_ids(store: int) -> Callable[[int], str]:
    """How the ids of a store's messages are made of the times of their enqueueing: UUIDv7."""
    variant, tail = 0x8000 | store >> _TAIL_BITS & 0x3F, store & (1 << _TAIL_BITS) - 1
    ends = [f"-{variant | lower << 6:04x}-{tail:012x}" for lower in range(256)]

    def to_id(seq: int) -> str:
        ms, rest = divmod(seq, _NS_PER_MS)
        digits = f"{ms:012x}"
        return f"{digits[:8]}-{digits[8:]}-7{rest >> 8:03x}{ends[rest & 255]}"

    return to_id


class JournalReader(Generic[T]):
    """What the journal holds, as an iterator. Ends with `close`, or when nobody refers to it any more."""

    def __init__(self, thread: LoopThread, feed: JournalFeed, split: Callable[[JournalBatch], Iterable[T]]) -> None:
        self._thread = thread
        self._feed = feed
        self._split = split
        self._ready: deque[T] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._ready:
            batch = self._thread.run(self._feed.next())
            if batch is None:
                raise StopIteration
            self._ready.extend(self._split(batch))
        return self._ready.popleft()

    def close(self) -> None:
        """End the stream. A thread that waits for the next entry sees the end."""
        if self._thread.here:
            self._thread.post(self._feed.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class AsyncJournalReader(Generic[T]):
    """What the journal holds, as an async iterator. Ends with `close`, or when nobody refers to it any more."""

    def __init__(self, feed: JournalFeed, split: Callable[[JournalBatch], Iterable[T]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._feed = feed
        self._split = split
        self._ready: deque[T] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            batch = await self._feed.next()
            if batch is None:
                raise StopAsyncIteration
            self._ready.extend(self._split(batch))
        return self._ready.popleft()

    def close(self) -> None:
        """End the stream."""
        self._feed.close()

    def __del__(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._feed.close)
