"""Snapshots of a shard, so that its log need not be kept from the beginning.

A snapshot is what a member has stored at its mark, in chunks, and then a manifest. It stands in a log of its own, on
the same engine. Any member may write one at any time, several at once; a snapshot without a manifest is nothing.
Doubles and late chunks are harmless, since a chunk is the same whenever it stands.

A snapshot counts when the owner has written a tick that says so (`Owner.accept`): in the order of these ticks, each is
of a later position and begins later than the one before. So whoever cuts off what stands before one that counts, also
somebody who has slept, never cuts off anything that is needed.
"""

from collections.abc import Iterator
from secrets import token_bytes
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from fila.replicas.entry import NONCE_BYTES, Head, Kind, Unreadable, write_changes, write_entry, write_parts
from fila.replicas.log import InDoubt, LogUnavailable, Refused, ReplicatedLog
from fila.replicas.replica import MARK_KEY, Mark, Replica, pack_mark, unpack_mark
from fila.replicas.tail import Wait, pause
from fila.storage.base import Batch, Change, Family, Storage

CHUNK_BYTES = 512 << 10
MIN_LOG_BYTES = 256 << 20
"""Of log, before the next snapshot is worth it"""
CURRENT_KEY = b"snapshot"
OWN_KEYS = (b"node", MARK_KEY)
"""In the family DEFAULT, what is of the store and not of the shard"""

_TAIL = Struct(">QQI")  # first, chunks, crc
_CURRENT = Struct(">BQQ")
_CURRENT_VERSION = 1


class Manifest(NamedTuple):
    """Says that a snapshot is whole."""

    nonce: bytes
    """In each of its chunks"""
    mark: Mark
    first: int
    """Where its chunks begin"""
    chunks: int
    crc: int
    """Of all chunks, in order"""


class Current(NamedTuple):
    """The snapshot that counts."""

    first: int
    """Where it begins, in the log of snapshots"""
    position: int
    """Up to where it makes the log of ticks superfluous"""


def is_due(log_bytes: int, stored_bytes: int) -> bool:
    """Whether a snapshot is worth it, after so much log since the last one: at most half as much again is written."""
    return log_bytes > max(MIN_LOG_BYTES, 2 * stored_bytes)


async def write_snapshot(snaps: ReplicatedLog, replica: Replica, wait: Wait = pause) -> Manifest:
    """What the replica holds now, if anything has counted. It may go on meanwhile. Waits for an engine that is away."""
    if replica.mark.position < 0:
        raise ValueError("there is nothing to take a snapshot of")
    nonce, mark, first, crc, number = token_bytes(NONCE_BYTES), replica.mark, -1, 0, 0
    for body in _bodies(_scan(replica.store)):
        head = Head(Kind.CHUNK, replica.shard, mark.epoch, number)
        for entry in write_parts(head, body, snaps.max_entry_bytes, nonce):
            position = await _append(snaps, entry, wait)
            first = position if first < 0 else first
        crc, number = crc32(body, crc), number + 1
    manifest = Manifest(nonce, mark, first, number, crc)
    head = Head(Kind.MANIFEST, replica.shard, mark.epoch, mark.tick)
    await _append(snaps, write_entry(head, _pack_manifest(manifest)), wait)
    return manifest


def put_current(batch: Batch, store: Storage, manifest: Manifest) -> bool:
    """Have a snapshot count, unless it is not later than the one that does. Returns whether it is."""
    current = read_current(store)
    if manifest.first <= current.first or manifest.mark.position <= current.position:
        return False
    value = _CURRENT.pack(_CURRENT_VERSION, manifest.first, manifest.mark.position)
    batch.put(Family.DEFAULT, CURRENT_KEY, value)
    return True


def read_current(store: Storage) -> Current:
    """Raises Unreadable."""
    stored = store.get(Family.DEFAULT, CURRENT_KEY)
    if stored is None:
        return Current(-1, -1)
    if len(stored) != _CURRENT.size or stored[0] != _CURRENT_VERSION:
        raise Unreadable("the store's note of the last snapshot is damaged, or a later version wrote it")
    return Current(*_CURRENT.unpack(stored)[1:])


async def trim(log: ReplicatedLog, snaps: ReplicatedLog, store: Storage, margin: int) -> None:
    """Cut off what the snapshot that counts has made superfluous. So many entries before it stay, for members that are
    a little behind. Raises LogUnavailable; then the next time will do.
    """
    current = read_current(store)
    await log.truncate(max(current.position + 1 - margin, 0))
    await snaps.truncate(max(current.first, 0))


def read_manifest(body: bytes) -> Manifest:
    """Raises Unreadable."""
    packed = body[NONCE_BYTES : -_TAIL.size]
    if len(body) < NONCE_BYTES + _TAIL.size:
        raise Unreadable("a manifest ends in the middle")
    return Manifest(body[:NONCE_BYTES], unpack_mark(packed), *_TAIL.unpack(body[-_TAIL.size :]))


def _pack_manifest(manifest: Manifest) -> bytes:
    return manifest.nonce + pack_mark(manifest.mark) + _TAIL.pack(manifest.first, manifest.chunks, manifest.crc)


def _scan(store: Storage) -> Iterator[Change]:
    """All that is stored now, whatever is written while it is read."""
    scans = [(family, store.scan(family)) for family in Family]
    for family, scan in scans:
        for key, value in scan:
            if family is not Family.DEFAULT or key not in OWN_KEYS:
                yield family, key, value, None


def _bodies(changes: Iterator[Change]) -> Iterator[bytes]:
    """In pieces of a size. There is at least one."""
    piece: list[Change] = []
    size = 0
    for change in changes:
        piece.append(change)
        size += len(change[1]) + len(change[2] or b"")
        if size >= CHUNK_BYTES:
            yield write_changes(piece)
            piece, size = [], 0
    yield write_changes(piece)


async def _append(snaps: ReplicatedLog, entry: bytes, wait: Wait) -> int:
    """Append until there is an answer. Standing twice does no harm."""
    while True:
        try:
            return await snaps.append(entry, await snaps.end() - 1)
        except (InDoubt, Refused, LogUnavailable):
            await wait()
