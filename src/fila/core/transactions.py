"""What is staged for transactions, and how far each producer has committed.

Rules of this file:
- a producer's transactions are numbered and committed in rising order; numbers may be left out;
- what was staged for one that is committed, or was passed over, is never committed again;
- a call that stages again under the same part and sequence takes the place of the first;
- messages have their numbers from when they were staged. So what two parts staged at once is enqueued as it came, and
  what one part staged is in order if its calls came in order. If they did not, the part gets new numbers.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

NONE_YET = -1

BatchKey = tuple[str, int]
"""Part and sequence"""


class Share(NamedTuple):
    """What a call staged for one queue."""

    queue: str
    created_at: int
    """When the queue was created: another one may have its name by now."""
    messages: int
    size: int
    """Bytes of headers and payloads"""


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """What one call staged."""

    first: int
    """The sequence number of its first message. No other messages have one of theirs, in no queue."""
    messages: int
    size: int
    """In bytes, as it is kept"""
    shares: tuple[Share, ...]
    """Where its messages are"""

    @property
    def end(self) -> int:
        return self.first + self.messages


Staged = tuple[BatchKey, StagedBatch]


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

    def parts(self) -> dict[str, list[Staged]]:
        """What was staged under each part, in order."""
        found: dict[str, list[Staged]] = {}
        for entry in sorted(self.batches.items(), key=itemgetter(0)):
            found.setdefault(entry[0][0], []).append(entry)
        return found


def out_of_order(part: Sequence[Staged]) -> bool:
    """Whether the calls of a part came in another order than that of their numbers."""
    firsts = [batch.first for _, batch in part]
    return firsts != sorted(firsts)


def in_turn(parts: Mapping[str, Sequence[Staged]], names: Sequence[str], moved: Container[str]) -> list[Staged]:
    """What parts have staged, in the order in which it is enqueued: what gets new numbers comes last."""
    kept = [entry for name in names if name not in moved for entry in parts.get(name, ())]
    last = [entry for name in names if name in moved for entry in parts.get(name, ())]
    return [*sorted(kept, key=lambda entry: entry[1].first), *last]


class Ranges:
    """Whether a number lies in one of many ranges, which are in order."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.starts = [start for start, _ in ranges]
        self._ends = [end for _, end in ranges]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.starts, number) - 1
        return at >= 0 and number < self._ends[at]


FIRST_AHEAD = 86_400 * 10**9
"""The first number of a producer is at most the time in nanoseconds since 1970, a day ahead of the broker's clock."""
MAX_JUMP, JUMP_SHARE = 1_000_000, 100
"""By how much the number may grow at once: a million, or a hundredth of itself, which is 200 days for numbers that are
times, and lets dates written as digits (20261231235959) pass into the next year."""


@dataclass(slots=True, eq=False)
class Producer:
    """One sequence of transactions."""

    name: str
    last: int = NONE_YET
    """The last transaction that was committed"""
    heard_at: int = 0
    open: dict[int, Transaction] = field(default_factory=dict)
    publishing: deque[Staged] = field(default_factory=deque)
    """What is committed and not enqueued yet, of the last transaction"""
    moved: frozenset[str] = frozenset()
    """The parts of it that get new numbers"""

    def furthest(self, now: int) -> int:
        """The highest number that its next transaction may have."""
        if self.last == NONE_YET:
            return now + FIRST_AHEAD
        return self.last + max(MAX_JUMP, self.last // JUMP_SHARE)


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
        """Transactions that were not committed in time, until about `limit` calls have staged for them."""
        found: list[tuple[Producer, Transaction]] = []
        for producer in self.producers.values():
            for transaction in producer.open.values():
                if transaction.expires_at <= now and limit > 0:
                    found.append((producer, transaction))
                    limit -= len(transaction.batches)
        return found

    def silent(self, since: int, limit: int) -> list[Producer]:
        """Producers of whom nothing is staged and nothing was heard after `since`."""
        idle = [one for one in self.producers.values() if not (one.open or one.publishing)]
        return [one for one in idle if one.heard_at < since][:limit]

    def hidden(self) -> list[tuple[int, int]]:
        """The ranges of sequence numbers of messages that nobody may see yet, in order: first, and end."""
        opened = [one for producer in self.producers.values() for one in producer.open.values()]
        staged = [batch for transaction in opened for batch in transaction.batches.values()]
        committed = [batch for producer in self.producers.values() for _, batch in producer.publishing]
        return sorted((batch.first, batch.end) for batch in [*staged, *committed])

    def drop(self, producer: Producer, number: int) -> list[StagedBatch]:
        """Forget what was staged for a transaction. Returns it."""
        gone = producer.open.pop(number, None)
        if gone is not None:
            self.size -= gone.size
        if producer.last == NONE_YET and not producer.open:
            self.producers.pop(producer.name, None)
        return list(gone.batches.values()) if gone is not None else []
