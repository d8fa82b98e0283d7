"""The Python SDK. Import its public names from `fila`."""

from fila.client.admin import KeyStats, QueueConfig, QueueCounters, QueueInfo, QueueSettings, QueueStats, SchedulerStats
from fila.client.aio import AsyncClient, AsyncConsumer
from fila.client.encoding import OutgoingMessage
from fila.client.errors import (
    AckManyError,
    ClientClosedError,
    ConfigNotFoundError,
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
from fila.client.message import AsyncConsumeMessage, ConsumeMessage, DeadLetter, FailedAttempt
from fila.client.sync import Client, Consumer

__all__ = [
    "AckManyError",
    "AsyncClient",
    "AsyncConsumeMessage",
    "AsyncConsumer",
    "Client",
    "ClientClosedError",
    "ConfigNotFoundError",
    "ConsumeMessage",
    "Consumer",
    "DeadLetter",
    "EnqueueManyError",
    "FailedAttempt",
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
    "QueueSettings",
    "QueueStats",
    "SchedulerStats",
    "UnavailableError",
]
