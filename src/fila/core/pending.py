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

    __slots__ = ("_back", "_fifo", "key", "prefix", "priority")

    def __init__(self, key: "FairKey", priority: int, prefix: bytes) -> None:
        self.key = key
        self.priority = priority
        self.prefix = prefix
        """Where the store keeps the lane's messages. Opaque here."""
        self._fifo: deque[int] = deque()
        self._back: list[int] = []

    def __len__(self) -> int:
        return len(self._fifo) + len(self._back)

    def push(self, seq: int) -> None:
        """Add a message: at the end when it is new, in its old place when it comes back."""
        fifo = self._fifo
        if not fifo or seq > fifo[-1]:
            fifo.append(seq)
        elif seq < fifo[0]:
            fifo.appendleft(seq)
        else:
            heappush(self._back, seq)

    def push_new(self, seqs: list[int]) -> None:
        """Add messages that are newer than all that were ever here, in order."""
        self._fifo.extend(seqs)

    def take(self, count: int) -> list[int]:
        """Remove and return the oldest messages, at most `count`."""
        fifo, back = self._fifo, self._back
        if not back:
            if count >= len(fifo):
                taken = list(fifo)
                fifo.clear()
                return taken
            pop = fifo.popleft
            return [pop() for _ in range(count)]
        taken = []
        while len(taken) < count and (fifo or back):
            taken.append(heappop(back) if back and (not fifo or back[0] < fifo[0]) else fifo.popleft())
        return taken

    def peek(self) -> int:
        """The oldest message of a lane that is not empty."""
        fifo, back = self._fifo, self._back
        return back[0] if back and (not fifo or back[0] < fifo[0]) else fifo[0]

    def waiting(self) -> list[int]:
        """All waiting messages, oldest first."""
        return sorted([*self._fifo, *self._back])


Taken = tuple[Lane, int, int]
"""A message on its way out: its lane, its sequence number, its cost."""


class FairKey:
    """One tenant of one queue: its lanes, its share, and its place in the scheduler's round."""

    __slots__ = ("costs", "deficit", "delivered", "lanes", "live", "mark", "name", "place", "ready", "weight")

    def __init__(self, name: str, weight: int = 1) -> None:
        self.name = name
        self.weight = weight
        self.lanes: dict[int, Lane] = {}
        """By priority; only lanes that hold messages, lowest number first."""
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
        return held

    def take(self, budget: int, limit: int) -> tuple[list[Taken], int]:
        """Remove what may be delivered next: while some of `budget` is left, at most `limit` messages.

        The last message may cost more than is left; the returned spending then exceeds the budget, and the scheduler
        keeps the difference as a debt.
        """
        if self.costs:
            return self._take_by_cost(budget, limit)
        taken: list[Taken] = []
        room = min(budget, limit)
        while room and self.lanes:
            lane = next(iter(self.lanes.values()))
            run = lane.take(room)
            taken += [(lane, seq, 1) for seq in run]
            room -= len(run)
            if not len(lane):
                del self.lanes[lane.priority]
        self.ready -= len(taken)
        return taken, len(taken)

    def _take_by_cost(self, budget: int, limit: int) -> tuple[list[Taken], int]:
        taken: list[Taken] = []
        spent = 0
        while spent < budget and len(taken) < limit and self.lanes:
            lane = next(iter(self.lanes.values()))
            (seq,) = lane.take(1)
            cost = self.costs.pop(seq, 1)
            taken.append((lane, seq, cost))
            spent += cost
            if not len(lane):
                del self.lanes[lane.priority]
        self.ready -= len(taken)
        return taken, spent
