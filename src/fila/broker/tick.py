"""One tick: what will be written, and what will change in memory once it is.

Planning fills a tick and changes nothing else. What one plan decided is visible to the plans after it through the tick
(`gone`, `left`, `producers`), so that two commands of one tick cannot both settle a message. Only what the scheduler
and the schedule hand out is taken from them at once, and given back if the write fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fila.broker.commands import ExtendGroup, Failure, Outcome, Place
from fila.broker.queue import QueueState
from fila.core.consumers import Consumer
from fila.core.drr import Selection
from fila.core.leases import Grant
from fila.core.pending import FairKey, Lane, LaneId, lane_id
from fila.core.schedule import Delayed
from fila.storage import keys
from fila.storage.base import Batch, Family
from fila.storage.codec import Failed


@dataclass(slots=True)
class Arrivals:
    """Messages that enter one queue."""

    queue: QueueState
    awaited: bool
    """Whether there are consumers, so that the messages will be read soon"""
    new_keys: dict[str, Lane] = field(default_factory=dict)
    """Keys that the queue does not know yet, each by the first of its lanes"""
    seqs: list[int] = field(default_factory=list)
    """Messages that are ready,"""
    lanes: list[Lane] = field(default_factory=list)
    """the lane that each enters,"""
    sizes: list[int] = field(default_factory=list)
    """and how large its payload is"""
    new_lanes: dict[tuple[FairKey, LaneId], Lane] = field(default_factory=dict)
    """Other lanes that the queue does not know yet"""
    costs: dict[int, int] = field(default_factory=dict)
    """Of messages that are ready and whose cost is not 1"""
    weights: dict[FairKey, int] = field(default_factory=dict)
    """The weight that each key has from now on."""
    delayed: list[Delayed] = field(default_factory=list)
    delayed_sizes: list[int] = field(default_factory=list)
    large: list[int] = field(default_factory=list)
    """Messages whose records are large"""
    records: list[tuple[int, bytes]] = field(default_factory=list)
    """What was written of messages for which consumers are waiting"""
    staged: list[range] = field(default_factory=list)
    """Those that have their numbers from earlier, and wait from now on"""
    dedup: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Dedup key -> (sequence number, end of its window)"""
    handed_on: bool = False
    """Whether those that are ready are delivered in the same tick, and wait in no lane"""

    def lane(self, key: str, priority: int, throttle_keys: tuple[str, ...] = ()) -> Lane:
        """The lane of a key, made new if the queue has none; the queue learns of it when the tick is durable.

        Throttle keys are sorted, without repetition.
        """
        queue = self.queue
        throttles = queue.throttles.find_all(throttle_keys) if throttle_keys else ()
        owner = queue.keys.get(key)
        if owner is None:
            lane = self.new_keys.get(key)
            if lane is None:
                lane = Lane(FairKey(key), priority, keys.lane(queue.name, key, priority), throttles)
                self.new_keys[key] = lane
                return lane
            if lane.priority == priority and lane.throttles == throttles:
                return lane
            owner = lane.key
        identity = lane_id(priority, throttles)
        lane = owner.find(identity)
        if lane is None:
            lane = self.new_lanes.get((owner, identity))
        if lane is None:
            lane = Lane(owner, priority, keys.lane(queue.name, key, priority), throttles)
            self.new_lanes[owner, identity] = lane
        return lane

    def lane_again(self, last: Lane) -> Lane:
        """As `lane`, for messages of which earlier ones were in `last`. It was empty, and is used again if it can."""
        key = last.key
        known = self.queue.keys.get(key.name)
        if not last.throttles and known is key and key.find(last.id) is None:
            return self.new_lanes.setdefault((key, last.id), last)
        if not last.throttles and known is None and key.name not in self.new_keys:
            self.new_keys[key.name] = last
            return last
        return self.lane(key.name, last.priority, tuple(throttle.name for throttle in last.throttles))


