"""Events of queues, workers and breakers, as values for hooks. Nothing here knows where they go.

A hook is called on the thread on which it happened, so it must be quick; one that fails is logged and skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

logger = logging.getLogger(__name__)

Outcome = Literal["done", "retried", "deferred", "dead", "lost", "repeated"]


@dataclass(frozen=True, slots=True)
class DepthSeen:
    """How many jobs wait (`queue_depth`)."""

    queue: str
    depth: int


@dataclass(frozen=True, slots=True)
class JobTaken:
    """A worker took a job, this long after it was ready (`dequeue_latency`)."""

    queue: str
    latency_seconds: float


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A worker has finished with a job (`job_processing_duration`, `job_failures_total`)."""

    queue: str
    outcome: Outcome
    seconds: float
    #: The class of what the handler raised.
    error: str | None = None


@dataclass(frozen=True, slots=True)
class BreakerChanged:
    """A circuit breaker was made, or changed its state (`breaker_state`)."""

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class RedisSeen:
    """Redis is available, became unavailable, or is back (`redis_health`)."""

    healthy: bool


Event = DepthSeen | JobTaken | JobEnded | BreakerChanged | RedisSeen


class Hook(Protocol):
    """Called with every event."""

    def __call__(self, event: Event, /) -> None: ...


def emit(hooks: Iterable[Hook], event: Event) -> None:
    """Call every hook."""
    for hook in hooks:
        try:
            hook(event)
        except Exception:  # noqa: BLE001  it is logged
            log_exception(logger, "a hook failed", event=type(event).__name__)


def log_exception(log: logging.Logger, message: str, **fields: Any) -> None:
    """Log the exception that is being handled."""
    log_safely(log, logging.ERROR, message, exc_info=True, **fields)


def log_safely(log: logging.Logger, level: int, message: str, *, exc_info: bool = False, **fields: Any) -> None:
    """Log, and go on if that fails: a log that cannot be written must not end a thread or lose a job."""
    with suppress(Exception):
        log.log(level, message, exc_info=exc_info, extra=fields)
