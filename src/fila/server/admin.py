"""FilaAdmin: queues and what is known of them."""

from google.protobuf.timestamp_pb2 import Timestamp

from fila.broker import admin
from fila.broker.broker import Broker
from fila.config import SchedulerConfig
from fila.core.errors import InvalidArgument
from fila.server.types import Context
from fila.storage.codec import QueueRecord
from fila.v1 import admin_pb2 as pb
from fila.v1 import admin_pb2_grpc

DEFAULT_KEYS = 20
MAX_KEYS = 10_000
MAX_HEADER_NAME_BYTES = 255
MAX_QUANTUM = 1_000_000
MAX_TIMEOUT_MS = 7 * 24 * 3600 * 1000


class FilaAdmin(admin_pb2_grpc.FilaAdminServicer):
    """Handlers, named as the methods of the contract."""

    def __init__(self, broker: Broker, defaults: SchedulerConfig) -> None:
        self._broker = broker
        self._defaults = defaults

    async def CreateQueue(self, request: pb.CreateQueueRequest, context: Context) -> pb.CreateQueueResponse:
        record = read_queue(request, self._defaults, self._broker.now())
        await self._broker.create_queue(record)
        return pb.CreateQueueResponse(queue_id=record.name)

    async def DeleteQueue(self, request: pb.DeleteQueueRequest, context: Context) -> pb.DeleteQueueResponse:
        return pb.DeleteQueueResponse(messages_deleted=await self._broker.delete_queue(request.queue))

    async def ListQueues(self, request: pb.ListQueuesRequest, context: Context) -> pb.ListQueuesResponse:
        return pb.ListQueuesResponse(queues=[write_summary(summary) for summary in self._broker.list_queues()])

    async def GetStats(self, request: pb.GetStatsRequest, context: Context) -> pb.GetStatsResponse:
        return write_stats(self._broker.stats(request.queue, min(request.max_keys or DEFAULT_KEYS, MAX_KEYS)))


def read_queue(request: pb.CreateQueueRequest, defaults: SchedulerConfig, now: int) -> QueueRecord:
    """The queue that is asked for, every default filled in. Raises InvalidArgument."""
    config = request.config

    def number(field: str, default: int, high: int) -> int:
        value = getattr(config, field) if config.HasField(field) else default
        if not 1 <= value <= high:
            raise InvalidArgument(f"{field} must be from 1 to {high}")
        return int(value)

    for field in ("fairness_header", "weight_header"):
        if len(getattr(config, field).encode()) > MAX_HEADER_NAME_BYTES:
            raise InvalidArgument(f"{field} must not exceed {MAX_HEADER_NAME_BYTES} bytes")
    return QueueRecord(
        name=request.name,
        created_at=now,
        visibility_timeout_ms=number("visibility_timeout_ms", defaults.visibility_timeout_ms, MAX_TIMEOUT_MS),
        quantum=number("quantum", defaults.quantum, MAX_QUANTUM),
        dedup_window_ms=number("dedup_window_ms", defaults.dedup_window_ms, MAX_TIMEOUT_MS),
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
