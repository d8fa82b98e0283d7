"""Everything the broker has in memory about one queue."""

from collections.abc import Mapping
from dataclasses import dataclass

from fila.core.consumers import Consumers
from fila.core.dedup import DedupKeys
from fila.core.drr import IDLE, Drr
from fila.core.errors import InvalidArgument
from fila.core.ids import NS_PER_MS
from fila.core.leases import Leases
from fila.core.pending import FairKey, Lane
from fila.core.schedule import Schedule
from fila.storage import keys
from fila.storage.codec import QueueRecord

DEFAULT_KEY = "default"
MAX_WEIGHT = 1000
LARGE_BYTES = 64 << 10


@dataclass(slots=True)
class Counters:
    """What happened since the broker started."""

    enqueued: int = 0
    delivered: int = 0
    acked: int = 0
    nacked: int = 0
    expired: int = 0
    returned: int = 0


class QueueState:
    """One queue. Its parts own their data; this object holds them together."""

    __slots__ = (
        "attempts",
        "consumers",
        "counters",
        "dedup",
        "drr",
        "keys",
        "large",
        "leases",
        "prefix",
        "ready",
        "record",
        "schedule",
        "visibility_ns",
    )

    def __init__(self, record: QueueRecord) -> None:
        self.record = record
        self.prefix = keys.name(record.name)
        self.visibility_ns = record.visibility_timeout_ms * NS_PER_MS
        self.keys: dict[str, FairKey] = {}
        self.drr = Drr(record.quantum)
        self.schedule = Schedule()
        self.leases = Leases()
        self.attempts: dict[int, int] = {}
        """Of messages that came back at least once."""
        self.large: set[int] = set()
        """Messages of more than `LARGE_BYTES`, which are read one at a time"""
        self.dedup = DedupKeys()
        self.consumers = Consumers()
        self.counters = Counters()
        self.ready = 0
        """How many messages could be delivered now."""

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def depth(self) -> int:
        """Messages that wait, delayed ones included, leased ones not."""
        return self.ready + len(self.schedule)

    @property
    def active_keys(self) -> int:
        """How many fairness keys have messages that could be delivered now."""
        return sum(1 for key in self.drr.order() if key.ready)

    def classify(self, headers: Mapping[str, str], max_key_bytes: int) -> tuple[str, int]:
        """Fairness key and weight of a message. Raises InvalidArgument for headers that name no valid ones."""
        record = self.record
        key, weight = DEFAULT_KEY, 1
        if record.fairness_header:
            given = headers.get(record.fairness_header)
            key = given or DEFAULT_KEY
            if given and (len(given) > max_key_bytes or len(given.encode()) > max_key_bytes):
                raise InvalidArgument(
                    f'header "{record.fairness_header}" is the fairness key and must not exceed {max_key_bytes} bytes'
                )
        if record.weight_header:
            text = headers.get(record.weight_header)
            if text is not None:
                weight = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WEIGHT)) else 0
                if not 1 <= weight <= MAX_WEIGHT:
                    raise InvalidArgument(
                        f'header "{record.weight_header}" is the weight and must be a number from 1 to {MAX_WEIGHT}'
                    )
        return key, weight

    def find_lane(self, key: str, priority: int) -> Lane | None:
        known = self.keys.get(key)
        return known.lanes.get(priority) if known is not None else None

    def make_ready(self, lane: Lane, seq: int, cost: int) -> None:
        """Put a message that already belongs to this queue into its lane."""
        key = lane.key
        key.push(lane, seq, cost)
        self.ready += 1
        if key.place == IDLE:
            self.drr.activate(key)

    def make_new_ready(self, lane: Lane, seqs: list[int]) -> None:
        """Put messages that have just come, at a cost of 1 each, into their lane."""
        if seqs:
            key = lane.key
            key.push_new(lane, seqs)
            self.ready += len(seqs)
            if key.place == IDLE:
                self.drr.activate(key)

    def forget_if_gone(self, key: FairKey) -> None:
        """Drop a fairness key of which no message exists, so that keys of the past cost nothing."""
        if not key.live and key.place == IDLE:
            self.keys.pop(key.name, None)
