"""Fila, a durable message broker with fair scheduling: the public names of its Python SDK.

They are looked up when they are first used, so that `import fila.core` or `fila --help` does not load gRPC.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.client import (
        AckManyError,
        AsyncClient,
        AsyncConsumeMessage,
        AsyncConsumer,
        Client,
        ClientClosedError,
        ConfigNotFoundError,
        ConsumeMessage,
        Consumer,
        ConsumerStats,
        DeadLetter,
        EnqueueDecision,
        EnqueueManyError,
        Explanation,
        FailedAttempt,
        FailedPreconditionError,
        FailureDecision,
        FilaError,
        FilaTimeoutError,
        HookTrial,
        InternalError,
        InvalidArgumentError,
        KeyStats,
        LimitExceededError,
        MessageFilter,
        MessageNotFoundError,
        OutgoingMessage,
        PeekedMessage,
        PeekPage,
        PermissionDeniedError,
        QueueAlreadyExistsError,
        QueueConfig,
        QueueCounters,
        QueueInfo,
        QueueNotFoundError,
        QueueSettings,
        QueueStats,
        SchedulerStats,
        ThrottleStats,
        UnavailableError,
        WaitReason,
        WaitStats,
    )

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
    "ConsumerStats",
    "DeadLetter",
    "EnqueueDecision",
    "EnqueueManyError",
    "Explanation",
    "FailedAttempt",
    "FailedPreconditionError",
    "FailureDecision",
    "FilaError",
    "FilaTimeoutError",
    "HookTrial",
    "InternalError",
    "InvalidArgumentError",
    "KeyStats",
    "LimitExceededError",
    "MessageFilter",
    "MessageNotFoundError",
    "OutgoingMessage",
    "PeekPage",
    "PeekedMessage",
    "PermissionDeniedError",
    "QueueAlreadyExistsError",
    "QueueConfig",
    "QueueCounters",
    "QueueInfo",
    "QueueNotFoundError",
    "QueueSettings",
    "QueueStats",
    "SchedulerStats",
    "ThrottleStats",
    "UnavailableError",
    "WaitReason",
    "WaitStats",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("fila.client"), name)
    raise AttributeError(f"module 'fila' has no attribute {name!r}")
