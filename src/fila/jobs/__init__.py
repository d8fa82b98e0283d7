"""Jobs on top of a queue: priorities, delays, workers, retries. See docs/jobs.md.

Names that need an extra package are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from fila.jobs.app import App, AppSettings, Worker
from fila.jobs.breaker import BreakerSettings, CircuitBreaker, LocalStore
from fila.jobs.codec import DataclassCodec, JobCodec, JsonCodec
from fila.jobs.context import CorrelationFilter, JobContext, current_job
from fila.jobs.errors import (
    CircuitOpen,
    Defer,
    InvalidJob,
    InvalidSettings,
    JobsError,
    LeaseLost,
    NotAllowed,
    QueueClosed,
    QueueFull,
    QueueUnavailable,
    RateLimited,
    Reject,
    Retry,
    TaskNotFound,
    UnknownPriority,
)
from fila.jobs.events import Event, Hook
from fila.jobs.exporter import MetricsServer
from fila.jobs.factory import create_queue
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.metrics import Counters
from fila.jobs.pool import PoolSettings, WorkerPool
from fila.jobs.pressure import Backpressure, backpressure
from fila.jobs.queue import JobQueue, Snapshot
from fila.jobs.retry import RetryPolicy
from fila.jobs.runner import LAST_EXCEPTIONS, AttemptLog, JobRunner, RunnerSettings
from fila.jobs.scheduler import DueRetry, RetryScheduler, RetrySource, SchedulerSettings
from fila.jobs.settings import FilaSettings, QueueSettings
from fila.jobs.task import Task, TaskOptions

if TYPE_CHECKING:
    from fila.jobs.broker.queue import FilaQueue
    from fila.jobs.redis.breaker import RedisBreakerStore
    from fila.jobs.redis.queue import RedisQueue

__all__ = [
    "LAST_EXCEPTIONS",
    "QUEUE_SETTINGS",
    "App",
    "AppSettings",
    "AttemptLog",
    "Backpressure",
    "BreakerSettings",
    "CircuitBreaker",
    "CircuitOpen",
    "CorrelationFilter",
    "Counters",
    "DataclassCodec",
    "DeadJob",
    "Defer",
    "DueRetry",
    "Event",
    "FilaQueue",
    "FilaSettings",
    "Hook",
    "InvalidJob",
    "InvalidSettings",
    "JobCodec",
    "JobContext",
    "JobQueue",
    "JobRunner",
    "JobsError",
    "JsonCodec",
    "LeaseLost",
    "LocalStore",
    "MetricsServer",
    "NotAllowed",
    "PoolSettings",
    "PriorityDelayQueue",
    "QueueClosed",
    "QueueFull",
    "QueueItem",
    "QueueSettings",
    "QueueUnavailable",
    "RateLimited",
    "RedisBreakerStore",
    "RedisQueue",
    "Reject",
    "Retry",
    "RetryPolicy",
    "RetryScheduler",
    "RetrySource",
    "RunnerSettings",
    "SchedulerSettings",
    "Snapshot",
    "Task",
    "TaskNotFound",
    "TaskOptions",
    "UnknownPriority",
    "Worker",
    "WorkerPool",
    "backpressure",
    "create_queue",
    "current_job",
]

_LATER = {
    "FilaQueue": "fila.jobs.broker.queue",
    "RedisBreakerStore": "fila.jobs.redis.breaker",
    "RedisQueue": "fila.jobs.redis.queue",
}


def __getattr__(name: str) -> object:
    if name == "QUEUE_SETTINGS":
        return QueueSettings.from_env()
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'fila.jobs' has no attribute {name!r}")
