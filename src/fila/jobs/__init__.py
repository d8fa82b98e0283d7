"""Jobs on top of a queue: priorities, delays, workers, retries. See docs/jobs.md.

What needs an extra package, or a connection, is looked up when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
from fila.jobs.factory import create_queue
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.pressure import Backpressure, backpressure
from fila.jobs.queue import JobQueue, Snapshot
from fila.jobs.settings import FilaSettings, QueueSettings

if TYPE_CHECKING:
    from fila.jobs.redis.queue import RedisQueue

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
    "RedisQueue",
    "Reject",
    "Retry",
    "Snapshot",
    "TaskNotFound",
    "UnknownPriority",
    "backpressure",
    "create_queue",
]

_LATER = {"RedisQueue": "fila.jobs.redis.queue"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'fila.jobs' has no attribute {name!r}")
