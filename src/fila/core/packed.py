"""The older messages of a long lane, packed: hundreds of thousands may wait there before anybody asks for the next.

Sequence numbers ascend, and what came together has numbers that are near each other. So only their differences are
kept, compressed, `CHUNK` numbers at a time: a tenth of a byte for each where messages came in batches, three bytes
where each came alone, instead of eight.

Rules of this file:
- the oldest numbers, from which messages are taken, are never packed: they are the head. It is empty only when all is;
- chunks follow each other, and the head comes before them: no number of one is among those of another;
- a chunk is never changed, but replaced.
"""

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from operator import attrgetter, neg, sub
from typing import NamedTuple

CHUNK = 1024
"""Numbers that are packed together"""
_LEVEL = 1
"""Of compression: more saves next to nothing"""
_WIDTH = 8
"""Bytes of a number"""


class _Chunk(NamedTuple):
    first: int
    last: int
    size: int
    data: bytes


_last_of = attrgetter("last")


def _pack(seqs: "array[int]") -> _Chunk:
    """Ascending numbers, at least one."""
    steps = array("Q", map(sub, islice(seqs, 1, None), seqs)).tobytes()
    planes = b"".join([steps[at::_WIDTH] for at in range(_WIDTH)])  # the high bytes of all of them are mostly zero
    return _Chunk(seqs[0], seqs[-1], len(seqs), zlib.compress(planes, _LEVEL))


@lru_cache(maxsize=16)
def _unpack(chunk: _Chunk) -> "array[int]":
    """Not to be changed: whoever looks at one message of a chunk soon looks at the next."""
    planes, steps = zlib.decompress(chunk.data), chunk.size - 1
    mixed = bytearray(len(planes))
    for at in range(_WIDTH):
        mixed[at::_WIDTH] = planes[at * steps : (at + 1) * steps]
    return array("Q", accumulate(array("Q", bytes(mixed)), initial=chunk.first))


