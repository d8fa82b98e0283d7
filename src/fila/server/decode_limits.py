"""How much there is to decode, told from the bytes of a request before anything of it is decoded.

Decoding costs by the field, not by the byte: 16 MiB can be eight million empty fields, half a second and half a
gigabyte. So what may be large is walked first, field by field, and the walk ends as soon as there are too many.
What is not protobuf at all is left to the decoder, which finds out as early as the walk does.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fila.config import LimitsConfig
from fila.core.errors import LimitExceeded
from fila.wire.varint import read_varint

SMALL_BATCH_BYTES: Final = 1 << 20
"""Up to here a batch is decoded without a look: the worst one takes 5 ms."""
SMALL_SETTLE_BYTES: Final = 256 << 10
"""The same for what settles messages: 2 ms."""
SMALL_MESSAGE_BYTES: Final = 256
"""And for one message among the most that a batch may have: 13 ms for all."""

_OTHERS: Final = 16
"""Fields of a request besides those that are counted; more than it has."""
_OF_A_HEADER: Final = 4
_SOUGHT: Final = 4
"""How many times the fields of the largest batch are looked through for the number of a larger one: 10 ms"""
BATCH_SEQUENCE: Final = 0x18
SETTLE_SEQUENCE: Final = 0x20
"""Tags of the numbers of requests: number << 3 | 0"""
_U64: Final = (1 << 64) - 1
_HEADERS, _ACKS, _NACKS, _EXTENDS = 0x12, 0x0A, 0x12, 0x1A  # tags: number << 3 | 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """A field: its tag, and where its content stands."""

    tag: int
    start: int
    stop: int


def walk(encoded: bytes, at: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of a message, up to the first thing that is none. The ends of a group count as fields."""
    end = len(encoded) if end is None else end
    try:
        while at < end:
            tag, at = read_varint(encoded, at)
            kind, start = tag & 7, at
            if kind == _BYTES:
                length, start = read_varint(encoded, at)
                at = start + length
            elif kind == _VARINT:
                _, at = read_varint(encoded, at)
            elif kind in {_FIXED64, _FIXED32}:
                at += 8 if kind == _FIXED64 else 4
            if at > end:
                return
            yield Field(tag, start, at)
    except IndexError:
        return


def _has_more_fields(encoded: bytes, most: int, at: int = 0, end: int | None = None) -> bool:
    return any(count > most for count, _ in enumerate(walk(encoded, at, end), 1))


def excess_of_batch(encoded: bytes, limits: LimitsConfig) -> LimitExceeded | None:
    """Why a batch is refused without being decoded, if it is."""
    most = limits.max_batch_messages
    if len(encoded) > SMALL_BATCH_BYTES and _has_more_fields(encoded, most + _OTHERS):
        return LimitExceeded(f"the batch has more than {most} messages")
    return None


def excess_of_settle(encoded: bytes, limits: LimitsConfig) -> LimitExceeded | None:
    """The same for what settles messages."""
    if len(encoded) <= SMALL_SETTLE_BYTES:
        return None
    most = limits.max_batch_messages
    left = 4 * most + _OTHERS  # a group is a field and has three, besides the messages
    for field in walk(encoded):
        left -= 1
        if field.tag in {_ACKS, _EXTENDS}:
            left -= sum(1 for _, _ in zip(range(left + 1), walk(encoded, field.start, field.stop), strict=False))
        elif field.tag == _NACKS and field.stop - field.start > SMALL_MESSAGE_BYTES:
            left -= left + 1 if _has_more_fields(encoded, _OTHERS, field.start, field.stop) else 0
        if left < 0:
            return LimitExceeded(f"the batch settles more than {most} messages")
    return None


def sequence_of(encoded: bytes, tag: int, limits: LimitsConfig) -> int | None:
    """The number of a request that is refused, by the tag of its field. None if it is not among the first fields: then
    there are so many that it is no mistake of a batch that became too large.
    """
    most = _SOUGHT * (limits.max_batch_messages + _OTHERS)
    found = next((field for _, field in zip(range(most), walk(encoded), strict=False) if field.tag == tag), None)
    return None if found is None else read_varint(encoded, found.start)[0] & _U64


def excess_of_message(encoded: bytes, limits: LimitsConfig) -> LimitExceeded | None:
    """The same for one message."""
    if len(encoded) <= SMALL_MESSAGE_BYTES:
        return None
    most, header_bytes = 4 * limits.max_headers + _OTHERS, 0
    for count, field in enumerate(walk(encoded), 1):
        if count > most:
            return LimitExceeded(f"there are more than {limits.max_headers} headers")
        if field.tag == _HEADERS:
            header_bytes += field.stop - field.start
            if _has_more_fields(encoded, _OF_A_HEADER, field.start, field.stop):
                return LimitExceeded("a header has more than a name and a value")
    if header_bytes > limits.max_header_bytes:
        return LimitExceeded(f"the headers must not exceed {limits.max_header_bytes} bytes")
    return None
