"""How entries of a log are written.

    format | kind | shard | epoch | tick | part | parts | crc | body

A barrier says who takes over, a tick is the changes of one batch, a release names a successor. Chunks and manifests are
snapshots, in a log of their own. Whatever bytes are read, the outcome is an entry or `Unreadable`. What is too long for
one entry goes in parts, each with a crc of its own.

To change an entry: a new format beside the old one, read both, and write the older one until all members know the new.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from fila.replicas.log import LogError
from fila.storage.base import Change, Family
from fila.wire.varint import LONG, read_varint, write_varint

FORMAT = 1
MAX_TICK_BYTES = 256 << 20
"""Of one tick, in all its parts: what a reader keeps in memory before it counts. Far above `max_tick_bytes`."""
MAX_CHANGES = 1 << 22
"""Of one tick"""
NONCE_BYTES = 16
MAX_NAME_BYTES = 255

_HEAD = Struct(">BBHQQHH")
_CRC = Struct(">I")
OVERHEAD = _HEAD.size + _CRC.size
"""What an entry has besides its body"""
_MAX_NUMBER = (1 << 63) - 1
_MAX_PARTS = (1 << 16) - 1
_DELETE, _RANGE = 0x40, 0x80
"""Added to the number of the family"""
_FAMILIES = tuple(Family)
_PUTS = [bytes([family]) for family in Family]
_DELETES = [bytes([family | _DELETE]) for family in Family]
_RANGES = [bytes([family | _RANGE]) for family in Family]


class Unreadable(LogError):
    """What stands in the log is no entry of this shard, or is damaged."""


class TooLarge(Exception):
    """A tick that no reader would take."""


class Kind(IntEnum):
    BARRIER = 1
    """Somebody takes the shard over, with a new epoch"""
    TICK = 2
    RELEASE = 3
    """The owner gives the shard up"""
    CHUNK = 4
    """A piece of a snapshot"""
    MANIFEST = 5
    """A snapshot is whole"""


class Head(NamedTuple):
    kind: Kind
    shard: int
    epoch: int
    tick: int
    """Of a tick its number. Of a release or a manifest the last one. Of a chunk its number in the snapshot. Of a
    barrier 0: who writes it does not know yet.
    """
    part: int = 0
    parts: int = 1


class Barrier(NamedTuple):
    """What a barrier says."""

    nonce: bytes
    """Random for each owner, so that two that try the same epoch are told apart"""
    member: str


def write_entry(head: Head, body: bytes) -> bytes:
    packed = _HEAD.pack(FORMAT, *head)
    return b"".join((packed, _CRC.pack(crc32(body, crc32(packed))), body))


def read_entry(entry: bytes) -> tuple[Head, bytes]:
    """Head and body. Raises Unreadable."""
    if len(entry) < OVERHEAD:
        raise Unreadable(f"an entry has {len(entry)} bytes, and at least {OVERHEAD} are needed")
    version, kind, *numbers = _HEAD.unpack_from(entry)
    if version != FORMAT:
        raise Unreadable(f"an entry has format {version}, this version of Fila reads {FORMAT}")
    body = entry[OVERHEAD:]
    if _CRC.unpack_from(entry, _HEAD.size)[0] != crc32(body, crc32(entry[: _HEAD.size])):
        raise Unreadable("an entry is damaged: its crc does not match")
    if kind not in Kind._value2member_map_:
        raise Unreadable(f"an entry is of the unknown kind {kind}")
    head = Head(Kind(kind), *numbers)
    if max(head.epoch, head.tick) > _MAX_NUMBER or head.part >= head.parts:
        raise Unreadable(f"an entry has numbers that cannot be: {head}")
    return head, body


def write_tick(shard: int, epoch: int, tick: int, changes: Sequence[Change], max_entry_bytes: int) -> list[bytes]:
    """The entries of a tick, in order. Raises TooLarge."""
    body = write_changes(changes)
    if len(body) > MAX_TICK_BYTES or len(changes) > MAX_CHANGES:
        raise TooLarge(f"a tick of {len(changes)} changes has {len(body)} bytes, {MAX_TICK_BYTES} are allowed")
    return write_parts(Head(Kind.TICK, shard, epoch, tick), body, max_entry_bytes)


def write_parts(head: Head, body: bytes, max_entry_bytes: int, prefix: bytes = b"") -> list[bytes]:
    """As many entries as a body needs, each of which begins with the prefix. Raises TooLarge."""
    room = max_entry_bytes - OVERHEAD - len(prefix)
    parts = max(1, -(-len(body) // room))
    if parts > _MAX_PARTS:
        raise TooLarge(f"{len(body)} bytes would need {parts} entries of {max_entry_bytes} bytes")
    return [
        write_entry(head._replace(part=part, parts=parts), prefix + body[part * room : (part + 1) * room])
        for part in range(parts)
    ]


def write_barrier(shard: int, epoch: int, barrier: Barrier) -> bytes:
    return write_entry(Head(Kind.BARRIER, shard, epoch, 0), barrier.nonce + _name(barrier.member))


def read_barrier(body: bytes) -> Barrier:
    """What a barrier says. Raises Unreadable."""
    if len(body) < NONCE_BYTES:
        raise Unreadable("a barrier has no nonce")
    return Barrier(body[:NONCE_BYTES], read_name(body[NONCE_BYTES:]))


def write_release(shard: int, epoch: int, tick: int, successor: str) -> bytes:
    return write_entry(Head(Kind.RELEASE, shard, epoch, tick), _name(successor))


def read_name(body: bytes) -> str:
    """The member that a release names. Raises Unreadable."""
    if len(body) > MAX_NAME_BYTES:
        raise Unreadable(f"the name of a member has {len(body)} bytes, {MAX_NAME_BYTES} are allowed")
    try:
        return body.decode()
    except UnicodeDecodeError as cause:
        raise Unreadable("the name of a member is no text") from cause


def write_changes(changes: Sequence[Change]) -> bytes:
    return b"".join(_pieces(changes))


def _pieces(changes: Sequence[Change]) -> Iterator[bytes]:
    for family, key, value, end in changes:
        if value is not None:
            yield from (_PUTS[family], write_varint(len(key)), key, write_varint(len(value)), value)
        elif end is None:
            yield from (_DELETES[family], write_varint(len(key)), key)
        else:
            yield from (_RANGES[family], write_varint(len(key)), key, write_varint(len(end)), end)


def read_changes(body: bytes) -> list[Change]:
    """Raises Unreadable."""
    changes: list[Change] = []
    at, size = 0, len(body)
    try:
        while at < size:
            tag = body[at]
            family = _FAMILIES[tag & ~(_DELETE | _RANGE)]
            key, at = _read_bytes(body, at + 1)
            if tag & _DELETE:
                changes.append((family, key, None, None))
            else:
                other, at = _read_bytes(body, at)
                changes.append((family, key, None, other) if tag & _RANGE else (family, key, other, None))
                if tag & _RANGE and other <= key:
                    raise Unreadable(f"a tick deletes a range that ends before it begins, at byte {at}")
            if tag >= _DELETE | _RANGE or len(changes) > MAX_CHANGES:
                raise Unreadable(f"a tick has a change that cannot be, at byte {at}")
    except IndexError as cause:
        raise Unreadable(f"the changes of a tick end in the middle, or name an unknown family, at byte {at}") from cause
    return changes


def _read_bytes(body: bytes, at: int) -> tuple[bytes, int]:
    """Bytes with their length in front, and where they end. Raises IndexError when they do not."""
    size = body[at]
    at += 1
    if size >= LONG:
        size, at = read_varint(body, at - 1)
    end = at + size
    if end > len(body):
        raise IndexError("beyond the end")
    return body[at:end], end


def _name(member: str) -> bytes:
    name = member.encode()
    if len(name) > MAX_NAME_BYTES:
        raise ValueError(f"the name of a member has {len(name)} bytes, {MAX_NAME_BYTES} are allowed")
    return name
