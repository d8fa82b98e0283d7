"""Messages that wait to be delivered, kept as bare sequence numbers.

A million messages may wait, so each costs one `int` in a `deque` (about 40 bytes) and nothing else: everything that is
the same for many messages (queue, fairness key, priority) lives once in their lane, and what is rarely set (a cost
other than 1) in a side table.

Rules of this file:
- inside one fairness key, a lower priority number goes first;
- inside one lane, a lower sequence number goes first, also for messages that come back: a retried or delayed message
  takes its old place again, before and after a restart alike.
"""

from collections import deque
from heapq import heappop, heappush


class Lane:
    """The waiting messages of one fairness key that share a priority.

    A lane is where throttles will look: all of its messages are runnable, or none is.
    """

    __slots__ = ("back", "fifo", "key", "prefix", "priority")

    def __init__(self, key: "FairKey", priority: int, prefix: bytes) -> None:
        self.key = key
        self.priority = priority
        self.prefix = prefix
        """Where the store keeps the lane's messages. Opaque here."""
        self.fifo: deque[int] = deque()
        """In order."""
        self.back: list[int] = []
        """Those that came back into the middle, as a heap."""

    def __len__(self) -> int:
        return len(self.fifo) + len(self.back)

    def push(self, seq: int) -> None:
        """Add a message: at the end when it is new, in its old place when it comes back."""
        fifo = self.fifo
        if not fifo or seq > fifo[-1]:
            fifo.append(seq)
        elif seq < fifo[0]:
            fifo.appendleft(seq)
        else:
            heappush(self.back, seq)

    def push_new(self, seqs: list[int]) -> None:
        """Add messages that are newer than all that were ever here, in order."""
        self.fifo.extend(seqs)

    def take(self, out: list["Taken"], count: int) -> int:
        """Move the oldest messages, at most `count`, to `out` at a cost of 1 each. Returns how many."""
        fifo, back = self.fifo, self.back
        if back:
            return self._take_merged(out, count)
        if count >= len(fifo):
            count = len(fifo)
            out += [(self, seq, 1) for seq in fifo]
            fifo.clear()
        else:
            pop = fifo.popleft
            out += [(self, pop(), 1) for _ in range(count)]
        return count

    def _take_merged(self, out: list["Taken"], count: int) -> int:
        fifo, back = self.fifo, self.back
        count = min(count, len(self))
        for _ in range(count):
            seq = heappop(back) if back and (not fifo or back[0] < fifo[0]) else fifo.popleft()
            out.append((self, seq, 1))
        return count

    def waiting(self) -> list[int]:
        """All waiting messages, oldest first."""
        return sorted([*self.fifo, *self.back])


Taken = tuple[Lane, int, int]
"""A message on its way out: its lane, its sequence number, its cost."""


class FairKey:
    """One tenant of one queue: its lanes, its share, and its place in the scheduler's round."""

    __slots__ = ("costs", "deficit", "delivered", "head", "lanes", "live", "mark", "name", "place", "ready", "weight")

    def __init__(self, name: str, weight: int = 1) -> None:
        self.name = name
        self.weight = weight
        self.lanes: dict[int, Lane] = {}
        """By priority; only lanes that hold messages, lowest number first."""
        self.head: Lane | None = None
        """The first of the lanes."""
        self.costs: dict[int, int] = {}
        """Of the waiting messages whose cost is not 1."""
        self.ready = 0
        """How many messages wait in the lanes."""
        self.live = 0
        """How many messages exist: waiting, delayed or leased. A key without any is forgotten."""
        self.delivered = 0
        # The rest belongs to the scheduler.
        self.deficit = 0
        self.place = 0
        self.mark = 0

    def push(self, lane: Lane, seq: int, cost: int = 1) -> None:
        """Add a message to one of this key's lanes."""
        self._registered(lane).push(seq)
        if cost != 1:
            self.costs[seq] = cost
        self.ready += 1

    def push_new(self, lane: Lane, seqs: list[int]) -> None:
        """Add messages that are newer than all that were ever in the lane, in order, at a cost of 1 each."""
        self._registered(lane).push_new(seqs)
        self.ready += len(seqs)

    def _registered(self, lane: Lane) -> Lane:
        """The lane itself, or the one that has taken its place since it was empty."""
        held = self.lanes.get(lane.priority)
        if held is None:
            held = self.lanes[lane.priority] = lane
            if len(self.lanes) > 1:
                self.lanes = dict(sorted(self.lanes.items()))
            if self.head is None or lane.priority < self.head.priority:
                self.head = lane
        return held

    def take(self, out: list[Taken], budget: int, limit: int) -> int:
        """Move what may be delivered next to `out`: while some of `budget` is left, at most `limit` messages.

        The last message may cost more than is left; the returned spending then exceeds the budget, and the scheduler
        keeps the difference as a debt.
        """
        if self.costs:
            return self._take_by_cost(out, budget, limit)
        room = wanted = min(budget, limit, self.ready)
        while room:
            lane = self.head
            assert lane is not None
            room -= lane.take(out, room)
            if not (lane.fifo or lane.back):
                self._retire(lane)
        self.ready -= wanted
        return wanted

    def _take_by_cost(self, out: list[Taken], budget: int, limit: int) -> int:
        spent = 0
        while spent < budget and limit and self.head is not None:
            lane = self.head
            lane.take(out, 1)
            cost = self.costs.pop(out[-1][1], 1)
            out[-1] = (lane, out[-1][1], cost)
            spent += cost
            limit -= 1
            self.ready -= 1
            if not (lane.fifo or lane.back):
                self._retire(lane)
        return spent

    def _retire(self, lane: Lane) -> None:
        del self.lanes[lane.priority]
        self.head = next(iter(self.lanes.values()), None)
