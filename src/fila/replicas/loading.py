"""How a member begins: with what it has stored, or with a snapshot where the log does not go back that far."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from zlib import crc32

from fila.replicas.entry import NONCE_BYTES, Head, Kind, Unreadable, read_changes, read_entry
from fila.replicas.log import ReplicatedLog, Truncated
from fila.replicas.replica import (
    HALF_LOADED,
    MARK_KEY,
    HalfLoaded,
    Lost,
    Mark,
    Replica,
    read_mark,
    write_mark,
)
from fila.replicas.snapshots import OWN_KEYS, Manifest, read_manifest
from fila.replicas.tail import Wait, patiently, pause
from fila.storage.base import Batch, Change, Family, Storage

_END = b"\xff" * 16
"""Behind all keys: they begin with a name, a number or a time"""


async def open_replica(
    store: Storage, shard: int, log: ReplicatedLog, snaps: ReplicatedLog, wait: Wait = pause
) -> Replica:
    """A member's copy, from where the log can be read on. Raises Truncated when what it needs is cut off meanwhile:
    then it is to be opened again. Raises Lost when there is no snapshot for a log that has been cut off, Unreadable,
    LogUnavailable, or StoreFailed.
    """
    first = await log.first()
    mark = _mark_of(store)
    if mark is None or mark.position + 1 < first:
        manifest = await find_snapshot(snaps, first)
        if manifest is not None:
            await load_snapshot(snaps, manifest, store, shard, wait)
        elif first == 0:
            await patiently(lambda: store.write(_wiped(None)), wait)
        elif first < await log.first():
            raise Truncated(first)
        else:
            raise Lost(f"the log begins at {first}, and there is no snapshot of what stood before")
    return Replica(store, shard)


async def find_snapshot(snaps: ReplicatedLog, first: int) -> Manifest | None:
    """A snapshot from which a log that begins at `first` can be read on: the last of those that are whole. Looks at
    the end, and then further and further back.
    """
    end, kept, back = await snaps.end(), await snaps.first(), 1
    while True:
        start = max(end - back, kept)
        found = [manifest async for manifest in _manifests(snaps, start, end)]
        usable = [each for each in found if each.mark.position + 1 >= first and each.first >= kept]
        if usable or start == kept:
            return max(usable, key=lambda manifest: manifest.mark.position, default=None)
        back *= 2


async def load_snapshot(
    snaps: ReplicatedLog, manifest: Manifest, store: Storage, shard: int, wait: Wait = pause
) -> None:
    """Put a snapshot in the place of all that a store holds. Whoever dies in between finds `HalfLoaded`."""
    await patiently(lambda: store.write(_wiped(HALF_LOADED)), wait)
    crc = 0
    async with aclosing(_chunks(snaps, manifest, shard)) as chunks:
        async for chunk in chunks:
            await _store(store, read_changes(chunk), wait)
            crc = crc32(chunk, crc)
    if crc != manifest.crc:
        raise Lost(f"the snapshot of position {manifest.mark.position} is damaged: its crc does not match")
    batch = Batch()
    write_mark(batch, manifest.mark)
    await patiently(lambda: store.write(batch), wait)


async def _store(store: Storage, changes: list[Change], wait: Wait) -> None:
    batch = Batch()
    batch.changes = changes
    await patiently(lambda: store.write(batch), wait)


async def _chunks(snaps: ReplicatedLog, manifest: Manifest, shard: int) -> AsyncGenerator[bytes, None]:
    """The chunks of a snapshot, in order. Doubles are left out."""
    number, parts = 0, list[bytes]()
    async with aclosing(_entries(snaps, manifest.first)) as entries:
        async for _, head, body in entries:
            if body[:NONCE_BYTES] != manifest.nonce:
                continue
            if head.kind is Kind.CHUNK and (head.tick, head.part) < (number, len(parts)):
                continue
            if (head.kind, head.shard, head.tick, head.part) != (Kind.CHUNK, shard, number, len(parts)):
                raise Lost(f"chunk {number} of the snapshot of position {manifest.mark.position} is missing: {head}")
            parts.append(body[NONCE_BYTES:])
            if len(parts) == head.parts:
                yield b"".join(parts)
                number, parts = number + 1, []
            if number == manifest.chunks:
                return


async def _manifests(snaps: ReplicatedLog, start: int, end: int) -> AsyncGenerator[Manifest, None]:
    """Those that stand from a position up to another."""
    if start >= end:
        return
    async with aclosing(_entries(snaps, start)) as entries:
        async for position, head, body in entries:
            if head.kind is Kind.MANIFEST:
                yield read_manifest(body)
            if position == end - 1:
                return


async def _entries(snaps: ReplicatedLog, start: int) -> AsyncGenerator[tuple[int, Head, bytes], None]:
    """Position, head and body."""
    async with aclosing(snaps.read(start)) as reader:
        async for entries in reader:
            for position, entry in entries:
                try:
                    yield (position, *read_entry(entry))
                except Unreadable as error:
                    raise Unreadable(f"position {position} of the log of snapshots: {error}") from error


def _mark_of(store: Storage) -> Mark | None:
    try:
        return read_mark(store)
    except HalfLoaded:
        return None


def _wiped(mark: bytes | None) -> Batch:
    """Nothing, but for what is of the store itself. `mark`: what stands in its place."""
    batch = Batch()
    for family in Family:
        start = b""
        for key in sorted(OWN_KEYS) if family is Family.DEFAULT else ():
            batch.delete_range(family, start, key)
            start = key + b"\0"
        batch.delete_range(family, start, _END)
    if mark is None:
        batch.delete(Family.DEFAULT, MARK_KEY)
    else:
        batch.put(Family.DEFAULT, MARK_KEY, mark)
    return batch
