"""The lane cache of one queue: where messages with the same header bytes go.

Producers send the same headers again and again. What headers decide (fairness key, weight, throttle keys, cost) is
worked out once for each distinct value of their bytes, and looked up for every later message that has them.

Rules:
- An entry holds under the queue's settings of the time. `clear` drops all entries when the settings change.
- Only what headers alone decide is remembered: nothing for a queue with hooks, nothing for a message with a delay. A
  remembered lane has a priority; a message with another one is judged anew.
- A remembered lane is right while messages wait in it. The queue may have dropped an empty one, or its key, or may have
  another lane in its place. Whoever finds it empty asks `again`.
- A lane that is made while a tick is planned is known to the queue only when the tick is durable. Until then it is
  known here, so that all plans of one tick find the same lane. `end_tick` forgets it, whether or not the write failed.
- A failed write leaves the entries: what headers decide does not depend on it.
- Entries are bounded by `ENTRIES` and `ENTRIES_PER_KEY`, since headers may be new with every message, and keys may go.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from fila.core.fair_key import FairKey
from fila.core.lane import Lane, LaneId, lane_id, new_lane
from fila.core.throttle import ThrottleManager
from fila.storage import codec, keys

ENTRIES, ENTRIES_PER_KEY = 32, 2
"""How many entries are kept: so many, and so many more for each fairness key"""


class Terms(NamedTuple):
    """What holds for messages beside their lane. Few terms are in use at a time, so that many lanes share one."""

    weight: int
    cost: int
    head: bytes
    """What their records begin with"""
    delay_ms: int


USUAL = Terms(1, 1, codec.message_head(1, 1), 0)
"""Of nearly all messages."""


@lru_cache(maxsize=4096)
def terms(weight: int, cost: int, throttle_keys: tuple[str, ...], delay_ms: int) -> Terms:
    """`USUAL` itself if they are."""
    found = Terms(weight, cost, codec.message_head(weight, cost, throttle_keys), delay_ms)
    return USUAL if found == USUAL else found


class LaneCache:
    """By header bytes: the lane of a message, and its terms where they are unusual."""

    __slots__ = ("_keys", "_new_keys", "_new_lanes", "_queue", "_throttles", "lanes", "special", "weighted")

    def __init__(self, queue: str, known_keys: dict[str, FairKey], throttles: ThrottleManager) -> None:
        self._queue = queue
        self._keys = known_keys
        self._throttles = throttles
        self.lanes: dict[bytes | None, Lane] = {}
        """The entries. Read by whoever handles many messages at a time; changed only here."""
        self.special: dict[bytes | None, Terms] = {}
        """The terms of those that have others than `USUAL`"""
        self.weighted = False
        """Whether a message ever had a weight other than 1, so that the weight of a key may have to change"""
        self._new_keys: dict[str, Lane] = {}
        """Keys that the queue does not know yet, each by the first of its lanes"""
        self._new_lanes: dict[tuple[FairKey, LaneId], Lane] = {}
        """Other lanes that the queue does not know yet"""

    def __len__(self) -> int:
        return len(self.lanes)

    def recall(self, header_bytes: Iterable[bytes | None]) -> Sequence[Lane | None]:
        """The remembered lane for each of many header bytes, in one go: with many tenants each lane is far from the
        last in memory, and a processor fetches several at a time.
        """
        return list(map(self.lanes.get, header_bytes))

    def remember(self, header_bytes: bytes | None, lane: Lane, found: Terms) -> None:
        """Have messages with these header bytes go to this lane on these terms."""
        if header_bytes is not None:
            self.lanes[header_bytes] = lane
            if found is not USUAL:
                self.special[header_bytes] = found

    def lane(self, key: str, priority: int, throttle_keys: tuple[str, ...] = ()) -> Lane:
        """The lane of a key, made new if there is none. Throttle keys are sorted, without repetition."""
        throttles = self._throttles.find_all(throttle_keys) if throttle_keys else ()
        owner = self._keys.get(key)
        if owner is None:
            lane = self._new_keys.get(key)
            if lane is None:
                lane = self._new_keys[key] = self._make(FairKey(key), priority, throttle_keys)
                return lane
            if lane.priority == priority and lane.throttles == throttles:
                return lane
            owner = lane.key
        identity = lane_id(priority, throttles)
        lane = owner.find(identity) or self._new_lanes.get((owner, identity))
        if lane is None:
            lane = self._new_lanes[owner, identity] = self._make(owner, priority, throttle_keys)
        return lane

    def again(self, header_bytes: bytes | None, empty: Lane) -> Lane:
        """The lane for messages whose remembered one was found empty: the same one if it can be used again."""
        lane = self._again(empty)
        if lane is not empty and header_bytes in self.lanes:
            self.lanes[header_bytes] = lane
        return lane

    def _again(self, empty: Lane) -> Lane:
        key = empty.key
        known = self._keys.get(key.name)
        if not empty.throttles and known is key and key.find(empty.id) is None:
            return self._new_lanes.setdefault((key, empty.id), empty)
        if not empty.throttles and known is None and key.name not in self._new_keys:
            self._new_keys[key.name] = empty
            return empty
        return self.lane(key.name, empty.priority, tuple(throttle.name for throttle in empty.throttles))

    def end_tick(self) -> None:
        """The tick is durable, and the queue knows its lanes; or it failed, and nobody needs them."""
        self._new_keys.clear()
        self._new_lanes.clear()
        self.bound()

    def bound(self) -> None:
        """Forget all entries when there are too many."""
        if len(self.lanes) > ENTRIES + ENTRIES_PER_KEY * len(self._keys):
            self.clear()

    def clear(self) -> None:
        self.lanes.clear()
        self.special.clear()

    def _make(self, owner: FairKey, priority: int, throttle_keys: tuple[str, ...]) -> Lane:
        throttles = self._throttles.find_all(throttle_keys) if throttle_keys else ()
        return new_lane(owner, priority, keys.lane(self._queue, owner.name, priority), throttles)
