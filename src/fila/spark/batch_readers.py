"""`spark.read`: a look at a queue, which takes nothing, or entries of the journal."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from fila.client import JournalBatch, UnavailableError
from fila.spark.connections import RetryDeadline, client_of
from fila.spark.errors import DataLoss
from fila.spark.options import JournalRead, QueueRead
from fila.spark.rows import bare_is_enough, journal_batches, message_batches

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


@dataclass(frozen=True)
class JournalPart(InputPartition):
    """Entries from `start` up to, not including, `end`."""

    start: int
    end: int


class JournalReader(DataSourceReader):
    """Reads entries of the journal."""

    def __init__(self, options: JournalRead) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options = self._options
        first, last = self._extent()
        start, end = options.start or first, (min(options.end, last) if options.end else last) + 1
        self._check_there(start, first)
        start = max(start, first)
        size = max(1, -(-(end - start) // options.partitions))
        return [JournalPart(low, min(low + size, end)) for low in range(start, end, size)] or [JournalPart(1, 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JournalPart)
        if partition.start == partition.end:
            return
        yield from journal_batches(self._batches(partition.start), self._options.columns, partition.end)

    def _batches(self, position: int) -> Iterator[JournalBatch]:
        """From an entry on. A broker that is away is asked again, as by all other calls."""
        broker, queue = self._options.broker, self._options.queue
        deadline = RetryDeadline(broker)
        while True:
            try:
                with client_of(broker).read_journal_batches(position, queue=queue) as batches:
                    said = next(batches)  # how far the journal goes, and no entries
                    self._check_there(position, said.first_available_seq)
                    for batch in batches:
                        yield batch
                        position, deadline = batch.position, RetryDeadline(broker)
                    return
            except UnavailableError:
                if not deadline.wait():
                    raise

    def _extent(self) -> tuple[int, int]:
        """The first and the last entry that the journal has."""
        broker = self._options.broker
        deadline = RetryDeadline(broker)
        while True:
            try:
                with client_of(broker).read_journal_batches(last=1) as batches:
                    said = next(batches)
                    return said.first_available_seq, said.next_seq - 1
            except UnavailableError:
                if not deadline.wait():
                    raise

    def _check_there(self, start: int, first: int) -> None:
        if start < first and self._options.fail_on_data_loss:
            raise DataLoss(
                f"the journal begins at entry {first}, entry {start} was removed by age or size: "
                "read from a later startSeq, or set failOnDataLoss to false"
            )
