"""Who is served next: Deficit Round Robin over fairness keys, sparse keys first.

Theory of operation (after FQ-CoDel, RFC 8290, section 4):

- Every key that has messages stands in one of two rings. A key that becomes active enters the ring of *sparse* keys
  with one quantum times its weight to spend; the *backlogged* ring holds those that have used up theirs.
- The head of a ring is served until it has nothing left to spend. Then it gets `weight * quantum` anew and goes to the
  end of the backlogged ring. So over a round each backlogged key delivers in proportion to its weight.
- Sparse keys go first, so a quiet tenant waits for almost nobody. After `SPARSE_RUN` of them in a row one backlogged
  key has its turn, so that an endless stream of never-seen keys cannot starve anybody.
- A sparse key that empties passes through the backlogged ring once before it is forgotten. Whoever sends again in that
  time waits with the backlogged, so nobody gains by emptying and coming back. Passing through takes nobody's turn.
- A message may cost more than its key has left: the key then runs into debt and pays it off in later rounds, even when
  it has emptied meanwhile. A positive rest is dropped when a key leaves: shares are not hoarded.

- A key whose throttles hold up all that it has is *parked* when its turn comes: it leaves the rings with what it has
  left to spend, costs nothing while it waits (see `lines.py`), and goes on as a sparse key. So it spends one share for
  every time that it passes through the backlogged ring, as everybody does, however often it is parked. So is a key
  whose messages all wait until older ones are read after a start.
- A key that is put off (see `lines.py`) goes to the end of the backlogged ring with what it has left, behind those
  that were called before, whichever their ring.

A turn takes constant time, and a message `cost / (weight * quantum)` turns, as in any deficit round robin. Weights and
costs are at least 1.

Selecting changes the rings; `rollback` undoes a selection exactly, for when it could not be made durable.
"""

from collections import deque
from dataclasses import dataclass, field

from fila.core.fair_key import USUAL, FairKey
from fila.core.lane import Lane, Taken
from fila.core.lines import Line, Lines, Trace
from fila.core.throttle import Throttle

SPARSE_RUN = 16
"""Sparse keys served in a row before one backlogged key has its turn."""

MAX_PARKED = 1000
"""Keys that one selection parks; looking at more of them would make everybody else wait."""

IDLE, PARKED, SPARSE, BACKLOGGED = range(4)


@dataclass(slots=True)
class Selection:
    """Messages that are to be delivered, and what is needed to put them back into their lanes."""

    messages: list[Taken] = field(default_factory=list)
    """In the order of delivery."""
    served: list[tuple[FairKey, int]] = field(default_factory=list)
    """Whose they are: keys in their turns, with how many of each."""
    before: list[tuple[FairKey, int, int]] = field(default_factory=list)
    """(key, deficit, ring) of every key that was looked at, in the order of first look."""
    trace: Trace = field(default_factory=Trace)
    """What happened at the throttles."""
    beyond: list[FairKey] = field(default_factory=list)
    """Keys that were parked because all that they have is newer than was asked for"""
    unfinished: bool = False
    """Whether there are keys that were not looked at although more was wanted."""
    round: int = 0
    turns: int = 0
    turns_left: int = 0
    sparse_run: int = 0


