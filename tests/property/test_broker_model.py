"""The whole broker against a model of it that is too simple to be wrong.

The machine sends what clients send, lets time pass, makes writes fail and crashes the broker, in any order. The model
is dictionaries and lists; it says what must be answered, where each message must be and what the store must hold after
every step. Which of the ready messages are delivered is for the scheduler to say: here only how many, in which order
inside one fairness key, and to whom.
"""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product, takewhile
from math import ceil
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fila.broker.attempts import HISTORY
from fila.broker.backoff import RETRY_AFTER_FAILURE, STALL_PAUSE
from fila.broker.commands import (
    AckGroup,
    CreateQueue,
    DeleteQueue,
    DropOldest,
    Enqueue,
    ExtendGroup,
    Location,
    Nack,
    Parting,
    Produced,
    Purge,
    Redrive,
    SetConfig,
    Settle,
    UpdateQueue,
)
from fila.broker.engine import SWEEP_EVERY
from fila.broker.grants import token_text
from fila.broker.lookup import whereabouts
from fila.broker.producers import SILENT_AFTER
from fila.config import LimitsConfig
from fila.core.capacity import OVER_BYTES, OVER_MESSAGES
from fila.core.errors import (
    BrokerError,
    InvalidArgument,
    LeaseEnded,
    LimitExceeded,
    MessageGone,
    MessageNotFound,
    NotNow,
    QueueAlreadyExists,
    QueueFull,
    QueueNotFound,
    SequenceReused,
    StaleSequence,
    StoreBusy,
    StoreFailed,
)
from fila.core.lifecycle import COUNTS_AN_ATTEMPT, TRANSITIONS, State
from fila.core.throttle import Limit
from fila.storage import codec, keys
from fila.storage.base import Family, Storage
from fila.storage.memory import MemoryStorage
from fila.storage.records import DROP_OLDEST, OVERFLOWS
from tests.helpers.broker import MS, Driver, Recipient, incoming, messages_of, queue_record
from tests.support.packing import chunks_of, reads_of
from tests.support.stores import DURABLE, open_named


@pytest.fixture(autouse=True, scope="module")
def short_lanes() -> Iterator[None]:
    """Lanes pack after a few messages and a start reads a few at a time, so that every rule meets what is packed and
    what is read later.
    """
    with chunks_of(2), reads_of(2):
        yield


LIMITS = LimitsConfig(
    max_payload_bytes=8, max_headers=3, max_name_bytes=12, max_key_bytes=7, max_batch_messages=5, max_queues=3
)
QUEUES = ("a", "b b", "ü", "c")
DEAD = ".dlq"
COMES_BACK = {"nack", "nack with delay", "release", "release with delay", "expire", "dead-letter", "never handed"}
FREES_CREDIT = {"ack", *COMES_BACK}
EVENTS = {"enqueue", "enqueue with delay", "due", "lease", "extend", "consumer lost", *FREES_CREDIT}
EVENTS |= {"redrive", "overflow", "purge", "delete queue"}
"""What the rules below make happen"""
FAIRNESS, WEIGHT, THROTTLE = "tenant", "weight", "l"
VISIBILITY_MS = {"a": 30_000, "b b": 2_000, "ü": 700_000, "c": 30_000}
DEDUP_MS = {"a": 60_000, "b b": 5_000, "ü": 60_000, "c": 0}
MAX_ATTEMPTS = {"a": 0, "b b": 2, "ü": 1, "c": 0}
ALONE = {"create", "delete", "redrive", "purge", "pause", "limit", "limits", "drop"}
UNASKED = {"return", "drop"}
RETRY_MS = {"a": 0, "b b": 0, "ü": 0, "c": 700}


Spec = tuple[str, str, str, int, int, str, str, str]
"""Of a message: queue, fairness key, weight, priority, delay, dedup key, throttle, what is wrong with it."""


@dataclass
class Message:
    """One message as the model knows it."""

    queue: str
    key: str
    priority: int
    weight: int
    body: bytes
    attempts: int = 0
    state: State = State.READY
    due: int = 0
    token: str = ""
    expires_at: int = 0
    holder: Recipient | None = None
    throttle: str = ""
    suspicion: int = 0
    """Whether it must be delivered alone, and what is known: 1 when others were there, 2 when none was"""
    remembered: int = 0
    """What a crash leaves of that"""

    @property
    def throttled(self) -> bool:
        """Dead letters keep their throttle keys, but nothing holds them up."""
        return bool(self.throttle) and not self.queue.endswith(DEAD)


@dataclass
class Bucket:
    """The limit of one throttle key, in exact numbers."""

    limit: Limit
    tokens: Fraction
    at: int

    def refill(self, now: int) -> None:
        if self.limit.rate is not None:
            gained = Fraction(self.limit.rate) * (now - self.at) / 10**9
            self.tokens = min(self.burst, self.tokens + gained)
        self.at = now

    @property
    def burst(self) -> Fraction:
        rate, burst = self.limit.rate, self.limit.burst
        return Fraction(burst if burst is not None else max(1, rate or 1))

    def room(self, now: int, in_flight: int) -> int:
        """How many messages may pass."""
        self.refill(now)
        room = 1000 if self.limit.rate is None else int(self.tokens)
        return room if self.limit.max_in_flight is None else max(0, min(room, self.limit.max_in_flight - in_flight))

    def ready_at(self, now: int, in_flight: int) -> int | None:
        """When a message may pass, if that is a matter of time."""
        if self.limit.max_in_flight is not None and in_flight >= self.limit.max_in_flight:
            return None
        if self.limit.rate is None or self.tokens >= 1:
            return now
        return now + ceil((1 - self.tokens) * 10**9 / Fraction(self.limit.rate))


@dataclass
class Queue:
    """One queue as the model knows it."""

    messages: dict[int, Message] = field(default_factory=dict)
    dedup: dict[str, tuple[int, int]] = field(default_factory=dict)
    consumers: list[Recipient] = field(default_factory=list)
    paused: bool = False
    max_depth: int = 0
    max_bytes: int = 0
    drop_oldest: bool = False
    unmeasured: set[int] = field(default_factory=set)
    """Messages that were there when bytes began to be limited, and are not counted yet"""
    stuck: tuple[Any, ...] | None = None
    """How its dead-letter queue stood when that had no room for what was to be dropped"""

    def take(self, seq: int, message: Message) -> None:
        """A message of another queue comes, with its size: also one that had left before it was counted."""
        self.messages[seq] = message
        self.unmeasured.discard(seq)

    @property
    def standing(self) -> tuple[Any, ...]:
        counted = self.bytes if self.max_bytes else 0
        return len(self.messages), counted, self.max_depth, self.max_bytes, self.drop_oldest and self.limited

    @property
    def limited(self) -> bool:
        return bool(self.max_depth or self.max_bytes)

    @property
    def bytes(self) -> int:
        return sum(len(one.body) for seq, one in self.messages.items() if seq not in self.unmeasured)

    @property
    def excess(self) -> tuple[int, int]:
        messages = len(self.messages) - self.max_depth if self.max_depth else 0
        return max(0, messages), max(0, self.bytes - self.max_bytes if self.max_bytes else 0)

    def droppable(self, dead: "Queue | None") -> int:
        """How many messages it can drop: those that are ready, as far as its dead-letter queue takes them."""
        ready = sum(map(len, ready_of(self).values()))
        if dead is not None and self.stuck == dead.standing:
            return 0
        if dead is None or not dead.limited:
            return ready
        messages, size = dead.room(None)
        return min(ready, max(0, messages)) if size > 0 else 0

    def room(self, dead: "Queue | None", *, over: bool = True) -> list[int]:
        """How many messages and bytes it takes. One that drops its oldest may be over its limit until it has."""
        messages, size = len(self.messages), self.bytes
        droppable = self.droppable(dead)
        extra = OVER_MESSAGES if over and self.drop_oldest and messages - droppable < self.max_depth else 0
        extra_bytes = OVER_BYTES if over and self.drop_oldest and (droppable or size < self.max_bytes) else 0
        return [
            self.max_depth + extra - messages if self.max_depth else 1000_000,
            self.max_bytes + extra_bytes - size if self.max_bytes else 1 << 40,
        ]

    def take_room(self, room: list[int], size: int) -> bool:
        fits = room[0] >= 1 and size <= room[1] and (not self.max_bytes or size <= self.max_bytes)
        if fits:
            room[0] -= 1
            room[1] -= size
        return fits


@dataclass
class Producer:
    """The batches of one producer that can be answered again."""

    last: int
    heard: int
    answers: dict[int, list[Any]]
    batches: dict[int, list[Spec]] = field(default_factory=dict)
    """What they were"""


@dataclass
class Pending:
    """A command that waits for its tick, and what was answered to it."""

    what: str
    args: tuple[Any, ...]
    answers: list[Any] = field(default_factory=list)
    came: int = 0
    """It came then or later: when the tick was planned that was in flight meanwhile or was put off; 0 if none was"""


@dataclass
class Before:
    """What is known of a tick before it is planned."""

    now: int
    due_by: int
    """What ends later has not ended yet"""
    ahead: list[Pending]
    rest: list[Pending]
    rested: bool
    places: dict[int, State]
    handed: dict[int, int]
    ready: dict[str, dict[str, list[int]]]

    @property
    def alone(self) -> bool:
        return bool(self.ahead) and self.ahead[0].what in ALONE


Expected = list[tuple[str, str, type[BrokerError]]]
"""What could not be settled: queue, message id, why."""

