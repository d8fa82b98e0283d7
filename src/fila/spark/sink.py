"""`df.write` and `df.writeStream`: rows become messages.

Rules of this file:
- By transaction: tasks stage rows, and the commit on the driver publishes them once, however often a batch is run.
- What a task stages has a name that no other attempt has, and only what the winning attempts staged is committed. So
  nothing needs to be cleaned up: an abort does nothing, what was never committed is dropped by the broker in time.
- By key: rows are enqueued at once, each under its `dedup_key`. They are seen before the batch has succeeded. A row
  without a key is refused: a task that is run again would add it twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from fila.client import OutgoingMessage, StagedPart
from fila.client.encoding import Chunk, encode_all, encode_payloads
from fila.spark.connections import client_of
from fila.spark.errors import OptionError
from fila.spark.options import Write

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Where Spark tells a task which query and which batch of it it works for."""

_TEXT = (T.StringType,)
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_COLUMNS: dict[str, tuple[tuple[type[T.DataType], ...], str]] = {
    "payload": ((T.BinaryType, T.StringType), "binary or string"),
    "queue": (_TEXT, "string"),
    "headers": ((T.MapType,), "map<string,string>"),
    "priority": (_WHOLE, "a whole number"),
    "delay_ms": (_WHOLE, "a whole number"),
    "dedup_key": (_TEXT, "string"),
}


def check_rows(schema: T.StructType, options: Write) -> None:
    """Raises OptionError unless rows of this schema can become messages."""
    names = schema.names
    for field in schema:
        if field.name not in _COLUMNS:
            raise OptionError(f"column {field.name!r} is none of a message's: {', '.join(_COLUMNS)}")
        accepted, wanted = _COLUMNS[field.name]
        data_type = field.dataType
        text_to_text = isinstance(data_type, T.MapType) and (data_type.keyType, data_type.valueType) == (
            T.StringType(),
            T.StringType(),
        )
        if not isinstance(data_type, accepted) or (isinstance(data_type, T.MapType) and not text_to_text):
            raise OptionError(f"column {field.name!r} is {data_type.simpleString()}, expected {wanted}")
    if "payload" not in names:
        raise OptionError("rows need a column 'payload'")
    if not options.queue and "queue" not in names:
        raise OptionError("option 'queue' is needed, or a column 'queue'")
    if options.by_key and "dedup_key" not in names:
        raise OptionError("mode 'dedup' needs a column 'dedup_key'")


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task has staged, and for which transaction."""

    producer: str
    number: int
    part: StagedPart | None


class BatchWriter(DataSourceArrowWriter):
    """One transaction for a `df.write`."""

    def __init__(self, options: Write) -> None:
        self._options = options
        #: Without a name of the user's nothing can be told from a repetition, but it is still all or nothing.
        self._producer = options.producer or f"spark-{uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._producer, self._options.run_id, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing to do: see the rules above."""


class StreamWriter(DataSourceStreamArrowWriter):
    """One transaction for each batch of a `df.writeStream`."""

    def __init__(self, options: Write) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise RuntimeError(f"this Spark does not tell a task its {_QUERY} and {_BATCH}")
        return _write(self._options, self._options.producer or f"spark-{query}", int(batch), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        _commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to do: see the rules above."""


def _write(options: Write, producer: str, number: int, batches: Iterator[pa.RecordBatch]) -> Staged:
    client = client_of(options.broker)
    if options.by_key:
        for batch in batches:
            _check_keys(batch)
            for queue, messages in _by_queue(batch, options.queue).items():
                client.enqueue_many(queue, messages)
        return Staged(producer, number, None)
    transaction = client.transaction(producer, number)
    chunks = (chunk for batch in batches for chunks in _chunks(batch, options.queue) for chunk in chunks)
    part = transaction.stage_encoded(chunks, part=uuid4().hex, ttl_ms=options.ttl_ms)
    for _ in batches:  # of a transaction that was committed before: Spark wants all of them to be taken
        pass
    return Staged(producer, number, part)


def _commit(options: Write, messages: Sequence[WriterCommitMessage | None]) -> None:
    staged = [message for message in messages if isinstance(message, Staged)]
    if options.by_key or not staged:
        return
    [(producer, number)] = {(each.producer, each.number) for each in staged}
    parts = [each.part for each in staged if each.part is not None]
    client_of(options.broker).transaction(producer, number).commit(parts)


def _chunks(batch: pa.RecordBatch, queue: str) -> Iterable[Iterable[Chunk]]:
    """The messages of a batch, encoded, by the queue that they are for."""
    if batch.schema.names != ["payload"]:
        return [encode_all(name, messages) for name, messages in _by_queue(batch, queue).items()]
    if not batch.num_rows:
        return []
    column = _payloads(batch)
    _, ends, data = column.buffers()
    first = column.offset
    offsets = memoryview(ends).cast("B").cast("i")[first : first + len(column) + 1]
    return [encode_payloads(queue, memoryview(data or b"").cast("B"), offsets)]


def _by_queue(batch: pa.RecordBatch, queue: str) -> dict[str, list[OutgoingMessage]]:
    """The messages of a batch, by the queue that they are for."""
    messages = _messages(batch)
    if "queue" not in batch.schema.names:
        return {queue: messages} if messages else {}
    sorted_out: dict[str, list[OutgoingMessage]] = {}
    for name, message in zip(batch.column("queue").to_pylist(), messages, strict=True):
        if not (name or queue):
            raise ValueError("a row has no queue, and the option 'queue' is not set")
        sorted_out.setdefault(name or queue, []).append(message)
    return sorted_out


def _payloads(batch: pa.RecordBatch) -> pa.BinaryArray:
    """Raises ValueError where one is missing."""
    column = batch.column("payload")
    if column.null_count:
        raise ValueError("a row has no payload: it is null")
    return column.view(pa.binary())


def _check_keys(batch: pa.RecordBatch) -> None:
    """Raises ValueError where one is missing."""
    if not all(batch.column("dedup_key").to_pylist()):
        raise ValueError("a row has no dedup_key: it is null or empty, and mode 'dedup' needs one for each row")


def _messages(batch: pa.RecordBatch) -> list[OutgoingMessage]:
    columns = [_values(batch, name) for name in ("headers", "delay_ms", "priority", "dedup_key")]
    return [
        OutgoingMessage(payload, headers, delay_ms or 0, priority, dedup_key)
        for payload, headers, delay_ms, priority, dedup_key in zip(_payloads(batch).to_pylist(), *columns, strict=True)
    ]


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    values: list[Any] = batch.column(name).to_pylist()
    if name != "headers":
        return values
    return [None if pairs is None else {key: value for key, value in pairs if value is not None} for pairs in values]
