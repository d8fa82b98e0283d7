"""Administration: queues and the runtime configuration."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

from fila.client.arguments import known_names, made, several
from fila.client.connection import Connection
from fila.client.errors import ConfigNotFoundError, InvalidArgumentError, QueueAlreadyExistsError
from fila.client.hooks import Hooks
from fila.v1 import admin_pb2

if TYPE_CHECKING:
    from fila.v1.admin_pb2_grpc import FilaAdminAsyncStub


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue at a glance."""

    name: str
    #: Messages that wait to be delivered.
    depth: int
    #: Messages that consumers hold.
    in_flight: int
    #: Messages whose time has not come.
    delayed: int
    #: Fairness keys with something to deliver.
    active_keys: int
    consumers: int
    #: Where its dead letters go; empty for a dead-letter queue.
    dead_letter_queue: str
    #: Whether nothing is delivered.
    paused: bool


class QueueSettings(TypedDict, total=False):
    """What can be set of a queue. What is left out, or None, takes the broker's default or stays as it is."""

    #: How long a consumer may hold a message before it is delivered again.
    visibility_timeout_ms: int | None
    #: The header whose value is a message's fairness key; empty means none.
    fairness_header: str | None
    #: The header whose value is the weight of a message's fairness key.
    weight_header: str | None
    #: What a key of weight 1 may spend in one round of the scheduler.
    quantum: int | None
    dedup_window_ms: int | None
    #: Each of these headers that a message has makes a throttle key of it: "<header>:<value>".
    throttle_headers: Sequence[str] | None
    #: The header whose value is what delivering a message costs.
    cost_header: str | None
    #: A message that failed so often goes to the dead-letter queue; 0 means never.
    max_attempts: int | None
    #: How long a nacked message rests, and by how much longer each time.
    retry_delay_ms: int | None
    retry_backoff: float | None
    retry_max_delay_ms: int | None
    #: The part of the rest, 0 to 1, that is left to chance.
    retry_jitter: float | None
    #: Lua source of the hooks; empty means none.
    script: str | None
    #: The same as two, one for each hook, instead of `script`.
    on_enqueue: str | None
    on_failure: str | None
    script_timeout_ms: int | None
    script_memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """How a queue is set up, every default filled in. An empty header name means none."""

    visibility_timeout_ms: int
    fairness_header: str
    weight_header: str
    quantum: int
    dedup_window_ms: int
    throttle_headers: tuple[str, ...]
    cost_header: str
    max_attempts: int
    retry_delay_ms: int
    retry_backoff: float
    retry_max_delay_ms: int
    retry_jitter: float
    script: str
    script_timeout_ms: int
    script_memory_bytes: int


@dataclass(frozen=True, slots=True)
class WaitStats:
    """Where the waits of deliveries went, taken from a sample of them."""

    #: How many deliveries were looked at.
    sampled: int
    mean_seconds: float
    #: To a factor of two.
    p50_seconds: float
    p99_seconds: float
    #: The parts of the mean: delay, retry, no_consumer, throttle, fair_share. They sum up to it.
    parts: dict[str, float]
    #: The part "throttle" by throttle key.
    throttles: dict[str, float]


@dataclass(frozen=True, slots=True)
class KeyStats:
    """One fairness key of a queue."""

    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int
    #: Its part of all that the queue has delivered since the server started, and the part of what is delivered now that
    #: its weight entitles it to: of the weights of all keys that have messages waiting, 0 when it has none.
    share: float
    entitlement: float
    #: When its oldest message that is ready was enqueued.
    oldest_at: datetime | None
    #: Whether throttles hold up all that it has.
    parked: bool
    #: None when none of its deliveries was looked at.
    waits: WaitStats | None


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """One consumer of a queue."""

    number: int
    in_flight: int
    max_in_flight: int
    #: How many more it may be handed now.
    credit: int


