"""What is durable: the records of the store, as types. How they are written is in `codec.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

REJECT = "reject"
"""A full queue refuses messages."""
DROP_OLDEST = "drop-oldest"
"""A full queue moves its oldest messages to its dead-letter queue."""
OVERFLOWS = (REJECT, DROP_OLDEST)


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A queue as it is kept: its settings with every default filled in at creation."""

    name: str
    created_at: int
    visibility_timeout_ms: int
    quantum: int
    dedup_window_ms: int
    fairness_header: str = ""
    weight_header: str = ""
    throttle_headers: tuple[str, ...] = ()
    cost_header: str = ""
    max_attempts: int = 0
    """0 means no limit."""
    retry_delay_ms: int = 0
    retry_backoff: float = 1.0
    retry_max_delay_ms: int = 0
    """0 means no limit."""
    retry_jitter: float = 0.0
    script: str = ""
    script_timeout_ms: int = 10
    script_memory_bytes: int = 1 << 20
    source: str = ""
    """Of a dead-letter queue: the queue whose dead letters it holds."""
    paused: bool = False
    """Whether nothing is delivered."""
    max_depth: int = 0
    """0 means no limit."""
    max_bytes: int = 0
    """0 means no limit."""
    overflow: str = REJECT
    """What happens to a message that comes when the queue is full, or to those that wait: `OVERFLOWS`."""
    owner: str = ""
    """The principal that created it. Empty: nobody in particular."""


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """A grant as it is kept. The attempts that its messages had tell a message that it still holds from one that came
    back since: a failed attempt is counted. A release counts none, so there the record is written anew without the
    message.
    """

    token: int
    expires_at: int
    members: list[int]
    """Sequence numbers"""
    attempts: dict[int, int]
    """Of those members that had any"""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """Where a group stands."""

    epoch: int
    floor: int
    last: int


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A claim, without its parts. Its end is that of all its grants."""

    token: int
    made_at: int
    expires_at: int
    sealed: bool


class StagedTarget(NamedTuple):
    """Where messages of one call go that were judged alike."""

    lane: bytes
    created_at: int
    """When the queue was created: another one may have its name by the time of the commit."""
    head: bytes
    """What their records begin with"""


class StagedRun(NamedTuple):
    """Messages of one call that follow each other and were judged alike. With a dedup key it is a single one."""

    target: int
    delay_ms: int
    large: bool
    dedup_key: str
    sizes: Sequence[int]
    """Bytes of their payloads"""
    bodies: Sequence[int]
    """Bytes of their headers and payloads"""


@dataclass(frozen=True, slots=True)
class StagedRecord:
    """What one call staged: messages that stand where they will be, with what their commit has to know of them."""

    first: int
    """The sequence number of the first; the others follow."""
    size: int
    """In bytes, as they are kept"""
    expires_at: int
    targets: list[StagedTarget]
    runs: list[StagedRun]

    @property
    def messages(self) -> int:
        return sum(len(run.sizes) for run in self.runs)


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """How far a producer has committed."""

    last: int
    heard_at: int
    parts: list[str]
    """Of the last transaction, in order, while they are being enqueued; none when they are"""
    moved: list[str]
    """Those of them that get new sequence numbers"""


class LeaseEnd(IntEnum):
    """How an attempt ended."""

    NACKED = 1
    EXPIRED = 2
    RETURNED = 3
    """Its consumer left."""
    RELEASED = 4
    """Its consumer did not want it then, or its application was never handed it. Counts no attempt, so none is kept."""
    LOST = 5
    """Its consumer was lost, or left for the last time, with this and other messages."""
    LOST_ALONE = 6
    """Its consumer was lost with this message alone."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt that failed."""

    at: int
    kind: LeaseEnd
    error: str
    """What the consumer said, its beginning if it said much."""


class DeathReason(StrEnum):
    """Why a message became a dead letter."""

    MAX_ATTEMPTS = "max_attempts"
    ON_FAILURE = "on_failure"
    """The hook said so."""
    REJECTED = "rejected"
    """Its consumer said so."""
    MAX_DEPTH = "max_depth"
    """Its queue held too many messages."""
    MAX_BYTES = "max_bytes"
    """Its queue held too many bytes."""


@dataclass(frozen=True, slots=True)
class DeathRecord:
    """Where a dead letter comes from, and when and why it died."""

    source: str
    at: int
    reason: str
