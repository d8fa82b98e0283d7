"""Messages and journal entries as rows: the tables' columns, and how batches of Arrow are made of what the broker sent.

Arrow's types must be exactly those that Spark makes of the schema, so they are asked of Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fila.client import JournalBatch, JournalEntry
from fila.client.read_queue import Packed
from fila.spark.errors import OptionError
from fila.spark.selection import Selection
from fila.v1.messages_pb2 import Message, MessageMetadata

ROWS = 4_000
"""How many rows a batch of Arrow should have, about. Fewer cost Spark more for each."""
PIECES = 4
"""How many pieces of a megabyte, as they come from the broker, it has at most"""

_TEXT = T.StringType()
_LONG = T.LongType()


class _Piece:
    """Messages that become one batch. What several columns need is taken out of them once."""

    def __init__(self, messages: Sequence[Message], seqs: Sequence[int]) -> None:
        self.messages = messages
        self._seqs = seqs

    @cached_property
    def metadata(self) -> list[MessageMetadata]:
        return [message.metadata for message in self.messages]

    @cached_property
    def enqueued_ns(self) -> Sequence[int]:
        if self._seqs:
            return self._seqs
        stamps = [message.timestamps.enqueued_at for message in self.messages]
        return [stamp.seconds * 1_000_000_000 + stamp.nanos for stamp in stamps]


_QUEUE: dict[str, tuple[T.DataType, Callable[[_Piece], Sequence[Any]]]] = {
    "seq": (_LONG, lambda piece: piece.enqueued_ns),
    "message_id": (_TEXT, lambda piece: [message.id for message in piece.messages]),
    "queue": (_TEXT, lambda piece: [metadata.queue_id for metadata in piece.metadata]),
    "fairness_key": (_TEXT, lambda piece: [metadata.fairness_key for metadata in piece.metadata]),
    "headers": (
        T.MapType(_TEXT, _TEXT),
        lambda piece: [list(message.headers.items()) if message.headers else [] for message in piece.messages],
    ),
    "payload": (T.BinaryType(), lambda piece: [message.payload for message in piece.messages]),
    "priority": (T.IntegerType(), lambda piece: [metadata.priority for metadata in piece.metadata]),
    "attempts": (T.IntegerType(), lambda piece: [metadata.attempt_count for metadata in piece.metadata]),
    "enqueued_at": (T.TimestampType(), lambda piece: [ns // 1000 for ns in piece.enqueued_ns]),
}
QUEUE_COLUMNS = tuple(_QUEUE)
_OF_BARE_MESSAGES = frozenset({"seq", "headers", "payload", "enqueued_at"})

_OF_JOURNAL: dict[type, T.DataType] = {str: _TEXT, int: _LONG}
_JOURNAL = {name: _OF_JOURNAL[JournalEntry.__annotations__[name]] for name in JournalEntry.__slots__}
JOURNAL_COLUMNS = tuple(_JOURNAL)


def queue_schema(columns: Iterable[str]) -> T.StructType:
    return T.StructType([T.StructField(name, _QUEUE[name][0]) for name in columns])


def journal_schema(columns: Iterable[str]) -> T.StructType:
    return T.StructType([T.StructField(name, _JOURNAL[name]) for name in columns])


def check_schema(wanted: T.StructType, offered: T.StructType) -> tuple[str, ...]:
    """The columns of a schema that the user gave. Raises OptionError unless each is one of ours."""
    ours = {field.name: field.dataType for field in offered}
    for field in wanted:
        if field.name not in ours:
            raise OptionError(f"the schema has a column {field.name!r}; there are {', '.join(ours)}")
        if field.dataType != ours[field.name]:
            raise OptionError(
                f"the schema has column {field.name!r} as {field.dataType.simpleString()}, "
                f"it is {ours[field.name].simpleString()}"
            )
    return tuple(field.name for field in wanted)


def bare_is_enough(columns: Iterable[str]) -> bool:
    """Whether messages with nothing but headers and payload have all that is in these columns."""
    return _OF_BARE_MESSAGES.issuperset(columns)


def message_batches(pieces: Iterable[Packed], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of about `ROWS` messages."""
    schema = to_arrow_schema(queue_schema(columns), timezone="UTC")
    makers = [_QUEUE[name][1] for name in columns]
    for piece in _gathered(pieces):
        arrays = [pa.array(make(piece), field.type) for make, field in zip(makers, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _gathered(pieces: Iterable[Packed]) -> Iterator[_Piece]:
    messages: list[Message] = []
    seqs: list[int] = []
    count = 0
    for piece in pieces:
        messages += piece.messages
        seqs += piece.seqs
        count += 1
        if len(messages) >= ROWS or count == PIECES:
            yield _Piece(messages, seqs)
            messages, seqs, count = [], [], 0
    if messages:
        yield _Piece(messages, seqs)


def journal_batches(
    batches: Iterable[JournalBatch], columns: Sequence[str], end: int, selection: Selection
) -> Iterator[pa.RecordBatch]:
    """What comes before entry `end` and is wanted."""
    schema = to_arrow_schema(journal_schema(columns), timezone="UTC")
    for batch in batches:
        seqs = batch.columns["seq"]
        rows = len(seqs) if not seqs or seqs[-1] < end else sum(seq < end for seq in seqs)
        mask = selection.mask(batch.columns, rows) if rows else None
        if rows and (mask is None or mask.true_count):
            arrays = [
                pa.array(batch.columns[name][:rows], field.type) for name, field in zip(columns, schema, strict=True)
            ]
            record = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield record if mask is None else record.filter(mask)
        if batch.position >= end:
            return
