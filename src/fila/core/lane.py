"""A lane: messages that wait to be delivered, of one fairness key, one priority and one set of throttles.

A million messages may wait, so each costs one number of eight bytes in an array and nothing else: everything that is
the same for many messages (queue, fairness key, priority, throttles) lives once in their lane, and what is rarely set
(a cost other than 1) in a side table of their key (`fair_key.py`). A hundred thousand tenants may wait too, with a few
messages each, so a key and its lane are small, and the numbers of a lane stand side by side.

Rules of this file:
- inside one lane, a lower sequence number goes first, also for messages that come back: a retried or delayed message
  takes its old position again, before and after a restart alike;
- messages with too many different sets of throttles share one lane for each priority, the overflow. Only there can a
  message that is held up hold up others.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

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


class Lane:
    """The waiting messages of one fairness key that share a priority and a set of throttles."""

    __slots__ = (
        "back",
        "before",
        "behind",
        "fifo",
        "first",
        "gate",
        "holdups",
        "id",
        "key",
        "need",
        "priority",
        "throttles",
    )

    def __init__(
        self, key: "FairKey", priority: int, key_parts: tuple[bytes, bytes], throttles: tuple[Throttle, ...] = ()
    ) -> None:
        self.key = key
        self.priority = priority
        self.id = lane_id(priority, throttles)
        self.before, self.behind = key_parts
        """Where the store keeps the lane's messages: what stands before their numbers, and what behind."""
        self.throttles = throttles
        self.fifo = array("Q")
        """In order, from `first` on. Empty when there are none."""
        self.first = 0
        self.back: list[int] | tuple[()] = ()
        """Those that came back into the middle, as a heap."""
        self.gate: Line | None = None
        """Where the lane waits for one of its throttles; None while it may be tried."""
        self.need = 1
        """What the message costs for which it waits."""
        self.holdups: Holdups | None = None
        """When throttles held it up, for the ledger."""

    def __len__(self) -> int:
        return len(self.fifo) - self.first + len(self.back)

    @property
    def key_parts(self) -> tuple[bytes, bytes]:
        return self.before, self.behind

    @property
    def oldest(self) -> int:
        fifo, back = self.fifo, self.back
        return back[0] if back and (not fifo or back[0] < fifo[self.first]) else fifo[self.first]

    @property
    def newest(self) -> int:
        return max(*self.back, self.fifo[-1] if self.fifo else 0) if self.back else self.fifo[-1]

    def throttles_of(self, _seq: int) -> tuple[Throttle, ...]:
        """The throttles of one of the messages."""
        return self.throttles

    def release(self) -> None:
        """One of its messages is no longer in flight."""
        for throttle in self.throttles:
            throttle.release()

    def push(self, seq: int) -> None:
        """Add a message: at the end when it is new, at its old position when it comes back."""
        fifo = self.fifo
        if not fifo or seq > fifo[-1]:
            fifo.append(seq)
        elif seq < fifo[self.first]:
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
        fifo = self.fifo
        if not fifo or fifo[-1] < seqs[0]:
            fifo.extend(seqs)
            return
        start = 0
        while start < len(seqs):
            at = bisect_left(fifo, seqs[start], self.first)
            end = bisect_left(seqs, fifo[at], start) if at < len(fifo) else len(seqs)
            assert start < end, "a message waits once"
            fifo[at:at] = array("Q", seqs[start:end])
            start = end

    def take(self, out: list["Taken"], count: int) -> int:
        """Move the oldest messages, at most `count`, to `out` at a cost of 1 each. Returns how many."""
        fifo, first = self.fifo, self.first
        if self.back:
            return self._take_merged(out, count)
        end = first + count
        if end >= len(fifo):
            count = len(fifo) - first
            out += [(self, seq, 1) for seq in (fifo[first:] if first else fifo)]
            self._clear()
        else:
            out += [(self, seq, 1) for seq in fifo[first:end]]
            self._skip(end)
        return count

    def _take_merged(self, out: list["Taken"], count: int) -> int:
        count = min(count, len(self))
        out += [(self, self._pop(), 1) for _ in range(count)]
        return count

    def _pop(self) -> int:
        fifo, back = self.fifo, self.back
        if back and (not fifo or back[0] < fifo[self.first]):
            return heappop(back)
        seq = fifo[self.first]
        if self.first + 1 == len(fifo):
            self._clear()
        else:
            self._skip(self.first + 1)
        return seq

    def _clear(self) -> None:
        del self.fifo[:]
        self.first = 0

    def _skip(self, first: int) -> None:
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
        return min(most, bisect_right(self.fifo, before, self.first) - self.first)

    def waiting(self) -> list[int]:
        """All waiting messages, oldest first."""
        return sorted([*self.fifo[self.first :], *self.back])

    def holds(self, seq: int) -> bool:
        """Whether a message waits here."""
        fifo = self.fifo
        at = bisect_left(fifo, seq, self.first)
        return (at < len(fifo) and fifo[at] == seq) or seq in self.back

    def older(self, seq: int) -> int:
        """How many of the waiting messages are older than one."""
        return bisect_left(self.fifo, seq, self.first) - self.first + sum(back < seq for back in self.back)

    def between(self, low: int, high: int, count: int, *, newest: bool = False) -> list[int]:
        """The oldest messages, or the newest, from `low` to `high`, at most `count`; the first of them first."""
        fifo = self.fifo
        start, end = bisect_left(fifo, low, self.first), bisect_right(fifo, high, self.first)
        if newest:
            found = fifo[max(start, end - count) : end].tolist()[::-1]
        else:
            found = fifo[start : min(end, start + count)].tolist()
        back = [seq for seq in self.back if low <= seq <= high]
        return sorted([*found, *back], reverse=newest)[:count] if back else found

    def remove(self, seqs: set[int]) -> None:
        """Take messages out that wait here. Costs what lies behind the first of them."""
        fifo = self.fifo
        start, end = bisect_left(fifo, min(seqs), self.first), bisect_right(fifo, max(seqs), self.first)
        fifo[start:end] = array("Q", [seq for seq in fifo[start:end] if seq not in seqs])
        if len(fifo) == self.first:
            self._clear()
        if not seqs.isdisjoint(self.back):
            self.back = [seq for seq in self.back if seq not in seqs]
            heapify(self.back)


Taken = tuple[Lane, int, int]
"""A message on its way out: its lane, its sequence number, its cost."""


class Overflow(Lane):
    """Messages of one priority whose sets of throttles are too many for a lane each."""

    __slots__ = ("lanes",)

    def __init__(self, key: "FairKey", priority: int) -> None:
        super().__init__(key, priority, (b"", b""))
        self.id = (priority, None)
        self.lanes: dict[int, Lane] = {}
        """Of each message, the lane that it would be in."""

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
