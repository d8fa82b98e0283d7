"""A broker without a network, driven by hand: virtual time, one tick at a time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

from fila.broker.commands import (
    AckGroup,
    Command,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueResult,
    ExtendGroup,
    Failure,
    Incoming,
    Location,
    Nack,
    Parting,
    Produced,
    Purge,
    Redrive,
    Settle,
    Swept,
    UpdateQueue,
)
from fila.broker.commit import Done, LocalCommitter
from fila.broker.engine import Engine
from fila.broker.grants import token_text
from fila.broker.journal import Journal
from fila.broker.loading import read_some
from fila.broker.queue import QueueState
from fila.broker.recovery import recover
from fila.broker.scripts import Scripting
from fila.broker.search import Query, Search, finish
from fila.broker.state import BrokerState
from fila.broker.stats import KeyOrder, QueueStats, look
from fila.config import AuditConfig, JournalConfig, LimitsConfig, LuaConfig, SchedulerConfig
from fila.core.consumers import Consumer
from fila.core.errors import BrokerError, StoreBusy, StoreFailed, StoreFull
from fila.core.hands import Hands
from fila.core.leases import Grant
from fila.storage.audit import AuditRecord
from fila.storage.base import Batch, Family, Storage, StoreSizes
from fila.storage.memory import MemoryStorage
from fila.storage.records import QueueRecord

MS = 1_000_000
SECOND = 1000 * MS
START = 1_700_000_000 * SECOND
NODE = 0x2A


class WatchedStore:
    """A store that counts its writes and refuses them on demand."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.writes = 0
        self.refused = 0
        self.failing = False
        self.full = False
        self.stalls = 0
        """So many writes come too early"""
        self.on_write: Callable[[Batch], None] = lambda _: None

    def write(self, batch: Batch) -> None:
        self.on_write(batch)
        if self.failing:
            self.refused += 1
            raise StoreFailed("no more room in here")
        if self.stalls:
            self.stalls -= 1
            raise StoreBusy("behind with its files")
        self.inner.write(batch)
        self.writes += 1

    def refusal(self) -> StoreFull | None:
        return StoreFull("the store is full") if self.full else self.inner.refusal()

    def free_bytes(self) -> int | None:
        return self.inner.free_bytes()

    def sizes(self) -> StoreSizes | None:
        return self.inner.sizes()

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self.inner.get(family, key)

    def get_many(self, family: Family, keys: Any) -> list[bytes | None]:
        return self.inner.get_many(family, keys)

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Any:
        return self.inner.scan(family, start, end)

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        return self.inner.has_any(family, start, end)

    def close(self) -> None:
        self.inner.close()

    def dump(self) -> dict[Family, dict[bytes, bytes]]:
        """Everything in it."""
        return {family: dict(self.inner.scan(family)) for family in Family}


class LateCommitter:
    """Writes when it is told to, or at once if it is `prompt`. Until then nothing is in the store."""

    def __init__(self, store: WatchedStore) -> None:
        self._store = store
        self.prompt = False
        self._waiting: tuple[Batch, Done] | None = None

    def write(self, batch: Batch, done: Done) -> None:
        assert self._waiting is None, "one at a time"
        self._waiting = (batch, done)
        if self.prompt:
            self.finish()

    def forget(self) -> None:
        """A crash: what was not written never is."""
        self._waiting = None

    def finish(self, error: StoreFailed | None = None) -> None:
        """Write, or refuse with an error."""
        assert self._waiting is not None
        (batch, done), self._waiting = self._waiting, None
        if error is None:
            LocalCommitter(self._store).write(batch, done)
        else:
            done(error)


@dataclass(frozen=True)
class Delivered:
    """One message as a consumer was handed it."""

    seq: int
    id: str
    token: str


@dataclass
class Recipient:
    """A consumer that keeps what it is handed."""

    queue: str
    consumer: Consumer
    got: list[Delivered] = field(default_factory=list)
    ended: BrokerError | None = None
    handed: int = 0
    """How many of `got` it has said that its application was handed"""

    def hand(self, count: int = 1) -> None:
        """Say that so many more were handed."""
        assert self.consumer.hands is not None
        self.handed += count
        self.consumer.hands.report(self.handed)

    @property
    def seqs(self) -> list[int]:
        return [one.seq for one in self.got]

    def take(self) -> list[Delivered]:
        """What came since the last time."""
        taken, self.got = self.got, []
        return taken


