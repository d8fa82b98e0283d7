"""FilaAdmin: queues and what is known of them, and the runtime configuration."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from fila.broker.broker import Broker, Sweep
from fila.broker.explain import Explanation
from fila.broker.failure import MAX_ERROR
from fila.broker.search import Query
from fila.broker.stats import SORTS, HookFigures, KeyOrder, KeyStats, QueueStats, QueueSummary
from fila.broker.trial import HookTrial, Subject
from fila.config import DAY_MS, KIB, LuaConfig, SchedulerConfig
from fila.core.errors import ConfigNotFound, InvalidArgument
from fila.core.ledger import WaitSums
from fila.core.policy import MAX_THROTTLE_KEYS
from fila.server.browse import DEFAULT_PAGE, MAX_PAGE, WAITING, Page, read_cursor, read_filter, write_cursor
from fila.server.codec import NS_PER_S
from fila.server.journal import read_journal
from fila.server.types import Context, Method, Methods, SmallMethod
from fila.storage.codec import QueueRecord
from fila.v1 import admin_pb2 as pb

DEFAULT_KEYS = 20
MAX_KEYS = 10_000
MAX_HEADER_NAME_BYTES = 255
MAX_QUANTUM = 1_000_000
MAX_TIMEOUT_MS = 365 * DAY_MS
MAX_ATTEMPTS = 1_000_000
MAX_TRIALS = 1000
WRITTEN_AT_ONCE = 200
"""Fairness keys of an answer that are written in one go: 5 ms"""
LARGE_ANSWERS = frozenset({"ListQueues", "GetStats", "ListConfig", "DryRunHook", "Peek"})
"""Of up to a few megabytes: made when the caller takes them"""
MAX_REQUEST_BYTES = 512 * KIB
"""Of a call that administers: a script, or a filter with as many ids and headers as it may have."""
LAST_MOMENT = 253_402_300_800 * NS_PER_S - 1
"""The end of the year 9999, which is that of google.protobuf.Timestamp"""

log = structlog.get_logger(__name__)


class FilaAdmin:
    """The handlers of the contract's FilaAdmin."""

    def __init__(self, broker: Broker, defaults: SchedulerConfig, lua: LuaConfig) -> None:
        self._broker = broker
        self._defaults = defaults
        self._lua = lua

    async def create_queue(self, request: pb.CreateQueueRequest, context: Context) -> pb.CreateQueueResponse:
        record = read_queue(request, self._defaults, self._lua, self._broker.now())
        await self._broker.create_queue(record)
        log.info("queue created", queue=record.name, settings=_named(request.config), by=context.peer())
        return pb.CreateQueueResponse(queue_id=record.name)

    async def update_queue(self, request: pb.UpdateQueueRequest, context: Context) -> pb.UpdateQueueResponse:
        record = await self._broker.update_queue(request.queue, read_settings(request.config))
        log.info("queue updated", queue=record.name, settings=_named(request.config), by=context.peer())
        return pb.UpdateQueueResponse(config=write_settings(record))

    async def delete_queue(self, request: pb.DeleteQueueRequest, context: Context) -> pb.DeleteQueueResponse:
        deleted = await self._broker.delete_queue(request.queue, request.force)
        log.info("queue deleted", queue=request.queue, messages=deleted, by=context.peer())
        return pb.DeleteQueueResponse(messages_deleted=deleted)

    async def list_queues(self, request: pb.ListQueuesRequest, _: Context) -> pb.ListQueuesResponse:
        found, more = self._broker.list_queues(request.cursor, min(request.limit or MAX_PAGE, MAX_PAGE))
        return pb.ListQueuesResponse(
            queues=[write_summary(summary) for summary in found], cursor=found[-1].name if more else ""
        )

    async def get_stats(self, request: pb.GetStatsRequest, _: Context) -> pb.GetStatsResponse:
        response = await write_stats(await self._broker.stats(request.queue, read_order(request)))
        response.waiting_for_hooks = self._broker.waiting_for_hooks(request.queue)
        response.script_error = self._broker.state.scripts.broken.get(request.queue, "")
        return response

    async def set_config(self, request: pb.SetConfigRequest, context: Context) -> pb.SetConfigResponse:
        await self._broker.set_config(request.key, request.value, context.peer())
        # Its value may be a secret that scripts use.
        log.info("config set", key=request.key, value_bytes=_size(request.value), by=context.peer())
        return pb.SetConfigResponse()

    async def get_config(self, request: pb.GetConfigRequest, _: Context) -> pb.GetConfigResponse:
        value = self._broker.state.config.get(request.key)
        if value is None:
            raise ConfigNotFound(request.key)
        return pb.GetConfigResponse(value=value)

    async def list_config(self, request: pb.ListConfigRequest, _: Context) -> pb.ListConfigResponse:
        limit = min(request.limit or MAX_PAGE, MAX_PAGE)
        entries, total, more = self._broker.list_config(request.prefix, request.cursor, limit)
        return pb.ListConfigResponse(
            entries=[pb.ConfigEntry(key=key, value=value) for key, value in entries],
            total_count=total,
            cursor=entries[-1][0] if more else "",
        )

    async def delete_config(self, request: pb.DeleteConfigRequest, context: Context) -> pb.DeleteConfigResponse:
        before = await self._broker.set_config(request.key, None, context.peer())
        if before is not None:
            log.info("config removed", key=request.key, value_bytes=_size(before), by=context.peer())
        return pb.DeleteConfigResponse(existed=before is not None)

    async def explain(self, request: pb.ExplainRequest, _: Context) -> pb.ExplainResponse:
        about = await self._broker.explain(request.queue, request.message_id, request.fairness_key)
        return write_explanation(about, self._broker.state.ids.text(about.seq))

    async def dry_run_hook(self, request: pb.DryRunHookRequest, _: Context) -> pb.DryRunHookResponse:
        if request.next_messages > MAX_TRIALS:
            raise InvalidArgument(f"next_messages must not exceed {MAX_TRIALS}")
        given = Subject("", request.headers, request.payload_size, request.attempts, request.error[:MAX_ERROR])
        trials = await self._broker.try_hooks(request.queue, request.script, given, request.next_messages)
        return pb.DryRunHookResponse(trials=[write_trial(trial) for trial in trials])

    async def pause_queue(self, request: pb.PauseQueueRequest, context: Context) -> pb.PauseQueueResponse:
        await self._broker.pause_queue(request.queue, True)
        log.info("queue paused", queue=request.queue, by=context.peer())
        return pb.PauseQueueResponse()

    async def resume_queue(self, request: pb.ResumeQueueRequest, context: Context) -> pb.ResumeQueueResponse:
        await self._broker.pause_queue(request.queue, False)
        log.info("queue resumed", queue=request.queue, by=context.peer())
        return pb.ResumeQueueResponse()

    async def peek(self, request: pb.PeekRequest, _: Context) -> pb.PeekResponse:
        query = read_filter(request.filter, self._broker.state.ids, self._broker.now())
        query = replace(query, newest=request.newest_first)
        behind = read_cursor(request.cursor, 1)
        if behind:
            query = query.behind(*behind)
        seen = await self._broker.peek(request.queue, query, min(request.limit or DEFAULT_PAGE, MAX_PAGE))
        return await Page(self._broker, request.payload_bytes).write(seen)

    async def redrive(self, request: pb.RedriveRequest, context: Context) -> pb.RedriveResponse:
        query, until = self._read_sweep(request)
        sweep = Sweep(request.count, request.dry_run, request.bounded)
        count, position = await self._broker.redrive(request.dlq_queue, query, sweep)
        if count and not request.dry_run:
            log.info("messages redriven", queue=request.dlq_queue, count=count, by=context.peer())
        return pb.RedriveResponse(redriven=count, cursor="" if position is None else write_cursor(position, until))

    async def purge(self, request: pb.PurgeRequest, context: Context) -> pb.PurgeResponse:
        query, until = self._read_sweep(request)
        sweep = Sweep(request.count, request.dry_run, request.bounded)
        count, position = await self._broker.purge(request.queue, query, sweep, request.any_queue)
        if count and not request.dry_run:
            log.info("messages purged", queue=request.queue, count=count, by=context.peer())
        return pb.PurgeResponse(purged=count, cursor="" if position is None else write_cursor(position, until))

    def _read_sweep(self, request: pb.RedriveRequest | pb.PurgeRequest) -> tuple[Query, int]:
        """Which messages are meant, and the last that had come when it began: later ones are left alone."""
        query = read_filter(request.filter, self._broker.state.ids, self._broker.now(), WAITING)
        position, until = read_cursor(request.cursor, 2) or (None, self._broker.state.sequence.last)
        query = replace(query, high=min(query.high, until))
        return query if position is None else query.behind(position), until

    async def read_journal(self, request: pb.ReadJournalRequest, context: Context) -> None:
        await read_journal(self._broker, request, context)


