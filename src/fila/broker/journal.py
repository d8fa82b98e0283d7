"""The journal: one record a tick of what happened, in the same write as what happened.

Entries are numbered from 1, over restarts too. The numbers have no gaps, except for one where the journal was off.

Records are kept in segments. Only whole segments are dropped, oldest first, each by deleting one range: when all
together are too large, or when the last of one is too old.
What a segment holds is counted when it is written, so keeping the journal in bounds never reads it.

Every segment begins with the number of messages in each queue. So the books balance over whatever is kept: what a queue
held at first, and what came, is what went and what it holds.

A journal that is off keeps what it has, and leaves out one number, so that whoever reads on later sees that something
is missing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fila.broker.commands import Command
from fila.broker.events import Events, Look, looks_in_vain
from fila.broker.promotion import Promotion
from fila.broker.state import THROTTLE
from fila.broker.tick import Tick
from fila.config import JournalConfig
from fila.core.errors import StoreCorrupt, StoreFailed
from fila.core.ids import NS_PER_MS
from fila.storage import journal as codec
from fila.storage import keys
from fila.storage.base import Batch, Family, Storage
from fila.storage.journal import Record, Segment

SEGMENTS = 32
"""In so many parts the journal is kept: what is dropped at once, and by how much it may be older than it should."""

MAX_LOOKS = 1000
"""Looks in vain that wait for the next record. A tick that finds more of them writes a record itself."""

_RECORDS_END = keys.after(keys.RECORD_MARK)


@dataclass(slots=True)
class _Open:
    """The segment that is being written."""

    first: int
    began_at: int
    ended_at: int = 0
    bytes: int = 0
    base_bytes: int = 0
    """What its first record takes, which grows with the number of queues"""


@dataclass(slots=True)
class Plan:
    """What becomes of the journal when the tick is durable."""

    last: int
    open: _Open
    closed: Segment | None
    dropped: int
    consumers: dict[str, int]
    """Of which queues it says how many consumers they have, as of which change"""


class Journal:
    """Numbers, keeps and drops records. `next_entry` is the number of the next entry."""

    def __init__(self, store: Storage, config: JournalConfig) -> None:
        """Raises StoreCorrupt."""
        self._store = store
        self._config = config
        self._segments: deque[Segment] = deque()
        self._open: _Open | None = None
        self._bytes = 0
        self._consumers_changed: dict[str, int] = {}
        """Queues that have other consumers than the last record says, each with the number of its last change"""
        self._changes = 0
        self._looks: list[Look] = []
        """Those in vain, of ticks that wrote nothing"""
        self._started = False
        self.next_entry = 1
        self._load()

    @property
    def enabled(self) -> bool:
        return self._config.enabled

    @property
    def first_entry(self) -> int:
        """The oldest entry that there is; the next one if there is none."""
        if self._segments:
            return self._segments[0].first
        return self._open.first if self._open is not None else self.next_entry

    @property
    def bytes(self) -> int:
        """What all records take."""
        return self._bytes + (self._open.bytes if self._open is not None else 0)

    def consumers_changed(self, queue: str) -> None:
        """Say with the next record how many consumers a queue has."""
        if self.enabled:
            self._changes += 1
            self._consumers_changed[queue] = self._changes

    def remember_looks(self, tick: Tick) -> bool:
        """Say with the next record what a tick that writes nothing has looked at in vain. Returns whether that is done;
        if not, there are too many, and the tick has to write them.
        """
        looks = looks_in_vain(tick) if self.enabled else []
        if len(self._looks) + len(looks) > MAX_LOOKS:
            return False
        self._looks += looks
        return True

    def plan(self, tick: Tick, commands: Sequence[Command]) -> Plan | None:
        """Add the tick's record to its write. Changes nothing else; `commit` does, once it is written."""
        if not self.enabled:
            return None
        events = Events()
        closed = self._to_be_closed(tick.now)
        if not self._started:
            events.add_start()
        begins = closed is not None or self._open is None
        if begins or not self._started:
            self._add_counts(events, tick)
        else:
            for name in self._consumers_changed:
                queue = tick.state.queues.get(name)
                if queue is not None:
                    events.add_consumers(queue)
        base = events.entries
        for look in self._looks:
            if look.queue in tick.state.queues:
                events.add_consumers(tick.state.queues[look.queue], look)
        events.add_tick(tick, commands)
        if not events.entries:
            return None
        record = events.record(tick.now)
        last = self.next_entry + events.entries - 1
        tick.batch.put(Family.JOURNAL, keys.journal_record(last), record)
        size = len(record) + keys.SEQ_BYTES + 1
        if closed is not None:
            tick.batch.put(Family.JOURNAL, keys.journal_segment(closed.last), codec.segment(closed))
        if begins or self._open is None:
            opened = _Open(self.next_entry, tick.now, tick.now, size, size if base else 0)
        else:
            opened = _Open(
                self._open.first, self._open.began_at, tick.now, self._open.bytes + size, self._open.base_bytes
            )
        dropped = self._plan_drops(tick, closed, size)
        return Plan(last, opened, closed, dropped, dict(self._consumers_changed))

    def commit(self, plan: Plan | None) -> None:
        """The record is durable."""
        if plan is None:
            return
        if plan.closed is not None:
            self._segments.append(plan.closed)
            self._bytes += plan.closed.bytes
        for _ in range(plan.dropped):
            self._bytes -= self._segments.popleft().bytes
        self._open = plan.open
        self.next_entry = plan.last + 1
        for queue, change in plan.consumers.items():
            if self._consumers_changed[queue] == change:  # not one that was made while the record was written
                del self._consumers_changed[queue]
        self._looks.clear()
        self._started = True

    def read(self, start: int, max_bytes: int) -> Iterator[tuple[int, Record]]:
        """Records from entry `start` on, each with the number of its first entry, until they take about `max_bytes`.

        The first one is cut to begin at `start`. When that entry is gone, it begins with the oldest one after it.
        Raises StoreCorrupt or StoreFailed.
        """
        taken = 0
        for key, value in self._store.scan(
            Family.JOURNAL, keys.journal_record(max(start, self.first_entry)), _RECORDS_END
        ):
            record = codec.read_record(value)
            first = keys.read_journal_key(key) - record.entries + 1
            yield (first, record) if first >= start else (start, _from_entry(record, start - first))
            taken += len(value)
            if taken >= max_bytes:
                return

    def _add_counts(self, events: Events, tick: Tick) -> None:
        promoted = {promotion.queue.name: len(promotion.delayed) for promotion in tick.all(Promotion)}
        for queue in tick.state.queues.values():
            # What is due has been taken from the schedule already.
            events.add_held(queue, queue.size + promoted.get(queue.name, 0))
            if len(queue.consumers):
                events.add_consumers(queue)
        events.add_limits({key: value for key, value in tick.state.config.items() if key.startswith(THROTTLE)})

    def _to_be_closed(self, now: int) -> Segment | None:
        """The open segment, when it is large or old enough."""
        current = self._open
        if current is None:
            return None
        full = current.bytes - current.base_bytes >= self._config.max_bytes // SEGMENTS
        old = now - current.began_at >= self._config.max_age_ms * NS_PER_MS // SEGMENTS
        if not full and not old:
            return None
        return Segment(current.first, self.next_entry - 1, current.ended_at, current.bytes)

    def _plan_drops(self, tick: Tick, closed: Segment | None, size: int) -> int:
        """Drop the oldest segments, as many as are too much or too old. Returns how many."""
        total = self.bytes + size
        too_old = tick.now - self._config.max_age_ms * NS_PER_MS
        kept = [*self._segments, closed] if closed is not None else self._segments
        dropped = 0
        for segment in kept:
            if total <= self._config.max_bytes and segment.ended_at >= too_old:
                break
            start, end = keys.journal_record(segment.first), keys.journal_record(segment.last + 1)
            tick.batch.delete_range(Family.JOURNAL, start, end)
            tick.batch.delete(Family.JOURNAL, keys.journal_segment(segment.last))
            total -= segment.bytes
            dropped += 1
        return dropped

    def _load(self) -> None:
        """Read what segments there are, and of the records only those that are in none of them."""
        for key, value in self._store.scan(Family.JOURNAL, keys.SEGMENT_MARK, keys.after(keys.SEGMENT_MARK)):
            segment = codec.read_segment(_number(key), value)
            self._segments.append(segment)
            self._bytes += segment.bytes
            self.next_entry = segment.last + 1
        for key, value in self._store.scan(Family.JOURNAL, keys.journal_record(self.next_entry), _RECORDS_END):
            at, entries = codec.read_head(value)
            last = _number(key)
            if last < entries:
                raise StoreCorrupt("a journal record cannot be read")
            if self._open is None:
                self._open = _Open(last - entries + 1, at)
            self._open.ended_at = at
            self._open.bytes += len(key) + len(value)
            self.next_entry = last + 1
        mark = int.from_bytes(self._store.get(Family.JOURNAL, keys.NEXT_ENTRY) or b"", "big")
        if mark > self.next_entry:
            self.next_entry = mark
        elif self.next_entry > 1 and not self.enabled:
            self._leave_one_out()

    def _leave_one_out(self) -> None:
        self.next_entry += 1
        batch = Batch()
        batch.put(Family.JOURNAL, keys.NEXT_ENTRY, keys.u64(self.next_entry))
        with suppress(StoreFailed):  # a broker must start on a full disk too; the counts of the next start tell as well
            self._store.write(batch)


def _from_entry(record: Record, skip: int) -> Record:
    sections = []
    for section in record.sections:
        if skip < section.rows:
            sections.append(section.cut(skip, section.rows))
        skip = max(0, skip - section.rows)
    return Record(record.at, record.lanes, sections)


def _number(key: bytes) -> int:
    try:
        return keys.read_journal_key(key)
    except ValueError as cause:
        raise StoreCorrupt("a journal record cannot be read") from cause
