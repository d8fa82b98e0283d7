"""Varints, the variable-length integers of protobuf: seven bits in each byte, the lowest first."""

from functools import lru_cache
from typing import Final

LONG: Final = 0x80
"""A byte from here on says that the number goes on."""
_LAST_SHIFT: Final = 63
"""Of the tenth byte, which is the last."""


@lru_cache(maxsize=4096)
def write_varint(number: int) -> bytes:
    """Remembers what it made: lengths repeat from message to message."""
    out = bytearray()
    while number >= LONG:
        out.append(number & 0x7F | LONG)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(encoded: bytes, at: int) -> tuple[int, int]:
    """The number, and where it ends. Raises IndexError when it does not, or not where a number of 64 bits must.

    To add up one of a megabyte would take minutes.
    """
    number = encoded[at]
    at += 1
    if number < LONG:
        return number, at
    number &= 0x7F
    shift = 7
    while shift <= _LAST_SHIFT:
        byte = encoded[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < LONG:
            return number, at
        shift += 7
    raise IndexError("a varint has at most ten bytes")
