"""Who waits for a throttle: for each throttle, a line of the fairness keys of one queue that it holds up.

Theory of operation:

- A lane that a throttle does not let pass is shut, and its key stands in the line of that throttle. Whoever comes
  later stands behind, also when a token has come meanwhile: nobody overtakes.
- When the throttle may let something pass, the first in line are called, no more of them than it can serve. A key that
  is called has its lanes opened and comes to its turn with what it has left to spend. So 100,000 keys that wait for one
  token cost one call.
- A key that is held up again before it has spent its share keeps its ticket and is called next; one that has spent its
  share stands at the end. So the shares of keys that wait for one throttle follow their weights.
- A key stands in line for what the first message of one of its lanes there costs. When that message is taken away, or
  another comes before it, the need is another and the ticket stays.
- A lane with several throttles waits in one line at a time, but its key keeps the ticket of a line that it left without
  having been served: it is first again when it comes back. It gets through when all of its throttles have room at
  once; no throttle is held idle for it.
- Such a key, called by one line, may find that the room of another throttle is meant for keys that were called there.
  It is put off once, behind them, and then takes what is left. So it neither robs them, nor do keys that need the same
  two throttles wait for each other for ever.

Lines belong to one queue. Throttles belong to all: each tells every queue that has a line for it, and whoever was
served last is told last.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush

from fila.core.fair_key import FairKey, Standing
from fila.core.lane import Lane
from fila.core.throttle import EVERYTHING, Throttle, ThrottleManager

MAX_CALLED = 1000
"""Keys that one line has called and that had no turn yet."""


class Line:
    """The keys of one queue that wait for one throttle."""

    __slots__ = ("_lines", "called", "due", "heap", "keys", "throttle")

    def __init__(self, throttle: Throttle, lines: "Lines") -> None:
        self.throttle = throttle
        self.keys: dict[FairKey, tuple[int, int]] = {}
        """Ticket and need of each key that stands here. The need is that of one of its lanes that wait here."""
        self.heap: list[tuple[int, FairKey]] = []
        """By ticket; an entry that `keys` does not confirm is void."""
        self.called = 0
        """How many keys were called and had no turn yet."""
        self.due = False
        self._lines = lines

    @property
    def busy(self) -> bool:
        return bool(self.keys or self.called)

    def notice(self) -> str:
        if not self.due:
            self.due = True
            self._lines.due.append(self)
        return self._lines.queue

    def restate(self, key: FairKey) -> None:
        """A lane of a key has other needs, or waits here no longer. The key keeps its ticket."""
        entry = self.keys.get(key)
        needs = [lane.need for lane in key.at(self)]
        if entry is None or entry[1] in needs:
            return
        if needs:
            self.keys[key] = entry[0], min(needs)
        else:
            del self.keys[key]
        self._lines.look_again(self)

    def first(self) -> tuple[FairKey, tuple[int, int]] | None:
        heap, keys = self.heap, self.keys
        while heap:
            ticket, key = heap[0]
            entry = keys.get(key)
            if entry is not None and entry[0] == ticket:
                return key, entry
            heappop(heap)
        return None


@dataclass(slots=True)
class Trace:
    """What a selection changed at the lines of its queue, so that it can be undone."""

    moves: list[tuple[Line, FairKey, tuple[int, int] | None]] = field(default_factory=list)
    """What a line knew of a key before each change, in order."""
    standings: dict[FairKey, Standing] = field(default_factory=dict)
    """Of every key that was asked or called, as it was before."""
    refused: list[Throttle] = field(default_factory=list)
    """Those that held something up."""
    lines: dict[Line, None] = field(default_factory=dict)
    """Those that somebody joined or left, or that a key had its turn for."""
    due: list[Line] = field(default_factory=list)
    """Those whose throttle might have let something pass."""
    put_off: dict[FairKey, bool] = field(default_factory=dict)
    """Keys that let others go first, and whether they have gone to the end of their ring for it."""

    def note(self, key: FairKey) -> None:
        """Remember how a key stands before anything is done to it."""
        if key not in self.standings:
            self.standings[key] = key.standing()


class Lines:
    """The lines of one queue, one for each throttle that holds something up."""

    __slots__ = ("_by_throttle", "_last_ticket", "due", "queue", "throttles")

    def __init__(self, queue: str, throttles: ThrottleManager) -> None:
        self.queue = queue
        self.throttles = throttles
        self.due: list[Line] = []
        """Those whose throttle may let something pass."""
        self._by_throttle: dict[Throttle, Line] = {}
        self._last_ticket = 0

    def all(self) -> list[Line]:
        return list(self._by_throttle.values())

    def admit(
        self, key: FairKey, lane: Lane, throttles: tuple[Throttle, ...], cost: int, now: int, trace: Trace
    ) -> int:
        """How many messages of some cost may pass. 0 shuts the lane and puts its key in line, or puts its key off."""
        room = EVERYTHING
        for throttle in throttles:
            line = self._by_throttle.get(throttle)
            if line is None or line in key.special.called or not line.busy:
                allowed = _room(throttle, cost, now)
            elif not key.special.called:
                allowed = 0
            else:
                allowed = _room(throttle, cost, now, line.called)
                if not allowed and _room(throttle, cost, now):
                    if not trace.put_off.get(key):  # with all of its lanes, so that none takes that room
                        trace.put_off[key] = False
                        return 0
                    allowed = 1
            if not allowed:
                self._shut(key, lane, line or self._open_line(throttle), cost, trace)
                return 0
            room = min(room, allowed)
        return room

    def _open_line(self, throttle: Throttle) -> Line:
        line = self._by_throttle[throttle] = Line(throttle, self)
        throttle.waiting[line] = None
        return line

    def _shut(self, key: FairKey, lane: Lane, line: Line, cost: int, trace: Trace) -> None:
        key.shut_off(lane, line, cost)
        line.throttle.held_up += 1
        trace.refused.append(line.throttle)
        own = key.own
        if line not in own.called and key not in line.keys:
            if own.tickets is None:
                own.tickets = {}
            if line.throttle not in own.tickets:
                own.tickets[line.throttle] = self._ticket()
            self._stand(key, line, cost, trace)

    def _ticket(self) -> int:
        self._last_ticket += 1
        return self._last_ticket

    def _stand(self, key: FairKey, line: Line, need: int, trace: Trace) -> None:
        tickets = key.special.tickets
        assert tickets is not None
        ticket = tickets[line.throttle]
        trace.moves.append((line, key, None))
        trace.lines[line] = None
        line.keys[key] = (ticket, need)
        heappush(line.heap, (ticket, key))

    def next_in(self, line: Line, now: int) -> FairKey | None:
        """The first key in line, if the throttle can serve it besides those that were called already."""
        first = line.first()
        if first is None or line.called >= MAX_CALLED:
            return None
        key, (_, need) = first
        return key if line.throttle.admits(need, now, line.called) else None

    def call(self, line: Line, key: FairKey, trace: Trace) -> None:
        """Let a key out of the line: its lanes there may be tried again."""
        trace.moves.append((line, key, line.keys.pop(key)))
        line.called += 1
        key.own.called += (line,)
        for lane in key.at(line):
            key.open(lane)

    def go_on(self, key: FairKey) -> None:
        """A key goes on with the turn that it was called for in a later selection: what was refused is tried again."""
        for line in key.special.called:
            for lane in key.at(line):
                key.open(lane)

    def after_turn(self, key: FairKey, passed: set[Throttle], *, spent: bool, trace: Trace) -> tuple[Line, ...]:
        """Put a key that had its turn back in line where it is held up again. Returns the lines that had called it.

        `passed` are the throttles that let something of it pass, `spent` says whether its share is used up.
        """
        own = key.own
        lines, own.called = own.called, ()
        tickets = own.tickets
        assert tickets is not None
        for line in lines:
            line.called -= 1
            trace.lines[line] = None
            held_up = [lane.need for lane in key.at(line)]
            if held_up:
                if spent:
                    tickets[line.throttle] = self._ticket()
                self._stand(key, line, min(held_up), trace)
            elif spent:
                tickets.pop(line.throttle, None)
        for throttle in passed:
            ours = self._by_throttle.get(throttle)
            if ours is None or key not in ours.keys:
                tickets.pop(throttle, None)
            if ours is not None and len(throttle.waiting) > 1:
                throttle.waiting[ours] = throttle.waiting.pop(ours)
        return lines

    def settle(self, trace: Trace, now: int) -> None:
        """After a selection: forget lines in which nobody stands, and have the others told when it is time."""
        for line in trace.lines:
            if not line.busy:
                self._close(line)
            elif not line.called:
                first = line.first()
                assert first is not None
                at = line.throttle.ready_at(first[1][1], now)
                if at is not None:
                    self.throttles.alarm(line.throttle, at)

    def undo(self, trace: Trace) -> None:
        """Have everything as it was before a selection. Its messages are back in their lanes."""
        for throttle in trace.refused:
            throttle.held_up -= 1
        for key, standing in trace.standings.items():
            for line in key.special.called:
                line.called -= 1
            key.restore(standing)
            for line in key.special.called:
                line.called += 1
        for line, key, entry in reversed(trace.moves):
            if entry is None:
                del line.keys[key]
            else:
                line.keys[key] = entry
                heappush(line.heap, (entry[0], key))
        for line in trace.lines:
            if line.busy:
                self._by_throttle[line.throttle] = line
                line.throttle.waiting.setdefault(line)
            else:
                self._close(line)
        for line in trace.due:
            line.notice()

    def forget(self, key: FairKey) -> None:
        """Let a key wait no longer that has nothing to send, and those behind it move up."""
        special = key.special
        left = [*special.called]
        for line in special.called:
            line.called -= 1
        for throttle in special.tickets or ():
            own = self._by_throttle.get(throttle)
            if own is not None and own.keys.pop(key, None) is not None:
                left.append(own)
        if special.called or special.tickets is not None:
            key.own.called, key.own.tickets = (), None
        for line in left:
            self.look_again(line)

    def look_again(self, line: Line) -> None:
        """Somebody left a line or needs something else there: it may be another's turn."""
        if line.busy:
            line.notice()
        else:
            self._close(line)

    def close(self) -> None:
        """Leave all lines: the queue is gone."""
        for line in self.all():
            self._close(line)

    def _close(self, line: Line) -> None:
        if self._by_throttle.get(line.throttle) is line:
            del self._by_throttle[line.throttle]
        line.throttle.waiting.pop(line, None)


def _room(throttle: Throttle, cost: int, now: int, besides: int = 0) -> int:
    """How many messages may pass besides some of cost 1 that are about to."""
    if cost == 1:
        return max(0, throttle.room(now) - besides)
    return int(throttle.admits(cost, now, besides))
