"""FilaAdmin: queues and what is known of them."""

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from fila.broker import admin
from fila.broker.broker import Broker
from fila.config import DAY_MS, SchedulerConfig
from fila.core.errors import InvalidArgument
from fila.server.types import Context
from fila.storage.codec import QueueRecord
from fila.v1 import admin_pb2 as pb

DEFAULT_KEYS = 20
MAX_KEYS = 10_000
MAX_HEADER_NAME_BYTES = 255
MAX_QUANTUM = 1_000_000
MAX_TIMEOUT_MS = 365 * DAY_MS


class FilaAdmin:
    """The handlers of the contract's FilaAdmin."""

    def __init__(self, broker: Broker, defaults: SchedulerConfig) -> None:
        self._broker = broker
        self._defaults = defaults

    async def create_queue(self, request: pb.CreateQueueRequest, _: Context) -> pb.CreateQueueResponse:
        record = read_queue(request, self._defaults, self._broker.now())
        await self._broker.create_queue(record)
        return pb.CreateQueueResponse(queue_id=record.name)

    async def delete_queue(self, request: pb.DeleteQueueRequest, _: Context) -> pb.DeleteQueueResponse:
        return pb.DeleteQueueResponse(messages_deleted=await self._broker.delete_queue(request.queue))

    async def list_queues(self, _request: pb.ListQueuesRequest, _: Context) -> pb.ListQueuesResponse:
        return pb.ListQueuesResponse(queues=[write_summary(summary) for summary in self._broker.list_queues()])

    async def get_stats(self, request: pb.GetStatsRequest, _: Context) -> pb.GetStatsResponse:
        return write_stats(self._broker.stats(request.queue, min(request.max_keys or DEFAULT_KEYS, MAX_KEYS)))


def handlers(admin: FilaAdmin) -> grpc.GenericRpcHandler:
    """The service for gRPC."""
    unary = grpc.unary_unary_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        "fila.v1.FilaAdmin",
        {
            "CreateQueue": unary(
                admin.create_queue, pb.CreateQueueRequest.FromString, pb.CreateQueueResponse.SerializeToString
            ),
            "DeleteQueue": unary(
                admin.delete_queue, pb.DeleteQueueRequest.FromString, pb.DeleteQueueResponse.SerializeToString
            ),
            "ListQueues": unary(
                admin.list_queues, pb.ListQueuesRequest.FromString, pb.ListQueuesResponse.SerializeToString
            ),
            "GetStats": unary(admin.get_stats, pb.GetStatsRequest.FromString, pb.GetStatsResponse.SerializeToString),
        },
    )


def read_queue(request: pb.CreateQueueRequest, defaults: SchedulerConfig, now: int) -> QueueRecord:
    """The queue that is asked for, every default filled in. Raises InvalidArgument."""
    config = request.config

    def number(field: str, default: int, low: int, high: int) -> int:
        value = getattr(config, field) if config.HasField(field) else default
        if not low <= value <= high:
            raise InvalidArgument(f"{field} must be from {low} to {high}")
        return int(value)

    for field in ("fairness_header", "weight_header"):
        if len(getattr(config, field).encode()) > MAX_HEADER_NAME_BYTES:
            raise InvalidArgument(f"{field} must not exceed {MAX_HEADER_NAME_BYTES} bytes")
    return QueueRecord(
        name=request.name,
        created_at=now,
        visibility_timeout_ms=number("visibility_timeout_ms", defaults.visibility_timeout_ms, 1, MAX_TIMEOUT_MS),
        quantum=number("quantum", defaults.quantum, 1, MAX_QUANTUM),
        dedup_window_ms=number("dedup_window_ms", defaults.dedup_window_ms, 0, MAX_TIMEOUT_MS),
        fairness_header=config.fairness_header,
        weight_header=config.weight_header,
    )


def write_summary(summary: admin.QueueSummary) -> pb.QueueSummary:
    return pb.QueueSummary(
        name=summary.name,
        depth=summary.depth,
        in_flight=summary.in_flight,
        delayed=summary.delayed,
        active_keys=summary.active_keys,
        consumers=summary.consumers,
    )


def write_stats(stats: admin.QueueStats) -> pb.GetStatsResponse:
    record, counters = stats.record, stats.counters
    created_at = Timestamp()
    created_at.FromNanoseconds(record.created_at)
    return pb.GetStatsResponse(
        summary=write_summary(stats.summary),
        config=pb.QueueConfig(
            visibility_timeout_ms=record.visibility_timeout_ms,
            fairness_header=record.fairness_header,
            weight_header=record.weight_header,
            quantum=record.quantum,
            dedup_window_ms=record.dedup_window_ms,
        ),
        created_at=created_at,
        scheduler=pb.SchedulerStats(quantum=record.quantum, round=stats.round, active_keys=stats.summary.active_keys),
        keys=[
            pb.KeyStats(
                fairness_key=key.fairness_key,
                weight=key.weight,
                pending=key.pending,
                delivered=key.delivered,
                deficit=key.deficit,
            )
            for key in stats.keys
        ],
        counters=pb.QueueCounters(
            enqueued=counters.enqueued,
            delivered=counters.delivered,
            acked=counters.acked,
            nacked=counters.nacked,
            expired=counters.expired,
            returned=counters.returned,
        ),
    )
