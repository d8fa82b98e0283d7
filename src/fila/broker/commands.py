"""What clients ask of the engine. Each command carries the way its answer goes back."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from fila.auth.registry import Change
from fila.broker.audit_commands import INTERNAL, BeginSweep, EndSweep, Origin, RecordRefusals
from fila.core.errors import BrokerError
from fila.core.lane import Lane
from fila.core.lifecycle import State
from fila.core.policy import Verdict
from fila.storage.records import QueueRecord

DEFAULT_PRIORITY = 5

EnqueueResult = int | BrokerError
"""What became of one message of a batch: its sequence number, or why it was refused."""


class Earlier(int):
    """The sequence number of a message that an earlier request has enqueued."""

    __slots__ = ()


class Incoming:
    """A message that a producer sent, not yet judged."""

    __slots__ = (
        "body",
        "dedup_key",
        "delay_ms",
        "header_bytes",
        "headers",
        "lane",
        "payload_bytes",
        "priority",
        "queue",
    )

    def __init__(
        self,
        queue: str,
        headers: Mapping[str, str],
        body: bytes,
        payload_bytes: int,
        delay_ms: int = 0,
        priority: int = DEFAULT_PRIORITY,
        dedup_key: str = "",
        header_bytes: bytes | None = None,
    ) -> None:
        self.queue = queue
        self.headers = headers
        self.header_bytes = header_bytes
        """Its headers as they are encoded, by which the lane cache finds messages alike; None when nobody looked."""
        self.body = body
        """Headers and payload as the producer encoded them. Kept and handed out as it is."""
        self.payload_bytes = payload_bytes
        self.delay_ms = delay_ms
        self.priority = priority
        self.dedup_key = dedup_key
        self.lane: Lane | None = None
        """Where it was put, once it was judged and is new, for those who asked for it."""


class RefusedMessage(Incoming):
    """A message that was refused before it was judged: it has too much in it, or its sender may not enqueue it."""

    __slots__ = ("refusal",)

    def __init__(self, queue: str, refusal: BrokerError) -> None:
        super().__init__(queue, {}, b"", 0)
        self.refusal = refusal


class Produced(NamedTuple):
    """Whose batch it is, and what tells one that is sent again."""

    producer: str = ""
    """Nobody's, when it is empty"""
    sequence: int = 0
    """Counts the batches of the producer, from 1"""
    digest: int = 0
    """Of its messages: another batch under the same number has another one."""
    epoch: int = 0
    """Which incarnation of the producer it is"""

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands among all batches of the producer."""
        return self.epoch, self.sequence


NOBODY = Produced()


class MessageBatch:
    """What all commands have that bring messages."""

    __slots__ = ("bytes",)

    messages: list[Incoming]

    def __post_init__(self) -> None:
        self.bytes = sum([len(message.body) for message in self.messages])

    @property
    def size(self) -> int:
        return max(1, len(self.messages))


@dataclass(slots=True)
class Enqueue(MessageBatch):
    """A batch of messages."""

    messages: list[Incoming]
    reply: Callable[[Sequence[EnqueueResult] | BrokerError], None]
    produced: Produced = NOBODY
    traced: bool = False
    """Whether each message is to say where it was put."""
    answers: dict[Incoming, tuple[object, Any]] = field(default_factory=dict)
    """What hooks said about messages, and which hooks; those that are missing are not judged yet."""


@dataclass(slots=True, frozen=True)
class AckGroup:
    """Messages that are done. Without a token, whichever lease holds them."""

    queue: str
    message_ids: list[str]
    token: str = ""


@dataclass(slots=True, frozen=True)
class Nack:
    """A message that is given back."""

    queue: str
    message_id: str
    error: str = ""
    token: str = ""
    delay_ms: int = 0
    release: bool = False
    """Nothing went wrong: no attempt is counted."""
    dead_letter: bool = False
    """Hopeless: it dies, whatever the queue would say."""


@dataclass(slots=True, frozen=True)
class ExtendGroup:
    """Messages that take longer. 0 means the queue's visibility timeout."""

    queue: str
    message_ids: list[str]
    token: str = ""
    extend_ms: int = 0


class HasIds(Protocol):
    """A group of messages, here or as it came over the wire."""

    @property
    def message_ids(self) -> Sized: ...


def count_ids(groups: Iterable[HasIds]) -> int:
    """How many messages these name. A group without any counts as one: it is looked at like any other."""
    return sum([len(group.message_ids) or 1 for group in groups])


@dataclass(slots=True, frozen=True)
class Failure:
    """A message that was not settled, and why."""

    queue: str
    message_id: str
    error: BrokerError


@dataclass(slots=True)
class Settle:
    """What consumers say of messages that they hold. Answered with what failed."""

    reply: Callable[[list[Failure] | BrokerError], None]
    acks: list[AckGroup] = field(default_factory=list)
    nacks: list[Nack] = field(default_factory=list)
    extends: list[ExtendGroup] = field(default_factory=list)
    answers: dict[Nack, tuple[object, Verdict]] = field(default_factory=dict)
    """What hooks said about messages that are given back, and which hooks."""
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = max(1, len(self.nacks) + count_ids(self.acks) + count_ids(self.extends))


class Parting(Enum):
    """How a consumer went."""

    LEFT = "left"
    """It said so. What its application was handed counts an attempt."""
    LOST = "lost"
    """Its connection broke. What its application was handed counts an attempt, and may be the cause."""
    PAUSED = "paused"
    """It said so, and its application goes on with what it was handed."""
    KEPT = "kept"
    """The server ended it, because of its key, and does not know what was handed since the last report. Its leases
    last, but for what was not sent: the client settles what its application was handed and releases the rest, or they
    expire."""