specs = st.lists(
    st.tuples(
        st.sampled_from([*QUEUES, "nowhere"]),
        st.sampled_from(["x", "y\x00", "y", ""]),
        st.sampled_from(["", "1", "3", "0", "two"]),
        st.sampled_from([5, 0, 9, 255, 256, -1]),
        st.sampled_from([0, 0, 1, 1500, 60_000, -1]),
        st.sampled_from(["", "", "k1", "k2", "too-long"]),
        st.sampled_from(["", "t", "u"]),
        st.sampled_from(["", "", "", "payload", "headers", "key"]),
    ),
    max_size=6,
)
good_specs = st.lists(
    st.tuples(
        st.sampled_from(QUEUES[:2]),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["", "2"]),
        st.sampled_from([5, 0, 9]),
        st.sampled_from([0, 0, 0, 1500]),
        st.sampled_from(["", "", "k1"]),
        st.sampled_from(["", "", "t", "u"]),
        st.just(""),
    ),
    min_size=1,
    max_size=5,
)
floods = st.lists(
    st.tuples(st.sampled_from("xy"), st.sampled_from([5, 0, 9]), st.sampled_from(["", "", "t"])), min_size=4, max_size=5
)
"""Of messages that nothing is wrong with: fairness key, priority, throttle"""
producers = st.sampled_from(["", "", "p", "r"])
picks = st.lists(st.integers(0, 50), min_size=1, max_size=4)
tokens = st.sampled_from(["right", "right", "right", "none", "wrong"])
ticks = st.sampled_from([2, 1, 0, 0])
"""How many ticks follow at once; 0 lets commands meet in one tick."""


