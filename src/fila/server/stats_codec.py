"""What operators are told of a queue: figures, why a message waits, and what a hook would decide."""

import asyncio
from dataclasses import asdict

from fila.broker.dry_run import TriedMessage
from fila.broker.explain import Explanation
from fila.broker.stats import SORTS, HookFigures, KeyOrder, KeyStats, QueueStats, QueueSummary
from fila.core.errors import InvalidArgument
from fila.core.ledger import WaitSums
from fila.server.enums import number_of
from fila.server.queue_settings import write_settings
from fila.server.timestamps import timestamp
from fila.v1 import admin_pb2 as pb

DEFAULT_KEYS = 20
MAX_KEYS = 10_000
WRITTEN_AT_ONCE = 200
"""Fairness keys of an answer that are written in one go: 5 ms"""

_ORDERS = {0: "pending"} | {int(number_of(pb.KeyOrder, name)): name for name in [*SORTS, "name"]}


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
        parts=1,
    )


def read_order(request: pb.GetStatsRequest) -> KeyOrder:
    """Raises InvalidArgument."""
    sort = _ORDERS.get(request.sort)
    if sort is None:
        raise InvalidArgument(f"sort is {request.sort}, which is no KeyOrder")
    return KeyOrder(sort, min(request.max_keys or DEFAULT_KEYS, MAX_KEYS), request.offset, request.key_prefix)


async def write_stats(stats: QueueStats) -> pb.GetStatsResponse:
    """Lets others work in between: there may be many keys."""
    response = _write_all_but_keys(stats)
    for start in range(0, len(stats.keys), WRITTEN_AT_ONCE):
        response.keys.extend([_write_key(key) for key in stats.keys[start : start + WRITTEN_AT_ONCE]])
        await asyncio.sleep(0)
    return response


def _write_all_but_keys(stats: QueueStats) -> pb.GetStatsResponse:
    record = stats.record
    return pb.GetStatsResponse(
        summary=write_summary(stats.summary),
        config=write_settings(record),
        created_at=timestamp(record.created_at),
        scheduler=pb.SchedulerStats(quantum=record.quantum, round=stats.round, active_keys=stats.summary.active_keys),
        total_keys=stats.total_keys,
        waits=_write_waits(stats.waits),
        runnable=stats.runnable,
        oldest_at=timestamp(stats.oldest_at) if stats.oldest_at else None,
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
                expires_at=timestamp(one.expires_at) if one.expires_at else None,
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
        counters=pb.QueueCounters(**asdict(stats.counters)),
        capacity=pb.CapacityStats(**asdict(stats.capacity)),
    )


def _write_hook(one: HookFigures) -> pb.HookStats:
    stats = one.stats
    return pb.HookStats(
        hook=number_of(pb.Hook, one.hook),
        calls=stats.calls,
        failures=[
            pb.HookFailures(cause=number_of(pb.HookFailureCause, str(kind)), count=count)
            for kind, count in stats.failures.items()
        ],
        breaker_opened=stats.opened,
        bypassed=stats.bypassed,
        bypassed_until=timestamp(one.bypassed_until) if one.bypassed_until else None,
        last_error=stats.last_error,
        last_error_at=timestamp(stats.last_error_at) if stats.last_error_at else None,
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
        oldest_at=timestamp(key.oldest_at) if key.oldest_at else None,
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
        parts=pb.WaitParts(**{part: mean(ns) for part, ns in waits.parts.items()}),
        throttles={key: mean(ns) for key, ns in waits.throttles.items()},
    )


def write_explanation(about: Explanation, message_id: str) -> pb.ExplainResponse:
    written = pb.ExplainResponse(
        message_id=message_id,
        state=number_of(pb.MessageState, about.state.value),
        fairness_key=about.fairness_key,
        priority=about.priority,
        cost=about.cost,
        attempt_count=about.attempts,
        throttle_keys=about.throttle_keys,
        deliveries_ahead=about.ahead,
        exact=about.exact,
        not_before=timestamp(about.not_before),
        enqueued_at=timestamp(about.seq),
        reasons=[
            pb.WaitReason(
                code=number_of(pb.WaitCause, reason.code),
                text=reason.text,
                until=timestamp(reason.until) if reason.until is not None else None,
                subject=reason.subject,
                setting=reason.setting,
                numbers=reason.numbers,
            )
            for reason in about.reasons
        ],
    )
    if about.estimate is not None:
        written.estimated_at.CopyFrom(timestamp(about.estimate))
    return written


def write_tried(tried: TriedMessage) -> pb.HookTrial:
    written = pb.HookTrial(message_id=tried.message_id)
    if tried.on_enqueue is not None:
        placed = tried.on_enqueue.decision
        written.on_enqueue.CopyFrom(
            pb.EnqueueDecision(**placed._asdict(), error=tried.on_enqueue.error)  # None leaves a field unset
        )
    if tried.on_failure is not None:
        verdict = tried.on_failure.decision
        written.on_failure.CopyFrom(
            pb.FailureDecision(dead_letter=verdict.dead, delay_ms=verdict.delay_ms, error=tried.on_failure.error)
        )
    return written
