"""What the broker tells about one queue: figures, waits, keys, consumers, throttles, hooks."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from google.protobuf.message import Message

from fila.client.admin_service import AdminCalls, moment
from fila.client.arguments import chosen, made
from fila.client.enums import name_of
from fila.client.queues import QueueConfig, QueueInfo, config_of, info_of
from fila.v1 import admin_pb2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WaitStats:
    """How long messages waited before delivery, and for what, from a sample of deliveries."""

    #: How many deliveries the sample holds.
    sampled: int
    mean_seconds: float
    #: Percentiles, exact to a factor of two.
    p50_seconds: float
    p99_seconds: float
    #: The mean by cause: delay, retry, no_consumer, throttle, fair_share. They add up to `mean_seconds`.
    parts: dict[str, float]
    #: The cause "throttle" by throttle key.
    throttles: dict[str, float]


@dataclass(frozen=True, slots=True)
class KeyStats:
    """One fairness key of a queue."""

    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int
    #: Its fraction of all deliveries of the queue since the server started.
    share: float
    #: The fraction that its weight entitles it to now: its weight divided by the weights of all keys that have messages
    #: waiting; 0 when it has none.
    entitlement: float
    #: When its oldest ready message was enqueued.
    oldest_at: datetime | None
    #: Whether throttles hold up all its messages.
    parked: bool
    #: None when the sample holds none of its deliveries.
    waits: WaitStats | None


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """One consumer of a queue."""

    number: int
    in_flight: int
    max_in_flight: int
    #: How many more messages the broker may send to it now.
    credit: int


@dataclass(frozen=True, slots=True)
class GroupStats:
    """One group that reads the queue in claims."""

    group: str
    epoch: int
    #: All claims up to this one are acked.
    floor: int
    #: The last claim that was made.
    last: int
    #: Claims that are neither acked nor expired, and the messages in them.
    open_claims: int
    held: int
    #: When the first open claim expires.
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ThrottleStats:
    """One throttle key of messages of a queue."""

    key: str
    #: The limit as it was set; empty when it was removed.
    limit: str
    #: None when the limit has no rate.
    tokens: float | None
    in_flight: int
    #: Since the server started: messages that passed, and how often the limit held a fairness key up.
    passed: int
    held_up: int
    #: Fairness keys of this queue that wait for tokens or a free slot.
    parked_keys: int


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """What happened to a queue since the server started."""

    enqueued: int
    delivered: int
    acked: int
    nacked: int
    expired: int
    #: Returned to the queue because their consumer left.
    returned: int
    #: Moved to the dead-letter queue.
    dead_lettered: int
    #: Moved from a dead-letter queue back to its queue; counted in both.
    redriven: int
    purged: int
    #: Refused because the queue was full.
    refused: int = 0
    #: Moved to the dead-letter queue because the queue was full, or removed from a full dead-letter queue.
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class CapacityStats:
    """What a queue holds, and what it may hold. A limit of 0 means none."""

    #: Ready, delayed and leased messages.
    messages: int = 0
    #: Of their headers and payloads; 0 when bytes are not limited.
    bytes: int = 0
    #: Staged for transactions that are not enqueued yet.
    staged_messages: int = 0
    staged_bytes: int = 0
    #: The limits that apply: the lower ones of the queue's own and its owner's.
    max_depth: int = 0
    max_bytes: int = 0
    #: The principal that created the queue; empty when that is not known.
    owner: str = ""

    @property
    def used(self) -> float | None:
        """The part of the limit that is used, of the one that is nearer; None when there is none."""
        parts = ((self.messages, self.max_depth), (self.bytes, self.max_bytes))
        return max((held / limit for held, limit in parts if limit), default=None)


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """The fair scheduler (DRR) of a queue."""

    quantum: int
    round: int
    active_keys: int


@dataclass(frozen=True, slots=True)
class HookStats:
    """One hook of a queue. Counts begin when its script was set or the server started."""

    #: "on_enqueue" or "on_failure"
    hook: str
    calls: int
    #: By cause: error, timeout, memory, bad_return.
    failures: Mapping[str, int]
    #: How often the circuit breaker opened after failures in a row, and how many messages took the defaults meanwhile.
    breaker_opened: int
    bypassed: int
    #: When the circuit breaker closes; None when it is closed.
    bypassed_until: datetime | None
    #: The text of the last failure, and its time.
    last_error: str
    last_error_at: datetime | None
    #: The total time of all calls.
    seconds: float


@dataclass(frozen=True, slots=True)
class QueueStats:
    """All figures of a queue."""

    summary: QueueInfo
    config: QueueConfig
    counters: QueueCounters
    scheduler: SchedulerStats
    created_at: datetime
    #: Messages that could be delivered now: they wait for their turn and for a consumer only.
    runnable: int
    #: When the oldest ready message was enqueued.
    oldest_at: datetime | None
    #: Mean of the last seconds.
    deliveries_per_second: float
    consumers: tuple[ConsumerStats, ...]
    groups: tuple[GroupStats, ...]
    throttles: tuple[ThrottleStats, ...]
    #: One page, in the order given by `sort`.
    keys: tuple[KeyStats, ...]
    #: The number of all fairness keys.
    total_keys: int
    waits: WaitStats
    #: The hooks that the queue's script defines.
    hooks: tuple[HookStats, ...] = ()
    #: Messages that wait until the queue's hooks have run.
    waiting_for_hooks: int = 0
    #: Why the broker cannot load the queue's script; empty when it can.
    script_error: str = ""
    #: How many of `counters.delivered` belong to fairness keys that the broker no longer remembers.
    forgotten_delivered: int = 0
    capacity: CapacityStats = CapacityStats()


class StatsCalls(AdminCalls):
    """The call for a queue's figures, as `AsyncClient` has it."""

    async def queue_stats(
        self, name: str, max_keys: int = 20, *, sort: str = "pending", offset: int = 0, key_prefix: str = ""
    ) -> QueueStats:
        """The figures of a queue, with a page of its fairness keys. Raises QueueNotFoundError.

        `sort` is "pending", "delivered", "weight" or "oldest", each with the largest first, or "name".
        """
        admin = self._admin()
        order = chosen("sort", admin_pb2.KeyOrder, sort)
        request = made(
            admin_pb2.GetStatsRequest, queue=name, max_keys=max_keys, sort=order, offset=offset, key_prefix=key_prefix
        )
        return _stats(await admin.call(admin.stub.GetStats, request))


