"""Who is served next: Deficit Round Robin over fairness keys, sparse keys first.

Theory of operation (after FQ-CoDel, RFC 8290, section 4):

- Every key that has messages stands in one of two rings. A key that becomes active enters the ring of *sparse* keys
  with one quantum times its weight to spend; the *backlogged* ring holds those that have used up theirs.
- The head of a ring is served until it has nothing left to spend. Then it gets `weight * quantum` anew and goes to the
  end of the backlogged ring. So over a round each backlogged key delivers in proportion to its weight.
- Sparse keys go first, so a quiet tenant waits for almost nobody. After `SPARSE_RUN` of them in a row one backlogged
  key has its turn, so that an endless stream of never-seen keys cannot starve anybody.
- A sparse key that empties passes through the backlogged ring once before it is forgotten. Whoever sends again in that
  time waits with the backlogged, so nobody gains by emptying and coming back.
- A message may cost more than its key has left: the key then runs into debt and pays it off in later rounds, even when
  it has emptied meanwhile. A positive rest is dropped when a key leaves: shares are not hoarded.

Selecting changes the rings; `rollback` undoes a selection exactly, for when it could not be made durable.
"""

from collections import deque
from dataclasses import dataclass, field

from fila.core.pending import FairKey, Taken

SPARSE_RUN = 16
"""Sparse keys served in a row before one backlogged key has its turn."""

IDLE, SPARSE, BACKLOGGED = range(3)


@dataclass(slots=True)
class Selection:
    """Messages taken out of their lanes, and what is needed to put them back."""

    messages: list[Taken] = field(default_factory=list)
    """In the order of delivery."""
    before: list[tuple[FairKey, int, int]] = field(default_factory=list)
    """(key, deficit, place) of every key that was looked at, in the order of first look."""
    round: int = 0
    turns_left: int = 0
    sparse_run: int = 0


class Drr:
    """The rings of one queue. Owns the deficit and the place of each of its keys."""

    __slots__ = ("_backlogged", "_epoch", "_sparse", "_sparse_run", "_turns_left", "quantum", "round")

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.round = 0
        self._sparse: deque[FairKey] = deque()
        self._backlogged: deque[FairKey] = deque()
        self._sparse_run = 0
        self._turns_left = 0
        self._epoch = 0

    def __len__(self) -> int:
        """How many keys stand in the rings, those that only pay off their turn included."""
        return len(self._sparse) + len(self._backlogged)

    def activate(self, key: FairKey) -> None:
        """Let a key take part. Does nothing for one that already does."""
        if key.place == IDLE:
            key.place = SPARSE
            key.deficit = key.weight * self.quantum
            self._sparse.append(key)

    def order(self) -> list[FairKey]:
        """The keys in the order in which they will have their turn."""
        return [*self._sparse, *self._backlogged]

    def select(self, limit: int) -> Selection:
        """Take the next messages, at most `limit`, out of their lanes."""
        chosen = Selection(round=self.round, turns_left=self._turns_left, sparse_run=self._sparse_run)
        messages, before = chosen.messages, chosen.before
        self._epoch += 1
        epoch = self._epoch
        idle_turns = 0
        while limit > 0:
            ring = self._ring()
            if not ring:
                break
            key = ring[0]
            if key.mark != epoch:
                key.mark = epoch
                before.append((key, key.deficit, key.place))
            if key.deficit > 0 and key.ready:
                taken, spent = key.take(key.deficit, limit)
                key.deficit -= spent
                limit -= len(taken)
                messages += taken
                idle_turns = 0
            else:
                idle_turns += 1
                if idle_turns > len(self):
                    self._skip_rounds_in_debt()
            if key.deficit <= 0:
                self._end_turn(ring, key)
            elif not key.ready:
                self._leave(ring, key)
        self._drop_emptied(before)
        return chosen

    def rollback(self, chosen: Selection) -> None:
        """Put everything back as it was before `chosen` was selected."""
        touched = {id(key) for key, _, _ in chosen.before}
        self._sparse = deque(key for key in self._sparse if id(key) not in touched)
        self._backlogged = deque(key for key in self._backlogged if id(key) not in touched)
        for key, deficit, place in reversed(chosen.before):
            key.deficit = deficit
            key.place = place
            (self._sparse if place == SPARSE else self._backlogged).appendleft(key)
        for lane, seq, cost in chosen.messages:
            lane.key.push(lane, seq, cost)
        self.round, self._turns_left, self._sparse_run = chosen.round, chosen.turns_left, chosen.sparse_run

    def _ring(self) -> deque[FairKey]:
        if self._sparse and (self._sparse_run < SPARSE_RUN or not self._backlogged):
            return self._sparse
        return self._backlogged

    def _end_turn(self, ring: deque[FairKey], key: FairKey) -> None:
        ring.popleft()
        key.deficit += key.weight * self.quantum
        key.place = BACKLOGGED
        self._count_turn(ring)
        self._backlogged.append(key)

    def _drop_emptied(self, before: list[tuple[FairKey, int, int]]) -> None:
        """Let emptied keys leave that have come to the head of the backlogged ring, so that they do not pile up there.

        Twice as many as were looked at, because that is more than can have been added.
        """
        ring = self._backlogged
        for _ in range(2 * len(before)):
            if not ring or ring[0].ready or ring[0].deficit <= 0:
                return
            key = ring[0]
            if key.mark != self._epoch:
                key.mark = self._epoch
                before.append((key, key.deficit, key.place))
            self._leave(ring, key)

    def _skip_rounds_in_debt(self) -> None:
        """When every key is in debt, pay off in one step the rounds in which nobody could be served."""
        rounds = min(-key.deficit // (key.weight * self.quantum) for key in self._backlogged)
        for key in self._backlogged:
            key.deficit += rounds * key.weight * self.quantum
        self.round += rounds

    def _leave(self, ring: deque[FairKey], key: FairKey) -> None:
        ring.popleft()
        self._count_turn(ring)
        if ring is self._sparse:
            key.place = BACKLOGGED
            self._backlogged.append(key)
        else:
            key.place = IDLE
            key.deficit = 0

    def _count_turn(self, ring: deque[FairKey]) -> None:
        if ring is self._sparse:
            self._sparse_run += 1
            return
        self._sparse_run = 0
        if self._turns_left <= 0:
            self.round += 1
            self._turns_left = len(ring)
        else:
            self._turns_left -= 1
