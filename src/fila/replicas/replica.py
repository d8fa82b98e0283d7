"""A member's copy of a shard, and the rule by which every member reads the log.

Every reader of a log comes to the same result, because each applies this rule to each entry, in order:

- a barrier counts if its epoch is higher than the reader's: the reader takes the epoch over;
- a tick counts if its epoch is the reader's and its number is the next one. Numbers go on over epochs;
- a release counts if its epoch is the reader's. It changes nothing;
- everything else is ignored: what an old owner sent late, what stands twice, parts of a tick that a barrier cut off.

What counts goes into the local store in one write, with the mark: how far this copy has read, and in which epoch. So
the copy is always that of some position of the log, whenever a member dies.

A log that lacks something which was acknowledged is noticed, and then nothing goes on: `Lost`.
"""

from struct import Struct
from typing import NamedTuple

from fila.replicas.entry import (
    MAX_TICK_BYTES,
    Barrier,
    Head,
    Kind,
    Unreadable,
    read_barrier,
    read_changes,
    read_entry,
    read_name,
)
from fila.replicas.log import Entry, LogError
from fila.storage.base import Batch, Change, Family, Storage

MARK_KEY = b"replica"
_MARK = Struct(">BQQQQ")
_MARK_VERSION = 1
HALF_LOADED = b"\0"
"""Stands in the place of the mark while a snapshot is loaded"""


class Lost(LogError):
    """The log lacks entries that were acknowledged, or is not the one that was read before. An operator must choose:
    whoever goes on loses what is missing.
    """


class Mark(NamedTuple):
    """Up to where a copy has counted."""

    epoch: int = 0
    base: int = 0
    """The last tick before the epoch began"""
    tick: int = 0
    position: int = -1
    """Of the last entry that counted"""


class Counted(NamedTuple):
    """An entry that counted."""

    head: Head
    barrier: Barrier | None = None
    """Of a barrier"""
    successor: str = ""
    """Of a release"""


class HalfLoaded(LogError):
    """The store holds a part of a snapshot: a member died while it loaded it. It has to be loaded again."""


def read_mark(store: Storage) -> Mark:
    """Raises Unreadable or HalfLoaded."""
    stored = store.get(Family.DEFAULT, MARK_KEY)
    if stored is None:
        return Mark()
    if stored == HALF_LOADED:
        raise HalfLoaded("the store holds a part of a snapshot")
    return unpack_mark(stored)


def unpack_mark(stored: bytes) -> Mark:
    """Raises Unreadable."""
    if len(stored) != _MARK.size or stored[0] != _MARK_VERSION:
        raise Unreadable("the store's mark in the log is damaged, or a later version wrote it")
    return Mark(*_MARK.unpack(stored)[1:])


def pack_mark(mark: Mark) -> bytes:
    return _MARK.pack(_MARK_VERSION, *mark)


def write_mark(batch: Batch, mark: Mark) -> None:
    batch.put(Family.DEFAULT, MARK_KEY, pack_mark(mark))