@dataclass(frozen=True, slots=True)
class GroupStats:
    """One group that reads a queue in claims."""

    group: str
    epoch: int
    #: All claims up to this one are acked.
    floor: int
    #: The last claim that was made.
    last: int
    #: Claims that are neither acked nor expired, and the messages that they hold.
    open_claims: int
    held: int
    #: When the first of them expires.
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ThrottleStats:
    """One throttle key that messages of a queue wait for or are limited by."""

    key: str
    #: As set; empty when it has none any more.
    limit: str
    #: None when the limit has no rate.
    tokens: float | None
    in_flight: int
    #: Messages that went through, and how often it held a fairness key up, since the server started.
    passed: int
    held_up: int
    #: Fairness keys of this queue that wait for it.
    parked_keys: int


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """What happened to a queue since the server started."""

    enqueued: int
    delivered: int
    acked: int
    nacked: int
    expired: int
    #: Came back because their consumer went away.
    returned: int
    #: Went to the dead-letter queue.
    dead_lettered: int
    #: Went from a dead-letter queue back to its queue; counted in both.
    redriven: int
    purged: int


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """The scheduler of a queue."""

    quantum: int
    round: int
    active_keys: int


@dataclass(frozen=True, slots=True)
class HookStats:
    """One hook of a queue, since its script was set or the server started."""

    #: "on_enqueue" or "on_failure"
    hook: str
    calls: int
    #: By kind: error, timeout, memory, bad_return.
    failures: Mapping[str, int]
    #: How often it was bypassed for a while after failures in a row, and messages that took the defaults in that time.
    breaker_opened: int
    bypassed: int
    #: Until when it is bypassed now; None when it is not.
    bypassed_until: datetime | None
    #: What the last failure said, and when that was.
    last_error: str
    last_error_at: datetime | None
    #: The time of all calls together.
    seconds: float


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue in detail."""

    summary: QueueInfo
    config: QueueConfig
    counters: QueueCounters
    scheduler: SchedulerStats
    created_at: datetime
    #: Messages that nothing but their turn and the consumers hold up.
    runnable: int
    #: When the oldest message that is ready was enqueued.
    oldest_at: datetime | None
    #: Over the last seconds.
    deliveries_per_second: float
    consumers: tuple[ConsumerStats, ...]
    groups: tuple[GroupStats, ...]
    throttles: tuple[ThrottleStats, ...]
    #: In the order that was asked for.
    keys: tuple[KeyStats, ...]
    #: How many fairness keys there are, of which `keys` is a page.
    total_keys: int
    waits: WaitStats
    #: Those that the queue's script defines.
    hooks: tuple[HookStats, ...] = ()
    #: Messages of requests that wait until the queue's hooks have been asked.
    waiting_for_hooks: int = 0
    #: Why the script cannot be used since the server started; empty when it can.
    script_error: str = ""
    #: Deliveries of fairness keys that are no longer remembered, of `counters.delivered`.
    forgotten_delivered: int = 0


@dataclass(frozen=True, slots=True)
class EnqueueDecision:
    """What `on_enqueue` would decide about a message."""

    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    cost: int
    #: None leaves it as the producer says.
    priority: int | None
    delay_ms: int | None
    #: Why the safe defaults above stand instead of what the script wanted; empty if they do not.
    error: str


@dataclass(frozen=True, slots=True)
class FailureDecision:
    """What `on_failure` would decide about a message."""

    dead_letter: bool
    #: None leaves it as the consumer or the queue says.
    delay_ms: int | None
    error: str


@dataclass(frozen=True, slots=True)
class HookTrial:
    """What a script would decide about one message. None where it has no such hook."""

    #: Empty for a message that was made up.
    message_id: str
    on_enqueue: EnqueueDecision | None
    on_failure: FailureDecision | None


@dataclass(frozen=True, slots=True)
class WaitReason:
    """One thing that holds a message up."""

    #: leased, delayed, paused, no_consumer, no_credit, in_flight_cap, throttled, behind_own_key or turn.
    code: str
    text: str
    #: When it ends, if that is a matter of time.
    until: datetime | None
    #: The throttle key, fairness key or consumer that it is about.
    subject: str
    #: What an operator would change.
    setting: str
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message is still waiting."""

    message_id: str
    #: ready, delayed or leased.
    state: str
    fairness_key: str
    priority: int
    cost: int
    attempt_count: int
    throttle_keys: tuple[str, ...]
    #: In the order in which the message must pass them. None: it is delivered now.
    reasons: tuple[WaitReason, ...]
    #: How many deliveries of the queue come first, and whether that is counted or estimated.
    deliveries_ahead: int
    exact: bool
    #: It is not delivered earlier, unless settings change.
    not_before: datetime
    #: When it is delivered if all goes on as it does; None when that depends on somebody who is not there.
    estimated_at: datetime | None
    enqueued_at: datetime


