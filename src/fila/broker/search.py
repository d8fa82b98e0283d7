"""Finding messages of a queue without taking them, by age, in small steps.

Memory says which messages there are and where; what memory does not hold (headers, errors) is read from the store, and
only of messages that fit in all other ways. A search is a generator that pauses after each step: whoever drives it lets
the broker work meanwhile. So it sees a queue that changes, and what it found may be gone when it is looked at again. A
small queue is seen as it is at one moment, since the first pause comes after PAUSE_AFTER messages. A larger one is
looked at twice, so that a message is found that moves meanwhile from where nobody looked yet to where somebody did.
Only one that moves several times while others are looked at may be missed.

Age is that of the message, not of its death: the order is that of the sequence numbers.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from fila.broker.attempts import failures_of
from fila.broker.commands import Location
from fila.broker.queue import QueueState
from fila.core.fair_key import FairKey
from fila.core.lifecycle import State
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

NEWEST_POSSIBLE = (1 << 64) - 1
EVERYWHERE = frozenset({State.READY, State.DELAYED, State.LEASED})

GATHERED = 4_000
"""Messages whose order is found out at a time."""

# Effort is counted in about the time that it takes to look at one message in memory.
PAUSE_AFTER = 1_000
READ_EFFORT = 8
HISTORY_EFFORT = 30
BYTES_AN_EFFORT = 1024

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that pauses at every `yield` and returns its result at the end."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which messages are meant, and in which order. The default is all of them, oldest first."""

    low: int = 0
    high: int = NEWEST_POSSIBLE
    """Sequence numbers, both included"""
    newest: bool = False
    states: frozenset[State] = EVERYWHERE
    fairness_key: str | None = None
    seqs: frozenset[int] | None = None
    error: str = ""
    """A part of what was said of one of the attempts that are remembered, in any case"""
    body: Callable[[bytes], bool] | None = None
    """Whether the body of a message, as its producer encoded it, is meant"""

    def behind(self, position: int) -> "Query":
        """What is left of it behind a message."""
        return replace(self, high=position - 1) if self.newest else replace(self, low=position + 1)


class Match(NamedTuple):
    """A message that is meant."""

    location: Location
    record: bytes | None
    """None when nobody had to read it."""


class Search:
    """A walk over the messages of one queue that are meant."""

    def __init__(self, store: Storage, queue: QueueState, query: Query, *, read: bool = False) -> None:
        self._store = store
        self._queue = queue
        self._query = query
        self._read = read or query.body is not None
        self._error = query.error.casefold()
        self._gathered: list[Location] = []
        """Those to be looked at next, the first of them last"""
        self._more = True
        self._rest = PAUSE_AFTER
        self.effort = 0
        self.position: int | None = None
        """The message that was looked at last"""

    @property
    def done(self) -> bool:
        """Whether there is nothing more to look at."""
        return not (self._more or self._gathered)

    def next(self, most: int, effort: int) -> Steps[list[Match]]:
        """The next messages that are meant, at most `most`. Fewer when that is all, or more than `effort` is spent."""
        found: list[Match] = []
        limit = self.effort + effort
        while len(found) < most and self.effort < limit:
            if not self._gathered:
                if not self._more:
                    break
                yield from self._gather()
                continue
            location = self._gathered.pop()
            self.position = location.seq
            match = self._check(location)
            if match is not None:
                found.append(match)
            if self._tired():
                yield
        return found

    def _check(self, location: Location) -> Match | None:
        self.effort += 1
        query, seq = self._query, location.seq
        if query.seqs is not None and seq not in query.seqs:
            return None
        if self._error and not self._failed_with(seq):
            return None
        if not self._read:
            return Match(location, None)
        lane = keys.lane(self._queue.name, location.key, location.priority)
        record = self._store.get(Family.MESSAGES, keys.message(lane, seq))
        self.effort += READ_EFFORT
        if record is None:  # it has gone meanwhile
            return None
        self.effort += len(record) // BYTES_AN_EFFORT
        meant = query.body is None or query.body(record[len(codec.head_of(record)) :])
        return Match(location, record) if meant else None

    def _failed_with(self, seq: int) -> bool:
        if seq not in self._queue.attempts:
            return False
        self.effort += HISTORY_EFFORT
        attempts = failures_of(self._store, self._queue, seq)
        return any(self._error in attempt.error.casefold() for _, attempt in attempts)

    def _tired(self) -> bool:
        if self.effort < self._rest:
            return False
        self._rest = self.effort + PAUSE_AFTER
        return True

    def _gather(self) -> Steps[None]:
        """Find out which messages come next. What comes meanwhile may be missed, as if it had come later."""
        query = self._query if self.position is None else self._query.behind(self.position)
        first = _First(query)
        if (yield from self._look(first)):
            yield from self._look(first)
        self._gathered = first.locations()
        self._more = len(self._gathered) == GATHERED
        self._gathered.reverse()

    def _look(self, first: "_First") -> Steps[bool]:
        """Look once wherever there are messages. Returns whether there was a pause, in which they could move."""
        query, paused = self._query, False
        if State.READY in query.states:
            for key in self._keys():
                for lane in [*key.lanes.values()]:
                    seqs = lane.between(first.low, first.high, GATHERED, newest=query.newest)
                    first.add(Location(seq, key.name, lane.priority, State.READY, 0) for seq in seqs)
                    self.effort += 1 + len(seqs) // 4
                if self._tired():
                    paused = True
                    yield
        for location in self._apart():
            if first.low <= location.seq <= first.high and query.fairness_key in (None, location.key):
                first.add((location,))
            self.effort += 1
            if self._tired():
                paused = True
                yield
        return paused

    def _keys(self) -> list[FairKey]:
        known, name = self._queue.keys, self._query.fairness_key
        if name is None:
            return list(known.values())
        return [known[name]] if name in known else []

    def _apart(self) -> Iterable[Location]:
        """Messages that are not in the lanes of their keys."""
        if State.READY in self._query.states:
            for seq, lane, _ in self._queue.suspects.all():
                yield Location(seq, lane.key.name, lane.priority, State.READY, 0)
        if State.DELAYED in self._query.states:
            for due, seq, lane, _ in self._queue.schedule.all():
                yield Location(seq, lane.key.name, lane.priority, State.DELAYED, due)
        if State.LEASED in self._query.states:
            for grant in self._queue.leases.grants():
                for lane, seq, _ in [*grant.members.values()]:
                    yield Location(seq, lane.key.name, lane.priority, State.LEASED, grant.expires_at)


class _First:
    """The first `GATHERED` of all that is added, and the range in which others would have to be."""

    def __init__(self, query: Query) -> None:
        self.low = query.low
        self.high = query.high
        self._newest = query.newest
        self._locations: list[Location] = []

    def add(self, locations: Iterable[Location]) -> None:
        self._locations += locations
        if len(self._locations) >= 2 * GATHERED:
            self._locations = self.locations()
            if len(self._locations) == GATHERED:
                last = self._locations[-1].seq
                self.low, self.high = (last, self.high) if self._newest else (self.low, last)

    def locations(self) -> list[Location]:
        # A message that moved while the others were gathered may be here twice, once from each place.
        once = {location.seq: location for location in self._locations}
        return sorted(once.values(), reverse=self._newest)[:GATHERED]


def finish(steps: Steps[T]) -> T:
    """Take all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