class Replica:
    """The copy. It belongs to one member and is changed by what the log says, and by nothing else."""

    def __init__(self, store: Storage, shard: int) -> None:
        self.store = store
        self.shard = shard
        self.mark = read_mark(store)
        self.position = self.mark.position
        """The last that was read, whether it counted or not"""
        self._opened_at = self.position
        self._bytes = 0
        """Of all that was read since then"""
        self._parts: list[bytes] = []
        """Of the next tick"""

    def take(self, entry: Entry) -> Counted | None:
        """Apply the rule to the next entry. Returns it if it counted. Raises Lost, Unreadable, or StoreFailed; then
        nothing has changed, and the same entry may be tried again.
        """
        if entry.position != self.position + 1:
            raise Lost(f"after position {self.position} of the log comes {entry.position}")
        try:
            head, body = read_entry(entry.body)
            if head.shard != self.shard:
                raise Unreadable(f"an entry is of shard {head.shard}, this is {self.shard}")
            counted = self._apply(head, body, entry.position)
        except Unreadable as error:
            raise Unreadable(f"position {entry.position} of the log: {error}") from error
        self._moved(entry.position, len(entry.body))
        return counted

    def take_own(self, position: int, epoch: int, changes: list[Change], size: int) -> None:
        """The same for a tick in one part that this member has just appended right behind what it has read. `size`: of
        the entry. Raises StoreFailed.
        """
        if (position, epoch) != (self.position + 1, self.mark.epoch):
            raise Lost(f"a tick of epoch {epoch} stands at {position}, but {self.mark} was read to {self.position}")
        self._count_tick(changes, position)
        self._moved(position, size)

    @property
    def entry_bytes(self) -> float:
        """Of an entry of the log, on average since this member began."""
        return self._bytes / max(self.position - self._opened_at, 1)

    def _moved(self, position: int, size: int) -> None:
        self.position = position
        self._bytes += size

    def _apply(self, head: Head, body: bytes, position: int) -> Counted | None:
        match head.kind:
            case Kind.BARRIER:
                return self._barrier(head, body, position)
            case Kind.TICK:
                return self._tick(head, body, position)
            case Kind.RELEASE:
                return self._release(head, body, position)
            case _:
                raise Unreadable(f"a {head.kind.name.lower()} stands in the log of ticks")

    def _barrier(self, head: Head, body: bytes, position: int) -> Counted | None:
        if head.epoch <= self.mark.epoch:
            return None
        barrier = read_barrier(body)
        self._write([], Mark(head.epoch, self.mark.tick, self.mark.tick, position))
        return Counted(head, barrier)

    def _release(self, head: Head, body: bytes, position: int) -> Counted | None:
        if head.epoch < self.mark.epoch:
            return None
        if head.epoch > self.mark.epoch or head.tick > self.mark.tick:
            raise Lost(f"at {position} is a release of epoch {head.epoch} after tick {head.tick}; this is {self.mark}")
        return Counted(head, successor=read_name(body))

    def _tick(self, head: Head, body: bytes, position: int) -> Counted | None:
        mark = self.mark
        if head.epoch < mark.epoch:
            return None
        self._check(head, position)
        if head.tick <= mark.tick or head.part < len(self._parts):
            return None
        if head.part + 1 < head.parts:
            self._keep(body)
            return None
        self._count_tick(read_changes(b"".join((*self._parts, body))), position)
        return Counted(head)

    def _check(self, head: Head, position: int) -> None:
        """Whether a tick can stand where it stands, if the log has lost nothing."""
        mark = self.mark
        if head.epoch > mark.epoch:
            raise Lost(f"at {position} is a tick of epoch {head.epoch}, whose barrier is missing; this is {mark.epoch}")
        if head.tick > mark.tick + 1:
            raise Lost(f"at {position} is tick {head.tick} of epoch {head.epoch}; ticks after {mark.tick} are missing")
        if head.tick <= mark.base:
            raise Lost(f"at {position} is tick {head.tick} of epoch {head.epoch}, but {mark.base} came before that")
        if head.tick > mark.tick and head.part > len(self._parts):
            raise Lost(f"at {position} is part {head.part} of tick {head.tick}; {len(self._parts)} came before it")

    def _keep(self, body: bytes) -> None:
        if sum(map(len, self._parts)) + len(body) > MAX_TICK_BYTES:
            raise Unreadable(f"the tick that goes on here has more than {MAX_TICK_BYTES} bytes")
        self._parts.append(body)

    def _count_tick(self, changes: list[Change], position: int) -> None:
        self._write(changes, self.mark._replace(tick=self.mark.tick + 1, position=position))

    def _write(self, changes: list[Change], mark: Mark) -> None:
        batch = Batch()
        batch.changes = list(changes)
        write_mark(batch, mark)
        self.store.write(batch)
        self.mark = mark
        self._parts.clear()