def methods(admin: FilaAdmin) -> Methods:
    """The service, by the names of its methods."""
    methods: dict[str, tuple[Any, Any]] = {
        "CreateQueue": (admin.create_queue, pb.CreateQueueRequest),
        "UpdateQueue": (admin.update_queue, pb.UpdateQueueRequest),
        "DeleteQueue": (admin.delete_queue, pb.DeleteQueueRequest),
        "ListQueues": (admin.list_queues, pb.ListQueuesRequest),
        "GetStats": (admin.get_stats, pb.GetStatsRequest),
        "SetConfig": (admin.set_config, pb.SetConfigRequest),
        "GetConfig": (admin.get_config, pb.GetConfigRequest),
        "ListConfig": (admin.list_config, pb.ListConfigRequest),
        "DeleteConfig": (admin.delete_config, pb.DeleteConfigRequest),
        "Explain": (admin.explain, pb.ExplainRequest),
        "DryRunHook": (admin.dry_run_hook, pb.DryRunHookRequest),
        "PauseQueue": (admin.pause_queue, pb.PauseQueueRequest),
        "ResumeQueue": (admin.resume_queue, pb.ResumeQueueRequest),
        "Peek": (admin.peek, pb.PeekRequest),
        "Redrive": (admin.redrive, pb.RedriveRequest),
        "Purge": (admin.purge, pb.PurgeRequest),
    }
    by_name = {
        name: Method(
            method,
            request.FromString,
            lambda response: response.SerializeToString(),
            max_request_bytes=MAX_REQUEST_BYTES,
            large=name in LARGE_ANSWERS,
        )
        for name, (method, request) in methods.items()
    }
    by_name["ReadJournal"] = SmallMethod(
        admin.read_journal,
        pb.ReadJournalRequest.FromString,
        pb.ReadJournalResponse.SerializeToString,
        gives_stream=True,
    )
    return by_name