def incoming(
    queue: str,
    body: bytes = b"",
    *,
    headers: Mapping[str, str] | None = None,
    payload_bytes: int | None = None,
    **rest: Any,
) -> Incoming:
    """A message as the server hands it in. The body stands for encoded headers and payload."""
    if payload_bytes is not None:
        return Incoming(queue, headers or {}, body, payload_bytes, **rest)
    return Incoming(queue, headers or {}, body, len(body), header_bytes=repr(headers or {}).encode(), **rest)


def digest_of(messages: Iterable[Incoming]) -> int:
    """What tells a batch from others, as the server would say it."""
    return crc32(repr([(message.queue, message.body) for message in messages]).encode())


def queue_record(name: str, **settings: Any) -> QueueRecord:
    defaults = {"created_at": START, "visibility_timeout_ms": 30_000, "quantum": 4, "dedup_window_ms": 60_000}
    return QueueRecord(name=name, **(defaults | settings))


class Driver:
    """An engine on a store, with a clock that moves only when told to."""

    def __init__(
        self,
        store: Storage | None = None,
        *,
        limits: LimitsConfig | None = None,
        journal: JournalConfig | None = None,
        scripting: Scripting | None = None,
        audit: AuditConfig | None = None,
        background: bool = False,
        late: bool = False,
        **scheduler: int,
    ) -> None:
        """In the background, messages of before a restart are read while the engine ticks. When it is `late`, a tick
        that writes is in flight until `land`.
        """
        self.store = WatchedStore(store or MemoryStorage())
        self.limits = limits or LimitsConfig()
        self.scripting = scripting or Scripting(LuaConfig(tick_ms=1000, max_time_percent=100))
        self.journaling = journal or JournalConfig(enabled=True)
        self.auditing = audit
        self.background = background
        self.scheduler = SchedulerConfig(**scheduler)
        self.now = START
        self.committer = LateCommitter(self.store) if late else None
        self._numbers = 0
        self.restart()

    def restart(self, store: Storage | None = None) -> None:
        """What a crash leaves: the store alone."""
        if store is not None:
            self.store.inner = store
        self.state: BrokerState = recover(
            self.store, NODE, self.limits, self.scripting, self.auditing, background=self.background
        )
        self.journal = Journal(self.store, self.journaling)
        if self.committer is not None:
            self.committer.forget()
        self.engine = Engine(self.state, self.store, self.scheduler, self.journal, self.committer)

    def read_all(self) -> None:
        """Read all messages of before the restart, some at a time."""
        while self.state.loading:
            self.state.wakeups.want(read_some(self.state.loading))

    def tick(self) -> None:
        self.engine.tick(self.now)

    def land(self, error: StoreFailed | None = None) -> None:
        """Have the tick in flight written, or refused with an error."""
        assert self.committer is not None
        assert self.engine.in_flight
        self.committer.finish(error)
        assert self.engine.land(self.now)
        assert not self.engine.in_flight

    def settle_down(self) -> None:
        """Tick until nothing more happens at this time."""
        for _ in range(1000):
            self.tick()
            if not self.engine.has_work(self.now):
                return
        raise AssertionError("the engine always has more work")

    def advance(self, ms: float) -> None:
        """Let time pass, then do what is due."""
        self.now += int(ms * MS)
        self.settle_down()

    def submit(self, make: Callable[[Callable[[Any], None]], Command]) -> list[Any]:
        """Hand a command in; its answer appears in the returned list."""
        answers: list[Any] = []
        self.engine.submit(make(answers.append))
        return answers

    def ask(self, make: Callable[[Callable[[Any], None]], Command]) -> Any:
        """Hand a command in and tick; the answer. Raises it when it is an error."""
        answers = self.submit(make)
        self.tick()
        (answer,) = answers
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    def audit(self, start: int = 1) -> list[AuditRecord]:
        """Entries of the audit."""
        return [record for _, record in self.state.audit.read(self.store, start, self.state.audit.next_entry)]

    def create(self, name: str, **settings: Any) -> QueueState:
        self.ask(lambda reply: CreateQueue(queue_record(name, **settings), reply))
        return self.state.queues[name]

    def delete(self, name: str, *, force: bool = False) -> int:
        count: int = self.ask(lambda reply: DeleteQueue(name, reply, force))
        return count

    def enqueue(
        self, *messages: Incoming, producer: str = "", sequence: int = 0, epoch: int = 0, traced: bool = False
    ) -> list[EnqueueResult]:
        produced = Produced(producer, sequence, digest_of(messages), epoch)
        return list(self.ask(lambda reply: Enqueue(list(messages), reply, produced, traced)))

    def send(self, queue: str, body: bytes = b"", **rest: Any) -> int:
        """Enqueue one message that is accepted; its sequence number."""
        (outcome,) = self.enqueue(incoming(queue, body, **rest))
        if isinstance(outcome, BrokerError):
            raise outcome
        return outcome

    def find(self, queue: str, *, most: int = 1000, **query: Any) -> list[Location]:
        """Messages of a queue that fit, in order."""
        search = Search(self.store, self.queue(queue), Query(**query))
        return [match.location for match in finish(search.next(most, 1 << 30))]

    def redrive(self, queue: str, **query: Any) -> int:
        """Send dead letters back; how many."""
        return self._sweep(Redrive, queue, query)

    def purge(self, queue: str, **query: Any) -> int:
        """Remove messages; how many."""
        return self._sweep(Purge, queue, query)

    def _sweep(self, command: type[Redrive | Purge], queue: str, query: dict[str, Any]) -> int:
        locations, done = self.find(queue, **query), 0
        while locations:
            swept: Swept = self.ask(partial(command, queue, locations))
            locations = [location for location in locations if location.seq > swept.last]
            done += swept.done
        return done

    def pause(self, queue: str, *, paused: bool = True) -> None:
        self.ask(lambda reply: UpdateQueue(queue, {"paused": paused}, reply))

    def join(self, queue: str, max_in_flight: int = 100, *, reports: bool = False) -> Recipient:
        """A consumer, which says what it has handed to its application if it `reports`."""
        self._numbers += 1
        hands = Hands() if reports else None

        def deliver(grant: Grant) -> None:
            token = token_text(grant.token)
            recipient.got += [Delivered(seq, self.id(seq), token) for seq in grant.members]
            if hands is not None:
                hands.send(grant.token, list(grant.members))

        def end(error: BrokerError) -> None:
            recipient.ended = error

        recipient = Recipient(queue, Consumer(self._numbers, max_in_flight, deliver, end, hands))
        self.engine.join(queue, recipient.consumer)
        return recipient

    def leave(self, recipient: Recipient, parting: Parting = Parting.LEFT, unsent: Iterable[int] = ()) -> None:
        self.engine.leave(recipient.queue, recipient.consumer, parting, lambda: frozenset(unsent))

    def ack(self, queue: str, *ids: str, token: str = "") -> list[Failure]:
        failures: list[Failure] = self.ask(lambda reply: Settle(reply, acks=[AckGroup(queue, list(ids), token)]))
        return failures

    def nack(self, queue: str, message_id: str, *, token: str = "", delay_ms: int = 0) -> list[Failure]:
        nack = Nack(queue, message_id, "", token, delay_ms)
        failures: list[Failure] = self.ask(lambda reply: Settle(reply, nacks=[nack]))
        return failures

    def extend(self, queue: str, *ids: str, token: str = "", extend_ms: int = 0) -> list[Failure]:
        group = ExtendGroup(queue, list(ids), token, extend_ms)
        failures: list[Failure] = self.ask(lambda reply: Settle(reply, extends=[group]))
        return failures

    def id(self, seq: int) -> str:
        return self.state.ids.text(seq)

    def queue(self, name: str) -> QueueState:
        return self.state.queues[name]

    def places(self) -> dict[int, str]:
        """Where each message is."""
        return {seq: place for queue in self.state.queues.values() for seq, (place, *_) in messages_of(queue).items()}

    def snapshot(self) -> dict[str, Any]:
        """Everything in memory that a failed write must leave as it was."""
        return {
            "queues": {name: snapshot_of(queue, self.now) for name, queue in self.state.queues.items()},
            "journal": (self.journal.first_entry, self.journal.next_entry, self.journal.bytes),
            "producers": {name: last for name, (last, _) in self.state.producers._last.items()},
            "throttles": {
                throttle.name: (throttle.limit, throttle.figures(self.now))
                for throttle in self.state.throttles.limited()
            },
        }


