"""The broker's journal: every event, in order.

The broker keeps and sends the journal in batches of columns. `JournalBatch` is one batch, for programs that work on
columns; `JournalEntry` is one row of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Self, TypedDict, TypeVar

from fila.client.arguments import known_names, made
from fila.client.backoff import Backoff
from fila.client.connection import Connection, read_until, was_lost
from fila.client.errors import no_answer, unreadable
from fila.client.loop_thread import LoopThread
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
    """One event. Fields that do not apply to its kind are 0 or empty."""

    #: The number of the entry, from 1, over restarts too.
    seq: int
    #: Nanoseconds since the epoch, as all times here.
    at_ns: int
    #: "started", "counted", "consumers", "enqueued", "due", "leased", "acked", "nacked", "expired", "returned",
    #: "released", "dead", "redriven", "dropped", "created", "updated", "deleted" or "configured".
    kind: str
    queue: str
    fairness_key: str
    priority: int
    #: The weight of the fairness key.
    weight: int
    message_id: str
    #: When the message was enqueued.
    enqueued_at_ns: int
    #: The number, from 1, of the attempt that begins or ends. For redriven and dropped messages: the failed attempts.
    attempt: int
    #: The size of the payload, for enqueued messages.
    size: int
    #: For enqueued and leased messages.
    cost: int
    #: When the delay or the lease ends.
    until_ns: int
    #: The number of messages ("counted", "deleted") or consumers ("consumers"). "leased": how many messages the
    #: scheduler was asked for when it chose this one. "nacked", "expired", "returned", "released": 1 if the message is
    #: delivered alone from now on, 2 if it is known to be the cause of lost consumers.
    count: int
    #: Why a message became a dead letter: "nacked", "expired", "returned" or, of a full queue, "dropped".
    cause: str
    #: The queue that a dead or redriven message moved to.
    target: str
    #: Further details, as a JSON object.
    note: str
    #: How long throttles held a leased message up after it was ready.
    throttled_ns: int

    @property
    def at(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.at_ns // 1000)


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Entries that were read together, in columns named as the fields of `JournalEntry`."""

    #: The number of the oldest entry that the broker has.
    first_available_seq: int
    #: The number of the next entry that it will write.
    next_seq: int
    #: The number to continue at.
    position: int
    #: Whether the broker writes a journal.
    enabled: bool
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["seq"])

    def check(self) -> None:
        """Raises ValueError when the columns differ in length."""
        if len(set(map(len, self.columns.values()))) > 1:
            raise ValueError("the columns of the journal differ in length")

    def entries(self) -> list[JournalEntry]:
        return [JournalEntry(*row) for row in zip(*self.columns.values(), strict=True)]


class JournalOptions(TypedDict, total=False):
    """Which entries to read."""

    #: The last so many entries, instead of those from `from_seq` on.
    last: int
    #: The most entries; 0 means all.
    max_entries: int
    #: Only entries of this queue.
    queue: str
    #: Go on with new entries, over restarts of the broker, until the reader is closed.
    follow: bool


class JournalStream:
    """Reads one ReadJournal stream; with `follow` it reconnects with backoff. Belongs to one event loop."""

    def __init__(self, connection: Connection, request: admin_pb2.ReadJournalRequest) -> None:
        self._connection = connection
        self._request = request
        self._left = request.max_entries or None
        self._call: Any = None
        self._closed = False

    async def next(self) -> JournalBatch | None:
        """The next batch; None when there are no more, or when the stream was closed. Raises FilaError."""
        backoff = Backoff()
        timeout_s = self._connection.timeout_s
        # A follower has no deadline, since no event may happen for any time.
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
            return None if response is EOF else self._advance(self._read(response))
        return None

    def _read(self, response: admin_pb2.ReadJournalResponse) -> JournalBatch:
        """Raises InternalError for columns that do not match each other."""
        try:
            batch = read_batch(response)
            batch.check()
        except (IndexError, ValueError) as error:
            self.close()
            raise unreadable(error) from error
        return batch

    def close(self) -> None:
        """End the stream. A waiting caller of `next` gets None."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _ended(self) -> bool:
        return self._closed or self._left == 0

    def _advance(self, batch: JournalBatch) -> JournalBatch:
        """Remember where to continue if the connection is lost."""
        self._request.last = 0
        self._request.ClearField("positions")
        self._request.positions.add(seq=batch.position)
        if self._left is not None:
            self._left = self._request.max_entries = self._left - len(batch)
        return batch


def journal_request(from_seq: int, options: JournalOptions) -> admin_pb2.ReadJournalRequest:
    """Raises InvalidArgumentError."""
    known_names("option", options, JournalOptions.__annotations__)
    positions = [made(admin_pb2.JournalPosition, seq=from_seq)] if from_seq else []
    return made(admin_pb2.ReadJournalRequest, positions=positions, **options)


def read_batch(response: admin_pb2.ReadJournalResponse) -> JournalBatch:
    """The entries of a response, in columns."""
    columns: dict[str, list[Any]] = {name: [] for name in JournalEntry.__slots__}
    to_id = message_ids(response.store)
    for record in response.records:
        lanes = record.lanes
        for section in record.sections:
            rows = section.rows
            lane_of_row = [lanes[number] for number in _spread(section.lanes, rows)]
            seqs = _spread(section.message_seqs, rows)
            columns["seq"] += range(section.first_seq, section.first_seq + rows)
            columns["at_ns"] += [record.at_ns] * rows
            columns["kind"] += [KINDS.get(section.kind, str(section.kind))] * rows
            columns["queue"] += [lane.queue for lane in lane_of_row]
            columns["fairness_key"] += [lane.fairness_key for lane in lane_of_row]
            columns["priority"] += [lane.priority for lane in lane_of_row]
            columns["weight"] += [lane.weight for lane in lane_of_row]
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
    """The function that makes the id of a store's message (a UUIDv7) from its enqueue time."""
    variant, tail = 0x8000 | store >> _TAIL_BITS & 0x3F, store & (1 << _TAIL_BITS) - 1
    ends = [f"-{variant | lower << 6:04x}-{tail:012x}" for lower in range(256)]

    def to_id(seq: int) -> str:
        ms, rest = divmod(seq, _NS_PER_MS)
        digits = f"{ms:012x}"
        return f"{digits[:8]}-{digits[8:]}-7{rest >> 8:03x}{ends[rest & 255]}"

    return to_id


class JournalReader(Generic[T]):
    """Entries or batches of the journal, as an iterator. Ends with `close`, or when nothing refers to it any more."""

    def __init__(self, thread: LoopThread, stream: JournalStream, split: Callable[[JournalBatch], Iterable[T]]) -> None:
        self._thread = thread
        self._stream = stream
        self._split = split
        self._ready: deque[T] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._ready:
            batch = self._thread.run(self._stream.next())
            if batch is None:
                raise StopIteration
            self._ready.extend(self._split(batch))
        return self._ready.popleft()

    def close(self) -> None:
        """End the stream. A thread that waits for the next entry gets the end of the iteration."""
        if self._thread.here:
            self._thread.post(self._stream.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class AsyncJournalReader(Generic[T]):
    """Entries or batches of the journal, as an async iterator. Ends with `close`, or when nothing refers to it."""

    def __init__(self, stream: JournalStream, split: Callable[[JournalBatch], Iterable[T]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._split = split
        self._ready: deque[T] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            batch = await self._stream.next()
            if batch is None:
                raise StopAsyncIteration
            self._ready.extend(self._split(batch))
        return self._ready.popleft()

    def close(self) -> None:
        """End the stream."""
        self._stream.close()

    def __del__(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stream.close)
