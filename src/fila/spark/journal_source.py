"""The journal of a broker as readers see it: how far it goes, and its entries from a number on.

Rules of this file:
- The broker's clock never goes back, so neither do the times of entries. A time is found by halving the range.
- A broker that is away is asked again until `retryTimeout` is over.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fila.client import JournalBatch, UnavailableError
from fila.spark.connections import RetryDeadline, client_of
from fila.spark.errors import DataLoss
from fila.spark.options import Broker


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a journal goes."""

    #: The number of the oldest entry, and of the next one that will be written.
    first: int
    next: int
    enabled: bool


class JournalSource:
    """The journal of one broker."""

    def __init__(self, broker: Broker, *, fail_on_data_loss: bool = True) -> None:
        self._broker = broker
        self._fail = fail_on_data_loss

    def extent(self) -> Extent:
        [said] = self._ask(last=1, pieces=1)
        return Extent(said.first_available_seq, said.next_seq, said.enabled)

    def batches(self, start: int, queue: str = "") -> Iterator[JournalBatch]:
        """Entries from one on, to the end of the journal. Raises DataLoss."""
        deadline = RetryDeadline(self._broker)
        while True:
            try:
                with client_of(self._broker).read_journal_batches(start, queue=queue) as batches:
                    said = next(batches)  # how far the journal goes, and no entries
                    self.check_there(start, said.first_available_seq)
                    for batch in batches:
                        yield batch
                        start, deadline = batch.position, RetryDeadline(self._broker)
                    return
            except UnavailableError:
                if not deadline.wait():
                    raise

    def seq_at(self, at_ns: int, extent: Extent) -> int:
        """The number of the first entry of this time or a later one."""
        low, high = extent.first, extent.next
        while low < high:
            middle = (low + high) // 2
            found = [ns for batch in self._ask(middle, max_entries=1) for ns in batch.columns["at_ns"]]
            if not found or found[0] >= at_ns:
                high = middle
            else:
                low = middle + 1
        return low

    def check_there(self, start: int, first: int) -> None:
        """Raises DataLoss where entries before `first` are needed, and that is not accepted."""
        if start < first and self._fail:
            raise DataLoss(
                f"the journal begins at entry {first}, entry {start} was removed by age or size: "
                "read from a later startSeq, or set failOnDataLoss to false"
            )

    def _ask(self, start: int = 0, *, pieces: int = 0, **options: Any) -> Sequence[JournalBatch]:
        """A few entries, or none: the first piece tells how far the journal goes."""
        deadline = RetryDeadline(self._broker)
        while True:
            try:
                with client_of(self._broker).read_journal_batches(start, **options) as batches:
                    return _first(batches, pieces)
            except UnavailableError:
                if not deadline.wait():
                    raise


def _first(batches: Iterable[JournalBatch], count: int) -> list[JournalBatch]:
    """So many, or all for 0."""
    found: list[JournalBatch] = []
    for batch in batches:
        found.append(batch)
        if len(found) == count:
            break
    return found


@dataclass(frozen=True)
class Range:
    """Entries from `start` up to, not including, `end`."""

    start: int
    end: int

    def split(self, parts: int) -> "list[Range]":
        """At least one, which may be empty."""
        if self.start >= self.end:
            return [Range(1, 1)]
        size = -(-(self.end - self.start) // parts)
        return [Range(low, min(low + size, self.end)) for low in range(self.start, self.end, size)]