def _stats(response: admin_pb2.GetStatsResponse) -> QueueStats:
    return QueueStats(
        summary=info_of(response.summary),
        config=config_of(response.config),
        counters=_same(QueueCounters, response.counters),
        scheduler=_same(SchedulerStats, response.scheduler),
        created_at=moment(response.created_at),
        runnable=response.runnable,
        oldest_at=moment(response.oldest_at) if response.HasField("oldest_at") else None,
        deliveries_per_second=response.deliveries_per_second,
        consumers=tuple(_same(ConsumerStats, one) for one in response.consumers),
        groups=tuple(
            _same(GroupStats, one, expires_at=moment(one.expires_at) if one.HasField("expires_at") else None)
            for one in response.groups
        ),
        throttles=tuple(
            _same(ThrottleStats, one, tokens=one.tokens if one.HasField("tokens") else None)
            for one in response.throttles
        ),
        keys=tuple(_key(key) for key in response.keys),
        total_keys=response.total_keys,
        waits=_waits(response.waits),
        hooks=tuple(_hook(one) for one in response.hooks),
        waiting_for_hooks=response.waiting_for_hooks,
        script_error=response.script_error,
        forgotten_delivered=response.forgotten_delivered,
        capacity=_same(CapacityStats, response.capacity),
    )


def _key(key: admin_pb2.KeyStats) -> KeyStats:
    return _same(
        KeyStats,
        key,
        oldest_at=moment(key.oldest_at) if key.HasField("oldest_at") else None,
        waits=_waits(key.waits) if key.HasField("waits") else None,
    )


def _waits(waits: admin_pb2.WaitStats) -> WaitStats:
    parts = {field.name: getattr(waits.parts, field.name) for field in waits.parts.DESCRIPTOR.fields}
    return _same(WaitStats, waits, parts=parts, throttles=dict(waits.throttles))


def _hook(one: admin_pb2.HookStats) -> HookStats:
    return _same(
        HookStats,
        one,
        hook=name_of(admin_pb2.Hook, one.hook),
        failures={name_of(admin_pb2.HookFailureCause, each.cause): each.count for each in one.failures},
        bypassed_until=moment(one.bypassed_until) if one.HasField("bypassed_until") else None,
        last_error_at=moment(one.last_error_at) if one.HasField("last_error_at") else None,
    )


def _same(target: type[T], source: Message, **converted: Any) -> T:
    """A dataclass filled from the fields of the same names; `converted` are those of another type."""
    names = (field.name for field in fields(target))  # type: ignore[arg-type]  # each of them is a dataclass
    return target(**{name: converted[name] if name in converted else getattr(source, name) for name in names})