class BrokerMachine(RuleBasedStateMachine):
    """Drives a broker and the model side by side."""

    late = False
    """Whether ticks are in flight for a while"""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(self.open_store(), limits=LIMITS, background=True, late=self.late)
        self.queues: dict[str, Queue] = {}
        self.producers: dict[str, Producer] = {}
        self.pending: list[Pending] = []
        self.sent: list[tuple[str, int, list[Spec]]] = []
        self.recipients: list[Recipient] = []
        self.known_ids: list[tuple[str, int]] = []
        self.old_tokens: list[str] = ["", "zz", "00ff"]
        self.highest_seq = 0
        self.resting_until = self.put_off_until = 0
        self.next_sweep = 0
        self.body = 0
        self.settled: list[tuple[Pending, Expected]] = []
        self.acks: list[list[tuple[str, list[int], str]]] = []
        """Acks as they were sent, to be sent again as after a lost answer"""
        self.done: set[int] = set()
        """Messages that an ack was said to have removed, also one that was sent again"""
        self.holders: dict[int, Recipient | None] = {}
        self.queue_of: dict[int, str] = {}
        """Where each message was when it was last looked at"""
        self.buckets: dict[str, Bucket] = {}
        """By throttle key, of those that are limited"""
        self.rooms: dict[str, int] = {}
        """How many messages of each throttle key may pass in this tick"""
        self.lines: dict[tuple[str, str], set[str]] = {}
        """By queue and throttle key, the fairness keys that stood in line before this tick"""
        self.suspects: dict[str, set[int]] = {}
        """Which waited before this tick"""
        self.tried: set[int] = set()
        """Messages that were delivered alone the last time that they were"""
        self.buried: list[tuple[str, int]] = []
        """Messages that die in this tick"""
        self.rooms_left: dict[str, list[int]] = {}
        """How many messages and bytes each queue takes in this tick"""
        self.measuring: list[tuple[str, Queue, set[int]]] = []
        """Queues whose bytes are to be counted, one in each tick, with what was there when that was decided"""

    def bury(self) -> None:
        """Move what has died to the dead-letter queues, whose consumers see it in the next tick."""
        for name, seq in self.buried:
            message = self.queues[name].messages.pop(seq)
            message.queue = name + DEAD
            self.queues[name + DEAD].take(seq, message)
            self.known_ids.append((name + DEAD, seq))
        self.buried.clear()

    def open_store(self) -> Storage:
        return MemoryStorage()

    def reopen_store(self) -> Storage:
        return self.driver.store.inner

    # What clients do. Everything waits for the next tick.

    @initialize(
        batch=good_specs,
        max_in_flight=st.integers(1, 4),
        reports=st.booleans(),
        limits=st.sampled_from([None, *product([3, 4], [0, 5], OVERFLOWS), *product([0], [4], OVERFLOWS)]),
        first=floods,
    )
    def at_work(
        self,
        batch: list[Spec],
        max_in_flight: int,
        reports: bool,
        limits: tuple[int, int, str] | None,
        first: list[tuple[str, int, str]],
    ) -> None:
        for name in QUEUES[:2]:
            self.create_queue(name)
            self.tick(0)
            if name == "a" and limits is not None:
                self.limit_queue(name, *limits, ticks=1)
            else:
                self.join(name, max_in_flight, 0, reports)
        if limits is not None:
            self.flood("a", first, 1)
        self.enqueue(batch, "", 0, 2)

    @rule(
        name=st.sampled_from(QUEUES[:2]),
        batch=floods,
        ticks=ticks,
    )
    def flood(self, name: str, batch: list[tuple[str, int, str]], ticks: int) -> None:
        """Messages that nothing is wrong with, all for one queue."""
        self.send_batch("", 0, [(name, key, "", priority, 0, "", throttle, "") for key, priority, throttle in batch])
        self.tick_on(ticks)

    @rule(name=st.sampled_from([*QUEUES, "", "new\nline", "much-too-long-a-name", " x"]))
    def create_queue(self, name: str) -> None:
        record = queue_record(
            name,
            visibility_timeout_ms=VISIBILITY_MS.get(name, 1),
            dedup_window_ms=DEDUP_MS.get(name, 1),
            fairness_header=FAIRNESS,
            weight_header=WEIGHT,
            throttle_headers=(THROTTLE,),
            quantum=1,
            max_attempts=MAX_ATTEMPTS.get(name, 0),
            retry_delay_ms=RETRY_MS.get(name, 0),
            retry_backoff=2.0,
            retry_max_delay_ms=1500,
        )
        self.submit("create", (name,), lambda reply: CreateQueue(record, reply))

    @rule(name=st.sampled_from([*QUEUES[2:], *QUEUES, "nowhere", "b b.dlq"]), force=st.booleans())
    def delete_queue(self, name: str, force: bool) -> None:
        self.submit("delete", (name, force), lambda reply: DeleteQueue(name, reply, force))

    @rule(
        throttle=st.sampled_from("tu"),
        text=st.sampled_from(
            ["rate=1,burst=1", "rate=0.5,burst=3", "max_in_flight=1", "rate=2,max_in_flight=3", None, "rate=-1"]
        ),
        ticks=ticks,
    )
    def set_limit(self, throttle: str, text: str | None, ticks: int) -> None:
        key = f"{THROTTLE}:{throttle}"
        self.submit("limit", (key, text), lambda reply: SetConfig(f"throttle.{key}", text, reply))
        self.tick_on(ticks)

    @rule(
        batch=st.one_of(specs, good_specs),
        producer=st.sampled_from(["", "", "p", "r"]),
        step=st.integers(0, 3),
        ticks=ticks,
    )
    def enqueue(self, batch: list[Spec], producer: str, step: int, ticks: int) -> None:
        sequence = 0
        if producer:
            earlier = [number for name, number, _ in self.sent if name == producer]
            sequence = max(earlier, default=0) + step
        self.send_batch(producer, sequence, batch)
        if producer and step:
            self.sent.append((producer, sequence, batch))
        self.tick_on(ticks)

    @precondition(lambda self: self.sent)
    @rule(pick=st.integers(0, 50), ticks=ticks)
    def enqueue_again(self, pick: int, ticks: int) -> None:
        self.send_batch(*self.sent[-1 - pick % len(self.sent)])
        self.tick_on(ticks)

    def send_batch(self, producer: str, sequence: int, batch: list[Spec]) -> None:
        bodies = [self.next_body() for _ in batch]
        messages = [self.to_incoming(spec, body) for spec, body in zip(batch, bodies, strict=True)]
        self.submit(
            "enqueue",
            (producer, sequence, batch, bodies),
            lambda reply: Enqueue(messages, reply, Produced(producer, sequence, digest_of_specs(batch))),
        )

    @rule(
        name=st.sampled_from([*QUEUES[:3], "nowhere", "b b.dlq", "ü.dlq"]),
        max_in_flight=st.integers(1, 4),
        ticks=ticks,
        reports=st.booleans(),
    )
    def join(self, name: str, max_in_flight: int, ticks: int, reports: bool) -> None:
        try:
            recipient = self.driver.join(name, max_in_flight, reports=reports)
        except QueueNotFound:
            assert name not in self.queues
            return
        self.recipients.append(recipient)
        self.note_joined(recipient)
        self.tick_on(ticks)

    def note_joined(self, recipient: Recipient) -> None:
        self.queues[recipient.queue].consumers.append(recipient)

    @precondition(lambda self: self.recipients)
    @rule(pick=st.integers(0, 50), ticks=ticks, parting=st.sampled_from(Parting))
    def leave(self, pick: int, ticks: int, parting: Parting) -> None:
        recipient = self.recipients.pop(pick % len(self.recipients))
        self.driver.leave(recipient, parting)
        self.note_left(recipient, parting)
        self.tick_on(ticks)

    def note_left(self, recipient: Recipient, parting: Parting) -> None:
        queue = self.queues.get(recipient.queue)
        if queue is not None and recipient in queue.consumers:
            queue.consumers.remove(recipient)
            self.pending.append(Pending("return", (recipient, parting)))

    @precondition(lambda self: self.recipients)
    @rule(pick=st.integers(0, 50), max_in_flight=st.integers(1, 4), reports=st.booleans(), ticks=st.integers(1, 4))
    def die_at_work(self, pick: int, max_in_flight: int, reports: bool, ticks: int) -> None:
        """A consumer is lost with all that it was given in its hands, and another takes its place."""
        recipient = self.recipients[pick % len(self.recipients)]
        if recipient.consumer.hands is not None:
            self.note_handed(recipient, len(recipient.got))
        self.leave(pick, 0, Parting.LOST)
        self.join(recipient.queue, max_in_flight, ticks, reports)

    @precondition(lambda self: any(one.consumer.hands is not None for one in self.recipients))
    @rule(pick=st.integers(0, 50), count=st.integers(0, 3))
    def hand(self, pick: int, count: int) -> None:
        """A consumer says what it has handed to its application, which the broker hears at once."""
        reporting = [one for one in self.recipients if one.consumer.hands is not None]
        recipient = reporting[pick % len(reporting)]
        self.note_handed(recipient, count)

    def note_handed(self, recipient: Recipient, count: int) -> None:
        recipient.hand(min(count, len(recipient.got) - recipient.handed))

    @precondition(lambda self: self.known_ids)
    @rule(picks=picks, how=tokens, old=st.integers(0, 50), ticks=ticks)
    def ack(self, picks: list[int], how: str, old: int, ticks: int) -> None:
        groups = self.groups(picks, how, old)
        self.acks.append(groups)
        self.send_acks(groups, ticks)

    @precondition(lambda self: self.acks)
    @rule(pick=st.integers(0, 50), ticks=ticks)
    def ack_again(self, pick: int, ticks: int) -> None:
        """The answer was lost: the same is sent again, whatever has happened in between."""
        self.send_acks(self.acks[-1 - pick % len(self.acks)], ticks)

    def send_acks(self, groups: list[tuple[str, list[int], str]], ticks: int) -> None:
        self.submit("settle", (groups, [], []), lambda reply: Settle(reply, acks=to_acks(self.driver, groups)))
        self.tick_on(ticks)

    @precondition(lambda self: self.known_ids)
    @rule(
        picks=picks,
        how=tokens,
        old=st.integers(0, 50),
        delay_ms=st.sampled_from([0, 0, 1500, -5]),
        ticks=ticks,
    )
    def nack(self, picks: list[int], how: str, old: int, delay_ms: int, ticks: int) -> None:
        groups = [(*group, delay_ms) for group in self.groups(picks, how, old)]
        self.submit("settle", ([], groups, []), lambda reply: Settle(reply, nacks=to_nacks(self.driver, groups)))
        self.tick_on(ticks)

    @precondition(lambda self: self.known_ids)
    @rule(picks=picks, how=tokens, old=st.integers(0, 50), delay_ms=st.sampled_from([0, 0, 1500]), ticks=ticks)
    def release(self, picks: list[int], how: str, old: int, delay_ms: int, ticks: int) -> None:
        groups = [(*group, delay_ms) for group in self.groups(picks, how, old)]
        nacks = [replace(nack, release=True) for nack in to_nacks(self.driver, groups)]
        self.submit("release", (groups,), lambda reply: Settle(reply, nacks=nacks))
        self.tick_on(ticks)

    @precondition(lambda self: self.known_ids)
    @rule(
        picks=picks,
        how=tokens,
        old=st.integers(0, 50),
        extend_ms=st.sampled_from([0, 1, 45_000, -5]),
        ticks=ticks,
    )
    def extend(self, picks: list[int], how: str, old: int, extend_ms: int, ticks: int) -> None:
        groups = [(*group, extend_ms) for group in self.groups(picks, how, old)]
        self.submit("settle", ([], [], groups), lambda reply: Settle(reply, extends=to_extends(self.driver, groups)))
        self.tick_on(ticks)

    @precondition(lambda self: self.known_ids)
    @rule(picks=picks, cut=st.integers(0, 3), last=st.integers(0, 3))
    def settle_many(self, picks: list[int], cut: int, last: int) -> None:
        groups = self.groups(picks, "right", 0)
        acks = groups[:cut]
        nacks = [(*group, 0) for group in groups[cut:]]
        extends = [(*group, 45_000) for group in groups[last:]]
        self.submit(
            "settle",
            (acks, nacks, extends),
            lambda reply: Settle(
                reply, to_acks(self.driver, acks), to_nacks(self.driver, nacks), to_extends(self.driver, extends)
            ),
        )

    # What operators do.

    @rule(name=st.sampled_from([*QUEUES[:2], *QUEUES, "nowhere", "b b.dlq"]), paused=st.booleans(), ticks=ticks)
    def pause(self, name: str, paused: bool, ticks: int) -> None:
        self.submit("pause", (name, paused), lambda reply: UpdateQueue(name, {"paused": paused}, reply))
        self.tick_on(ticks)

    @rule(
        name=st.sampled_from([*QUEUES[:2], *QUEUES[:2], "ü", "nowhere", "a.dlq", "b b.dlq"]),
        max_depth=st.sampled_from([0, 1, 2, 4]),
        max_bytes=st.sampled_from([0, 0, 2, 5]),
        overflow=st.sampled_from(OVERFLOWS),
        ticks=ticks,
    )
    def limit_queue(self, name: str, max_depth: int, max_bytes: int, overflow: str, ticks: int) -> None:
        if name.endswith(DEAD):  # which of several messages find room in one that refuses is tested by itself
            overflow = DROP_OLDEST
        changes = {"max_depth": max_depth, "max_bytes": max_bytes, "overflow": overflow}
        self.submit("limits", (name, changes), lambda reply: UpdateQueue(name, changes, reply))
        self.tick_on(ticks)

    @rule(name=st.sampled_from(["b b.dlq", "b b.dlq", "ü.dlq", "a", "nowhere"]), step=st.integers(1, 3), ticks=ticks)
    def redrive(self, name: str, step: int, ticks: int) -> None:
        places = self.find(name)[::step]
        self.submit("redrive", (name, places), lambda reply: Redrive(name, places, reply))
        self.tick_on(ticks)

    @rule(name=st.sampled_from(["b b.dlq", "ü.dlq", "a", "b b", "nowhere"]), step=st.integers(2, 4), ticks=ticks)
    def purge(self, name: str, step: int, ticks: int) -> None:
        places = self.find(name)[::step]
        self.submit("purge", (name, places), lambda reply: Purge(name, places, reply))
        self.tick_on(ticks)

    def find(self, name: str) -> list[Location]:
        """The messages of a queue as a search finds them now; they may be elsewhere when their tick comes."""
        if not self.queues.get(name, Queue()).messages:
            return [Location(1, "x", 5, State.READY, 0)]
        places = self.driver.find(name)
        assert [place.seq for place in places] == sorted(self.queues[name].messages)
        return places

    # What happens to the broker.

    def tick_on(self, count: int) -> None:
        for _ in range(count):
            self.tick(0)

    @rule(ms=st.sampled_from([0, 0, 1, 999, 1500, 2_000, 2_000, 30_000, 30_000, 601_000]))
    def tick(self, ms: int) -> None:
        self.driver.now += ms * MS
        before = self.look_ahead()
        self.driver.tick()
        self.check_tick(before)

    def look_ahead(self) -> Before:
        """A tick is about to be planned."""
        now, due_by = self.driver.now, self.due_by()
        places = self.where()
        ahead, self.pending = self.of_next_tick()
        ready = {name: ready_of(queue) for name, queue in self.queues.items()}
        self.suspects = {name: suspects_of(queue) for name, queue in self.queues.items()}
        self.rooms = {key: bucket.room(now, self.in_flight(key)) for key, bucket in self.buckets.items()}
        self.note_rooms()
        self.lines = self.standing()
        handed = {id(one): len(one.got) for one in self.recipients}
        return Before(now, due_by, ahead, self.pending, now >= self.resting_until, places, handed, ready)

    def due_by(self) -> int:
        return min((pending.came for pending in self.pending if pending.came), default=self.driver.now)

    def check_tick(self, before: Before) -> None:
        """A tick is done."""
        events: dict[int, str] = {}
        if before.rested and not before.alone:
            self.measure()
            self.sweep([pending for pending in before.ahead if pending.what == "enqueue"])
            self.due(events, before.due_by)
        extensions: list[tuple[Any, list[Any]]] = []
        for pending in before.ahead:
            getattr(self, "do_" + pending.what)(pending, *pending.args, events, extensions)
        for group, failed in extensions:
            self.do_extension(group, failed, events)
        self.check_settled()
        self.bury()
        if before.rested and not before.alone:
            self.check_deliveries(before.ready, before.handed, events)
        else:
            assert all(len(one.got) == before.handed.get(id(one), 0) for one in self.recipients)
        self.check_moves(before.places, events)
        self.note_drops(events)

    def note_rooms(self) -> None:
        self.rooms_left = {name: queue.room(self.queues.get(name + DEAD)) for name, queue in self.queues.items()}

    def measure(self) -> None:
        """The bytes of a queue that holds messages are counted in a tick after they began to be limited."""
        if self.measuring:
            name, queue, messages = self.measuring.pop(0)
            if self.queues.get(name) is queue and queue.unmeasured is messages:
                messages.clear()

    def note_drops(self, events: dict[int, str]) -> None:
        """A queue into which something came and that is over its limit drops messages in one of the next ticks."""
        waiting = [pending.args[0] for pending in self.pending if pending.what == "drop"]
        commands = self.driver.engine._commands
        dropping = [one.queue for one in (*commands._first, *commands._commands) if isinstance(one, DropOldest)]
        assert dropping[: len(waiting)] == waiting, "each waits once, and in turn"
        assert commands.dropping == set(dropping)
        self.pending += [Pending("drop", (name,)) for name in dropping[len(waiting) :]]
        for name, queue in self.queues.items():
            came = any(events.get(seq, "").startswith("enqueue") for seq in queue.messages)
            if came and queue.drop_oldest and queue.excess != (0, 0) and queue.droppable(self.queues.get(name + DEAD)):
                assert name in dropping

    @rule(ms=st.sampled_from([0, 0, 1, 999]))
    def tick_that_is_put_off(self, ms: int) -> None:
        """The store is behind with its files: nothing changes, no one is answered, every command keeps its place."""
        self.driver.now += ms * MS
        driver = self.driver
        before, stored = driver.snapshot(), driver.store.dump()
        due_by = self.due_by()
        ahead, rest = self.of_next_tick()
        handed = {id(one): len(one.got) for one in self.recipients}
        rested = driver.now >= self.resting_until
        driver.engine._backoff.succeeded()  # how long it is waited for is tested by itself
        driver.store.stalls = 1
        driver.tick()
        if driver.store.stalls:  # there was nothing to write, so it was a tick like any other
            driver.store.stalls = 0
            return self.replay_without_write(ahead, rest, rested)
        assert driver.snapshot() == before
        assert driver.store.dump() == stored
        assert all(len(one.got) == handed[id(one)] for one in self.recipients)
        assert all(pending.answers == [] for pending in ahead)
        for pending in ahead:
            pending.came = due_by
        self.pending = ahead + rest
        self.put_off_until = driver.now + STALL_PAUSE
        if rested and not (ahead and ahead[0].what in ALONE):
            self.note_sweep()
        return None

    @rule(ms=st.sampled_from([0, 0, 1, 999, 30_000]))
    def tick_that_cannot_write(self, ms: int) -> None:
        self.driver.now += ms * MS
        driver = self.driver
        before, stored, refused = driver.snapshot(), driver.store.dump(), driver.store.refused
        ahead, rest = self.of_next_tick()
        handed = {id(one): len(one.got) for one in self.recipients}
        rested = driver.now >= self.resting_until
        driver.store.failing = True
        try:
            driver.tick()
        finally:
            driver.store.failing = False
        if driver.store.refused == refused:  # there was nothing to write, so it was a tick like any other
            return self.replay_without_write(ahead, rest, rested)
        assert driver.snapshot() == before
        assert driver.store.dump() == stored
        assert all(len(one.got) == handed[id(one)] for one in self.recipients)
        for pending in ahead:
            if pending.what not in UNASKED:
                (answer,) = pending.answers
                assert isinstance(answer, StoreFailed)
        self.pending = [one for one in ahead if one.what in UNASKED] + rest
        self.resting_until = driver.now + RETRY_AFTER_FAILURE
        if rested and not (ahead and ahead[0].what in ALONE):
            self.note_sweep()
        return None

    def replay_without_write(self, ahead: list[Pending], rest: list[Pending], rested: bool) -> None:
        """Nothing was written, so every command was refused, empty, or answered from what is known."""
        extensions: list[tuple[Any, list[Any]]] = []
        events: dict[int, str] = {}
        self.note_rooms()
        if rested and not (ahead and ahead[0].what in ALONE):
            self.note_sweep()
            self.measure()
        for pending in ahead:
            getattr(self, "do_" + pending.what)(pending, *pending.args, events, extensions)
        for group, failed in extensions:
            self.do_extension(group, failed, events)
        self.check_settled()
        assert not events
        self.pending = rest
        self.note_drops(events)

    @rule(back_ms=st.sampled_from([0, 0, 900]))
    def crash(self, back_ms: int) -> None:
        """The broker starts again from its store; what was not answered never happened, leases go on."""
        self.driver.now -= back_ms * MS
        assert all(not pending.answers for pending in self.pending)
        self.driver.restart(self.reopen_store())
        self.driver.read_all()
        self.pending.clear()
        self.recipients.clear()
        self.measuring.clear()
        self.resting_until = self.next_sweep = 0
        for bucket in self.buckets.values():
            bucket.tokens, bucket.at = bucket.burst, self.driver.now
        for queue in self.queues.values():
            queue.consumers.clear()
            queue.unmeasured.clear()
            queue.stuck = None
            for message in queue.messages.values():
                message.holder = None
                message.suspicion = message.remembered

    # What the model says each command does.

    def do_create(self, pending: Pending, name: str, *_: Any) -> None:
        if name not in QUEUES:
            expect_error(pending, InvalidArgument)
        elif name in self.queues:
            expect_error(pending, QueueAlreadyExists)
        elif len(self.queues) >= 2 * LIMITS.max_queues:
            expect_error(pending, LimitExceeded)
        else:
            assert pending.answers == [None]
            self.queues[name] = Queue()
            self.queues[name + DEAD] = Queue()

    def do_delete(self, pending: Pending, name: str, force: bool, events: dict[int, str], _: Any) -> None:
        if name not in self.queues:
            return expect_error(pending, QueueNotFound)
        if name.endswith(DEAD):
            return expect_error(pending, InvalidArgument)
        if self.queues[name + DEAD].messages and not force:
            return expect_error(pending, NotNow)
        leaving = [self.queues.pop(name), self.queues.pop(name + DEAD)]
        assert pending.answers == [sum(len(queue.messages) for queue in leaving)]
        for queue in leaving:
            assert all(isinstance(consumer.ended, QueueNotFound) for consumer in queue.consumers)
            events.update(dict.fromkeys(queue.messages, "delete queue"))
        return None

    def do_pause(self, pending: Pending, name: str, paused: bool, *_: Any) -> None:
        if name not in self.queues:
            expect_error(pending, QueueNotFound)
        else:
            self.queues[name].paused = paused

    def do_redrive(self, pending: Pending, name: str, places: list[Location], events: dict[int, str], _: Any) -> None:
        if name not in self.queues:
            return expect_error(pending, QueueNotFound)
        if not name.endswith(DEAD):
            return expect_error(pending, InvalidArgument)
        source = name.removesuffix(DEAD)
        room, target = self.queues[source].room(None, over=False), self.queues[source]
        moved = self.waiting(name, places)
        fitting = list(takewhile(lambda seq: target.take_room(room, len(moved[seq].body)), moved))
        if moved and not fitting:
            return expect_error(pending, QueueFull)
        assert pending.answers == [(len(fitting), fitting[-1] if len(fitting) < len(moved) else places[-1].seq)]
        for seq in fitting:
            message = self.queues[name].messages.pop(seq)
            message.queue, message.state, message.due, message.attempts = source, State.READY, 0, 0
            message.suspicion = message.remembered = 0
            self.queues[source].take(seq, message)
            self.known_ids.append((source, seq))
            events[seq] = "redrive"
        return None

    def do_purge(self, pending: Pending, name: str, places: list[Location], events: dict[int, str], _: Any) -> None:
        if name not in self.queues:
            return expect_error(pending, QueueNotFound)
        taken = self.waiting(name, places)
        assert pending.answers == [(len(taken), places[-1].seq)]
        for seq in taken:
            del self.queues[name].messages[seq]
            events[seq] = "purge"
        return None

    def waiting(self, name: str, places: list[Location]) -> dict[int, Message]:
        """Those that were found and wait still or again: not leased, and under no other delay than they were."""
        messages, found = self.queues[name].messages, {}
        for place in places:
            message = messages.get(place.seq)
            delayed = message is not None and message.state is State.DELAYED and message.due == place.until
            if message is not None and (message.state is State.READY or delayed):
                found[place.seq] = message
        return found

    def do_limits(self, pending: Pending, name: str, changes: dict[str, Any], *_: Any) -> None:
        if name not in self.queues:
            return expect_error(pending, QueueNotFound)
        queue, measured = self.queues[name], bool(self.queues[name].max_bytes)
        queue.max_depth, queue.max_bytes = changes["max_depth"], changes["max_bytes"]
        queue.drop_oldest = changes["overflow"] == DROP_OLDEST
        if not queue.max_bytes:
            queue.unmeasured = set()  # what was to be counted for a limit that has gone is not counted for the next one
        elif not measured and queue.messages:
            queue.unmeasured = set(queue.messages)
            self.measuring.append((name, queue, queue.unmeasured))
        return None

    def do_drop(self, _: Pending, name: str, events: dict[int, str], __: Any) -> None:
        """The key with most messages loses its oldest one of the least urgent priority, until the queue fits. What a
        dead-letter queue drops is gone.
        """
        queue, dead = self.queues.get(name, Queue()), self.queues.get(name + DEAD)
        if not (queue.drop_oldest and queue.excess != (0, 0) and queue.droppable(dead)):
            return
        before = dead.standing if dead is not None else None
        while queue.drop_oldest and queue.excess != (0, 0) and (ready := ready_of(queue)):
            lengths = {key: sum(one.key == key for one in queue.messages.values()) for key in ready}
            key = min(ready, key=lambda key: (-lengths[key], key))
            least = max(queue.messages[seq].priority for seq in ready[key])
            seq = min(seq for seq in ready[key] if queue.messages[seq].priority == least)
            if dead is not None and not dead.take_room(self.rooms_left[name + DEAD], len(queue.messages[seq].body)):
                break
            message = queue.messages.pop(seq)
            events[seq] = "overflow" if dead is not None else "purge"
            if dead is not None:
                message.queue = name + DEAD
                dead.take(seq, message)
                self.known_ids.append((name + DEAD, seq))
        queue.stuck = before if "overflow" not in events.values() else None

    def do_limit(self, pending: Pending, key: str, text: str | None, *_: Any) -> None:
        if text == "rate=-1":
            return expect_error(pending, InvalidArgument)
        before = self.buckets.pop(key, None)
        assert pending.answers == [before and str(before.limit)]
        if text is not None:
            limit = Limit.parse(text)
            self.buckets[key] = after = Bucket(limit, Fraction(0), self.driver.now)
            if before is None or before.limit.rate is None:
                after.tokens = after.burst
            else:
                before.refill(self.driver.now)
                after.tokens = min(before.tokens, after.burst)
        return None

    def in_flight(self, key: str) -> int:
        """How many messages of a throttle key are leased."""
        messages = (message for queue in self.queues.values() for message in queue.messages.values())
        return sum(one.state is State.LEASED and one.throttled and one.throttle == key for one in messages)

    def do_enqueue(
        self,
        pending: Pending,
        producer: str,
        sequence: int,
        batch: list[Spec],
        bodies: list[bytes],
        events: dict[int, str],
        _: Any,
    ) -> None:
        if len(batch) > LIMITS.max_batch_messages:
            return expect_error(pending, LimitExceeded)
        if producer and not sequence:
            return expect_error(pending, InvalidArgument)
        known = self.producers.get(producer)
        if known is not None and sequence <= known.last:
            if sequence not in known.answers:
                return expect_error(pending, StaleSequence)
            if batch != known.batches[sequence]:
                return expect_error(pending, SequenceReused)
            (answer,) = pending.answers
            assert in_words(answer) == in_words(known.answers[sequence]), "a batch sent again is answered as before"
            return None
        (outcomes,) = pending.answers
        assert len(outcomes) == len(batch)
        for spec, body, outcome in zip(batch, bodies, outcomes, strict=True):
            self.take_in(spec, body, outcome, events)
        if producer:
            known = self.producers.setdefault(producer, Producer(0, 0, {}))
            known.last, known.heard = sequence, self.driver.now
            known.answers[sequence], known.batches[sequence] = outcomes, batch
        return None

    def take_in(self, spec: Spec, body: bytes, outcome: int | BrokerError, events: dict[int, str]) -> None:
        name, key, weight, priority, delay_ms, dedup_key, throttle, _ = spec
        error = error_of(spec, name in self.queues)
        if error is not None:
            assert isinstance(outcome, error), (spec, outcome)
            return
        queue = self.queues[name]
        earlier, ends = queue.dedup.get(dedup_key, (0, 0)) if dedup_key and DEDUP_MS[name] else (0, 0)
        if ends > self.driver.now:
            assert outcome == earlier
            return
        if not queue.take_room(self.rooms_left[name], len(body)):
            assert isinstance(outcome, QueueFull), (spec, outcome)
            return
        assert isinstance(outcome, int), (spec, outcome)
        if dedup_key and DEDUP_MS[name]:
            queue.dedup[dedup_key] = (outcome, self.driver.now + DEDUP_MS[name] * MS)
        assert outcome > self.highest_seq, "a later message has a larger number"
        self.highest_seq = outcome
        message = Message(name, key or "default", priority, int(weight or 1), body)
        message.throttle = throttle and f"{THROTTLE}:{throttle}"
        if delay_ms:
            message.state, message.due = State.DELAYED, self.driver.now + delay_ms * MS
        queue.messages[outcome] = message
        self.known_ids.append((name, outcome))
        events[outcome] = "enqueue with delay" if delay_ms else "enqueue"

    def do_settle(
        self,
        pending: Pending,
        acks: list[Any],
        nacks: list[Any],
        extends: list[Any],
        events: dict[int, str],
        extensions: list[tuple[Any, list[Any]]],
    ) -> None:
        if sum(len(seqs) for _, seqs, *_ in (*acks, *nacks, *extends)) > LIMITS.max_batch_messages:
            return expect_error(pending, LimitExceeded)
        expected: Expected = []
        for name, seqs, token in acks:
            for seq in seqs:
                if (message := self.held(name, seq, token, events, expected)) is not None:
                    del self.queues[name].messages[seq]
                    message.state = State.NONE
                    events[seq] = "ack"
        for name, seqs, token, delay_ms in nacks:
            for seq in seqs:
                if delay_ms < 0:
                    error = InvalidArgument if name in self.queues else QueueNotFound
                    expected.append((name, self.driver.id(seq), error))
                elif (message := self.held(name, seq, token, events, expected)) is not None:
                    self.give_back(seq, message, "nack with delay" if delay_ms else "nack", events, delay_ms)
        extensions += [((name, seqs, token, extend_ms), expected) for name, seqs, token, extend_ms in extends]
        self.settled.append((pending, expected))
        return None

    def check_settled(self) -> None:
        for pending, expected in self.settled:
            exact = [(name, message_id, self.exact(error, message_id)) for name, message_id, error in expected]
            compare_failures(pending.answers, exact)
            self.note_done(pending)
        self.settled.clear()

    def exact(self, error: type[BrokerError], message_id: str) -> type[BrokerError]:
        """Of a message that nobody holds it is said whether it exists, wherever it is."""
        if error is not MessageNotFound:
            return error
        seq = self.driver.state.ids.seq(message_id)
        return LeaseEnded if any(seq in queue.messages for queue in self.queues.values()) else MessageGone

    def note_done(self, pending: Pending) -> None:
        """What was acked according to the answer: no failure, or that the message is gone, as the SDK reads it."""
        failed = {(one.queue, one.message_id) for one in pending.answers[0] if not isinstance(one.error, MessageGone)}
        for name, seqs, _ in pending.args[0] if pending.what == "settle" else ():
            self.done |= {seq for seq in seqs if (name, self.driver.id(seq)) not in failed}

    def do_release(self, pending: Pending, groups: list[Any], events: dict[int, str], _: Any) -> None:
        if sum(len(seqs) for _, seqs, *_ in groups) > LIMITS.max_batch_messages:
            return expect_error(pending, LimitExceeded)
        expected: Expected = []
        for name, seqs, token, delay_ms in groups:
            for seq in seqs:
                if (message := self.held(name, seq, token, events, expected)) is not None:
                    message.state = State.DELAYED if delay_ms else State.READY
                    message.due = self.driver.now + delay_ms * MS if delay_ms else 0
                    message.holder = None
                    events[seq] = "release with delay" if delay_ms else "release"
        self.settled.append((pending, expected))
        return None

    def do_extension(self, group: tuple[Any, ...], expected: list[Any], events: dict[int, str]) -> None:
        name, seqs, token, extend_ms = group
        for seq in seqs:
            if extend_ms < 0:
                error = InvalidArgument if name in self.queues else QueueNotFound
                expected.append((name, self.driver.id(seq), error))
            elif (message := self.held(name, seq, token, events, expected)) is not None:
                message.expires_at = self.driver.now + (extend_ms or VISIBILITY_MS[name.removesuffix(DEAD)]) * MS
                events[seq] = "extend"

    def do_return(self, _: Pending, recipient: Recipient, parting: Parting, events: dict[int, str], __: Any) -> None:
        """What was never handed gains no attempt, and only what was handed alone may die of it."""
        if parting is Parting.KEPT:
            return  # its leases last, and its holder is remembered: see `was_handed`
        messages = self.queues[recipient.queue].messages if recipient.queue in self.queues else {}
        held = {
            seq: one
            for seq, one in messages.items()
            if one.holder is recipient and one.state is State.LEASED and seq not in events
        }
        handed = [seq for seq, one in held.items() if was_handed(seq, one)]
        later = [one.seq for one in recipient.got[recipient.handed :] if recipient.consumer.hands is not None]
        lost = parting is Parting.LOST
        for seq, message in held.items():
            if seq not in handed:
                message.state, message.holder = State.READY, None
                if lost and not handed and seq == next(one for one in later if one in held):
                    message.suspicion = message.suspicion or 1
                events[seq] = "never handed"
            elif parting is not Parting.PAUSED:
                alone = len(handed) == 1
                limit = MAX_ATTEMPTS.get(message.queue, 0)
                exhausted = bool(limit) and message.attempts + 1 >= limit
                self.give_back(seq, message, "consumer lost", events, spared=not alone)
                suspicion = (2 if alone else 1) if lost else int(exhausted and not alone)
                message.suspicion = message.remembered = suspicion

    def held(
        self,
        name: str,
        seq: int,
        token: str,
        events: dict[int, str],
        expected: Expected,
    ) -> Message | None:
        """The message, if it is leased and the token fits; else what must be answered is noted."""
        queue = self.queues.get(name)
        message = queue.messages.get(seq) if queue else None
        fits = message is not None and message.state is State.LEASED and token in {"", message.token}
        if fits and events.get(seq, "extend") == "extend":
            return message
        expected.append((name, self.driver.id(seq), MessageNotFound if queue else QueueNotFound))
        return None

    def give_back(
        self,
        seq: int,
        message: Message,
        event: str,
        events: dict[int, str],
        delay_ms: int = 0,
        *,
        spared: bool = False,
    ) -> None:
        limit = MAX_ATTEMPTS.get(message.queue, 0)
        message.suspicion = message.remembered = 0
        if limit and message.attempts + 1 >= limit and not spared and self.dies(message):
            event, delay_ms = "dead-letter", 0
            self.buried.append((message.queue, seq))
        elif event == "nack" and RETRY_MS.get(message.queue):
            event, delay_ms = "nack with delay", min(RETRY_MS[message.queue] * 2**message.attempts, 1500)
        message.state = State.DELAYED if delay_ms else State.READY
        message.due = self.driver.now + delay_ms * MS if delay_ms else 0
        message.attempts += event in COUNTS_AN_ATTEMPT
        message.holder = None
        events[seq] = event

    def dies(self, message: Message) -> bool:
        """Whether there is room for it among the dead letters; else it is tried again."""
        name = message.queue + DEAD
        return self.queues[name].take_room(self.rooms_left[name], len(message.body))

    def due(self, events: dict[int, str], by: int) -> None:
        for queue in self.queues.values():
            for seq, message in queue.messages.items():
                if message.state is State.LEASED and message.expires_at <= by:
                    if not was_handed(seq, message):
                        message.state, message.holder = State.READY, None
                        events[seq] = "never handed"
                    else:
                        self.give_back(seq, message, "expire", events, spared=message.holder is None)
                elif message.state is State.DELAYED and message.due <= self.driver.now:
                    message.state, message.due = State.READY, 0
                    events[seq] = "due"

    def note_sweep(self) -> bool:
        if self.driver.now < self.next_sweep:
            return False
        self.next_sweep = self.driver.now + SWEEP_EVERY
        return True

    def sweep(self, batches: list[Pending]) -> None:
        """Forget silent producers. One that was forgotten while it sends an old batch again is still answered."""
        if not self.note_sweep():
            return
        for name, producer in list(self.producers.items()):
            if producer.heard <= self.driver.now - SILENT_AFTER:
                self.answer_before_forgetting(name, producer, batches)
                del self.producers[name]
        for queue in self.queues.values():
            queue.dedup = {key: entry for key, entry in queue.dedup.items() if entry[1] > self.driver.now}

    def answer_before_forgetting(self, name: str, producer: Producer, batches: list[Pending]) -> None:
        for pending in batches:
            if pending.args[0] != name or pending.args[1] > producer.last:
                continue
            if len(pending.args[2]) <= LIMITS.max_batch_messages and pending.args[1] > 0:
                pending.what = "nothing"
                (answer,) = pending.answers
                if producer.batches.get(pending.args[1], pending.args[2]) != pending.args[2]:
                    assert isinstance(answer, SequenceReused)
                elif pending.args[1] in producer.answers:
                    assert in_words(answer) == in_words(producer.answers[pending.args[1]])
                else:
                    assert isinstance(answer, StaleSequence)

    def do_nothing(self, *_: Any) -> None:
        """A command whose answer was looked at before."""

    # What must be true.

    def check_deliveries(
        self, ready: dict[str, dict[str, list[int]]], handed: dict[int, int], events: dict[int, str]
    ) -> None:
        """As many as there are, throttles let pass and consumers may take; the right ones; in turn to the consumers."""
        passed: dict[str, int] = defaultdict(int)
        for queue in self.queues.values():
            for one in queue.consumers:
                for delivered in one.got[handed[id(one)] :]:
                    message = queue.messages[delivered.seq]
                    passed[message.throttle if message.throttled else ""] += 1
        full = {key for key, room in self.rooms.items() if passed[key] == room}
        assert all(passed[key] <= room for key, room in self.rooms.items()), "no more than a throttle lets pass"
        for key, bucket in self.buckets.items():
            bucket.tokens -= passed[key]
        wanted = {name: self.throttles_of(queue, ready.get(name, {})) for name, queue in self.queues.items()}
        self.check_lines(wanted, full)
        for name, queue in self.queues.items():
            waiting = ready.get(name, {})
            fresh = {id(one): one.got[handed[id(one)] :] for one in queue.consumers}
            held = {id(one): one.consumer.in_flight - len(fresh[id(one)]) for one in queue.consumers}
            freed: dict[int, int] = defaultdict(int)
            for seq, event in events.items():
                freed[id(self.holders.get(seq))] += event in FREES_CREDIT
            tried = self.check_trials(name, fresh, held, freed, others_wait=bool(waiting))
            credit = {
                id(one): one.consumer.max_in_flight - held[id(one)] - freed[id(one)] if one not in tried else 0
                for one in queue.consumers
            }
            fresh = {id(one): [] if one in tried else fresh[id(one)] for one in queue.consumers}
            straight = [] if waiting else self.handed_on(queue, sum(credit.values()), events)
            if straight:
                waiting = {queue.messages[straight[0]].key: straight}
            expected = min(sum(credit.values()), sum(len(seqs) for seqs in waiting.values())) * (not queue.paused)
            count = sum(len(got) for got in fresh.values())
            assert count <= expected
            gone = {delivered.seq for got in fresh.values() for delivered in got}
            kept = [seq for seqs in waiting.values() for seq in seqs if seq not in gone]
            if count < sum(credit.values()) and not queue.paused:
                assert all(self.is_held_up(queue, seq, full) for seq in kept), "only throttles hold anything up"
            chosen: dict[str, list[int]] = defaultdict(list)
            for one in queue.consumers:
                assert len(fresh[id(one)]) <= credit[id(one)]
                for delivered in fresh[id(one)]:
                    message = queue.messages[delivered.seq]
                    chosen[message.key].append(delivered.seq)
                    assert message.state is State.READY
                    assert (delivered.seq in events) == (delivered.seq in straight)
                    assert not message.suspicion
                    self.tried.discard(delivered.seq)
                    self.lease(name, one, delivered)
                    events[delivered.seq] = "enqueue, lease" if delivered.seq in straight else "lease"
            for key, seqs in chosen.items():
                self.check_order(queue, waiting[key], set(seqs), full | self.kept_from(name, key, wanted[name]))
            self.check_newcomers(name, chosen, wanted[name])
            counts = [(len(fresh[id(one)]), credit[id(one)]) for one in queue.consumers if one not in tried]
            for one in tried:
                for delivered in one.got[handed[id(one)] :]:
                    self.lease(name, one, delivered)
                    events[delivered.seq] = "lease"
            fewest = min((count for count, allowed in counts if count < allowed), default=None)
            assert fewest is None or all(count <= fewest + 1 for count, _ in counts), "dealt in turn"

    def lease(self, name: str, recipient: Recipient, delivered: Any) -> None:
        message = self.queues[name].messages[delivered.seq]
        message.state, message.holder = State.LEASED, recipient
        message.token = delivered.token
        message.expires_at = self.driver.now + VISIBILITY_MS[name.removesuffix(DEAD)] * MS
        self.old_tokens.append(delivered.token)

    def check_trials(
        self,
        name: str,
        fresh: dict[int, list[Any]],
        held: dict[int, int],
        freed: dict[int, int],
        *,
        others_wait: bool,
    ) -> list[Recipient]:
        """Who is given no ordinary messages: those that try a suspect, which they hold alone, and one that is emptied
        for that. A suspect that nothing else holds up is tried when a consumer is there that has nothing to do.
        """
        queue, state = self.queues[name], self.driver.state.queues[name]
        suspects = self.suspects.get(name, set()) & queue.messages.keys()
        tried = []
        for one in queue.consumers:
            before = held[id(one)] + freed[id(one)]
            alone = [seq for seq in self.holders if self.holders[seq] is one and seq in self.tried]
            if any(delivered.seq in suspects for delivered in fresh[id(one)]):
                assert len(fresh[id(one)]) == 1, "a suspect is delivered alone"
                assert not before, "to somebody who holds nothing"
                self.tried.add(fresh[id(one)][0].seq)
                tried.append(one)
            elif alone:
                assert before == 1, "nobody else is with it"
                assert not fresh[id(one)], "and nobody joins it"
                tried.append(one)
            elif one.consumer is state.consumers.emptied:
                assert suspects_of(queue), "nobody is emptied for nothing"
                assert not fresh[id(one)]
                tried.append(one)
        idle = [one for one in queue.consumers if not held[id(one)] + freed[id(one)]]
        unthrottled = {seq for seq in suspects if not queue.messages[seq].throttled}
        if unthrottled and not others_wait and idle and not queue.paused:
            assert any(one.consumer.trying for one in queue.consumers) or tried, "a suspect that can be tried is"
        return tried

    def handed_on(self, queue: Queue, credit: int, events: dict[int, str]) -> list[int]:
        """What has just arrived and is delivered at once, since there is nobody to be fair to: nothing waited, it is
        all of one lane that no throttle holds up, there is room for all of it, and nothing older comes back.
        """
        arrived = [seq for seq in queue.messages if events.get(seq) == "enqueue"]
        lanes = {(queue.messages[seq].key, queue.messages[seq].priority) for seq in arrived}
        throttled = any(queue.messages[seq].throttle for seq in arrived)
        if (
            queue.paused
            or throttled
            or len(lanes) > 1
            or not {"due", "consumer lost", *COMES_BACK}.isdisjoint(events.values())
        ):
            return []
        return arrived if len(arrived) <= credit else []

    def is_held_up(self, queue: Queue, seq: int, full: set[str]) -> bool:
        message = queue.messages.get(seq)
        return message is None or (message.throttled and message.throttle in full)

    def standing(self) -> dict[tuple[str, str], set[str]]:
        """Who stands in line as the broker has it: the fairness keys that a throttle holds up or has called since."""
        found = {}
        for name, queue in self.driver.state.queues.items():
            for line in queue.drr.lines.all():
                called = {key.name for key in queue.keys.values() if line in key.special.called}
                assert len(called) == line.called, "a place is kept for keys that have messages"
                found[name, line.throttle.name] = called | {key.name for key in line.keys}
        return found

    def throttles_of(self, queue: Queue, waiting: dict[str, list[int]]) -> dict[str, set[str]]:
        """The throttles of what waited before this tick, by fairness key."""
        return {key: {queue.messages[seq].throttle for seq in seqs} for key, seqs in waiting.items()}

    def check_lines(self, wanted: dict[str, dict[str, set[str]]], full: set[str]) -> None:
        """A line begins only where a throttle lets nothing more pass, and whoever joins it has a message that waits."""
        for (name, throttle), keys_in_line in self.standing().items():
            before = self.lines.get((name, throttle), set())
            assert before or throttle in full, "nobody stands in line while there is room"
            assert all(throttle in wanted[name].get(key, ()) for key in keys_in_line - before)

    def kept_from(self, name: str, key: str, wanted: dict[str, set[str]]) -> set[str]:
        """The throttles whose room may be kept for another fairness key of the queue: there was a line before this
        tick, and another stands there or has joined it. Nobody overtakes, so a key whose turn comes first goes on with
        what it has besides. Once all have had their turn, nothing is kept: see "only throttles hold anything up".
        """
        lines = {throttle: line for (queue, throttle), line in self.lines.items() if queue == name}
        others = {throttle for other, throttles in wanted.items() if other != key for throttle in throttles}
        return {throttle for throttle, line in lines.items() if line - {key} or throttle in others}

    def check_newcomers(self, name: str, chosen: dict[str, list[int]], wanted: dict[str, set[str]]) -> None:
        """A single place goes to a key that did not stand in line for it only if all that did have had their turn. Keys
        that wait for other throttles as well are left out: of these, one that was called there need not wait for all.
        """
        messages = self.queues[name].messages
        for (queue, throttle), line in self.lines.items():
            if queue == name and self.rooms.get(throttle) == 1:
                passed = {
                    key for key, seqs in chosen.items() if any(messages[seq].throttle == throttle for seq in seqs)
                }
                newcomers = {key for key in passed - line if wanted[key] <= {"", throttle}}
                waited = {key for key in line if throttle in wanted.get(key, ())}
                assert not newcomers or waited <= chosen.keys(), "nobody overtakes"

    def check_order(self, queue: Queue, waiting: list[int], chosen: set[int], held_up: set[str]) -> None:
        """The first of the key, by priority and age, but for those that are held up; and those stay in order."""
        skipped: set[str] = set()
        for seq in waiting[: max(waiting.index(seq) for seq in chosen) + 1]:
            message = queue.messages[seq]
            throttle = message.throttle if message.throttled else ""
            if seq in chosen:
                assert throttle not in skipped
            else:
                assert throttle in held_up
                skipped.add(throttle)

    def check_moves(self, before: dict[int, State], events: dict[int, str]) -> None:
        """Every message that moved did so by one legal event, or arrived and was delivered at once. An ack that is sent
        again looks for it wherever it may have moved to.
        """
        was_in = self.queue_of
        after = self.where()
        for seq in was_in.keys() & self.queue_of.keys():
            known = [each.name for each in whereabouts(self.driver.state, self.driver.queue(was_in[seq]))]
            assert self.queue_of[seq] in known
        for seq in before.keys() | after.keys():
            old, new = before.get(seq, State.NONE), after.get(seq, State.NONE)
            if seq in events:
                state = old
                for event in events[seq].split(", "):
                    state = TRANSITIONS[state, event]
                assert state is new, (old, events[seq], new)
            else:
                assert old is new

    @invariant()
    def what_was_acked_is_nowhere(self) -> None:
        assert self.done.isdisjoint(self.driver.places())
        assert all(self.done.isdisjoint(queue.messages) for queue in self.queues.values())

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.memory_is_as_the_model_says()
        self.store_is_as_the_model_says()
        self.it_wakes_up_in_time()

    def memory_is_as_the_model_says(self) -> None:
        assert self.driver.state.queues.keys() == self.queues.keys()
        for name, queue in self.queues.items():
            state = self.driver.state.queues[name]
            places = {seq: place_of(message) for seq, message in queue.messages.items()}
            assert {seq: readable(place) for seq, place in messages_of(state).items()} == places
            died = name.endswith(DEAD)
            attempts = {seq: message.attempts for seq, message in queue.messages.items() if message.attempts or died}
            assert dict(state.attempts) == attempts
            assert state.capacity.messages == len(queue.messages)
            assert state.capacity.bytes == (queue.bytes if queue.max_bytes else 0)
            assert (state.capacity.limits is not None) == queue.limited
            assert state.large <= queue.messages.keys()
            assert state.record.paused == queue.paused
            waiting = {seq: one for seq, one in queue.messages.items() if one.state is State.READY}
            assert state.ready == sum(not message.suspicion for message in waiting.values())
            assert {seq for seq, _, _ in state.suspects.all()} == {seq for seq in waiting if waiting[seq].suspicion}
            assert state.suspicion == {seq: one.suspicion for seq, one in queue.messages.items() if one.suspicion}
            assert {one.number for one in state.consumers.all()} == {one.consumer.number for one in queue.consumers}
            for one in queue.consumers:
                mine = sum(message.holder is one for message in queue.messages.values())
                assert one.consumer.in_flight == mine <= one.consumer.max_in_flight
            live = {key for key, (_, ends) in state.dedup._by_key.items() if ends > self.driver.now}
            assert live == {key for key, (_, ends) in queue.dedup.items() if ends > self.driver.now}
            for key in {message.key for message in queue.messages.values()}:
                count = sum(message.key == key for message in queue.messages.values())
                assert state.keys[key].live == count
        self.throttles_are_as_the_model_says()
        assert {name: one.last for name, one in self.producers.items()} == {
            name: self.driver.state.producers.last(name)[1] for name in self.driver.state.producers._last
        }

    def throttles_are_as_the_model_says(self) -> None:
        throttles, now = self.driver.state.throttles, self.driver.now
        assert throttles.limits() == {key: bucket.limit for key, bucket in self.buckets.items()}
        for key in (f"{THROTTLE}:t", f"{THROTTLE}:u"):
            assert throttles.find(key).in_flight == self.in_flight(key)
        for key, bucket in self.buckets.items():
            assert throttles.find(key).room(now) == bucket.room(now, self.in_flight(key))
        for name, queue in self.queues.items():
            state = self.driver.state.queues[name]
            lanes = [lane for key in state.keys.values() for lane in key.lanes.values()]
            lanes += [lane for key in state.suspects._keys.values() for lane in key.lanes.values()]
            found = {seq: [one.name for one in lane.throttles_of(seq)] for lane in lanes for seq in lane.waiting()}
            assert found == {
                seq: [message.throttle] * message.throttled
                for seq, message in queue.messages.items()
                if message.state is State.READY
            }
            waiting = {(one.key, one.throttle) for one in queue.messages.values() if is_ready(one) and one.throttled}
            for line in state.drr.lines.all():
                assert {(key.name, line.throttle.name) for key in line.keys} <= waiting, "nobody waits for nothing"

    def store_is_as_the_model_says(self) -> None:
        stored = self.driver.store.dump()
        messages = {seq: message for queue in self.queues.values() for seq, message in queue.messages.items()}
        found = {}
        for key, value in stored[Family.MESSAGES].items():
            head = codec.head_of(value)
            body = value[len(head) :]
            lane, seq = keys.read_message(key)
            found[seq] = (*keys.read_lane(keys.joined(lane)), *codec.read_head(head), body)
        assert found == {
            seq: (one.queue, one.key, one.priority, one.weight, 1, (one.throttle,) * bool(one.throttle), one.body)
            for seq, one in messages.items()
        }
        kept = {
            (one.queue, seq, number)
            for seq, one in messages.items()
            for number in (
                *range(max(one.attempts - HISTORY, 0) + 1, one.attempts + 1),
                *[0] * one.queue.endswith(DEAD),
            )
        }
        assert {keys.read_attempt(key) for key in stored[Family.ATTEMPTS]} == kept
        assert {keys.read_scheduled(key) for key in stored[Family.SCHEDULED]} == {
            (one.due, one.queue, seq) for seq, one in messages.items() if one.state is State.DELAYED
        }
        self.check_stored_leases(stored, messages)
        self.check_stored_dedup(stored[Family.DEDUP])
        assert {codec.read_queue(value).name for value in stored[Family.QUEUES].values()} == self.queues.keys()

    def check_stored_leases(self, stored: dict[Family, dict[bytes, bytes]], messages: dict[int, Message]) -> None:
        leases: dict[int, tuple[str, int]] = {}
        expiry = set()
        for key, value in sorted(stored[Family.LEASES].items(), key=lambda item: keys.read_grant(item[0])[1]):
            name, number = keys.read_grant(key)
            record = codec.read_grant(value)
            expiry.add(keys.grant_expiry(record.expires_at, name, number))
            holds = False
            for seq in record.members:
                one = messages.get(seq)
                if one is not None and one.queue == name and one.attempts == record.attempts.get(seq, 0):
                    leases[seq] = (token_text(record.token), record.expires_at)
                    holds = True
            assert holds, "a grant that holds nothing has no record"
        assert leases == {
            seq: (one.token, one.expires_at) for seq, one in messages.items() if one.state is State.LEASED
        }
        assert expiry == set(stored[Family.LEASE_EXPIRY])

    def check_stored_dedup(self, rows: dict[bytes, bytes]) -> None:
        batches: dict[str, set[int]] = defaultdict(set)
        dedup: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        for key, value in rows.items():
            if key.startswith(keys.PRODUCER_MARK):
                producer, sequence = keys.read_producer_batch(key)
                batches[producer].add(sequence)
            else:
                name, dedup_key = keys.read_dedup(key)
                dedup[name][dedup_key] = codec.read_dedup(value)
        assert batches == {name: set(one.answers) for name, one in self.producers.items()}
        assert dedup == {name: queue.dedup for name, queue in self.queues.items() if queue.dedup}

    def it_wakes_up_in_time(self) -> None:
        now, engine = self.driver.now, self.driver.engine
        wake = now if engine.has_work(now) else engine.next_wakeup()
        wanted = [message.due for queue in self.queues.values() for message in queue.messages.values() if message.due]
        for queue in self.queues.values():
            leased = [one for one in queue.messages.values() if one.state is State.LEASED]
            wanted += [message.expires_at for message in leased]
            if not queue.paused and any(one.consumer.credit > 0 for one in queue.consumers):
                ready = [queue.messages[seq] for seqs in ready_of(queue).values() for seq in seqs]
                wanted += [at for message in ready if (at := self.passes_at(message)) is not None]
        if self.pending:
            wanted.append(now)
        if wanted:
            assert wake is not None
            assert wake <= max(min(wanted), self.resting_until, self.put_off_until, now)
        if any(pending.what not in UNASKED for pending in self.pending) and now >= self.put_off_until:
            assert engine.has_work(now), "a command that somebody waits for is not put off"

    def passes_at(self, message: Message) -> int | None:
        """When its throttle lets a message pass, if that is a matter of time."""
        bucket = self.buckets.get(message.throttle) if message.throttled else None
        now = self.driver.now
        return now if bucket is None else bucket.ready_at(now, self.in_flight(message.throttle))

    # Small things.

    def submit(self, what: str, args: tuple[Any, ...], make: Any) -> None:
        self.pending.append(Pending(what, args, self.driver.submit(make)))

    def of_next_tick(self) -> tuple[list[Pending], list[Pending]]:
        """Commands about queues have a tick to themselves."""
        if self.pending and self.pending[0].what in ALONE:
            return self.pending[:1], self.pending[1:]
        count = next((at for at, one in enumerate(self.pending) if one.what in ALONE), len(self.pending))
        return self.pending[:count], self.pending[count:]

    def where(self) -> dict[int, State]:
        """The place of every message, as the broker has it."""
        self.holders = {
            seq: message.holder for queue in self.queues.values() for seq, message in queue.messages.items()
        }
        places = {name: messages_of(queue) for name, queue in self.driver.state.queues.items()}
        self.queue_of = {seq: name for name, messages in places.items() for seq in messages}
        return {seq: State(place) for messages in places.values() for seq, (place, *_) in messages.items()}

    def next_body(self) -> bytes:
        self.body += 1
        return b"%d" % self.body

    def to_incoming(self, spec: Spec, body: bytes) -> Any:
        name, key, weight, priority, delay_ms, dedup_key, throttle, wrong = spec
        headers = {}
        if key:
            headers[FAIRNESS] = key
        if weight:
            headers[WEIGHT] = weight
        if throttle:
            headers[THROTTLE] = throttle
        if wrong == "headers":
            headers |= {"h1": "", "h2": "", "h3": "", "h4": ""}
        if wrong == "key":
            headers[FAIRNESS] = "wider€"
        return incoming(
            name,
            body,
            headers=headers,
            payload_bytes=9 if wrong == "payload" else len(body),
            priority=priority,
            delay_ms=delay_ms,
            dedup_key=dedup_key,
        )

    def groups(self, picks: list[int], how: str, old: int) -> list[tuple[str, list[int], str]]:
        """Messages to settle, late ones first, each with the token of its lease, none, or one that does not fit."""
        found = []
        leased = [
            (name, seq)
            for name, queue in self.queues.items()
            for seq, message in queue.messages.items()
            if message.state is State.LEASED
        ]
        for pick in picks:
            pool = leased if leased and pick % 8 else self.known_ids
            name, seq = pool[-1 - pick % len(pool)]
            message = self.queues[name].messages.get(seq) if name in self.queues else None
            token = message.token if message is not None and how == "right" else ""
            if how == "wrong":
                token = self.old_tokens[old % len(self.old_tokens)]
            found.append((name, [seq], token))
        if found and all(group[0] == found[0][0] and group[2] == found[0][2] for group in found):
            return [(found[0][0], [seq for _, seqs, _ in found for seq in seqs], found[0][2])]
        return found


