"""What is staged for transactions, and how far each producer has committed.

Rules of this file:
- a producer's transactions are numbered and committed in rising order; numbers may be left out;
- what was staged for one that is committed, or was passed over, is never committed again;
- a call that stages again under the same part and sequence takes the place of the first.
"""

from collections import deque
from dataclasses import dataclass, field

NONE_YET = -1

BatchKey = tuple[str, int]
"""Part and sequence"""


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """What one call staged."""

    messages: int
    size: int
    """In bytes, as it is kept"""


@dataclass(slots=True, eq=False)
class Transaction:
    """What waits for a commit."""

    number: int
    expires_at: int
    batches: dict[BatchKey, StagedBatch] = field(default_factory=dict)
    messages: int = 0
    size: int = 0

    def add(self, key: BatchKey, batch: StagedBatch, expires_at: int) -> None:
        before = self.batches.get(key)
        if before is not None:
            self.messages -= before.messages
            self.size -= before.size
        self.batches[key] = batch
        self.messages += batch.messages
        self.size += batch.size
        self.expires_at = max(self.expires_at, expires_at)

    def part(self, name: str) -> list[tuple[BatchKey, StagedBatch]]:
        """What was staged under one part, in order."""
        return sorted(entry for entry in self.batches.items() if entry[0][0] == name)


@dataclass(slots=True, eq=False)
class Producer:
    """One sequence of transactions."""

    name: str
    last: int = NONE_YET
    """The last transaction that was committed"""
    heard_at: int = 0
    open: dict[int, Transaction] = field(default_factory=dict)
    publishing: deque[tuple[BatchKey, StagedBatch]] = field(default_factory=deque)
    """What is committed and not enqueued yet, of the last transaction"""
    parts: list[str] = field(default_factory=list)
    """The parts that it is of"""


class Transactions:
    """All producers that stage."""

    __slots__ = ("producers", "size")

    def __init__(self) -> None:
        self.producers: dict[str, Producer] = {}
        self.size = 0
        """Bytes that are staged, committed ones included until they are enqueued"""

    def find(self, name: str) -> Producer:
        """A producer, which may be new: it is known from when something of it is durable."""
        return self.producers.get(name) or Producer(name)

    def expired(self, now: int, limit: int) -> list[tuple[Producer, Transaction]]:
        """Transactions that were not committed in time."""
        found = [
            (producer, transaction)
            for producer in self.producers.values()
            for transaction in producer.open.values()
            if transaction.expires_at <= now
        ]
        return found[:limit]

    def silent(self, since: int, limit: int) -> list[Producer]:
        """Producers of whom nothing is staged and nothing was heard after `since`."""
        idle = [one for one in self.producers.values() if not (one.open or one.publishing)]
        return [one for one in idle if one.heard_at < since][:limit]

    def drop(self, producer: Producer, number: int) -> None:
        """Forget what was staged for a transaction."""
        gone = producer.open.pop(number, None)
        if gone is not None:
            self.size -= gone.size
        if producer.last == NONE_YET and not producer.open:
            self.producers.pop(producer.name, None)
