"""`spark.readStream` of the journal. The offset of a query is `{"seq": n}`: the number of the next entry that it reads.

Rules of this file:
- A batch is a range of numbers, so a batch that Spark runs again has the same entries. Nothing is kept at the broker.
- Entries that the broker removed before they were read end the query; with `failOnDataLoss` off they are left out, and
  the numbers of the entries tell which.
- All methods but `read` run in one process on the driver's machine for as long as the query lives. `read` runs in
  executors, on a copy of the reader.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from fila.spark.errors import DataLoss, JournalOff
from fila.spark.journal_source import Extent, JournalSource, Range
from fila.spark.options import JournalStreamRead
from fila.spark.patience import Patience
from fila.spark.rows import journal_batches

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 0.1

Offset = dict[str, Any]


@dataclass(frozen=True)
class JournalPart(InputPartition):
    """Entries from `start` up to, not including, `end`."""

    start: int
    end: int


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the journal from where the checkpoint is."""

    def __init__(self, options: JournalStreamRead) -> None:
        self._options = options
        self._source = JournalSource(options.broker, fail_on_data_loss=options.fail_on_data_loss)
        self._patience = Patience(options.trigger)
        self._initial: Offset | None = None
        self._cap = 0
        self._position = 0
        self._wait_s = options.poll_ms / 1000

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a new checkpoint begins. Asked for twice. Raises JournalOff, DataLoss."""
        if self._initial is None:
            options, extent = self._options, self._source.extent()
            if not extent.enabled and extent.first == extent.next:
                raise JournalOff(
                    f"the journal of {options.broker.addr} is off and empty: "
                    "switch it on with enabled = true under [journal] of its file"
                )
            if options.start_ns:
                start = self._source.seq_at(options.start_ns, extent)
            else:
                start = options.start or extent.first
                self._source.check_there(start, extent.first)
            self._initial = {"seq": start}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.trigger.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is written from now on is not for this run."""
        self._cap = self._source.extent().next
        self._wait_s = 0

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The end of the next batch; `start` itself while there is not enough for one. Raises DataLoss."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.trigger.most
        position, deadline = _number(start), time.monotonic() + self._wait_s
        while True:
            extent = self._source.extent()
            self._check(position, extent)
            first, end = max(position, extent.first), self._cap or extent.next
            if self._cap:
                ready = end > position
            else:
                ready = self._patience.enough(end - first)
            if ready:
                self._patience.taken()
                # What was removed meanwhile is part of the batch, and holds nothing.
                self._position = max(position, min(end, first + most))
                return {"seq": self._position}
            if time.monotonic() >= deadline:
                self._position = position
                return start
            time.sleep(_LOOK_AGAIN_S)

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For the query's progress: how far the journal goes, how far behind the query is, and what is left to removal.

        `kept` is the number of entries that the broker has and the query has read: when it comes to 0, the next that
        are removed are entries that were not read.
        """
        extent = self._source.extent()
        position = self._position or extent.first
        kept = max(0, position - extent.first)
        return {"seq": extent.next, "behind": extent.next - position, "oldest": extent.first, "kept": kept}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        low, high = _number(start), _number(end)
        if low < high:
            first = self._source.extent().first
            self._source.check_there(low, first)
            low = max(low, min(first, high))
        return [JournalPart(each.start, each.end) for each in Range(low, high).split(self._options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JournalPart)
        if partition.start == partition.end:
            return
        selection = self._options.selection
        batches = self._source.batches(partition.start, selection.queue)
        yield from journal_batches(batches, self._options.columns, partition.end, selection)

    def commit(self, end: Offset) -> None:
        """Nothing is left to do: the broker keeps no position of a reader."""

    def stop(self) -> None:
        """Nothing is held."""

    def _check(self, position: int, extent: Extent) -> None:
        """Raises DataLoss for what was removed, if that is not accepted, and for a journal that ends too early."""
        if position > extent.next:
            raise DataLoss(
                f"the journal ends before entry {extent.next}, and the checkpoint is at entry {position}: it belongs "
                "to another broker, or the broker has lost its data. Use the right checkpoint, or a new one"
            )
        if position < extent.first:
            self._source.check_there(position, extent.first)
            _log.warning(
                "entries %s to %s of the journal were removed before they were read", position, extent.first - 1
            )


def _number(offset: Offset) -> int:
    number = offset.get("seq")
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{offset} is no offset of the journal: the checkpoint belongs to another query")
    return number
