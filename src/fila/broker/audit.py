"""The audit: numbered entries of who changed what, in the same write as the change itself.

Entries are numbered from 1, over restarts too, without gaps. Changes and refused calls are kept apart, each within a
bound of its own: however many calls are refused, no change is pushed out by them. The oldest are dropped when there
are too many bytes, or when they are too old, as new ones are written.

What is kept and where it begins stands in one record, the head, which is written with every entry. So a start reads
that record and nothing else.

A sweep (purge, redrive) takes many writes. How far it is stands in a record of its own, which each of these writes
renews; its end puts an entry in the place of the record. A sweep whose record is found at a start was interrupted, and
the record says exactly how many messages it had moved.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Final

from fila.config import AuditConfig
from fila.core.errors import StoreCorrupt, StoreFailed
from fila.core.ids import NS_PER_MS
from fila.storage import audit as codec
from fila.storage import keys
from fila.storage.audit import AuditRecord, Head
from fila.storage.base import Batch, Family, Storage

REFUSED_SHARE: Final = 8
"""Refused calls have this part of `max_bytes`."""
MAX_DROPS: Final = 1_000
"""Entries that one write drops, at most: when less is to be kept than before, they go little by little."""
SECRET_BYTES: Final = 32
DIGEST_LETTERS: Final = 32


@dataclass(slots=True)
class Shelf:
    """Entries that are kept within one bound."""

    mark: bytes
    max_bytes: int
    first: int = 1
    """No entry before it is there"""
    bytes: int = 0


@dataclass(slots=True)
class RunningSweep:
    """A purge or redrive that has begun and not ended."""

    begin: AuditRecord
    done: int = 0
    seen_at: int = 0
    """When it last moved something; 0 when it was found at a start"""
    identity: bytes = b""
    """The same in every call that goes on with it; not kept, since none goes on after a start"""


@dataclass(slots=True)
class Written:
    """Entries that are in a write, and what becomes of the audit when it is durable."""

    records: Sequence[AuditRecord]
    shelf: Shelf
    first: int
    """Of the shelf, from then on"""
    bytes: int
    started: RunningSweep | None = None
    """The sweep that the first of them begins"""
    ended: int = 0
    """The sweep that they end"""


@dataclass(slots=True)
class Audit:
    """Numbers, keeps, drops and reads entries. `next_entry` is the number of the next one."""

    config: AuditConfig = field(default_factory=AuditConfig)
    next_entry: int = 1
    sweeps: dict[int, RunningSweep] = field(default_factory=dict)
    """By the number of the entry that began them"""
    on_entry: Callable[[int, AuditRecord], None] = lambda _number, _record: None
    """Told of every entry once it is durable"""
    changes: Shelf = field(init=False)
    refusals: Shelf = field(init=False)
    _secret: bytes = field(init=False)
    _secret_kept: bool = False

    def __post_init__(self) -> None:
        self.changes = Shelf(keys.AUDIT_CHANGE, self.config.max_bytes)
        self.refusals = Shelf(keys.AUDIT_REFUSAL, self.config.max_bytes // REFUSED_SHARE)
        self._secret = secrets.token_bytes(SECRET_BYTES)

    @property
    def first_entry(self) -> int:
        """No entry before it is there; the next one if there is none."""
        return min([shelf.first for shelf in (self.changes, self.refusals) if shelf.bytes], default=self.next_entry)

    def load(self, store: Storage) -> None:
        """Raises StoreCorrupt or ValueError."""
        kept = store.get(Family.AUDIT, keys.AUDIT_SECRET)
        if kept is not None:
            self._secret, self._secret_kept = kept, True
        told = store.get(Family.AUDIT, keys.AUDIT_HEAD)
        if told is None:
            return
        self.next_entry, changes, change_bytes, refusals, refusal_bytes = codec.read_head(told)
        self.changes.first, self.changes.bytes = changes, change_bytes
        self.refusals.first, self.refusals.bytes = refusals, refusal_bytes
        for key, value in store.scan(Family.AUDIT, keys.AUDIT_SWEEP, keys.after(keys.AUDIT_SWEEP)):
            done, begin = codec.read_sweep(value)
            self.sweeps[keys.read_audit(key)] = RunningSweep(begin, done)

    def digest(self, text: str) -> str:
        """What stands for a value that may be a secret: equal for equal values of this store. It has a key, so that
        nobody who reads it can find the value by trying.
        """
        encoded = text.encode()
        digest = hmac.new(self._secret, encoded, hashlib.sha256).hexdigest()
        return f"hmac-sha256:{digest[:DIGEST_LETTERS]}, {len(encoded)} bytes"

    # Writing

    def write(self, batch: Batch, store: Storage, records: Sequence[AuditRecord], refused: bool = False) -> Written:
        """Add entries to a write, and drop what is too much or too old. Changes nothing in memory; `commit` does."""
        shelf, other = (self.refusals, self.changes) if refused else (self.changes, self.refusals)
        size = 0
        for number, record in enumerate(records, self.next_entry):
            value = codec.entry(record)
            batch.put(Family.AUDIT, keys.audit(shelf.mark, number), value)
            size += _size(value)
        first, freed = self._drop(batch, store, shelf, size, records[-1].at)
        written = Written(records, shelf, first, shelf.bytes + size - freed)
        mine, others = (first, written.bytes), (other.first, other.bytes)
        change, refusal = (others, mine) if refused else (mine, others)
        batch.put(Family.AUDIT, keys.AUDIT_HEAD, codec.head(Head(self.next_entry + len(records), *change, *refusal)))
        if not self._secret_kept:
            batch.put(Family.AUDIT, keys.AUDIT_SECRET, self._secret)
        return written

    def _drop(self, batch: Batch, store: Storage, shelf: Shelf, size: int, now: int) -> tuple[int, int]:
        """Delete the oldest entries, as far as needed. Returns the oldest that stays, and the bytes that were freed."""
        too_old = now - self.config.max_age_ms * NS_PER_MS
        first, freed = shelf.first, 0
        try:
            entries = store.scan(Family.AUDIT, keys.audit(shelf.mark, first), keys.after(shelf.mark))
            for count, (key, value) in enumerate(entries):
                first = keys.read_audit(key)
                enough = shelf.bytes + size - freed <= shelf.max_bytes
                if count >= MAX_DROPS or (enough and codec.read_at(value) >= too_old):
                    break
                batch.delete(Family.AUDIT, key)
                freed += _size(value)
                first += 1
        except (StoreFailed, StoreCorrupt):
            pass  # more is kept than should be: a change goes before that
        return first, freed

    def write_sweep(self, batch: Batch, number: int, sweep: RunningSweep, done: int) -> None:
        """How far a sweep is."""
        batch.put(Family.AUDIT, keys.audit(keys.AUDIT_SWEEP, number), codec.sweep(done, sweep.begin))

    def forget_sweep(self, batch: Batch, number: int) -> None:
        batch.delete(Family.AUDIT, keys.audit(keys.AUDIT_SWEEP, number))

    def commit(self, written: Written) -> None:
        """The entries are durable."""
        written.shelf.first, written.shelf.bytes = written.first, written.bytes
        self._secret_kept = True
        if written.started is not None:
            self.sweeps[self.next_entry] = written.started
        self.sweeps.pop(written.ended, None)
        for record in written.records:
            self.on_entry(self.next_entry, record)
            self.next_entry += 1

    # Reading

    def read(self, store: Storage, start: int, end: int, refused: bool = False) -> Iterator[tuple[int, AuditRecord]]:
        """Entries from number `start` up to, not including, `end`, in order; with `refused` only refused calls.

        Raises StoreCorrupt or StoreFailed.
        """
        shelves = (self.refusals,) if refused else (self.changes, self.refusals)
        scans = [
            store.scan(Family.AUDIT, keys.audit(shelf.mark, max(start, shelf.first)), keys.audit(shelf.mark, end))
            for shelf in shelves
            if max(start, shelf.first) < end
        ]
        for key, value in merge(*scans, key=lambda item: item[0][1:]):
            yield keys.read_audit(key), codec.read_entry(value)


def _size(value: bytes) -> int:
    """What an entry takes, with its key."""
    return len(value) + keys.SEQ_BYTES + 1
