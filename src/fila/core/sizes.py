"""How many bytes each message of a queue has, for queues whose bytes are limited.

A million messages may wait, so each costs twelve bytes: its number and its size, side by side in arrays of at most
`CHUNK` entries. A chunk in which few messages are left is packed, and one without any is dropped, so that a message
that stays for long does not keep the places of those that came after it.
"""

from array import array
from bisect import bisect_left, bisect_right

CHUNK = 1024
_GONE = 0xFFFF_FFFF


class _Chunk:
    __slots__ = ("live", "seqs", "sizes")

    def __init__(self, seqs: "array[int]", sizes: "array[int]") -> None:
        self.seqs = seqs
        self.sizes = sizes
        self.live = len(seqs)

    def find(self, seq: int) -> int:
        """Where a message stands or would stand."""
        return bisect_left(self.seqs, seq)

    def pack(self) -> None:
        """Forget the places of messages that are gone."""
        kept = [at for at, size in enumerate(self.sizes) if size != _GONE]
        self.seqs = array("Q", [self.seqs[at] for at in kept])
        self.sizes = array("I", [self.sizes[at] for at in kept])


class Sizes:
    """By sequence number. Most messages come in the order of their numbers; others find their place."""

    __slots__ = ("_chunks", "_firsts")

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._firsts: list[int] = []
        """The least number that each chunk may have"""

    def __len__(self) -> int:
        return sum(chunk.live for chunk in self._chunks)

    def add(self, seq: int, size: int) -> bool:
        """Returns whether the message was not known before."""
        if not self._chunks:
            self._append(seq, size)
            return True
        last = self._chunks[-1]
        if last.seqs and seq > last.seqs[-1]:
            if len(last.seqs) >= CHUNK:
                self._append(seq, size)
                return True
            last.seqs.append(seq)
            last.sizes.append(size)
            last.live += 1
            return True
        return self._insert(seq, size)

    def get(self, seq: int) -> int:
        """The size of a message; 0 for one that is not known."""
        at, place = self._find(seq)
        return 0 if place is None else self._chunks[at].sizes[place]

    def take(self, seq: int) -> int:
        """As `get`, of a message that is gone from now on."""
        at, place = self._find(seq)
        if place is None:
            return 0
        chunk = self._chunks[at]
        size, chunk.sizes[place] = chunk.sizes[place], _GONE
        chunk.live -= 1
        if not chunk.live:
            del self._chunks[at], self._firsts[at]
        elif 4 * chunk.live < len(chunk.seqs):
            chunk.pack()
        return size

    def _find(self, seq: int) -> tuple[int, int | None]:
        """The chunk of a message and its place there; None when it is not known."""
        at = bisect_right(self._firsts, seq) - 1
        if at < 0:
            return at, None
        chunk = self._chunks[at]
        place = chunk.find(seq)
        known = place < len(chunk.seqs) and chunk.seqs[place] == seq and chunk.sizes[place] != _GONE
        return at, place if known else None

    def _append(self, seq: int, size: int) -> None:
        self._chunks.append(_Chunk(array("Q", [seq]), array("I", [size])))
        self._firsts.append(seq)

    def _insert(self, seq: int, size: int) -> bool:
        at = max(0, bisect_right(self._firsts, seq) - 1)
        chunk = self._chunks[at]
        place = chunk.find(seq)
        if place < len(chunk.seqs) and chunk.seqs[place] == seq:
            known = chunk.sizes[place] != _GONE
            if not known:
                chunk.sizes[place] = size
                chunk.live += 1
            return not known
        chunk.seqs.insert(place, seq)
        chunk.sizes.insert(place, size)
        chunk.live += 1
        self._firsts[at] = min(self._firsts[at], seq)
        if len(chunk.seqs) > 2 * CHUNK:
            self._split(at)
        return True

    def _split(self, at: int) -> None:
        chunk = self._chunks[at]
        chunk.pack()
        half = len(chunk.seqs) // 2
        behind = _Chunk(chunk.seqs[half:], chunk.sizes[half:])
        chunk.seqs, chunk.sizes, chunk.live = chunk.seqs[:half], chunk.sizes[:half], half
        self._chunks.insert(at + 1, behind)
        self._firsts.insert(at + 1, behind.seqs[0])
