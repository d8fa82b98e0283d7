"""Records of the journal: what happened in one tick, packed in columns.

A tick moves up to thousands of messages in a few ways, and messages that moved alike have nearly everything in common.
So a record holds sections, one for each kind of event and queue, and a section holds columns of numbers, one for each
thing there is to say. A column whose values are all the same takes one value, one that counts up takes its first.
Fairness keys and priorities are those of lanes, which stand once in a table that all sections share.

    record    version, time, entries, lanes, sections
    lanes     their weights, then their prefixes as the store keeps them: queue, fairness key, priority
    section   kind, rows, columns; then the columns
    column    field, form, values

Numbers are little-endian, as nearly all machines have them in memory. Entries are numbered in the order in which they
stand here; the number of the last one is in the record's key.
"""

import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct, error

from fila.core.errors import StoreCorrupt
from fila.storage import keys

VERSION = 1
MAX_ENTRIES = 1 << 24
"""More than any tick can hold; a record that claims more is damaged."""

_HEAD = Struct("<BQIII")  # version, at, entries, lanes, sections
_SECTION = Struct("<BIB")  # kind, rows, columns
_COLUMN = Struct("<BB")  # field, form
_ONE = Struct("<BBQ")  # field, form, value
_SIZE = Struct("<I")
_SEGMENT = Struct("<BQQQ")  # version, first, ended at, bytes

_SAME, _RUN, _TEXT = 0, 1, 2
_WIDTHS = {11: "B", 12: "H", 14: "I", 18: "Q"}
_FORMS = {code: form for form, code in _WIDTHS.items()}
_U64 = 1 << 64
_SWAP = sys.byteorder == "big"


class Kind(IntEnum):
    """What happened. The numbers are on disk and on the wire."""

    STARTED = 1
    """The broker started; no queue has a consumer."""
    COUNTED = 2
    """How many messages a queue holds, before what else the record says. Of every queue, where a reader may begin."""
    CONSUMERS = 3
    """How many consumers a queue has from now on."""
    ENQUEUED = 4
    DUE = 5
    """Its delay is over."""
    LEASED = 6
    ACKED = 7
    NACKED = 8
    EXPIRED = 9
    RETURNED = 10
    """Its consumer went away."""
    DEAD = 11
    """Moved to the dead-letter queue."""
    REDRIVEN = 12
    """Moved from the dead-letter queue back to where it came from."""
    DROPPED = 13
    """Removed without an ack."""
    CREATED = 14
    UPDATED = 15
    DELETED = 16
    """A queue with all its messages."""
    CONFIGURED = 17
    """An entry of the runtime configuration was set or removed."""
    RELEASED = 18
    """Given back by its consumer without counting an attempt."""


class Field(IntEnum):
    """What is said of an event. What is left out is 0."""

    LANE = 1
    """Index in the record's table"""
    SEQ = 2
    """The message, by the time of its enqueueing in nanoseconds"""
    ATTEMPT = 3
    """Counts from 1: the attempt that begins or ends"""
    SIZE = 4
    """Bytes of the payload"""
    COST = 5
    UNTIL = 6
    """When the delay or the lease ends, in nanoseconds since the epoch"""
    COUNT = 7
    """How many messages or consumers"""
    CAUSE = 8
    """The kind of failure that a message died of"""
    TARGET = 9
    """The lane that a message moved to"""
    THROTTLED = 10
    """For how long throttles held a message up that is leased now, in nanoseconds"""


Column = tuple[int, Sequence[int]]
"""A field and its values. A plain number: to hash a member of an enumeration takes longer than to pack it."""


@dataclass(frozen=True, slots=True)
class LaneRow:
    """Whose messages these are."""

    queue: str
    fairness_key: str
    priority: int
    weight: int


