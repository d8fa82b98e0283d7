"""The Python SDK. Import its public names from `fila`."""

from fila.client.admin import KeyStats, QueueConfig, QueueCounters, QueueInfo, QueueStats, SchedulerStats
from fila.client.aio import AsyncClient, AsyncConsumer
from fila.client.encoding import OutgoingMessage
from fila.client.errors import (
    AckManyError,
    ClientClosedError,
    EnqueueManyError,
    FailedPreconditionError,
    FilaError,
    FilaTimeoutError,
    InternalError,
    InvalidArgumentError,
    LimitExceededError,
    MessageNotFoundError,
    PermissionDeniedError,
    QueueAlreadyExistsError,
    QueueNotFoundError,
    UnavailableError,
)
from fila.client.message import AsyncConsumeMessage, ConsumeMessage
from fila.client.sync import Client, Consumer

__all__ = [
    "AckManyError",
    "AsyncClient",
    "AsyncConsumeMessage",
    "AsyncConsumer",
    "Client",
    "ClientClosedError",
    "ConsumeMessage",
    "Consumer",
    "EnqueueManyError",
    "FailedPreconditionError",
    "FilaError",
    "FilaTimeoutError",
    "InternalError",
    "InvalidArgumentError",
    "KeyStats",
    "LimitExceededError",
    "MessageNotFoundError",
    "OutgoingMessage",
    "PermissionDeniedError",
    "QueueAlreadyExistsError",
    "QueueConfig",
    "QueueCounters",
    "QueueInfo",
    "QueueNotFoundError",
    "QueueStats",
    "SchedulerStats",
    "UnavailableError",
]