class Packed:
    """Ascending sequence numbers, taken from below."""

    __slots__ = ("_chunks", "_head", "size")

    def __init__(self, seqs: "array[int]") -> None:
        """Of ascending numbers, at least one."""
        self._head = seqs[CHUNK - 1 :: -1] if len(seqs) > CHUNK else seqs[::-1]
        """The oldest, descending, so that the oldest of all stands at the end"""
        self._chunks: list[_Chunk] = []
        self.size = len(self._head)
        self.extend(seqs[CHUNK:])

    @property
    def oldest(self) -> int:
        return self._head[-1]

    @property
    def newest(self) -> int:
        return self._chunks[-1].last if self._chunks else self._head[0]

    def extend(self, seqs: "array[int]") -> None:
        """Add ascending numbers that are newer than all others."""
        self._chunks += _cut(seqs)
        self.size += len(seqs)

    def prepend(self, seq: int) -> None:
        """Add a number that is older than all others."""
        self._head.append(seq)
        self.size += 1

    def take(self, count: int) -> "array[int]":
        """Remove and return the oldest, at most `count`. Afterwards all may be gone."""
        head = self._head
        if 0 < count < len(head):
            taken = head[: -count - 1 : -1]
            del head[-count:]
            self.size -= count
            return taken
        taken = array("Q")
        while count > 0 and self._head:
            head = self._head
            some = head[: -count - 1 : -1]
            del head[len(head) - len(some) :]
            taken += some
            count -= len(some)
            if not head:
                self._refill()
        self.size -= len(taken)
        return taken

    def _refill(self) -> None:
        if self._chunks:
            self._head = _unpack(self._chunks.pop(0))[::-1]

    def _shorten(self) -> None:
        """Pack all but the oldest of the head if it is long: any number may be older than what was packed first."""
        if len(self._head) > 2 * CHUNK:
            self._chunks[:0] = _cut(self._head[-CHUNK - 1 :: -1])
            self._head = self._head[-CHUNK:]

    def take_newest(self) -> "array[int]":
        """Remove and return the newest of them, of which there must be some. Afterwards all may be gone."""
        if self._chunks:
            taken = _unpack(self._chunks.pop())
        else:
            taken, self._head = self._head[::-1], array("Q")
        self.size -= len(taken)
        return taken

    def run(self, before: int) -> int:
        """How many of the head are not newer than `before`."""
        return len(self._head) - bisect_left(self._head, -before, key=neg)

    def __iter__(self) -> Iterator[int]:
        """All numbers, ascending."""
        yield from reversed(self._head)
        for chunk in self._chunks:
            yield from _unpack(chunk)

    def holds(self, seq: int) -> bool:
        return next(iter(self.between(seq, seq, 1)), None) is not None

    def older(self, seq: int) -> int:
        """How many numbers are smaller."""
        found = len(self._head) - bisect_right(self._head, -seq, key=neg)
        at = bisect_left(self._chunks, seq, key=_last_of)
        found += sum(chunk.size for chunk in self._chunks[:at])
        return found + bisect_left(_unpack(self._chunks[at]), seq) if at < len(self._chunks) else found

    def between(self, low: int, high: int, count: int, *, newest: bool = False) -> list[int]:
        """The smallest numbers, or the largest, from `low` to `high`, at most `count`; the first of them first."""
        found: list[int] = []
        for part in self._parts(low, high, newest=newest):
            start, end = bisect_left(part, low), bisect_right(part, high)
            room = count - len(found)
            found += part[max(start, end - room) : end][::-1] if newest else part[start : min(end, start + room)]
            if len(found) == count:
                break
        return found

    def _parts(self, low: int, high: int, *, newest: bool) -> Iterator["array[int]"]:
        """The head and the chunks that have numbers in a range, the first first."""
        start, end = self._reach(low, high)
        chunks = self._chunks[start:end]
        if newest:
            yield from map(_unpack, reversed(chunks))
        if low <= self._head[0]:
            yield self._head[::-1]
        if not newest:
            yield from map(_unpack, chunks)

    def _reach(self, low: int, high: int) -> tuple[int, int]:
        """Which chunks have numbers in a range."""
        start = bisect_left(self._chunks, low, key=_last_of)
        end = bisect_left(self._chunks, high, start, key=_last_of)
        return start, end + (end < len(self._chunks) and self._chunks[end].first <= high)

    def remove(self, seqs: set[int]) -> int:
        """Remove those of some numbers that are here. Returns how many that were. Afterwards all may be gone. Costs no
        more than the chunks that they may be in.
        """
        gone, before = sorted(seqs), self.size
        if gone[0] <= self._head[0]:
            head = self._head
            self._head = array("Q", [seq for seq in head if seq not in seqs])
            self.size -= len(head) - len(self._head)
        start, end = self._reach(gone[0], gone[-1])
        old = self._chunks[start:end]
        new = [kept for chunk in old for kept in _without(chunk, gone, seqs)]
        self._chunks[start:end] = new
        self.size -= sum(chunk.size for chunk in old) - sum(chunk.size for chunk in new)
        if not self._head:
            self._refill()
        return before - self.size

    def insert(self, seqs: Sequence[int]) -> None:
        """Add ascending numbers that belong among the others, none of them newer than the newest."""
        here = bisect_left(seqs, self._head[0])
        if here:
            self._head = array("Q", sorted([*self._head, *seqs[:here]], reverse=True))
            self._shorten()
        if here < len(seqs):
            start = bisect_left(self._chunks, seqs[here], key=_last_of)
            end = bisect_left(self._chunks, seqs[-1], key=_last_of) + 1
            old = (seq for chunk in self._chunks[start:end] for seq in _unpack(chunk))
            self._chunks[start:end] = _cut(array("Q", sorted([*old, *seqs[here:]])))
        self.size += len(seqs)


def _without(chunk: _Chunk, gone: list[int], seqs: set[int]) -> Iterable[_Chunk]:
    """What is left of a chunk when some numbers are gone, given in their order and as a set."""
    if bisect_left(gone, chunk.first) == bisect_right(gone, chunk.last):
        return [chunk]
    return _cut(array("Q", [seq for seq in _unpack(chunk) if seq not in seqs]))


def _cut(seqs: "array[int]") -> Iterable[_Chunk]:
    return [_pack(seqs[at : at + CHUNK]) for at in range(0, len(seqs), CHUNK)]