@dataclass(slots=True)
class Section:
    """Events of one kind in one queue. A column of one value stands for all rows."""

    kind: Kind
    rows: int
    columns: dict[Field, Sequence[int]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    """For events that are told in words: one for each row, or none."""

    def values(self, name: Field) -> Sequence[int]:
        """One value for each row."""
        column = self.columns.get(name, (0,))
        return column if len(column) == self.rows else [column[0]] * self.rows

    def cut(self, start: int, end: int) -> "Section":
        """The rows from `start` up to, not including, `end`."""
        columns = {
            name: column if len(column) < self.rows else column[start:end] for name, column in self.columns.items()
        }
        return Section(self.kind, end - start, columns, self.texts[start:end])


@dataclass(slots=True)
class Record:
    """What happened in one tick."""

    at: int
    lanes: list[LaneRow]
    sections: list[Section]

    @property
    def entries(self) -> int:
        return sum(section.rows for section in self.sections)

    def queue_of(self, section: Section) -> str:
        """All rows of a section are of one queue."""
        return self.lanes[section.columns[Field.LANE][0]].queue


@dataclass(frozen=True, slots=True)
class Segment:
    """Records that are kept and dropped together."""

    first: int
    """The number of its first entry"""
    last: int
    ended_at: int
    bytes: int


class Packer:
    """Builds the bytes of a record, section by section. Lanes are given as indexes in a table that comes last."""

    __slots__ = ("_parts", "_sections", "entries")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._sections = 0
        self.entries = 0

    def add(self, kind: Kind, rows: int, columns: Sequence[Column], texts: Sequence[str] = ()) -> None:
        """A section. A column has one value, or one for each row; a range stands for itself."""
        parts = self._parts
        parts.append(_SECTION.pack(kind, rows, len(columns) + bool(texts)))
        for name, column in columns:
            first = column[0]
            if type(column) is range and rows > 1:
                parts.append(_ONE.pack(name, _RUN, first))
            elif len(column) == 1 or (column[-1] == first and column.count(first) == rows):
                parts.append(_ONE.pack(name, _SAME, first))
            else:
                parts += _wide(name, column)
        if texts:
            parts.append(_COLUMN.pack(0, _TEXT))
            for text in texts:
                encoded = text.encode()
                parts += (_SIZE.pack(len(encoded)), encoded)
        self._sections += 1
        self.entries += rows

    def record(self, at: int, prefixes: Sequence[bytes], weights: Sequence[int]) -> bytes:
        """The whole, with the table of lanes that the sections refer to."""
        head = _HEAD.pack(VERSION, at, self.entries, len(prefixes), self._sections)
        return b"".join((head, _bytes(array("I", weights)), *prefixes, *self._parts))


def _wide(name: int, column: Sequence[int]) -> tuple[bytes, bytes]:
    """The column in as few bytes as its values allow. Trying is cheaper than looking for the largest first."""
    if column[0] < 1 << 32:
        with suppress(ValueError):  # costs next to nothing when the column is bytes already
            return _COLUMN.pack(name, _FORMS["B"]), bytes(column)
        for code in ("H", "I"):
            with suppress(OverflowError):
                return _COLUMN.pack(name, _FORMS[code]), _bytes(array(code, column))
    return _COLUMN.pack(name, _FORMS["Q"]), _bytes(array("Q", column))


def _bytes(values: "array[int]") -> bytes:
    if _SWAP:
        values.byteswap()
    return values.tobytes()


def read_head(value: bytes) -> tuple[int, int]:
    """When it happened, and how many entries there are. Raises StoreCorrupt."""
    _check_version(value)
    try:
        _, at, entries, _, _ = _HEAD.unpack_from(value)
    except error as cause:
        raise _unreadable() from cause
    if not 0 < entries <= MAX_ENTRIES:
        raise _unreadable()
    return at, entries


def read_record(value: bytes) -> Record:
    """Raises StoreCorrupt for anything that `Packer` did not make."""
    at, entries = read_head(value)
    try:
        record = _Reader(value).record(at)
    except (error, ValueError, IndexError, OverflowError, UnicodeDecodeError) as cause:
        raise _unreadable() from cause
    if record.entries != entries:
        raise _unreadable()
    return record


class _Reader:
    """Walks over the bytes of a record. Raises ValueError, IndexError or struct.error where they make no sense."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._at = _HEAD.size

    def record(self, at: int) -> Record:
        _, _, _, lane_count, section_count = _HEAD.unpack_from(self._value)
        weights = self._array("I", lane_count)
        lanes = [self._lane(weight) for weight in weights]
        record = Record(at, lanes, [self._section(lanes) for _ in range(section_count)])
        if self._at != len(self._value):
            raise ValueError("more than was announced")
        return record

    def _lane(self, weight: int) -> LaneRow:
        queue, at = keys.read_name(self._value, self._at)
        key, at = keys.read_name(self._value, at)
        self._at = at + 1
        return LaneRow(queue, key, self._value[at], weight)

    def _section(self, lanes: list[LaneRow]) -> Section:
        kind, rows, columns = self._unpack(_SECTION)
        if not 0 < rows <= MAX_ENTRIES:
            raise ValueError("no such number of rows")
        section = Section(Kind(kind), rows)
        for _ in range(columns):
            name, form = self._unpack(_COLUMN)
            if form == _TEXT and not name and not section.texts:
                section.texts = [self._text() for _ in range(rows)]
            elif Field(name) in section.columns:
                raise ValueError("a column comes twice")
            else:
                section.columns[Field(name)] = self._column(form, rows)
        for name in (Field.LANE, Field.TARGET):
            if name in section.columns and max(section.columns[name]) >= len(lanes):
                raise ValueError("no such lane")
        if len({lanes[lane].queue for lane in set(section.columns.get(Field.LANE, ()))}) != 1:
            raise ValueError("a section is of one queue")
        return section

    def _column(self, form: int, rows: int) -> Sequence[int]:
        if form in _WIDTHS:
            return self._array(_WIDTHS[form], rows)
        (first,) = self._array("Q", 1)
        if form == _SAME:
            return (first,)
        if form != _RUN or first + rows > _U64:
            raise ValueError("no such form")
        return range(first, first + rows)

    def _array(self, code: str, count: int) -> "array[int]":
        values = array(code)
        values.frombytes(self._take(count * values.itemsize))
        if _SWAP:
            values.byteswap()
        return values

    def _text(self) -> str:
        (size,) = self._unpack(_SIZE)
        return self._take(size).decode()

    def _take(self, size: int) -> bytes:
        taken = self._value[self._at : self._at + size]
        if len(taken) != size:
            raise ValueError("less than was announced")
        self._at += size
        return taken

    def _unpack(self, form: Struct) -> tuple[int, ...]:
        values = form.unpack_from(self._value, self._at)
        self._at += form.size
        return values


def segment(record: Segment) -> bytes:
    return _SEGMENT.pack(VERSION, record.first, record.ended_at, record.bytes)


def read_segment(last: int, value: bytes) -> Segment:
    """The last entry is in the key. Raises StoreCorrupt."""
    _check_version(value)
    try:
        _, first, ended_at, size = _SEGMENT.unpack(value)
    except error as cause:
        raise _unreadable() from cause
    if not 0 < first <= last:
        raise _unreadable()
    return Segment(first, last, ended_at, size)


def _check_version(value: bytes) -> None:
    if value[:1] != bytes([VERSION]):
        version = value[0] if value else "none"
        raise StoreCorrupt(f"a journal record has version {version}, this broker knows {VERSION}")


def _unreadable() -> StoreCorrupt:
    return StoreCorrupt("a journal record cannot be read")
