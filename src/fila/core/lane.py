"""A lane: messages that wait to be delivered, of one fairness key, one priority and one set of throttles.

Millions of messages may wait, so each costs one number of eight bytes in an array, less in a long lane, and nothing
else: everything that is the same for many messages (queue, fairness key, priority, throttles) lives once in their lane,
and what is rarely set (a cost other than 1) in a side table of their key (`fair_key.py`). A hundred thousand tenants
may wait too, with a few messages each, so a key and its lane are small, and the numbers of a lane stand side by side.

Rules of this file:
- inside one lane, a lower sequence number goes first, also for messages that come back: a retried or delayed message
  takes its old position again, before and after a restart alike;
- a number is at least 1. One that waits alone has no array to itself, as long as its lane never held two at a time;
- in a long lane all but the newest numbers are packed (`packed.py`). While some are, `fifo` is not empty: the newest
  number is found there;
- messages with too many different sets of throttles share one lane for each priority, the overflow. Only there can a
  message that is held up hold up others.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from fila.core.packed import CHUNK, Packed
from fila.core.policy import MAX_PRIORITY
from fila.core.throttle import Throttle

if TYPE_CHECKING:
    from fila.core.fair_key import FairKey
    from fila.core.ledger import Holdups
    from fila.core.lines import Line

LaneId = tuple[int, tuple[Throttle, ...] | None]
"""Priority and throttles; None for the overflow."""

_PLAIN: list[LaneId] = [(priority, ()) for priority in range(MAX_PRIORITY + 1)]
"""Of lanes without throttles, which nearly all are"""


def lane_id(priority: int, throttles: tuple[Throttle, ...]) -> LaneId:
    return (priority, throttles) if throttles else _PLAIN[priority]


_WORTH_MOVING = 64
"""Numbers that were taken from a lane before the others are moved up."""
LONG = 3 * CHUNK
"""More numbers than this side by side are packed, but for the newest."""


NONE = array("Q")
"""Never changed."""


class Lane:
    """The waiting messages of one fairness key that share a priority and have no throttles.

    It has a position for all that a lane with throttles has, but no memory.
    """

    __slots__ = ("back", "before", "behind", "fifo", "first", "key", "packed", "priority")

    throttles: tuple[Throttle, ...] = ()
    gate: "Line | None" = None
    """Where the lane waits for one of its throttles; None while it may be tried."""
    need = 1
    """What the message costs for which it waits."""
    holdups: "Holdups | None" = None
    """When throttles held it up, for the ledger."""

    def __init__(self, key: "FairKey", priority: int, key_parts: tuple[bytes, bytes]) -> None:
        self.key = key
        self.priority = priority
        self.before, self.behind = key_parts
        """Where the store keeps the lane's messages: what stands before their numbers, and what behind."""
        self.fifo = NONE
        """In order, from `first` on. Empty when there are none; `NONE` until the lane holds two at a time."""
        self.first = 0
        """Where the oldest stands in `fifo`. While that is `NONE`, the only message itself; 0 when there is none."""
        self.packed: Packed | None = None
        """Older ones than those in `fifo`; None when there are none"""
        self.back: list[int] | tuple[()] = ()
        """Those that came back into the middle, as a heap."""

    def __len__(self) -> int:
        fifo, first = self.numbers
        count = len(fifo) - first + len(self.back)
        return count + self.packed.size if self.packed is not None else count

    @property
    def numbers(self) -> tuple["array[int]", int]:
        """What `fifo` and `first` are, or would be."""
        if self.fifo is not NONE:
            return self.fifo, self.first
        return (array("Q", (self.first,)) if self.first else NONE), 0

    def _unfold(self) -> "array[int]":
        """Have an array to change."""
        if self.fifo is NONE:
            self.fifo, self.first = array("Q", (self.first,) if self.first else ()), 0
        return self.fifo

    @property
    def id(self) -> LaneId:
        return lane_id(self.priority, self.throttles)

    @property
    def key_parts(self) -> tuple[bytes, bytes]:
        return self.before, self.behind

    @property
    def oldest(self) -> int:
        fifo, back = self.fifo, self.back
        if self.packed is not None:
            oldest = self.packed.oldest
        else:
            oldest = fifo[self.first] if fifo else self.first
        return min(oldest or back[0], back[0]) if back else oldest

    @property
    def newest(self) -> int:
        newest = self.fifo[-1] if self.fifo else self.first
        return max(*self.back, newest) if self.back else newest

    def throttles_of(self, _seq: int) -> tuple[Throttle, ...]:
        """The throttles of one of the messages."""
        return self.throttles

    def release(self) -> None:
        """One of its messages is no longer in flight."""
        for throttle in self.throttles:
            throttle.release()

    def push(self, seq: int) -> None:
        """Add a message: at the end when it is new, at its old position when it comes back."""
        if self.fifo is NONE and not self.first:
            self.first = seq
            return
        fifo = self._unfold()
        if not fifo or seq > fifo[-1]:
            fifo.append(seq)
            self.pack()
        elif self.packed is not None and seq < self.packed.oldest:
            self.packed.prepend(seq)
        elif self.packed is None and seq < fifo[self.first]:
            if not self.first:
                self.first = max(8, len(fifo) // 2)  # so that a quarter is taken before the gap goes again
                fifo[:0] = array("Q", bytes(fifo.itemsize * self.first))
            self.first -= 1
            fifo[self.first] = seq
        elif self.back:
            heappush(self.back, seq)
        else:
            self.back = [seq]

    def push_many(self, seqs: Sequence[int]) -> None:
        """Add messages, in order. Those that have just come go to the end; others take their positions among those that
        wait, which costs what lies behind it.
        """
        if self.fifo is NONE and not self.first and len(seqs) == 1:
            self.first = seqs[0]
            return
        fifo = self._unfold()
        if not fifo or fifo[-1] < seqs[0]:
            fifo.extend(seqs)
            self.pack()
            return
        start = 0
        if self.packed is not None:
            start = bisect_right(seqs, self.packed.newest)
            if start:
                self.packed.insert(seqs[:start])
        while start < len(seqs):
            at = bisect_left(fifo, seqs[start], self.first)
            end = bisect_left(seqs, fifo[at], start) if at < len(fifo) else len(seqs)
            assert start < end, "a message waits once"
            fifo[at:at] = array("Q", seqs[start:end])
            start = end
        self.pack()

    def pack(self) -> None:
        """Pack all but the newest when there are many."""
        fifo, first = self.fifo, self.first
        if len(fifo) - first <= LONG:
            return
        end = first + (len(fifo) - first - 1) // CHUNK * CHUNK
        if self.packed is None:
            self.packed = Packed(fifo[first:end])
        else:
            self.packed.extend(fifo[first:end])
        del fifo[:end]
        self.first = 0

    def take(self, out: list["Taken"], count: int) -> int:
        """Move the oldest messages, at most `count`, to `out` at a cost of 1 each. Returns how many."""
        fifo, first = self.fifo, self.first
        if self.back:
            return self._take_merged(out, count)
        if self.packed is not None:
            return self._take_packed(out, count)
        if fifo is NONE:
            count = min(count, 1 if first else 0)
            if count:
                out.append((self, first, 1))
                self.first = 0
            return count
        end = first + count
        if end >= len(fifo):
            count = len(fifo) - first
            out += [(self, seq, 1) for seq in (fifo[first:] if first else fifo)]
            self.clear()
        else:
            out += [(self, seq, 1) for seq in fifo[first:end]]
            self.skip(end)
        return count

    def _take_merged(self, out: list["Taken"], count: int) -> int:
        left = min(count, len(self))
        count = left
        while left and self.back:
            run = self.packed.run(self.back[0]) if self.packed is not None else 0
            seqs: Sequence[int] = self._unpack(min(run, left)) if run else (self._pop(),)
            out += [(self, seq, 1) for seq in seqs]
            left -= len(seqs)
        if left:
            self.take(out, left)
        return count

    def _take_packed(self, out: list["Taken"], count: int) -> int:
        seqs = self._unpack(count)
        out += [(self, seq, 1) for seq in seqs]
        return len(seqs) + self.take(out, count - len(seqs)) if len(seqs) < count else count

    def _unpack(self, count: int) -> "array[int]":
        """The oldest of those that are packed, at most `count`."""
        assert self.packed is not None
        seqs = self.packed.take(count)
        if not self.packed.size:
            self.packed = None
        return seqs

    def _pop(self) -> int:
        fifo, back = self._unfold(), self.back
        if self.packed is not None:
            return heappop(back) if back and back[0] < self.packed.oldest else self._unpack(1)[0]
        if back and (not fifo or back[0] < fifo[self.first]):
            return heappop(back)
        seq = fifo[self.first]
        if self.first + 1 == len(fifo):
            self.clear()
        else:
            self.skip(self.first + 1)
        return seq

    def clear(self) -> None:
        """All that `fifo` held was taken."""
        del self.fifo[:]
        self.first = 0

    def skip(self, first: int) -> None:
        """The numbers before this position were taken."""
        if first > _WORTH_MOVING and 2 * first > len(self.fifo):
            del self.fifo[:first]
            first = 0
        self.first = first

    def run(self, before: int | None, most: int) -> int:
        """How many of the oldest messages are not newer than `before`, counted up to `most`."""
        if before is None:
            return most
        if self.back:
            return 1
        if self.packed is not None:
            return min(most, self.packed.run(before))
        fifo, first = self.numbers
        return min(most, bisect_right(fifo, before, first) - first)

    def waiting(self) -> list[int]:
        """All waiting messages, oldest first."""
        fifo, first = self.numbers
        return sorted([*(self.packed or ()), *fifo[first:], *self.back])

    def holds(self, seq: int) -> bool:
        """Whether a message waits here."""
        fifo, first = self.numbers
        at = bisect_left(fifo, seq, first)
        if (at < len(fifo) and fifo[at] == seq) or seq in self.back:
            return True
        return self.packed is not None and self.packed.holds(seq)

    def older(self, seq: int) -> int:
        """How many of the waiting messages are older than one."""
        fifo, first = self.numbers
        found = bisect_left(fifo, seq, first) - first + sum(back < seq for back in self.back)
        return found + self.packed.older(seq) if self.packed is not None else found

    def between(self, low: int, high: int, count: int, *, newest: bool = False) -> list[int]:
        """The oldest messages, or the newest, from `low` to `high`, at most `count`; the first of them first."""
        found = self._between(low, high, count, newest=newest)
        back = [seq for seq in self.back if low <= seq <= high]
        return sorted([*found, *back], reverse=newest)[:count] if back else found

    def _between(self, low: int, high: int, count: int, *, newest: bool) -> list[int]:
        (fifo, first), packed = self.numbers, self.packed
        start, end = bisect_left(fifo, low, first), bisect_right(fifo, high, first)
        if newest:
            found = fifo[max(start, end - count) : end].tolist()[::-1]
            if packed is not None and len(found) < count:
                found += packed.between(low, high, count - len(found), newest=True)
            return found
        found = packed.between(low, high, count) if packed is not None else []
        return found + fifo[start : min(end, start + count - len(found))].tolist()

    def remove(self, seqs: set[int]) -> None:
        """Take messages out that wait here. Costs what lies behind the first of them."""
        self._unfold()
        if self.packed is not None:
            self.packed.remove(seqs)
            if not self.packed.size:
                self.packed = None
        self._remove(seqs)
        if self.packed is not None and not self.fifo:
            self.fifo.extend(self.packed.take_newest())
            if not self.packed.size:
                self.packed = None

    def _remove(self, seqs: set[int]) -> None:
        fifo = self.fifo
        start, end = bisect_left(fifo, min(seqs), self.first), bisect_right(fifo, max(seqs), self.first)
        fifo[start:end] = array("Q", [seq for seq in fifo[start:end] if seq not in seqs])
        if len(fifo) == self.first:
            self.clear()
        if not seqs.isdisjoint(self.back):
            self.back = [seq for seq in self.back if seq not in seqs]
            heapify(self.back)


class ThrottledLane(Lane):
    """The waiting messages of one fairness key that share a priority and a set of throttles."""

    __slots__ = ("gate", "holdups", "need", "throttles")

    def __init__(
        self, key: "FairKey", priority: int, key_parts: tuple[bytes, bytes], throttles: tuple[Throttle, ...]
    ) -> None:
        super().__init__(key, priority, key_parts)
        self.throttles = throttles
        self.gate: Line | None = None
        self.need = 1
        self.holdups: Holdups | None = None


def new_lane(
    key: "FairKey", priority: int, key_parts: tuple[bytes, bytes], throttles: tuple[Throttle, ...] = ()
) -> Lane:
    """A lane with throttles, or one without."""
    return ThrottledLane(key, priority, key_parts, throttles) if throttles else Lane(key, priority, key_parts)


Taken = tuple[Lane, int, int]
"""A message on its way out: its lane, its sequence number, its cost."""


class Overflow(ThrottledLane):
    """Messages of one priority whose sets of throttles are too many for a lane each."""

    __slots__ = ("lanes",)

    def __init__(self, key: "FairKey", priority: int) -> None:
        super().__init__(key, priority, (b"", b""), ())
        self.lanes: dict[int, Lane] = {}
        """Of each message, the lane that it would be in."""

    @property
    def id(self) -> LaneId:
        return self.priority, None

    def throttles_of(self, seq: int) -> tuple[Throttle, ...]:
        return self.lanes[seq].throttles

    def take(self, out: list[Taken], count: int) -> int:
        count = min(count, len(self))
        for _ in range(count):
            seq = self._pop()
            out.append((self.lanes.pop(seq), seq, 1))
        return count

    def remove(self, seqs: set[int]) -> None:
        super().remove(seqs)
        for seq in seqs:
            del self.lanes[seq]