def digest_of_specs(batch: list[Spec]) -> int:
    return crc32(repr(batch).encode())


def to_acks(driver: Driver, groups: list[Any]) -> list[AckGroup]:
    return [AckGroup(name, [driver.id(seq) for seq in seqs], token) for name, seqs, token in groups]


def to_nacks(driver: Driver, groups: list[Any]) -> list[Nack]:
    return [Nack(name, driver.id(seq), "", token, ms) for name, seqs, token, ms in groups for seq in seqs]


def to_extends(driver: Driver, groups: list[Any]) -> list[ExtendGroup]:
    return [ExtendGroup(name, [driver.id(seq) for seq in seqs], token, ms) for name, seqs, token, ms in groups]


def error_of(spec: Spec, queue_exists: bool) -> type[BrokerError] | None:
    """Why a message must be refused, the first reason that applies."""
    _, _, weight, priority, delay_ms, dedup_key, _, wrong = spec
    if not queue_exists:
        return QueueNotFound
    if wrong in {"payload", "headers"}:
        return LimitExceeded
    if delay_ms < 0 or not 0 <= priority <= 255:
        return InvalidArgument
    if dedup_key == "too-long":
        return LimitExceeded
    if wrong == "key" or weight in {"0", "two"}:
        return InvalidArgument
    return None