def messages_of(queue: QueueState) -> dict[int, tuple[Any, ...]]:
    """Each message of a queue with its place: ("ready", key, priority), ("delayed", key, priority, due) or
    ("leased", key, priority, token, expires at). Fails when a message is in two places."""
    found: list[tuple[int, tuple[Any, ...]]] = []
    for key in queue.keys.values():
        for lane in key.lanes.values():
            found += [(seq, ("ready", key.name, lane.priority)) for seq in lane.waiting()]
    found += [(seq, ("ready", lane.key.name, lane.priority)) for seq, lane, _ in queue.suspects.all()]
    for due, seq, lane, _ in queue.schedule.all():
        found.append((seq, ("delayed", lane.key.name, lane.priority, due)))
    for grant in queue.leases.grants():
        for lane, seq, _ in grant.members.values():
            place = ("leased", lane.key.name, lane.priority, grant.token, grant.expires_at)
            found.append((seq, place))
            assert queue.leases.find(seq) is grant
    places = dict(found)
    assert len(places) == len(found), "a message is in two places"
    return places


def stats_of(queue: QueueState, limit: int = 20, now: int = START, **order: Any) -> QueueStats:
    *_, told = look(queue, KeyOrder(limit=limit, **order), now)
    assert told is not None
    return told


LEFT_OUT = {
    "dead_letters",  # a queue of its own, or set with the record
    "hooks",  # set with the record, as the next two
    "retry",
    "visibility_ns",
    "prefix",  # its name
    "throttles",  # those of the broker
    "lane_cache",  # may know too much
    "ledger",  # statistics, which may have seen whether there was a consumer
}
"""Of the parts of a queue, those that a failed write need not leave as they were (the head of `tick.py`)"""