@dataclass(frozen=True, slots=True)
class _Range:
    low: float
    high: float

    def check(self, name: str, value: float) -> None:
        if not self.low <= value <= self.high:  # not a number is in no range
            raise InvalidArgument(f"{name} must be from {self.low} to {self.high}")


NUMBERS = {
    "visibility_timeout_ms": _Range(1, MAX_TIMEOUT_MS),
    "quantum": _Range(1, MAX_QUANTUM),
    "dedup_window_ms": _Range(0, MAX_TIMEOUT_MS),
    "max_attempts": _Range(0, MAX_ATTEMPTS),
    "retry_delay_ms": _Range(0, MAX_TIMEOUT_MS),
    "retry_backoff": _Range(1, 100),
    "retry_max_delay_ms": _Range(0, MAX_TIMEOUT_MS),
    "retry_jitter": _Range(0, 1),
    "script_timeout_ms": _Range(1, 1000),
    "script_memory_bytes": _Range(64 << 10, 64 << 20),
}
HEADERS = ("fairness_header", "weight_header", "cost_header")


def read_settings(config: pb.QueueConfig) -> dict[str, Any]:
    """Those settings that are present, by the names of the record's fields. Raises InvalidArgument."""
    settings: dict[str, Any] = {}
    for name, allowed in NUMBERS.items():
        if config.HasField(name):
            settings[name] = getattr(config, name)
            allowed.check(name, settings[name])
    for name in HEADERS:
        if config.HasField(name):
            settings[name] = getattr(config, name)
            _check_header(name, settings[name])
    if config.HasField("throttle_headers"):
        names = tuple(sorted(set(config.throttle_headers.names)))
        if len(names) > MAX_THROTTLE_KEYS:
            raise InvalidArgument(f"throttle_headers must not be more than {MAX_THROTTLE_KEYS}")
        for name in names:
            if not name:
                raise InvalidArgument("throttle_headers must not hold an empty name")
            _check_header("throttle_headers", name)
        settings["throttle_headers"] = names
    if config.HasField("script"):
        settings["script"] = config.script
    return settings


