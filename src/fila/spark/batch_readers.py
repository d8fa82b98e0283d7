"""`spark.read`: a look at a queue, which takes nothing, or entries of the journal."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from fila.spark.connections import client_of
from fila.spark.journal_source import JournalSource, Range
from fila.spark.journal_stream import JournalPart
from fila.spark.options import JournalRead, QueueRead
from fila.spark.pushdown import Pushed, PushFilters
from fila.spark.rows import bare_is_enough, journal_batches, message_batches
from fila.spark.selection import NEVER_NS

_NOBODY = "spark.read"
"""The group for which a look asks how far the queue goes. It makes no claims, so the broker never hears of it."""


@dataclass(frozen=True)
class QueuePart(InputPartition):
    """One of several parts of what a queue holds between two moments."""

    part: int
    end: int


class QueueReader(DataSourceReader):
    """Reads what waits in a queue."""

    def __init__(self, options: QueueRead) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """All parts end at the same moment, so what is enqueued meanwhile is in none of them."""
        options = self._options
        end = options.end or client_of(options.broker).group(options.queue, _NOBODY).floor().newest
        return [QueuePart(part, end) for part in range(options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePart)
        options = self._options
        if partition.end == 0:  # nothing was ever enqueued
            return iter(())
        pieces = client_of(options.broker).read_queue_packed(
            options.queue,
            low=options.start,
            high=partition.end,
            part=partition.part,
            parts=options.partitions,
            leased=options.leased,
            ready_only=options.ready_only,
            bare=bare_is_enough(options.columns),
        )
        return message_batches(pieces, options.columns)


class JournalReader(DataSourceReader):
    """Reads entries of the journal."""

    def __init__(self, options: JournalRead) -> None:
        self._options = options
        self._source = JournalSource(options.broker, fail_on_data_loss=options.fail_on_data_loss)
        self._pushed = Pushed(options.selection)
        self.pushFilters = PushFilters(self._pushed.take)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        options, wanted, pushed = self._options, self._pushed.selection, self._pushed
        extent = self._source.extent()
        start, end = options.start or extent.first, min(options.end or extent.next, extent.next - 1) + 1
        if options.start:
            self._source.check_there(start, extent.first)
        start, end = max(start, extent.first, pushed.start), min(end, pushed.end + 1)
        if wanted.from_ns > 0:
            start = max(start, self._source.seq_at(wanted.from_ns, extent))
        if wanted.until_ns < NEVER_NS:
            end = min(end, self._source.seq_at(wanted.until_ns, extent))
        return [JournalPart(each.start, each.end) for each in Range(start, end).split(options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JournalPart)
        if partition.start == partition.end:
            return
        wanted = self._pushed.selection
        batches = self._source.batches(partition.start, wanted.queue)
        yield from journal_batches(batches, self._options.columns, partition.end, wanted)