def ready_of(queue: Queue) -> dict[str, list[int]]:
    """What could be delivered of each key, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for seq, message in sorted(queue.messages.items(), key=lambda item: (item[1].priority, item[0])):
        if is_ready(message):
            found[message.key].append(seq)
    return found


def is_ready(message: Message) -> bool:
    """Whether it waits, and may be delivered together with others."""
    return message.state is State.READY and not message.suspicion


def suspects_of(queue: Queue) -> set[int]:
    """What waits to be delivered alone."""
    return {seq for seq, message in queue.messages.items() if message.suspicion and message.state is State.READY}


def was_handed(seq: int, message: Message) -> bool:
    """Whether the application of its consumer was handed a message, as far as the consumer has said so."""
    holder = message.holder
    if holder is None or holder.consumer.hands is None:
        return True
    return any((one.seq, one.token) == (seq, message.token) for one in holder.got[: holder.handed])


def place_of(message: Message) -> tuple[Any, ...]:
    head = (message.state.value, message.key, message.priority)
    if message.state is State.DELAYED:
        return (*head, message.due)
    return (*head, message.token, message.expires_at) if message.state is State.LEASED else head


def readable(place: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*place[:3], token_text(place[3]), place[4]) if place[0] == "leased" else place


def in_words(outcomes: list[Any]) -> list[Any]:
    """Outcomes in a form that compares: errors by type and text."""
    return [one if isinstance(one, int) else (type(one), str(one)) for one in outcomes]


def expect_error(pending: Pending, error: type[BrokerError]) -> None:
    (answer,) = pending.answers
    assert isinstance(answer, error), answer


def compare_failures(answers: list[Any], expected: Expected) -> None:
    (failures,) = answers
    assert [(one.queue, one.message_id) for one in failures] == [(name, message_id) for name, message_id, _ in expected]
    for one, (_, _, error) in zip(failures, expected, strict=True):
        assert isinstance(one.error, error)


def test_the_model_knows_of_places_that_are_kept_for_others() -> None:
    """A key has its turn before the one that a throttle has called, and the consumer's credit ends with that."""
    machine = BrokerMachine()
    machine.create_queue("b b")
    machine.set_limit("u", "max_in_flight=1", 2)
    for _ in range(2):
        machine.join("b b", 1, 0, False)
    for batch in ([("x", "u"), ("x", "u")], [("w", "")], [("y", "u"), ("y", "")]):
        machine.enqueue([("b b", key, "", 5, 0, "", throttle, "") for key, throttle in batch], "", 0, 2)
        machine.agrees_with_the_model()
    (first,) = machine.recipients[0].got
    machine.send_acks([("b b", [first.seq], first.token)], 2)
    machine.agrees_with_the_model()
    second = machine.recipients[0].got[-1]
    message = machine.queues["b b"].messages[second.seq]
    assert (message.key, message.throttle) == ("y", "")
    assert machine.in_flight(f"{THROTTLE}:u") == 0