class Drr:
    """The rings of one queue. Owns the deficit of each of its keys, and in which ring it stands."""

    __slots__ = (
        "_backlogged",
        "_epoch",
        "_sparse",
        "_sparse_run",
        "_turns_left",
        "lines",
        "parked",
        "quantum",
        "round",
        "turns",
    )

    def __init__(self, quantum: int, lines: Lines) -> None:
        self.quantum = quantum
        self.lines = lines
        self.parked = 0
        """How many keys wait for throttles, or for older messages to be read, outside the rings."""
        self.round = 0
        self.turns = 0
        """How many turns keys have had."""
        self._sparse: deque[FairKey] = deque()
        self._backlogged: deque[FairKey] = deque()
        self._sparse_run = 0
        self._turns_left = 0
        self._epoch = 0

    def __len__(self) -> int:
        """How many keys stand in the rings, emptied ones that only pass through included."""
        return len(self._sparse) + len(self._backlogged)

    def activate(self, key: FairKey) -> None:
        """Let a key take part that has messages. Does nothing for one that already does, or that throttles hold up."""
        if key.ring == IDLE:
            key.ring = SPARSE
            key.deficit = key.weight * self.quantum
            self._sparse.append(key)
        elif key.ring == PARKED and not key.blocked:
            self._unpark(key)

    def drop(self, keys: set[FairKey]) -> None:
        """Let keys take part no longer whose messages were taken away. Their debts are forgotten."""
        for key in keys:
            self.parked -= key.ring == PARKED
            self.lines.forget(key)
            key.ring = IDLE
            key.deficit = 0
        self._sparse = deque(key for key in self._sparse if key not in keys)
        self._backlogged = deque(key for key in self._backlogged if key not in keys)

    def order(self) -> list[FairKey]:
        """The keys in the order in which they will have their turn."""
        return [*self._sparse, *self._backlogged]

    def select(self, limit: int, now: int = 0, cap: int | None = None, *, park_newer: bool = False) -> Selection:
        """Take the next messages, at most `limit`, out of their lanes; with a cap only those that are no newer.

        A key that has newer ones only keeps its position and what it has left to spend, as if nobody had asked; or it
        is parked, until somebody activates it.
        """
        chosen = Selection(round=self.round, turns=self.turns, turns_left=self._turns_left, sparse_run=self._sparse_run)
        messages, before, trace = chosen.messages, chosen.before, chosen.trace
        sparse, backlogged = self._sparse, self._backlogged
        self._epoch = epoch = self._epoch + 1

        def admit(key: FairKey, lane: Lane, throttles: tuple[Throttle, ...], cost: int) -> int:
            return self.lines.admit(key, lane, throttles, cost, now, trace)

        if limit > 0 and self.lines.due:
            self._call_due(chosen, now)
        aside: list[tuple[deque[FairKey], FairKey]] = []
        unserved = 0  # keys in a row that stay in the backlogged ring and could not be served
        parked = 0
        while limit > 0:
            is_sparse = bool(sparse) and (self._sparse_run < SPARSE_RUN or not backlogged)
            ring = sparse if is_sparse else backlogged
            if not ring:
                break
            key = ring[0]
            if cap is None and key.head is not None and (key.special is USUAL or key.is_plain):
                left = self._take_plain(chosen, limit)
                if left < limit:
                    limit, unserved = left, 0
                    continue
            deficit = key.deficit
            if key.mark != epoch:
                key.mark = epoch
                before.append((key, deficit, key.ring))
            capped = cap is not None and not key.is_within(cap)
            if capped and cap is not None and key.head is not None and not (key.blocked or key.reaches(cap)):
                if park_newer:
                    self._park(ring, key, deficit, had_turn=False)
                    self._sparse_run += is_sparse  # so many of them hold up nobody
                    chosen.beyond.append(key)
                else:
                    aside.append((ring, ring.popleft()))
                if len(chosen.beyond) >= MAX_PARKED:
                    chosen.unfinished = True
                    break
                continue
            served = 0
            if key.head is None:
                unserved += self._pass_through(ring, key)
            else:
                if deficit > 0:
                    taken = len(messages)
                    throttled = key.special.throttled
                    if throttled:
                        trace.note(key)
                    if throttled or capped:
                        deficit -= key.take_admitted(messages, deficit, limit, admit, cap)
                    elif len(backlogged) == 1 and not (sparse or key.special.costs):
                        deficit = self._take_turns(key, messages, deficit, limit)
                    else:
                        deficit -= key.take(messages, deficit, limit)
                    served = len(messages) - taken
                    limit -= served
                    if served:
                        unserved = 0
                        chosen.served.append((key, served))
                else:
                    unserved += 1
                if deficit <= 0 or key.head is None:
                    self._end_turn(ring, key, deficit)
                elif key.blocked:
                    parked += 1
                    self._park(ring, key, deficit, had_turn=served > 0)
                elif limit > 0 and trace.put_off.get(key) is False:
                    self._put_off(ring, key, deficit, trace)
                    continue
                else:  # the limit cut its turn short, or the cap
                    key.deficit = deficit
                    self.lines.go_on(key)
                    if not (capped and limit):
                        break
                    aside.append((ring, ring.popleft()))
                    continue
            if key.special.called:
                self._after_turn(key, chosen, now, served, spent=deficit <= 0)
            if unserved and unserved >= len(backlogged):
                unserved = 0
                self._after_a_round_for_nobody()
            if parked >= MAX_PARKED:
                chosen.unfinished = True
                break
        for ring, key in reversed(aside):
            ring.appendleft(key)
        if trace.lines:
            self.lines.settle(trace, now)
        return chosen

    def rollback(self, chosen: Selection) -> None:
        """Put everything back as it was before `chosen`, the latest selection, was made."""
        touched = {id(key) for key, _, _ in chosen.before}
        self._sparse = deque(key for key in self._sparse if id(key) not in touched)
        self._backlogged = deque(key for key in self._backlogged if id(key) not in touched)
        for key, deficit, ring in reversed(chosen.before):
            self.parked += (ring == PARKED) - (key.ring == PARKED)
            key.deficit = deficit
            key.ring = ring
            if ring != PARKED:
                (self._sparse if ring == SPARSE else self._backlogged).appendleft(key)
        for key, standing in chosen.trace.standings.items():
            key.reopen(standing)
        for lane, seq, cost in reversed(chosen.messages):
            lane.key.push(lane, seq, cost)
            for throttle in lane.throttles:
                throttle.refund(cost)
        self.lines.undo(chosen.trace)
        self.round, self.turns = chosen.round, chosen.turns
        self._turns_left, self._sparse_run = chosen.turns_left, chosen.sparse_run

    def _call_due(self, chosen: Selection, now: int) -> None:
        """Call those that throttles may let pass now."""
        chosen.trace.due, self.lines.due = self.lines.due, []
        for line in chosen.trace.due:
            line.due = False
            chosen.trace.lines[line] = None
            self._call(line, chosen, now)

    def _call(self, line: Line, chosen: Selection, now: int) -> None:
        while (key := self.lines.next_in(line, now)) is not None:
            chosen.trace.note(key)
            self.lines.call(line, key, chosen.trace)
            if key.ring == PARKED:
                if key.mark != self._epoch:
                    key.mark = self._epoch
                    chosen.before.append((key, key.deficit, PARKED))
                self._unpark(key)

    def _after_turn(self, key: FairKey, chosen: Selection, now: int, served: int, *, spent: bool) -> None:
        """A key had the turn that it was called for: let its lines call the next."""
        chosen.trace.note(key)
        fresh = chosen.messages[-served:] if served else []
        passed = {throttle for lane, _, _ in fresh for throttle in lane.throttles}
        for line in self.lines.after_turn(key, passed, spent=spent, trace=chosen.trace):
            self._call(line, chosen, now)

    def _unpark(self, key: FairKey) -> None:
        self.parked -= 1
        key.ring = SPARSE
        self._sparse.append(key)

    def _park(self, ring: deque[FairKey], key: FairKey, deficit: int, *, had_turn: bool) -> None:
        ring.popleft()
        if had_turn:
            self._count_turn(ring)
        self.parked += 1
        key.ring = PARKED
        key.deficit = deficit

    def _put_off(self, ring: deque[FairKey], key: FairKey, deficit: int, trace: Trace) -> None:
        """Let those go first for whom the room of a throttle is meant, in whichever ring they stand."""
        trace.put_off[key] = True
        ring.popleft()
        key.deficit = deficit
        key.ring = BACKLOGGED
        self._backlogged.append(key)

    def _end_turn(self, ring: deque[FairKey], key: FairKey, deficit: int) -> None:
        """Move a key on that had its turn: with its share for the next one, or out if it emptied with a rest."""
        ring.popleft()
        self._count_turn(ring)
        if ring is self._backlogged and deficit > 0:
            key.ring = IDLE
            key.deficit = 0
            return
        key.deficit = deficit if deficit > 0 else deficit + key.weight * self.quantum
        key.ring = BACKLOGGED
        self._backlogged.append(key)

    def _take_plain(self, chosen: Selection, limit: int) -> int:
        """Turns that follow each other and spend all that there is to spend, of keys without throttles whose messages
        cost 1 each, out of one lane: nearly all turns are like this, and here they take least. Returns what is left of
        the limit.
        """
        sparse, backlogged, epoch, quantum = self._sparse, self._backlogged, self._epoch, self.quantum
        out, look, serve = chosen.messages.append, chosen.before.append, chosen.served.append
        turns, sparse_run, rounds, turns_left = 0, self._sparse_run, 0, self._turns_left
        while limit > 0 and (sparse or len(backlogged) > 1):  # one that is alone takes its turns in one go
            is_sparse = bool(sparse) and (sparse_run < SPARSE_RUN or not backlogged)
            key = sparse[0] if is_sparse else backlogged[0]
            count, lane = key.deficit, key.head
            if not 0 < count <= limit or lane is None or not (key.special is USUAL or key.is_plain):
                break
            fifo, packed = lane.fifo, lane.packed
            end = lane.first + count
            if not fifo or lane.back or (packed.size <= count if packed is not None else end > len(fifo)):
                break
            if key.mark != epoch:
                key.mark = epoch
                look((key, count, key.ring))
            for seq in fifo[lane.first : end] if packed is None else packed.take(count):
                out((lane, seq, 1))
            if packed is None:
                if end < len(fifo):
                    lane.skip(end)
                else:
                    lane.clear()
                    key.retire(lane)
            serve((key, count))
            key.deficit = key.weight * quantum
            limit -= count
            turns += 1
            if is_sparse:
                sparse_run += 1
                key.ring = BACKLOGGED
                backlogged.append(sparse.popleft())
            else:
                sparse_run = 0
                backlogged.rotate(-1)
                if turns_left:
                    turns_left -= 1
                else:
                    rounds += 1
                    turns_left = len(backlogged) - 1
        self.turns += turns
        self.round += rounds
        self._sparse_run, self._turns_left = sparse_run, turns_left
        return limit

    def _take_turns(self, key: FairKey, messages: list[Taken], deficit: int, limit: int) -> int:
        """The turns of a key that is alone follow each other: take them in one go. Returns what is left of the last."""
        wanted = min(limit, key.ready)
        share = key.weight * self.quantum
        ended = max(0, -(-(wanted - deficit) // share))
        key.take(messages, wanted, wanted)
        if ended:
            self.turns += ended
            self._sparse_run = 0
            self.round += max(0, ended - self._turns_left)
            self._turns_left = max(0, self._turns_left - ended)
        return deficit + ended * share - wanted

    def _count_turn(self, ring: deque[FairKey]) -> None:
        self.turns += 1
        if ring is self._sparse:
            self._sparse_run += 1
        else:
            self._sparse_run = 0
            if self._turns_left:
                self._turns_left -= 1
            else:
                self.round += 1
                self._turns_left = len(ring)

    def _pass_through(self, ring: deque[FairKey], key: FairKey) -> bool:
        """Move a key on that has nothing to send. Returns whether it stays."""
        ring.popleft()
        stays = key.deficit <= 0 or ring is self._sparse
        if stays:
            if ring is self._backlogged:
                key.deficit += key.weight * self.quantum
            key.ring = BACKLOGGED
            self._backlogged.append(key)
        else:
            key.ring = IDLE
            key.deficit = 0
        return stays

    def _after_a_round_for_nobody(self) -> None:
        """All backlogged keys were in debt for a round: let the sparse go on, or pay off many rounds in one step."""
        self._sparse_run = 0
        if self._sparse or not self._backlogged:
            return
        rounds = min(-key.deficit // (key.weight * self.quantum) for key in self._backlogged)
        if rounds > 0:
            for key in self._backlogged:
                key.deficit += rounds * key.weight * self.quantum
            self.round += rounds