def _check_header(setting: str, name: str) -> None:
    if len(name.encode()) > MAX_HEADER_NAME_BYTES:
        raise InvalidArgument(f"{setting} must not exceed {MAX_HEADER_NAME_BYTES} bytes")


def read_queue(request: pb.CreateQueueRequest, defaults: SchedulerConfig, lua: LuaConfig, now: int) -> QueueRecord:
    """The queue that is asked for, every default filled in. Raises InvalidArgument."""
    settings = {
        "visibility_timeout_ms": defaults.visibility_timeout_ms,
        "quantum": defaults.quantum,
        "dedup_window_ms": defaults.dedup_window_ms,
        "script_timeout_ms": lua.timeout_ms,
        "script_memory_bytes": lua.memory_bytes,
    }
    return QueueRecord(name=request.name, created_at=now, **(settings | read_settings(request.config)))


def write_settings(record: QueueRecord) -> pb.QueueConfig:
    config = pb.QueueConfig(throttle_headers=pb.HeaderNames(names=record.throttle_headers))
    for name in (*NUMBERS, *HEADERS, "script"):
        setattr(config, name, getattr(record, name))
    return config


def write_explanation(about: Explanation, message_id: str) -> pb.ExplainResponse:
    written = pb.ExplainResponse(
        message_id=message_id,
        state=about.state.value,
        fairness_key=about.fairness_key,
        priority=about.priority,
        cost=about.cost,
        attempt_count=about.attempts,
        throttle_keys=about.throttle_keys,
        deliveries_ahead=about.ahead,
        exact=about.exact,
        not_before=_timestamp(about.not_before),
        enqueued_at=_timestamp(about.seq),
        reasons=[
            pb.WaitReason(
                code=reason.code,
                text=reason.text,
                until=_timestamp(reason.until) if reason.until is not None else None,
                subject=reason.subject,
                setting=reason.setting,
                numbers=reason.numbers,
            )
            for reason in about.reasons
        ],
    )
    if about.estimate is not None:
        written.estimated_at.CopyFrom(_timestamp(about.estimate))
    return written


def _timestamp(ns: int) -> Timestamp:
    """A point in time; the last one that can be told for a later one, as that of a throttle with a very low rate."""
    moment = Timestamp()
    moment.FromNanoseconds(min(ns, LAST_MOMENT))
    return moment


def write_trial(trial: HookTrial) -> pb.HookTrial:
    written = pb.HookTrial(message_id=trial.message_id)
    if trial.on_enqueue is not None:
        placed = trial.on_enqueue.decision
        written.on_enqueue.CopyFrom(
            pb.EnqueueDecision(**placed._asdict(), error=trial.on_enqueue.error)  # None leaves a field unset
        )
    if trial.on_failure is not None:
        verdict = trial.on_failure.decision
        written.on_failure.CopyFrom(
            pb.FailureDecision(dead_letter=verdict.dead, delay_ms=verdict.delay_ms, error=trial.on_failure.error)
        )
    return written


def write_summary(summary: QueueSummary) -> pb.QueueSummary:
    return pb.QueueSummary(
        name=summary.name,
        depth=summary.depth,
        in_flight=summary.in_flight,
        delayed=summary.delayed,
        active_keys=summary.active_keys,
        consumers=summary.consumers,
        dead_letter_queue=summary.dead_letter_queue,
        paused=summary.paused,
    )


def read_order(request: pb.GetStatsRequest) -> KeyOrder:
    """Raises InvalidArgument."""
    sort = request.sort or "pending"
    if sort != "name" and sort not in SORTS:
        raise InvalidArgument(f"sort must be one of {', '.join([*SORTS, 'name'])}")
    return KeyOrder(sort, min(request.max_keys or DEFAULT_KEYS, MAX_KEYS), request.offset, request.key_prefix)


