"""The Python SDK, and the one list of its public names. Programs import them from `fila`."""

from fila.client.aio import AsyncClient
from fila.client.audit import AuditChange, AuditEntry, AuditOptions
from fila.client.auth import Auth, BlockingAuth, Identity, KeyInfo, NewKey, PrincipalInfo, RoleInfo
from fila.client.consumer import AsyncConsumer, Consumer
from fila.client.encoding import OutgoingMessage
from fila.client.errors import (
    AckManyError,
    ClaimLostError,
    ClientClosedError,
    ConfigNotFoundError,
    EnqueueManyError,
    FailedPreconditionError,
    FencedError,
    FilaError,
    FilaTimeoutError,
    InternalError,
    InvalidArgumentError,
    LimitExceededError,
    MessageNotFoundError,
    NotStagedError,
    PermissionDeniedError,
    QueueAlreadyExistsError,
    QueueNotFoundError,
    TLSError,
    UnavailableError,
)
from fila.client.explain import Explanation, WaitReason
from fila.client.groups import AckedClaims, AsyncGroup, ClaimInfo, ExtendedClaims, Group, GroupFloor
from fila.client.hook_trials import EnqueueDecision, FailureDecision, HookTrial
from fila.client.journal import AsyncJournalReader, JournalBatch, JournalEntry, JournalOptions, JournalReader
from fila.client.message import AsyncConsumeMessage, ConsumeMessage, DeadLetter, FailedAttempt, ReadMessage
from fila.client.peek import MessageFilter, PeekedMessage, PeekPage
from fila.client.queues import QueueConfig, QueueInfo, QueueSettings
from fila.client.read_queue import ReadOptions
from fila.client.server_info import ServerInfo, ServerStore, ServerTls
from fila.client.stats import (
    ConsumerStats,
    GroupStats,
    HookStats,
    KeyStats,
    QueueCounters,
    QueueStats,
    SchedulerStats,
    ThrottleStats,
    WaitStats,
)
from fila.client.sync import Client
from fila.client.tls import TLS
from fila.client.transactions import AsyncTransaction, StagedPart, Transaction

__all__ = [
    "TLS",
    "AckManyError",
    "AckedClaims",
    "AsyncClient",
    "AsyncConsumeMessage",
    "AsyncConsumer",
    "AsyncGroup",
    "AsyncJournalReader",
    "AsyncTransaction",
    "AuditChange",
    "AuditEntry",
    "AuditOptions",
    "Auth",
    "BlockingAuth",
    "ClaimInfo",
    "ClaimLostError",
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
    "ExtendedClaims",
    "FailedAttempt",
    "FailedPreconditionError",
    "FailureDecision",
    "FencedError",
    "FilaError",
    "FilaTimeoutError",
    "Group",
    "GroupFloor",
    "GroupStats",
    "HookStats",
    "HookTrial",
    "Identity",
    "InternalError",
    "InvalidArgumentError",
    "JournalBatch",
    "JournalEntry",
    "JournalOptions",
    "JournalReader",
    "KeyInfo",
    "KeyStats",
    "LimitExceededError",
    "MessageFilter",
    "MessageNotFoundError",
    "NewKey",
    "NotStagedError",
    "OutgoingMessage",
    "PeekPage",
    "PeekedMessage",
    "PermissionDeniedError",
    "PrincipalInfo",
    "QueueAlreadyExistsError",
    "QueueConfig",
    "QueueCounters",
    "QueueInfo",
    "QueueNotFoundError",
    "QueueSettings",
    "QueueStats",
    "ReadMessage",
    "ReadOptions",
    "RoleInfo",
    "SchedulerStats",
    "ServerInfo",
    "ServerStore",
    "ServerTls",
    "StagedPart",
    "TLSError",
    "ThrottleStats",
    "Transaction",
    "UnavailableError",
    "WaitReason",
    "WaitStats",
]