@dataclass(slots=True)
class ReturnGrants:
    """A consumer has gone: what it holds goes back to its queue, some of it in each tick."""

    queue: str
    consumer: int
    parting: Parting = Parting.LEFT
    in_hands: set[int] | None = None
    """What its application was handed; None until that was looked up"""
    next_to_be_handed: int | None = None
    """A message that it may have been handed since its last report"""
    unsent: frozenset[int] = frozenset()
    """What it was granted and nobody sent to it"""
    reply: Callable[[object], None] = lambda _: None
    size: int = 1


@dataclass(slots=True)
class DropOldest:
    """A queue holds more than it may, and drops its oldest messages, some of them in each tick."""

    queue: str
    reply: Callable[[object], None] = lambda _: None
    size: int = 1


@dataclass(slots=True)
class CreateQueue:
    record: QueueRecord
    reply: Callable[[BrokerError | None], None]
    origin: Origin = INTERNAL
    size: int = 1


@dataclass(slots=True)
class UpdateQueue:
    """Settings of a queue that change, by the names of the record's fields. Answered with the record from now on."""

    name: str
    changes: Mapping[str, Any]
    reply: Callable[[QueueRecord | BrokerError], None]
    origin: Origin = INTERNAL
    size: int = 1


@dataclass(slots=True)
class DeleteQueue:
    """Answered with the number of messages that went with the queue."""

    name: str
    reply: Callable[[int | BrokerError], None]
    force: bool = False
    """Also when there are dead letters."""
    origin: Origin = INTERNAL
    size: int = 1


@dataclass(slots=True)
class SetConfig:
    """A value of the runtime configuration; None removes it. Answered with the value before, if there was one."""

    key: str
    value: str | None
    reply: Callable[[str | BrokerError | None], None]
    origin: Origin = INTERNAL
    decided: bool = False
    """Another worker has made the change and written it down, and this one follows"""
    size: int = 1


@dataclass(slots=True)
class ChangeAccess:
    """Roles, principals and keys that are set or removed, all or none."""

    changes: Sequence[Change]
    reply: Callable[[BrokerError | None], None]
    origin: Origin = INTERNAL
    decided: bool = False
    """Another worker has checked, made and written them down, and this one follows"""
    size: int = 1


class Location(NamedTuple):
    """Where a message was when it was found."""

    seq: int
    key: str
    priority: int
    state: State
    until: int
    """When its delay or its lease ends; 0 when it is ready"""


class Swept(NamedTuple):
    """How far messages were moved or removed."""

    done: int
    last: int
    """The message up to which it was tried"""


@dataclass(slots=True)
class SweepStep:
    """Messages of a queue with which something is done, unless they are leased or gone by now."""

    queue: str
    locations: list[Location]
    reply: Callable[[Swept | BrokerError], None]
    sweep: int = 0
    """Of which they are a part"""

    @property
    def size(self) -> int:
        return len(self.locations)


class Redrive(SweepStep):
    """They go back from a dead-letter queue to their queue."""

    __slots__ = ()


class Purge(SweepStep):
    """They are removed."""

    __slots__ = ()


@dataclass(slots=True)
class MakeClaim:
    """A step in making a claim: some more of its messages. Answered with how far it is."""

    queue: str
    group: str
    after: int
    most: int
    reply: Callable[[Any], None]
    lease_ms: int = 0
    epoch: int = 0
    cap: int = 0
    size: int = 1


@dataclass(slots=True)
class AckClaims:
    """Answered with what was acked."""

    queue: str
    group: str
    upto: int
    reply: Callable[[Any], None]
    epoch: int = 0
    size: int = 1


@dataclass(slots=True)
class ExtendClaims:
    """Answered with the claims that last longer, and those that have expired."""

    queue: str
    group: str
    lease_ms: int
    reply: Callable[[Any], None]
    epoch: int = 0
    size: int = 1


@dataclass(slots=True)
class DropGroup:
    queue: str
    group: str
    reply: Callable[[Any], None]
    origin: Origin = INTERNAL
    size: int = 1


@dataclass(slots=True)
class StageEnqueue(MessageBatch):
    """Messages to be kept for a transaction. Answered with whether it was committed before."""

    producer: str
    transaction: int
    part: str
    sequence: int
    messages: list[Incoming]
    reply: Callable[[bool | BrokerError], None]
    ttl_ms: int = 0
    answers: dict[Incoming, tuple[object, Any]] = field(default_factory=dict)
    """As those of Enqueue."""


@dataclass(slots=True)
class CommitTransaction:
    """Parts of a transaction, each with how many messages it must have. Answered with how far the commit is."""

    producer: str
    transaction: int
    parts: list[tuple[str, int]]
    reply: Callable[[Any], None]
    size: int = 1


def bytes_of(command: "Command") -> int:
    """Bytes of the messages that a command brings."""
    return command.bytes if isinstance(command, MessageBatch) else 0


UNASKED = (ReturnGrants, DropOldest)
"""What the broker asks of itself: no client waits for it, and nobody else would do it."""

Command = (
    Enqueue
    | Settle
    | ReturnGrants
    | DropOldest
    | CreateQueue
    | UpdateQueue
    | DeleteQueue
    | SetConfig
    | ChangeAccess
    | Redrive
    | Purge
    | MakeClaim
    | AckClaims
    | ExtendClaims
    | DropGroup
    | StageEnqueue
    | CommitTransaction
    | BeginSweep
    | EndSweep
    | RecordRefusals
)