async def write_stats(stats: QueueStats) -> pb.GetStatsResponse:
    """Lets others work in between: there may be many keys."""
    response = _write_all_but_keys(stats)
    for start in range(0, len(stats.keys), WRITTEN_AT_ONCE):
        response.keys.extend([_write_key(key) for key in stats.keys[start : start + WRITTEN_AT_ONCE]])
        await asyncio.sleep(0)
    return response


def _write_all_but_keys(stats: QueueStats) -> pb.GetStatsResponse:
    record, counters = stats.record, stats.counters
    return pb.GetStatsResponse(
        summary=write_summary(stats.summary),
        config=write_settings(record),
        created_at=_timestamp(record.created_at),
        scheduler=pb.SchedulerStats(quantum=record.quantum, round=stats.round, active_keys=stats.summary.active_keys),
        total_keys=stats.total_keys,
        waits=_write_waits(stats.waits),
        runnable=stats.runnable,
        oldest_at=_timestamp(stats.oldest_at) if stats.oldest_at else None,
        deliveries_per_second=stats.deliveries_per_second,
        consumers=[
            pb.ConsumerStats(
                number=one.number, in_flight=one.in_flight, max_in_flight=one.max_in_flight, credit=one.credit
            )
            for one in stats.consumers
        ],
        groups=[
            pb.GroupStats(
                group=one.name,
                epoch=one.epoch,
                floor=one.floor,
                last=one.last,
                open_claims=one.open_claims,
                held=one.held,
                expires_at=_timestamp(one.expires_at) if one.expires_at else None,
            )
            for one in stats.groups
        ],
        throttles=[
            pb.ThrottleStats(
                key=one.key,
                limit=one.limit,
                tokens=one.tokens,
                in_flight=one.in_flight,
                passed=one.passed,
                held_up=one.held_up,
                parked_keys=one.parked_keys,
            )
            for one in stats.throttles
        ],
        hooks=[_write_hook(one) for one in stats.hooks],
        forgotten_delivered=stats.forgotten,
        counters=pb.QueueCounters(
            enqueued=counters.enqueued,
            delivered=counters.delivered,
            acked=counters.acked,
            nacked=counters.nacked,
            expired=counters.expired,
            returned=counters.returned,
            dead_lettered=counters.dead_lettered,
            redriven=counters.redriven,
            purged=counters.purged,
        ),
    )


def _write_hook(one: HookFigures) -> pb.HookStats:
    stats = one.stats
    return pb.HookStats(
        hook=one.hook,
        calls=stats.calls,
        failures={str(kind): count for kind, count in stats.failures.items()},
        breaker_opened=stats.opened,
        bypassed=stats.bypassed,
        bypassed_until=_timestamp(one.bypassed_until) if one.bypassed_until else None,
        last_error=stats.last_error,
        last_error_at=_timestamp(stats.last_error_at) if stats.last_error_at else None,
        seconds=stats.duration_us / 1e6,
    )


def _write_key(key: KeyStats) -> pb.KeyStats:
    return pb.KeyStats(
        fairness_key=key.fairness_key,
        weight=key.weight,
        pending=key.pending,
        delivered=key.delivered,
        deficit=key.deficit,
        share=key.share,
        entitlement=key.entitlement,
        oldest_at=_timestamp(key.oldest_at) if key.oldest_at else None,
        parked=key.parked,
        waits=_write_waits(key.waits) if key.waits is not None else None,
    )


def _write_waits(waits: WaitSums) -> pb.WaitStats:
    def mean(ns: int) -> float:
        return ns / waits.count / 1e9 if waits.count else 0.0

    return pb.WaitStats(
        sampled=waits.count,
        mean_seconds=mean(waits.whole),
        p50_seconds=waits.quantile(0.5) / 1e9,
        p99_seconds=waits.quantile(0.99) / 1e9,
        parts={part: mean(ns) for part, ns in waits.parts.items()},
        throttles={key: mean(ns) for key, ns in waits.throttles.items()},
    )


def _named(config: pb.QueueConfig) -> list[str]:
    """The settings that a request gives, without what they are set to."""
    return [field.name for field, _ in config.ListFields()]


def _size(value: str) -> int:
    return len(value.encode())
