"""Queue administration."""

from dataclasses import dataclass
from datetime import UTC, datetime

from fila.client.connection import Connection
from fila.client.errors import InvalidArgumentError
from fila.v1 import admin_pb2, admin_pb2_grpc


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


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """How a queue is set up, every default filled in. An empty header name means none."""

    visibility_timeout_ms: int
    fairness_header: str
    weight_header: str
    quantum: int
    dedup_window_ms: int


@dataclass(frozen=True, slots=True)
class KeyStats:
    """One fairness key of a queue."""

    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int


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


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """The scheduler of a queue."""

    quantum: int
    round: int
    active_keys: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue in detail."""

    summary: QueueInfo
    config: QueueConfig
    counters: QueueCounters
    scheduler: SchedulerStats
    created_at: datetime
    #: Those with the most pending messages first.
    keys: tuple[KeyStats, ...]


class Admin:
    """Unary calls to FilaAdmin. All of them raise FilaError."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call
        self._stub = admin_pb2_grpc.FilaAdminStub(connection.channel)

    async def create_queue(self, name: str, config: admin_pb2.QueueConfig) -> str:
        response = await self._call(self._stub.CreateQueue, admin_pb2.CreateQueueRequest(name=name, config=config))
        return response.queue_id

    async def delete_queue(self, name: str) -> int:
        response = await self._call(self._stub.DeleteQueue, admin_pb2.DeleteQueueRequest(queue=name))
        return response.messages_deleted

    async def list_queues(self) -> list[QueueInfo]:
        response = await self._call(self._stub.ListQueues, admin_pb2.ListQueuesRequest())
        return [_info(summary) for summary in response.queues]

    async def queue_stats(self, name: str, max_keys: int = 20) -> QueueStats:
        response = await self._call(self._stub.GetStats, admin_pb2.GetStatsRequest(queue=name, max_keys=max_keys))
        return QueueStats(
            summary=_info(response.summary),
            config=QueueConfig(
                visibility_timeout_ms=response.config.visibility_timeout_ms,
                fairness_header=response.config.fairness_header,
                weight_header=response.config.weight_header,
                quantum=response.config.quantum,
                dedup_window_ms=response.config.dedup_window_ms,
            ),
            counters=QueueCounters(
                enqueued=response.counters.enqueued,
                delivered=response.counters.delivered,
                acked=response.counters.acked,
                nacked=response.counters.nacked,
                expired=response.counters.expired,
                returned=response.counters.returned,
            ),
            scheduler=SchedulerStats(
                response.scheduler.quantum, response.scheduler.round, response.scheduler.active_keys
            ),
            created_at=response.created_at.ToDatetime(UTC),
            keys=tuple(
                KeyStats(key.fairness_key, key.weight, key.pending, key.delivered, key.deficit) for key in response.keys
            ),
        )


def queue_config(
    visibility_timeout_ms: int | None,
    fairness_header: str | None,
    weight_header: str | None,
    quantum: int | None,
    dedup_window_ms: int | None,
) -> admin_pb2.QueueConfig:
    """What to set; None leaves it to the broker. Raises InvalidArgumentError."""
    numbers = {"visibility_timeout_ms": visibility_timeout_ms, "quantum": quantum, "dedup_window_ms": dedup_window_ms}
    for setting, number in numbers.items():
        if number is not None and number < 0:
            raise InvalidArgumentError(f"{setting} must not be negative")
    try:
        return admin_pb2.QueueConfig(
            visibility_timeout_ms=visibility_timeout_ms,
            fairness_header=fairness_header,
            weight_header=weight_header,
            quantum=quantum,
            dedup_window_ms=dedup_window_ms,
        )
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from error


def _info(summary: admin_pb2.QueueSummary) -> QueueInfo:
    return QueueInfo(
        summary.name, summary.depth, summary.in_flight, summary.delayed, summary.active_keys, summary.consumers
    )
