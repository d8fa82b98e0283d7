"""Records that were written a moment ago and are about to be delivered, so that they need not be read back."""

from collections import OrderedDict


class RecentRecords:
    """At most so many bytes of records; the oldest go first. Handing one out forgets it: it is delivered once."""

    __slots__ = ("_bytes", "_limit_bytes", "_records")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._records: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, seq: object) -> bool:
        return seq in self._records

    @property
    def room(self) -> int:
        """Bytes that can be added before something has to go."""
        return self._limit_bytes - self._bytes

    def add(self, records: list[tuple[int, bytes]]) -> None:
        """Keep records by their sequence numbers."""
        self._records.update(records)
        self._bytes += sum(len(record) for _, record in records)
        while self._bytes > self._limit_bytes:
            _, record = self._records.popitem(last=False)
            self._bytes -= len(record)

    def take(self, seqs: list[int]) -> dict[int, bytes]:
        """Those of the wanted records that are here."""
        if not self._records:
            return {}
        pop = self._records.pop
        found = {seq: record for seq in seqs if (record := pop(seq, None)) is not None}
        self._bytes -= sum(map(len, found.values()))
        return found
