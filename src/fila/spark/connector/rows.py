"""Messages and journal entries as rows: the tables' columns, and how batches of Arrow are made of what the broker sent.

Arrow's types must be exactly those that Spark makes of the schema, so they are asked of Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from fila.client import JournalBatch, JournalEntry, ReadMessage
from fila.spark.connector.options import OptionError

ROWS = 4_000
"""How many rows a batch of Arrow should have, about. Fewer cost Spark more for each."""

_TEXT = T.StringType()
_LONG = T.LongType()

_QUEUE: dict[str, tuple[T.DataType, Callable[[Sequence[ReadMessage]], list[Any]]]] = {
    "seq": (_LONG, lambda messages: [message.enqueued_at_ns for message in messages]),
    "message_id": (_TEXT, lambda messages: [message.id for message in messages]),
    "queue": (_TEXT, lambda messages: [message.queue for message in messages]),
    "fairness_key": (_TEXT, lambda messages: [message.fairness_key for message in messages]),
    "headers": (T.MapType(_TEXT, _TEXT), lambda messages: [list(message.headers.items()) for message in messages]),
    "payload": (T.BinaryType(), lambda messages: [message.payload for message in messages]),
    "priority": (T.IntegerType(), lambda messages: [message.priority for message in messages]),
    "attempts": (T.IntegerType(), lambda messages: [message.attempt_count for message in messages]),
    "enqueued_at": (T.TimestampType(), lambda messages: [message.enqueued_at_ns // 1000 for message in messages]),
}
QUEUE_COLUMNS = tuple(_QUEUE)

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


def message_batches(pieces: Iterable[list[ReadMessage]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of about `ROWS` messages."""
    schema = to_arrow_schema(queue_schema(columns), timezone="UTC")
    for messages in _gathered(pieces):
        arrays = [pa.array(_QUEUE[name][1](messages), field.type) for name, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _gathered(pieces: Iterable[list[ReadMessage]]) -> Iterator[list[ReadMessage]]:
    gathered: list[ReadMessage] = []
    count = 0
    for piece in pieces:
        gathered += piece
        count += 1
        if len(gathered) >= ROWS or count == 4:  # pieces are of a megabyte
            yield gathered
            gathered, count = [], 0
    if gathered:
        yield gathered


def journal_batches(batches: Iterable[JournalBatch], columns: Sequence[str], end: int) -> Iterator[pa.RecordBatch]:
    """What comes before entry `end`."""
    schema = to_arrow_schema(journal_schema(columns), timezone="UTC")
    for batch in batches:
        seqs = batch.columns["seq"]
        rows = len(seqs) if not seqs or seqs[-1] < end else sum(seq < end for seq in seqs)
        if rows:
            arrays = [
                pa.array(batch.columns[name][:rows], field.type) for name, field in zip(columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if batch.position >= end:
            return
