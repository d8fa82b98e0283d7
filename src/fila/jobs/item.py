"""A job in a queue, and a dead letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A job with what the queue knows about it. Times are seconds since the epoch."""

    #: What is to be done, as the caller gave it.
    job: Any = field(repr=False)
    priority_label: str
    #: Lower is more urgent.
    priority_value: int
    enqueued_at: float
    #: Not handed out before.
    ready_at: float
    #: Grows with each enqueue; decides between jobs of one priority.
    seq: int
    #: Names the job for as long as it lives, over retries and restarts.
    id: str = ""
    #: Follows the work through logs and headers.
    correlation_id: str | None = None
    #: Whose job it is. The Fila backend serves keys in fair turns.
    key: str | None = None
    #: More about it, for whoever handles it; the Fila backend makes them headers of the message.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Which try this is, from 1. Grows when the job is retried and when its worker was lost.
    attempt: int = 1
    #: The right to settle this delivery. Empty while nobody has claimed the job.
    claim: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class DeadJob:
    """A dead letter: a job that is not tried again, and why."""

    item: QueueItem
    error: str
    died_at: float
