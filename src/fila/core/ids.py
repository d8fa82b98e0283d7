"""What identifies a message: a sequence number inside, a UUIDv7 outside.

A sequence number is the time of enqueueing in nanoseconds, made strictly increasing. It is unique in one store, 8 bytes
long, and sorts messages by age: so it is the key on disk and the handle in memory. The UUIDv7 that clients see carries
it whole (RFC 9562, method 3: more clock precision in the random bits) beside 54 random bits that name the store:

    48 bits  milliseconds      seq // 1_000_000
     4 bits  version 7
    12 bits  sub-millisecond   upper bits of seq % 1_000_000
     2 bits  variant
     8 bits  sub-millisecond   lower bits
    54 bits  the store
"""

import re

NS_PER_MS = 1_000_000
NODE_BITS = 54
_NODE_MASK = (1 << NODE_BITS) - 1
_VERSION = 7 << 76
_VARIANT = 2 << 62
_FIXED_MASK = (15 << 76) | (3 << 62) | _NODE_MASK
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


class MessageIds:
    """Turns sequence numbers of one store into UUIDs and back."""

    __slots__ = ("_fixed",)

    def __init__(self, node: int) -> None:
        self._fixed = _VERSION | _VARIANT | (node & _NODE_MASK)

    def text(self, seq: int) -> str:
        ms, rest = divmod(seq, NS_PER_MS)
        h = f"{(ms << 80) | (rest >> 8 << 64) | ((rest & 255) << 54) | self._fixed:032x}"
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def seq(self, text: str) -> int | None:
        """The sequence number in an id, or None for a text that is no id of this store."""
        if not _UUID.match(text):
            return None
        number = int(text.replace("-", ""), 16)
        if number & _FIXED_MASK != self._fixed:
            return None
        rest = (number >> 64 & 0xFFF) << 8 | number >> 54 & 0xFF
        return (number >> 80) * NS_PER_MS + rest if rest < NS_PER_MS else None


class Sequence:
    """Gives out strictly increasing numbers that follow the clock."""

    __slots__ = ("last",)

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def reserve(self, now: int, count: int) -> int:
        """The first of `count` consecutive new numbers. Also right when the clock steps back."""
        first = max(now, self.last + 1)
        self.last = first + count - 1
        return first
