"""A fairness key: one tenant of one queue, with its lanes.

Rules of this file:
- inside one fairness key, a lower priority number goes first, and of one priority the oldest message, whatever its
  lane;
- a lane whose throttles let nothing pass holds up no other lane;
- a key has at most `MAX_LANES` lanes with throttles. Messages with further sets of throttles share the overflow of
  their priority (`lane.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from fila.core.lane import Lane, LaneId, Overflow, Taken, ThrottledLane
from fila.core.throttle import Throttle

if TYPE_CHECKING:
    from fila.core.lines import Line

MAX_LANES = 64
"""Sets of throttles that one fairness key keeps apart."""

Admit = Callable[["FairKey", Lane, tuple[Throttle, ...], int], int]
"""Says how many messages of a lane, of some throttles and cost, may pass now. 0 makes the lane wait."""

Standing = tuple[tuple["Line", ...], dict[Throttle, int], list[tuple[Lane, "Line | None", int]]]
"""All that a key has to do with throttles: `called`, `tickets`, and the lanes with their gates and needs."""


class Special:
    """What few keys have: lanes with throttles, or messages whose cost is not 1. The others need no memory for it."""

    __slots__ = ("called", "costs", "shut", "throttled", "tickets")

    def __init__(self) -> None:
        self.throttled = 0
        """How many of the lanes have throttles."""
        self.shut = 0
        """How many of the lanes wait for one of theirs."""
        self.costs: dict[int, int] | None = None
        """Of the waiting messages whose cost is not 1, once there was one."""
        # The rest belongs to the scheduler.
        self.called: tuple[Line, ...] = ()
        self.tickets: dict[Throttle, int] | None = None


USUAL = Special()
"""Of all others. Never changed."""


class FairKey:
    """One tenant of one queue: its lanes, its share, and where it stands in the scheduler's rounds."""

    __slots__ = (
        "_several",
        "deficit",
        "delivered",
        "head",
        "mark",
        "name",
        "outside_lanes",
        "ring",
        "special",
        "weight",
    )

    def __init__(self, name: str, weight: int = 1) -> None:
        self.name = name
        self.weight = weight
        self.head: Lane | None = None
        """The first of the lanes: of those that hold messages, the one with the lowest priority number."""
        self._several: dict[LaneId, Lane] | None = None
        """All of them in their order, while there are others. Nearly every key has one, and there may be many keys."""
        self.special = USUAL
        """To be read. What is changed is the key's `own`."""
        self.outside_lanes = 0
        """How many messages exist that are not in the lanes: delayed, leased, or waiting as suspects."""
        self.delivered = 0
        # The rest belongs to the scheduler.
        self.deficit = 0
        self.ring = 0
        self.mark = 0

    @property
    def own(self) -> Special:
        """What is special about this key, to be changed."""
        if self.special is USUAL:
            self.special = Special()
        return self.special

    @property
    def is_plain(self) -> bool:
        """Whether it has no lane with throttles and no message whose cost is not 1."""
        special = self.special
        return special is USUAL or not (special.throttled or special.costs or special.called)

    @property
    def lanes(self) -> Mapping[LaneId, Lane]:
        """Only lanes that hold messages, lowest priority number first."""
        if self._several is not None:
            return self._several
        return {self.head.id: self.head} if self.head is not None else {}

    @property
    def ready(self) -> int:
        """How many messages wait in the lanes. Counted when somebody asks: a message that comes in touches nothing but
        its lane.
        """
        if self._several is not None:
            return sum(map(len, self._several.values()))
        return len(self.head) if self.head is not None else 0

    @property
    def live(self) -> int:
        """How many messages exist: in the lanes or outside. A key without any is forgotten."""
        return self.ready + self.outside_lanes

    def find(self, identity: LaneId) -> Lane | None:
        """One of the lanes."""
        head = self.head
        if head is None or head.id == identity:
            return head
        return self._several.get(identity) if self._several is not None else None

    @property
    def oldest(self) -> int:
        """The oldest message that waits, of which there must be one."""
        return min(lane.oldest for lane in self.lanes.values())

    @property
    def newest(self) -> int:
        """The newest message that waits; 0 if none does."""
        return max((lane.newest for lane in self.lanes.values()), default=0)

    def cost(self, seq: int) -> int:
        """What a waiting message costs."""
        costs = self.special.costs
        return costs.get(seq, 1) if costs else 1

    @property
    def blocked(self) -> bool:
        """Whether throttles hold up all that waits."""
        return self.special.shut == len(self.lanes)

    def push(self, lane: Lane, seq: int, cost: int = 1) -> None:
        """Add a message to one of this key's lanes."""
        if self.head is None and cost == 1 and not lane.throttles:
            self.head = lane
            lane.push(seq)
            return
        held = self._registered(lane)
        if isinstance(held, Overflow):
            held.lanes[seq] = lane
        leads = held.gate is not None and seq < held.oldest
        held.push(seq)
        if cost != 1:
            own = self.own
            if own.costs is None:
                own.costs = {}
            own.costs[seq] = cost
        if leads:
            self._wait_for_another(held)

    def push_many(self, lane: Lane, seqs: Sequence[int]) -> None:
        """Add messages to one of this key's lanes, in order, at a cost of 1 each. It takes least for those that have
        just come: they are newer than all others, or nothing else waits.
        """
        held = self._registered(lane)
        if isinstance(held, Overflow):
            for seq in seqs:
                self.push(lane, seq)
            return
        leads = held.gate is not None and seqs[0] < held.oldest
        held.push_many(seqs)
        if leads:
            self._wait_for_another(held)

    def _registered(self, lane: Lane) -> Lane:
        """The lane itself, or the one that stands for it: made since it was empty, or the overflow."""
        held = self.find(lane.id)
        if held is None and lane.throttles:
            held = self._overflow(lane)
        if held is None:
            held = self._register(lane)
        return held

    def _overflow(self, lane: Lane) -> Lane | None:
        # While an overflow holds messages all others go there too: one of the same throttles may be among them.
        held = self.find((lane.priority, None))
        if held is None and self.special.throttled >= MAX_LANES:
            held = self._register(Overflow(self, lane.priority))
        return held

    def _register(self, lane: Lane) -> Lane:
        if self.head is None:
            self.head = lane
        else:
            lanes = {**self.lanes, lane.id: lane}
            self._several = dict(sorted(lanes.items(), key=lambda item: item[0][0]))
            if lane.priority < self.head.priority:
                self.head = lane
        if isinstance(lane, ThrottledLane):
            self.own.throttled += _is_limited(lane)
        return lane

    def take(self, out: list[Taken], budget: int, limit: int) -> int:
        """Move what may be delivered next to `out`: while some of `budget` is left, at most `limit` messages.

        For keys without throttles. The last message may cost more than is left; the returned spending then exceeds the
        budget, and the scheduler keeps the difference as a debt.
        """
        if self.special.costs:
            return self._take_by_cost(out, budget, limit)
        room = wanted = min(budget, limit)
        while room and (lane := self.head) is not None:
            room -= lane.take(out, room)
            if not (lane.fifo or lane.first or lane.back or lane.packed):
                self.retire(lane)
        return wanted - room

    def _take_by_cost(self, out: list[Taken], budget: int, limit: int) -> int:
        spent = 0
        while spent < budget and limit and self.head is not None:
            lane = self.head
            spent += self._take_one(lane, out)
            limit -= 1
            if not (lane.fifo or lane.first or lane.back or lane.packed):
                self.retire(lane)
        return spent

    def _take_one(self, lane: Lane, out: list[Taken]) -> int:
        """Returns what it cost."""
        lane.take(out, 1)
        owner, seq, _ = out[-1]
        costs = self.special.costs
        cost = costs.pop(seq, 1) if costs else 1
        out[-1] = (owner, seq, cost)
        return cost

    def is_within(self, cap: int) -> bool:
        """Whether all that waits is known to be no newer than `cap`."""
        return all(not lane.back and lane.newest <= cap for lane in self.lanes.values())

    def reaches(self, cap: int) -> bool:
        """Whether something may be tried that is no newer than `cap`."""
        return any(lane.gate is None and lane.oldest <= cap for lane in self.lanes.values())

    def take_admitted(self, out: list[Taken], budget: int, limit: int, admit: Admit, cap: int | None = None) -> int:
        """Like `take`, for any key: what its throttles let pass, and charged to them; with a cap nothing newer."""
        lanes = [
            (lane.priority, lane.oldest, at, lane)
            for at, lane in enumerate(self.lanes.values())
            if lane.gate is None and (cap is None or lane.oldest <= cap)
        ]
        heapify(lanes)
        spent = 0
        while lanes and spent < budget and limit:
            priority, oldest, at, lane = lanes[0]
            throttles = lane.throttles_of(oldest)
            cost = self.cost(oldest)
            count = admit(self, lane, throttles, cost) if throttles else limit
            if not count:
                heappop(lanes)
                continue
            if self.special.costs or isinstance(lane, Overflow):
                count = 1
                spent += self._take_one(lane, out)
            else:
                before = _next_of(lanes, priority)
                if cap is not None:
                    before = cap if before is None else min(before, cap)
                count = lane.run(before, min(count, limit, budget - spent, len(lane)))
                lane.take(out, count)
                spent += count
            limit -= count
            for throttle in throttles:
                throttle.charge(count, cost)
            if not (lane.fifo or lane.first or lane.back or lane.packed):
                heappop(lanes)
                self.retire(lane)
            elif cap is not None and lane.oldest > cap:
                heappop(lanes)
            else:
                heapreplace(lanes, (priority, lane.oldest, at, lane))
        return spent

    def lane_of(self, seq: int, priority: int) -> Lane | None:
        """Where a message waits, if it does."""
        return next((lane for lane in self.lanes.values() if lane.priority == priority and lane.holds(seq)), None)

    def remove(self, lane: Lane, seqs: set[int]) -> None:
        """Take messages out of one of this key's lanes."""
        led = lane.gate is not None and lane.oldest in seqs
        lane.remove(seqs)
        if costs := self.special.costs:
            for seq in seqs:
                costs.pop(seq, None)
        if led:
            self._wait_for_another(lane)
        if not len(lane):
            self.retire(lane)

    def retire(self, lane: Lane) -> None:
        """One of the lanes holds nothing any more."""
        if self._several is None:
            self.head = None
        else:
            del self._several[lane.id]
            self.head = next(iter(self._several.values()))
            if len(self._several) == 1:
                self._several = None
        if isinstance(lane, ThrottledLane):
            self.own.throttled -= _is_limited(lane)

    def shut_off(self, lane: Lane, gate: "Line", need: int) -> None:
        """Make a lane wait at a gate, for a message of some cost."""
        assert isinstance(lane, ThrottledLane), "no other waits for a throttle"
        lane.gate, lane.need = gate, need
        self.own.shut += 1

    def open(self, lane: Lane) -> None:
        """Let a lane be tried again."""
        assert isinstance(lane, ThrottledLane), "no other waits for a throttle"
        lane.gate = None
        self.own.shut -= 1

    def _wait_for_another(self, lane: Lane) -> None:
        """The first message of a lane that waits at a gate is another one: it needs what that costs from now on.

        The overflow is tried again instead, for its messages have throttles of their own.
        """
        gate = lane.gate
        assert isinstance(lane, ThrottledLane)
        assert gate is not None
        if not len(lane) or isinstance(lane, Overflow):
            self.open(lane)
        elif (need := self.cost(lane.oldest)) != lane.need:
            lane.need = need
        else:
            return
        gate.restate(self)

    def at(self, gate: "Line") -> list[Lane]:
        """The lanes that wait at a gate."""
        return [lane for lane in self.lanes.values() if lane.gate is gate]

    def standing(self) -> Standing:
        """What `restore` needs to undo all that happens to this key at its throttles from now on."""
        special = self.special
        lanes = [(lane, lane.gate, lane.need) for lane in self.lanes.values()]
        return special.called, dict(special.tickets or {}), lanes

    def reopen(self, standing: Standing) -> None:
        """Have the lanes again that there were when `standing` was made, all of them open."""
        lanes = [lane for lane, _, _ in standing[2]]
        for lane in lanes:
            if isinstance(lane, ThrottledLane):
                lane.gate = None
        self._several = {lane.id: lane for lane in lanes} if len(lanes) > 1 else None
        self.head = lanes[0] if lanes else None
        own = self.own
        own.throttled, own.shut = sum(map(_is_limited, lanes)), 0

    def restore(self, standing: Standing) -> None:
        """Undo the rest, once the lanes hold again what they held."""
        own = self.own
        own.called, own.tickets, lanes = standing
        for lane, gate, need in lanes:
            if isinstance(lane, ThrottledLane):
                lane.gate, lane.need = gate, need
                own.shut += gate is not None


def _is_limited(lane: Lane) -> bool:
    """Whether throttles may hold up some of it. The suspects of a lane without throttles are in one that has room for
    them.
    """
    return bool(lane.throttles) or isinstance(lane, Overflow)


def _next_of(lanes: list[tuple[int, int, int, Lane]], priority: int) -> int | None:
    """The oldest message of the same priority outside the first lane of a heap, if there is one."""
    return min((lane[1] for lane in lanes[1:3] if lane[0] == priority), default=None)
