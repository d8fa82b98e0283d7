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
_TAIL_BITS = 48

# The text of an id in three parts, each of which is looked up rather than formatted, because every message passes here
# twice. The first 15 characters are the same for all ids of a millisecond, the last 18 depend on 8 bits only.
_FIRST = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7\Z")
_UPPER = [f"{upper:03x}".encode() for upper in range((NS_PER_MS >> 8) + 1)]
_UPPER_OF = {text.decode(): upper << 8 for upper, text in enumerate(_UPPER)}
_ANY_LOWER = {text: upper for text, upper in _UPPER_OF.items() if upper + 256 <= NS_PER_MS}
"""Those that make less than a millisecond with any lower bits"""
_FIRST_END, _UPPER_END = 15, 18
_FIRSTS_KEPT = 16_384


class _Milliseconds(dict[str, int]):
    """The first nanosecond of the millisecond that an id begins with. Raises KeyError for what begins no id."""

    def __missing__(self, first: str) -> int:
        if not _FIRST.match(first):
            raise KeyError(first)
        if len(self) >= _FIRSTS_KEPT:
            self.clear()
        found = self[first] = int(first[:8] + first[9:13], 16) * NS_PER_MS
        return found


class MessageIds:
    """Turns sequence numbers of one store into UUIDs and back."""

    __slots__ = ("_firsts", "_last", "_last_of", "_milliseconds", "node")

    def __init__(self, node: int) -> None:
        self.node = node
        variant, store = 0x8000 | node >> _TAIL_BITS & 0x3F, node & (1 << _TAIL_BITS) - 1
        self._last = [f"-{variant | lower << 6:04x}-{store:012x}".encode() for lower in range(256)]
        self._last_of = {text.decode(): lower for lower, text in enumerate(self._last)}
        # Messages of many tenants leave in an order that goes to and fro in time, so more than the last one is kept.
        self._firsts: dict[int, bytes] = {}
        self._milliseconds = _Milliseconds()

    def text(self, seq: int) -> str:
        """The UUID of a sequence number."""
        return self.ascii(seq).decode()

    def ascii(self, seq: int) -> bytes:
        """The UUID of a sequence number, as it goes on the wire."""
        ms, rest = divmod(seq, NS_PER_MS)
        return (self._firsts.get(ms) or self._write_first(ms)) + _UPPER[rest >> 8] + self._last[rest & 255]

    def ascii_run(self, first: int, count: int, before: bytes) -> bytes:
        """The UUIDs of `count` numbers from `first` on, one after another, each behind `before`."""
        run: list[bytes] = []
        end = first + count
        while first < end:
            ms, rest = divmod(first, NS_PER_MS)
            lower = rest & 255
            alike = min(end - first, 256 - lower, NS_PER_MS - rest)
            start = before + (self._firsts.get(ms) or self._write_first(ms)) + _UPPER[rest >> 8]
            run.append(start + start.join(self._last[lower : lower + alike]))
            first += alike
        return b"".join(run)

    def seq(self, text: str) -> int | None:
        """The sequence number in an id, or None for a text that is no id of this store."""
        try:
            rest = _UPPER_OF[text[_FIRST_END:_UPPER_END]] + self._last_of[text[_UPPER_END:]]
            return self._milliseconds[text[:_FIRST_END]] + rest if rest < NS_PER_MS else None
        except KeyError:
            return None

    def seqs(self, texts: list[str]) -> list[int | None]:
        """As `seq`, of many."""
        first_of, last_of, start, end = self._milliseconds, self._last_of, _FIRST_END, _UPPER_END
        try:
            return [first_of[text[:start]] + _ANY_LOWER[text[start:end]] + last_of[text[end:]] for text in texts]
        except KeyError:
            return [self.seq(text) for text in texts]

    def _write_first(self, ms: int) -> bytes:
        if len(self._firsts) >= _FIRSTS_KEPT:
            self._firsts.clear()
        digits = f"{ms:012x}"
        first = self._firsts[ms] = f"{digits[:8]}-{digits[8:]}-7".encode()
        return first


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