class Admin:
    """Unary calls to FilaAdmin. All of them raise FilaError."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call
        self._stub: FilaAdminAsyncStub = connection.methods(admin_pb2, "FilaAdmin")

    async def create_queue(self, name: str, settings: QueueSettings) -> str:
        config, hooks = queue_config(settings)
        with _located(hooks):
            response = await self._call(
                self._stub.CreateQueue, made(admin_pb2.CreateQueueRequest, name=name, config=config)
            )
        return response.queue_id

    async def ensure_queue(self, name: str, settings: QueueSettings) -> bool:
        try:
            await self.create_queue(name, settings)
        except QueueAlreadyExistsError:
            return False
        return True

    async def update_queue(self, name: str, settings: QueueSettings) -> QueueConfig:
        config, hooks = queue_config(settings)
        if hooks is not None and None in {hooks.on_enqueue, hooks.on_failure}:
            raise InvalidArgumentError("on_enqueue and on_failure are one script: change both of them, or script")
        with _located(hooks):
            response = await self._call(
                self._stub.UpdateQueue, made(admin_pb2.UpdateQueueRequest, queue=name, config=config)
            )
        return _config(response.config)

    async def delete_queue(self, name: str, force: bool) -> int:
        response = await self._call(self._stub.DeleteQueue, made(admin_pb2.DeleteQueueRequest, queue=name, force=force))
        return response.messages_deleted

    async def pause_queue(self, name: str) -> None:
        await self._call(self._stub.PauseQueue, made(admin_pb2.PauseQueueRequest, queue=name))

    async def resume_queue(self, name: str) -> None:
        await self._call(self._stub.ResumeQueue, made(admin_pb2.ResumeQueueRequest, queue=name))

    async def set_config(self, key: str, value: str) -> None:
        await self._call(self._stub.SetConfig, made(admin_pb2.SetConfigRequest, key=key, value=value))

    async def get_config(self, key: str) -> str | None:
        try:
            response = await self._call(self._stub.GetConfig, made(admin_pb2.GetConfigRequest, key=key))
        except ConfigNotFoundError:
            return None
        return response.value

    async def list_config(self, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        request = made(admin_pb2.ListConfigRequest, prefix=prefix)
        while True:
            response = await self._call(self._stub.ListConfig, request)
            found.update((entry.key, entry.value) for entry in response.entries)
            if not response.cursor:
                return found
            request.cursor = response.cursor

    async def delete_config(self, key: str) -> bool:
        response = await self._call(self._stub.DeleteConfig, made(admin_pb2.DeleteConfigRequest, key=key))
        return response.existed

    async def explain(self, queue: str, message_id: str, fairness_key: str) -> Explanation:
        subject = {"message_id": message_id} if message_id else {"fairness_key": fairness_key} if fairness_key else {}
        request = made(admin_pb2.ExplainRequest, queue=queue, **subject)
        return _explanation(await self._call(self._stub.Explain, request))

    async def try_hook(self, request: admin_pb2.DryRunHookRequest) -> list[HookTrial]:
        response = await self._call(self._stub.DryRunHook, request)
        return [_trial(trial) for trial in response.trials]

    async def list_queues(self) -> list[QueueInfo]:
        found: list[QueueInfo] = []
        request = admin_pb2.ListQueuesRequest()
        while True:
            response = await self._call(self._stub.ListQueues, request)
            found += [_info(summary) for summary in response.queues]
            if not response.cursor:
                return found
            request.cursor = response.cursor

    async def queue_stats(
        self, name: str, max_keys: int = 20, sort: str = "", offset: int = 0, key_prefix: str = ""
    ) -> QueueStats:
        request = made(
            admin_pb2.GetStatsRequest, queue=name, max_keys=max_keys, sort=sort, offset=offset, key_prefix=key_prefix
        )
        response = await self._call(self._stub.GetStats, request)
        return QueueStats(
            summary=_info(response.summary),
            config=_config(response.config),
            counters=QueueCounters(
                enqueued=response.counters.enqueued,
                delivered=response.counters.delivered,
                acked=response.counters.acked,
                nacked=response.counters.nacked,
                expired=response.counters.expired,
                returned=response.counters.returned,
                dead_lettered=response.counters.dead_lettered,
                redriven=response.counters.redriven,
                purged=response.counters.purged,
            ),
            scheduler=SchedulerStats(
                response.scheduler.quantum, response.scheduler.round, response.scheduler.active_keys
            ),
            created_at=response.created_at.ToDatetime(UTC),
            runnable=response.runnable,
            oldest_at=response.oldest_at.ToDatetime(UTC) if response.HasField("oldest_at") else None,
            deliveries_per_second=response.deliveries_per_second,
            consumers=tuple(
                ConsumerStats(one.number, one.in_flight, one.max_in_flight, one.credit) for one in response.consumers
            ),
            groups=tuple(
                GroupStats(
                    one.group,
                    one.epoch,
                    one.floor,
                    one.last,
                    one.open_claims,
                    one.held,
                    one.expires_at.ToDatetime(UTC) if one.HasField("expires_at") else None,
                )
                for one in response.groups
            ),
            throttles=tuple(
                ThrottleStats(
                    one.key,
                    one.limit,
                    one.tokens if one.HasField("tokens") else None,
                    one.in_flight,
                    one.passed,
                    one.held_up,
                    one.parked_keys,
                )
                for one in response.throttles
            ),
            keys=tuple(_key(key) for key in response.keys),
            total_keys=response.total_keys,
            waits=_waits(response.waits),
            hooks=tuple(_hook(one) for one in response.hooks),
            waiting_for_hooks=response.waiting_for_hooks,
            script_error=response.script_error,
            forgotten_delivered=response.forgotten_delivered,
        )


def _hook(one: admin_pb2.HookStats) -> HookStats:
    return HookStats(
        one.hook,
        one.calls,
        dict(one.failures),
        one.breaker_opened,
        one.bypassed,
        one.bypassed_until.ToDatetime(UTC) if one.HasField("bypassed_until") else None,
        one.last_error,
        one.last_error_at.ToDatetime(UTC) if one.HasField("last_error_at") else None,
        one.seconds,
    )


def queue_config(settings: QueueSettings) -> tuple[admin_pb2.QueueConfig, Hooks | None]:
    """What to set, and the hooks if they are given as two. Raises InvalidArgumentError."""
    known_names("setting", settings, QueueSettings.__annotations__)
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, int) and value < 0:
            raise InvalidArgumentError(f"{name} must not be negative")
    headers = given.pop("throttle_headers", None)
    names = None if headers is None else several("throttle_headers", headers)
    hooks = _hooks(given)
    if hooks is not None:
        given["script"] = hooks.script
    config = admin_pb2.QueueConfig()
    for name, value in given.items():
        try:
            setattr(config, name, value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{name} = {value!r}: {error}") from error
    if names is not None:
        config.throttle_headers.SetInParent()
        try:
            config.throttle_headers.names.extend(names)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"throttle_headers: {error}") from error
    return config, hooks


def _hooks(given: dict[str, Any]) -> Hooks | None:
    """Takes the hooks out of the settings, if they are given as two. Raises InvalidArgumentError."""
    sources = {name: given.pop(name) for name in ("on_enqueue", "on_failure") if name in given}
    if not sources:
        return None
    if "script" in given:
        raise InvalidArgumentError(f"script and {next(iter(sources))} contradict each other: give one of them")
    for name, source in sources.items():
        if not isinstance(source, str):
            raise InvalidArgumentError(f"{name} must be the source of a script, not {source!r}")
    return Hooks(**sources)


@contextmanager
def _located(hooks: Hooks | None) -> Iterator[None]:
    """What the broker refuses is told with the lines that the caller wrote."""
    try:
        yield
    except InvalidArgumentError as error:
        if hooks is None:
            raise
        raise InvalidArgumentError(hooks.located(str(error))) from error


def hook_trial(
    queue: str,
    script: str,
    headers: Mapping[str, str] | None,
    payload_size: int,
    attempts: int,
    error: str,
    next_messages: int,
) -> admin_pb2.DryRunHookRequest:
    """What to try. Raises InvalidArgumentError."""
    return made(
        admin_pb2.DryRunHookRequest,
        queue=queue,
        script=script,
        headers=headers,
        payload_size=payload_size,
        attempts=attempts,
        error=error,
        next_messages=next_messages,
    )


def _explanation(about: admin_pb2.ExplainResponse) -> Explanation:
    return Explanation(
        message_id=about.message_id,
        state=about.state,
        fairness_key=about.fairness_key,
        priority=about.priority,
        cost=about.cost,
        attempt_count=about.attempt_count,
        throttle_keys=tuple(about.throttle_keys),
        reasons=tuple(
            WaitReason(
                one.code,
                one.text,
                one.until.ToDatetime(UTC) if one.HasField("until") else None,
                one.subject,
                one.setting,
                dict(one.numbers),
            )
            for one in about.reasons
        ),
        deliveries_ahead=about.deliveries_ahead,
        exact=about.exact,
        not_before=about.not_before.ToDatetime(UTC),
        estimated_at=about.estimated_at.ToDatetime(UTC) if about.HasField("estimated_at") else None,
        enqueued_at=about.enqueued_at.ToDatetime(UTC),
    )


def _trial(trial: admin_pb2.HookTrial) -> HookTrial:
    placed, judged = trial.on_enqueue, trial.on_failure
    return HookTrial(
        trial.message_id,
        EnqueueDecision(
            placed.fairness_key,
            placed.weight,
            tuple(placed.throttle_keys),
            placed.cost,
            placed.priority if placed.HasField("priority") else None,
            placed.delay_ms if placed.HasField("delay_ms") else None,
            placed.error,
        )
        if trial.HasField("on_enqueue")
        else None,
        FailureDecision(judged.dead_letter, judged.delay_ms if judged.HasField("delay_ms") else None, judged.error)
        if trial.HasField("on_failure")
        else None,
    )


def _config(config: admin_pb2.QueueConfig) -> QueueConfig:
    plain = {field.name: getattr(config, field.name) for field in fields(QueueConfig)}
    return QueueConfig(**plain | {"throttle_headers": tuple(config.throttle_headers.names)})


def _key(key: admin_pb2.KeyStats) -> KeyStats:
    return KeyStats(
        fairness_key=key.fairness_key,
        weight=key.weight,
        pending=key.pending,
        delivered=key.delivered,
        deficit=key.deficit,
        share=key.share,
        entitlement=key.entitlement,
        oldest_at=key.oldest_at.ToDatetime(UTC) if key.HasField("oldest_at") else None,
        parked=key.parked,
        waits=_waits(key.waits) if key.HasField("waits") else None,
    )


def _waits(waits: admin_pb2.WaitStats) -> WaitStats:
    return WaitStats(
        sampled=waits.sampled,
        mean_seconds=waits.mean_seconds,
        p50_seconds=waits.p50_seconds,
        p99_seconds=waits.p99_seconds,
        parts=dict(waits.parts),
        throttles=dict(waits.throttles),
    )


def _info(summary: admin_pb2.QueueSummary) -> QueueInfo:
    return QueueInfo(
        name=summary.name,
        depth=summary.depth,
        in_flight=summary.in_flight,
        delayed=summary.delayed,
        active_keys=summary.active_keys,
        consumers=summary.consumers,
        dead_letter_queue=summary.dead_letter_queue,
        paused=summary.paused,
    )