def snapshot_of(queue: QueueState, now: int) -> dict[str, Any]:
    """Every part of a queue by its name, but for those that are left out."""
    drrs = (queue.drr, queue.suspects.drr)
    told = {
        "attempts": dict(queue.attempts),
        "capacity": (queue.capacity.messages, queue.capacity.bytes, queue.capacity.staged, queue.capacity.staged_bytes),
        "consumers": [(one.number, one.in_flight, one.max_in_flight) for one in queue.consumers.all()],
        "cost_pace": queue.cost_pace.per_second(now),
        "costly": queue.costly,
        "counters": asdict(queue.counters),
        "dedup": {key: entry for key, entry in queue.dedup._by_key.items() if entry[1] > now},
        "departed": dict(queue.departed or {}),
        "drained": queue.drained.all(),
        "drr": [(key.name, key.deficit, key.ring, key.ready, key.live) for key in queue.drr.order()],
        "groups": {
            group.name: (group.epoch, group.floor, group.last, [(c.number, c.state(now), c.held) for c in claims])
            for group in queue.groups.values()
            for claims in [group.claims.values()]
        },
        "keys": {key.name: (key.weight, key.live, key.ready, key.delivered) for key in queue.keys.values()},
        "large": set(queue.large),
        "leases": {seq: grant.consumer for grant in queue.leases.grants() for seq in grant.members},
        "pace": queue.pace.per_second(now),
        "ready": queue.ready,
        "record": queue.record,
        "schedule": messages_of(queue),
        "stuck": queue.stuck,
        "suspects": [(key.name, key.deficit, key.ring, key.ready) for key in queue.suspects.drr.order()],
        "suspicion": dict(queue.suspicion),
    }
    assert told.keys() | LEFT_OUT == set(QueueState.__slots__), "a part of a queue is here, or named as left out"
    told["parked"] = [drr.parked for drr in drrs]
    told["lines"] = [
        {
            line.throttle.name: (sorted((ticket, key.name) for key, (ticket, _) in line.keys.items()), line.called)
            for line in drr.lines.all()
        }
        for drr in drrs
    ]
    return told


def ids_of(delivered: Iterable[Delivered]) -> list[str]:
    return [one.id for one in delivered]