def test_every_event_of_the_lifecycle_happens_here() -> None:
    assert {event for _, event in TRANSITIONS} == EVENTS


class DurableMachine(BrokerMachine):
    """The same on a store that keeps what is written; a crash closes it and opens it again."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__()

    def open_store(self) -> Storage:
        self.directory = Path(tempfile.mkdtemp(prefix="fila-model-"))
        return self.open_durable()

    def open_durable(self) -> Storage:
        return open_named(self.name, self.directory, write_buffer_bytes=1 << 20, block_cache_bytes=1 << 20)

    def reopen_store(self) -> Storage:
        self.driver.store.close()
        return self.open_durable()

    def teardown(self) -> None:
        self.driver.store.close()
        shutil.rmtree(self.directory)


class LateMachine(BrokerMachine):
    """The same with ticks that are in flight for a while. Clients go on meanwhile, time passes, and it may crash."""

    late = True

    def __init__(self) -> None:
        super().__init__()
        self.flight: Before | None = None
        self.stored: dict[Family, dict[bytes, bytes]] = {}
        self.snapshot: dict[str, Any] = {}
        self.later: list[Callable[[], None]] = []
        """What the model takes note of when the tick has landed"""

    @rule(ms=st.sampled_from([0, 0, 1, 999, 1500, 2_000, 2_000, 30_000, 30_000, 601_000]))
    def tick(self, ms: int) -> None:
        driver = self.driver
        driver.now += ms * MS
        if self.flight is not None:
            driver.tick()
            return
        snapshot = driver.snapshot()
        before = self.look_ahead()
        driver.tick()
        if driver.engine.in_flight:
            self.flight, self.stored, self.snapshot = before, driver.store.dump(), snapshot
        else:
            self.check_tick(before)

    def tick_on(self, count: int) -> None:
        for _ in range(count):
            self.land()
            self.tick(0)

    @rule()
    def land(self) -> None:
        before = self.flight
        if before is None:
            return
        assert all(pending.answers == [] for pending in before.ahead)
        now = self.driver.now
        self.driver.land()
        self.driver.now = before.now
        self.check_tick(before)
        self.driver.now = now
        self.has_landed(before)

    @precondition(lambda self: self.flight is not None)
    @rule(busy=st.booleans())
    def land_in_vain(self, busy: bool) -> None:
        """The write fails late, or has to be tried again."""
        before, driver = self.flight, self.driver
        assert before is not None
        rest = self.pending
        driver.engine._backoff.succeeded()  # how long it is waited for is tested by itself
        driver.land(StoreBusy("behind with its files") if busy else StoreFailed("no more room in here"))
        if driver.now == before.now and not self.later:
            assert driver.snapshot() == self.snapshot
        assert driver.store.dump() == self.stored
        assert all(len(one.got) == before.handed.get(id(one), 0) for one in self.recipients)
        if busy:
            assert all(pending.answers == [] for pending in before.ahead)
            kept = before.ahead
            for pending in kept:
                pending.came = before.due_by
            self.put_off_until = driver.now + STALL_PAUSE
        else:
            kept = [one for one in before.ahead if one.what in UNASKED]
            for pending in before.ahead:
                if pending.what not in UNASKED:
                    (answer,) = pending.answers
                    assert isinstance(answer, StoreFailed)
            for pending in kept:
                pending.came = next((one.came for one in rest if one.came), 0)
            self.resting_until = driver.now + RETRY_AFTER_FAILURE
        self.pending = kept + rest
        if before.rested and not before.alone:
            now, driver.now = driver.now, before.now
            self.note_sweep()
            driver.now = now
        self.has_landed(before)

    def has_landed(self, before: Before) -> None:
        self.flight = None
        for note in self.later:
            note()
        self.later.clear()
        for pending in self.pending:
            pending.came = pending.came or before.now

    def find(self, name: str) -> list[Location]:
        if self.flight is None:
            return super().find(name)
        known = name in self.driver.state.queues
        return (self.driver.find(name) if known else []) or [Location(1, "x", 5, State.READY, 0)]

    def note_joined(self, recipient: Recipient) -> None:
        if self.flight is None:
            super().note_joined(recipient)
        else:
            self.later.append(lambda: self.came_in_flight(recipient))

    def came_in_flight(self, recipient: Recipient) -> None:
        if recipient.queue in self.queues:
            super().note_joined(recipient)
        else:
            assert isinstance(recipient.ended, QueueNotFound)

    def note_left(self, recipient: Recipient, parting: Parting) -> None:
        if self.flight is None:
            super().note_left(recipient, parting)
        else:
            self.later.append(lambda: BrokerMachine.note_left(self, recipient, parting))

    def note_handed(self, recipient: Recipient, count: int) -> None:
        """What was said after a tick was planned changes nothing of it, and the model looks when it has landed."""
        self.land()
        super().note_handed(recipient, count)

    @rule(ms=st.sampled_from([0, 0, 1, 999]))
    def tick_that_is_put_off(self, ms: int) -> None:
        self.land()
        self.driver.committer.prompt = True
        super().tick_that_is_put_off(ms)
        self.driver.committer.prompt = False

    @rule(ms=st.sampled_from([0, 0, 1, 999, 30_000]))
    def tick_that_cannot_write(self, ms: int) -> None:
        self.land()
        self.driver.committer.prompt = True
        super().tick_that_cannot_write(ms)
        self.driver.committer.prompt = False

    @rule(back_ms=st.sampled_from([0, 0, 900]))
    def crash(self, back_ms: int) -> None:
        """What was in flight is not in the store. That it is, and nobody was told, is a crash after a landing."""
        self.flight = None
        self.later.clear()
        super().crash(back_ms)

    @invariant()
    def agrees_with_the_model(self) -> None:
        if self.flight is None:
            super().agrees_with_the_model()
        else:
            assert self.driver.store.dump() == self.stored
            assert not self.driver.engine.has_work(self.driver.now)


# They take half a minute on a quiet machine, and as long as it likes on a busy one.
TestInMemory = pytest.mark.timeout(900)(BrokerMachine.TestCase)
TestInMemory.settings = settings(max_examples=300, stateful_step_count=40)
TestInFlight = pytest.mark.timeout(900)(LateMachine.TestCase)
TestInFlight.settings = settings(max_examples=200, stateful_step_count=40)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", DURABLE)
def test_on_disk(name: str) -> None:
    on_disk = settings(max_examples=25, stateful_step_count=30)
    run_state_machine_as_test(lambda: DurableMachine(name), settings=on_disk)