@dataclass(slots=True)
class Acked:
    """Messages that are done."""

    queue: QueueState
    seqs: list[int]


@dataclass(slots=True)
class Returned:
    """A message that goes back from its consumer to its queue."""

    queue: QueueState
    seq: int
    attempts: int
    due: int
    kind: Failed
    suspect: bool = False
    """Whether it is to be delivered alone although no attempt is counted"""


@dataclass(slots=True)
class Dead:
    """A message that moves from its consumer to a dead-letter queue."""

    queue: QueueState
    graves: QueueState
    seq: int
    lane: Lane
    """Its place among the dead letters"""
    cost: int
    attempts: int
    kind: Failed


@dataclass(slots=True)
class Removed:
    """Waiting messages that an operator removes from a queue, or moves to another."""

    queue: QueueState
    places: list[Place]
    targets: list[Lane] = field(default_factory=list)
    """Where each goes; nothing when they go for good"""


@dataclass(slots=True)
class Delivery:
    """Messages that were chosen for the consumers of one queue."""

    queue: QueueState
    selection: Selection
    grants: list[tuple[Consumer, Grant]] = field(default_factory=list)
    last: Consumer | None = None
    """Who was dealt the last message; the next delivery begins behind."""
    straight: bool = False
    """Whether the messages have just arrived, and were not taken out of their lanes"""
    trial: bool = False
    """Whether they are suspects, each of which is delivered alone"""


@dataclass(slots=True)
class Tick:
    """The plan of one tick."""

    now: int
    batch: Batch
    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    acked: list[Acked] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    removed: Removed | None = None
    moved_bytes: int = 0
    """How much of the write are messages that move to other queues"""
    extensions: list[tuple[ExtendGroup, list[Failure]]] = field(default_factory=list)
    """What was asked, and where to say what failed"""
    extended: list[tuple[QueueState, Grant]] = field(default_factory=list)
    promoted: list[tuple[QueueState, list[Delayed]]] = field(default_factory=list)
    delivered: list[Delivery] = field(default_factory=list)
    unfinished: list[QueueState] = field(default_factory=list)
    """Queues in which there was more to look at for deliveries"""
    producers: dict[str, int] = field(default_factory=dict)
    """Producer -> the sequence of its last batch in this tick"""
    fresh_answers: dict[tuple[str, int], tuple[int, Sequence[Outcome]]] = field(default_factory=dict)
    """What batches of this tick were answered, with their digests, in case one comes twice in it"""
    silent: list[str] = field(default_factory=list)
    """Producers to be forgotten"""
    outlived: list[tuple[QueueState, list[str]]] = field(default_factory=list)
    """Dedup keys whose window is over"""
    gone: set[int] = field(default_factory=set)
    """Messages whose lease ends in this tick"""
    left: dict[Grant, int] = field(default_factory=dict)
    """How many members remain in each grant that lost some in this tick"""
    thinned: dict[tuple[str, int, int], QueueState] = field(default_factory=dict)
    """Leases (queue, consumer, token) from which messages were released without counting an attempt"""
    on_commit: list[Callable[[], object]] = field(default_factory=list)
    """What else changes, for commands that have a tick to themselves and for chores"""
    replies: list[tuple[Callable[[Any], None], Any]] = field(default_factory=list)

    def arrivals_of(self, queue: QueueState) -> Arrivals:
        found = self.arrivals.get(queue.name)
        if found is None:
            found = self.arrivals[queue.name] = Arrivals(queue, len(queue.consumers) > 0)
        return found

    def drop_members(self, queue: QueueState, grant: Grant, count: int) -> None:
        """Note that messages leave their grant, and that the grant's records go with the last one."""
        left = self.left.get(grant)
        left = (len(grant.members) if left is None else left) - count
        self.left[grant] = left
        if not left:
            self.batch.delete(Family.LEASES, keys.grant(queue.name, grant.number))
            self.batch.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number))
