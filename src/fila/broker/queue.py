"""Everything the broker has in memory about one queue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fila.broker.lane_cache import LaneCache
from fila.broker.outcomes import OUTCOMES, OnSuspicion
from fila.core.capacity import Capacity, Room, Standing
from fila.core.claims import Group
from fila.core.consumers import Consumers
from fila.core.dedup import DedupKeys
from fila.core.drained import Drained
from fila.core.drr import IDLE, PARKED, Drr
from fila.core.fair_key import FairKey
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane, Taken
from fila.core.leases import Leases
from fila.core.ledger import Ledger
from fila.core.lines import Lines
from fila.core.pace import Pace
from fila.core.retry import RetryPolicy
from fila.core.schedule import Schedule
from fila.core.suspects import SuspectLane, Suspects, Suspicion
from fila.core.throttle import ThrottleManager
from fila.lua.hooks import Hooks
from fila.storage import keys
from fila.storage.records import LeaseEnd, QueueRecord

LARGE_BYTES = 64 << 10
MAX_DEPARTED = 10_000
"""Fairness keys whose deliveries are remembered after they are gone, until somebody asks."""
DEAD_LETTERS = ".dlq"
"""How the names of dead-letter queues end."""


def dead_letter_name(queue: str) -> str:
    return queue + DEAD_LETTERS


def store_keys(messages: Iterable[Taken]) -> list[bytes]:
    """The keys of messages in the store."""
    put_u64 = keys.u64
    return [lane.before + put_u64(seq) + lane.behind for lane, seq, _ in messages]


@dataclass(slots=True)
class Counters:
    """What happened since the broker started."""

    enqueued: int = 0
    delivered: int = 0
    acked: int = 0
    nacked: int = 0
    expired: int = 0
    returned: int = 0
    dead_lettered: int = 0
    redriven: int = 0
    """Moved from a dead-letter queue to its queue; counted in both."""
    purged: int = 0
    refused: int = 0
    """Because the queue was full"""
    dropped: int = 0
    """Moved to the dead-letter queue, or out of it for good, because the queue was full"""

    def count_failure(self, kind: LeaseEnd) -> None:
        name = OUTCOMES[kind].counter
        setattr(self, name, getattr(self, name) + 1)


class QueueState:
    """One queue. Its parts own their data; this object holds them together."""

    __slots__ = (
        "attempts",
        "capacity",
        "consumers",
        "cost_pace",
        "costly",
        "counters",
        "dead_letters",
        "dedup",
        "departed",
        "drained",
        "drr",
        "groups",
        "hooks",
        "keys",
        "lane_cache",
        "large",
        "leases",
        "ledger",
        "pace",
        "prefix",
        "ready",
        "record",
        "retry",
        "schedule",
        "stuck",
        "suspects",
        "suspicion",
        "throttles",
        "visibility_ns",
    )

    def __init__(self, record: QueueRecord, throttles: ThrottleManager, hooks: Hooks | None = None) -> None:
        self.prefix = keys.name(record.name)
        self.keys: dict[str, FairKey] = {}
        self.throttles = throttles
        self.drr = Drr(record.quantum, Lines(record.name, throttles))
        self.lane_cache = LaneCache(record.name, self.keys, throttles)
        self.capacity = Capacity(record.name, self.keys)
        self.stuck: Standing | None = None
        """How its dead-letter queue stood when that had no room for what was to be dropped"""
        self.dead_letters: QueueState | None = None
        """Where its dead letters go; None for a dead-letter queue, whose own stay"""
        self.suspects = Suspects(record.name, record.quantum, throttles)
        self.configure(record, hooks)
        self.schedule = Schedule()
        self.leases = Leases()
        self.attempts: dict[int, int] = {}
        """Failed attempts of messages that have any. A release counts none."""
        self.suspicion: dict[int, Suspicion] = {}
        """Of messages that are delivered alone"""
        self.large: set[int] = set()
        """Messages of more than `LARGE_BYTES`, which are read one at a time"""
        self.dedup = DedupKeys()
        self.consumers = Consumers()
        self.groups: dict[str, Group] = {}
        """Who reads it in claims."""
        self.counters = Counters()
        self.ledger = Ledger(0)
        self.pace = Pace()
        """Of deliveries."""
        self.cost_pace = Pace()
        """Of what they cost."""
        self.costly = False
        """Whether a message ever cost something else than 1."""
        self.ready = 0
        """How many messages wait for nothing but their turn and their throttles."""
        self.drained = Drained()
        self.departed: dict[str, int] | None = None
        """What keys had delivered that were forgotten since somebody last asked; None while nobody does."""

    def configure(self, record: QueueRecord, hooks: Hooks | None) -> None:
        """Go by these settings and hooks from now on."""
        self.lane_cache.clear()
        self.record = record
        self.hooks = hooks
        self.visibility_ns = record.visibility_timeout_ms * NS_PER_MS
        self.drr.quantum = self.suspects.drr.quantum = record.quantum
        self.retry = RetryPolicy(
            record.max_attempts,
            record.retry_delay_ms,
            record.retry_backoff,
            record.retry_max_delay_ms,
            record.retry_jitter,
        )

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def pending(self) -> int:
        """Messages that wait for their turn, for their throttles or, as suspects, to be delivered alone."""
        return self.ready + len(self.suspects)

    @property
    def depth(self) -> int:
        """Messages that wait, delayed ones included, leased ones not."""
        return self.pending + len(self.schedule)

    @property
    def size(self) -> int:
        """All messages, wherever they are."""
        return self.depth + len(self.leases)

    @property
    def droppable(self) -> int:
        """How many messages can be dropped to make room: those that are ready, if they have somewhere to go."""
        target = self.dead_letters
        if target is None:
            return self.ready
        if self.stuck is not None and self.stuck == target.capacity.standing:
            return 0
        room = target.room()
        return self.ready if room is None else min(self.ready, room.messages)

    @property
    def overfull(self) -> bool:
        """Whether messages are to be dropped."""
        limits = self.capacity.limits
        return limits is not None and limits.drop_oldest and self.capacity.excess != (0, 0) and self.droppable > 0

    def room(self) -> Room | None:
        """What it takes in one tick; None for anything."""
        limits = self.capacity.limits
        return None if limits is None else self.capacity.room(self.droppable if limits.drop_oldest else None)

    @property
    def active_keys(self) -> int:
        """How many fairness keys have messages that wait for their turn or their throttles."""
        return sum(1 for key in self.drr.order() if key.head is not None) + self.drr.parked

    def pending_of(self, key: FairKey) -> int:
        """As `pending`, of one fairness key."""
        return key.ready + self.suspects.count_of(key.name) if len(self.suspects) else key.ready

    def oldest_of(self, key: FairKey) -> int | None:
        """The oldest pending message of a fairness key, if there is one."""
        oldest = key.oldest if key.ready else None
        suspect = self.suspects.oldest_of(key.name) if len(self.suspects) else None
        if oldest is None or suspect is None:
            return suspect if oldest is None else oldest
        return min(oldest, suspect)

    def know(self, key: FairKey) -> None:
        """There is a message of a key, which may be new."""
        self.keys[key.name] = key

    def make_ready(self, lane: Lane, seq: int, cost: int) -> None:
        """Put a message that already belongs to this queue into its lane."""
        key = lane.key
        key.push(lane, seq, cost)
        self.ready += 1
        if cost != 1:
            self.costly = True
        if key.ring <= PARKED:
            self.drr.activate(key)

    def note_suspicion(self, seq: int, kind: LeaseEnd, *, uncounted: bool = False) -> None:
        """Note whether a message whose attempt failed is delivered alone from now on: also if it was not tried, but may
        have been (`uncounted`).
        """
        suspicion = self.suspicion_after(seq, kind, uncounted=uncounted)
        if suspicion is not None:
            self.suspicion[seq] = suspicion
        else:
            self.suspicion.pop(seq, None)

    def suspicion_after(self, seq: int, kind: LeaseEnd, *, uncounted: bool = False) -> Suspicion | None:
        """What a message is suspected of when its attempt has failed like this."""
        known = self.suspicion.get(seq)
        match OUTCOMES[kind].suspicion:
            case OnSuspicion.SUSPECTS:
                return Suspicion.SUSPECT
            case OnSuspicion.CONFIRMS:
                return Suspicion.CONFIRMED
            case OnSuspicion.CLEARS:
                return None
            case _:
                return Suspicion.SUSPECT if known is None and uncounted else known

    def come_back(self, lane: Lane, seq: int, cost: int) -> None:
        """As `make_ready`, for a message that may have to be delivered alone."""
        suspicion = self.suspicion.get(seq)
        if suspicion is not None:
            lane.key.outside_lanes += 1
            self.suspects.add(lane, seq, cost, suspicion)
        else:
            self.make_ready(lane, seq, cost)

    def clear_suspects(self) -> None:
        """Deliver all suspects as any other message."""
        for seq, lane, cost in self.suspects.all():
            self.suspects.remove({seq})
            del self.suspicion[seq]
            lane.key.outside_lanes -= 1
            self.make_ready(lane, seq, cost)

    def take_in(self, lanes: list[Lane], seqs: list[int], costs: Mapping[int, int]) -> None:
        """Put messages that have just come into the lane of each. They cost 1 where nothing else is said.

        Nearly all of them enter a lane in which older ones wait, and then nothing else changes.
        """
        if costs:
            for lane, seq in zip(lanes, seqs, strict=True):
                self.know(lane.key)
                self.make_ready(lane, seq, costs.get(seq, 1))
            return
        late: dict[Lane, list[int]] = {}
        for lane, seq in zip(lanes, seqs, strict=True):
            fifo = lane.fifo
            if not (fifo or lane.first):
                key = lane.key
                self.know(key)
                key.push(lane, seq)
                if key.ring <= PARKED:
                    self.drr.activate(key)
            elif fifo and fifo[-1] < seq:
                fifo.append(seq)
            elif not fifo and lane.first < seq:
                lane.push(seq)
            else:
                late.setdefault(lane, []).append(seq)
        if seqs:  # one lane, as by chance: one that grows has its turn soon
            lanes[seqs[0] % len(seqs)].pack()
        self.ready += len(seqs) - sum(map(len, late.values()))
        for lane, older in late.items():
            self.make_many_ready(lane, sorted(older))

    def hand_on(self, lane: Lane, count: int) -> None:
        """Count messages as ready that have just come and do not enter their lane, since they are delivered now."""
        self.know(lane.key)
        self.ready += count

    def make_many_ready(self, lane: Lane, seqs: Sequence[int]) -> None:
        """As `make_ready`, for messages in their order, at a cost of 1 each."""
        if seqs:
            key = lane.key
            key.push_many(lane, seqs)
            self.ready += len(seqs)
            if key.ring <= PARKED:
                self.drr.activate(key)

    def remove(self, ready: Mapping[Lane, set[int]], delayed: Iterable[tuple[FairKey, int, int]]) -> None:
        """Take messages away for good: by their lanes, or by their keys, when they are due, and who they are."""
        gone: set[int] = set()
        touched: set[FairKey] = set()
        for lane, seqs in ready.items():
            gone |= seqs
            if isinstance(lane, SuspectLane):
                self.suspects.remove(seqs)
                lane.home.key.outside_lanes -= len(seqs)
                touched.add(lane.home.key)
                continue
            lane.key.remove(lane, seqs)
            self.ready -= len(seqs)
            touched.add(lane.key)
        for key, due, seq in delayed:
            self.schedule.remove(due, seq)
            key.outside_lanes -= 1
            touched.add(key)
            gone.add(seq)
        self.large -= gone
        self.capacity.leave(gone)
        self.ledger.forget(gone)
        for seq in gone:
            self.attempts.pop(seq, None)
            self.suspicion.pop(seq, None)
        emptied = {key for key in touched if key.head is None}
        if emptied:
            self.drr.drop(emptied)
        for key in touched:
            if key in emptied:
                self.forget_if_gone(key)
            elif key.ring == PARKED:
                self.drr.activate(key)
        self.lane_cache.bound()

    def forget_if_gone(self, key: FairKey) -> None:
        """Drop a fairness key of which no message exists, so that keys of the past cost nothing."""
        if key.outside_lanes or key.head is not None or key.ring != IDLE:
            return
        gone = self.keys.pop(key.name, None)
        if key.delivered:
            self.drained.add(key.name, key.delivered, key.weight)
        if gone is not None and self.departed is not None:
            known = self.departed.get(key.name, 0)
            if known or len(self.departed) < MAX_DEPARTED:
                self.departed[key.name] = known + key.delivered
        key.delivered = 0  # it may come again

    def close(self) -> None:
        """Leave the throttles, which outlive the queue: nothing of it waits for them or is in flight any more."""
        self.drr.lines.close()
        self.suspects.close()
        self.leases.release_many([seq for grant in self.leases.grants() for seq in grant.members])
