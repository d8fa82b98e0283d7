"""Jobs on top of a queue: priorities, delays, workers, retries. See docs/jobs.md."""

from fila.jobs.codec import DataclassCodec, JobCodec, JsonCodec
from fila.jobs.errors import (
    CircuitOpen,
    ClaimLost,
    Defer,
    InvalidJob,
    InvalidSettings,
    JobsError,
    QueueClosed,
    QueueFull,
    QueueUnavailable,
    RateLimited,
    Reject,
    Retry,
    TaskNotFound,
    UnknownPriority,
)
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.pressure import Backpressure, backpressure
from fila.jobs.queue import JobQueue, Snapshot
from fila.jobs.settings import FilaSettings, QueueSettings

__all__ = [
    "Backpressure",
    "CircuitOpen",
    "ClaimLost",
    "DataclassCodec",
    "DeadJob",
    "Defer",
    "FilaSettings",
    "InvalidJob",
    "InvalidSettings",
    "JobCodec",
    "JobQueue",
    "JobsError",
    "JsonCodec",
    "PriorityDelayQueue",
    "QueueClosed",
    "QueueFull",
    "QueueItem",
    "QueueSettings",
    "QueueUnavailable",
    "RateLimited",
    "Reject",
    "Retry",
    "Snapshot",
    "TaskNotFound",
    "UnknownPriority",
    "backpressure",
]
