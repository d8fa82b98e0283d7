"""The contract of a job queue. Three backends implement it; one contract test suite runs over all of them.

A job is `ready` (may be handed out), `scheduled` (not before its time), `claimed` (a worker has it) or `dead`:

    enqueue -> ready | scheduled      scheduled -> ready when its time has come
    dequeue: ready -> claimed         the most urgent priority first, in the order of enqueueing within it
    ack: claimed -> gone              retry, defer: claimed -> ready | scheduled
    bury: claimed -> dead             redrive: dead -> ready
    a claim that was neither settled nor extended within the lease: claimed -> ready, one attempt more
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict

from fila.jobs.item import DeadJob, QueueItem


class Snapshot(TypedDict):
    """A queue at one moment."""

    #: Jobs that wait: ready and scheduled.
    depth: int
    ready: int
    scheduled: int
    claimed: int
    dead: int
    shutdown: bool
    #: Whether jobs are kept in Redis right now. Always False for the other backends.
    redis_active: bool
    #: "memory", "redis" or "fila".
    backend: str


class JobQueue(Protocol):
    """A queue of jobs with priorities and delays. Every method may be called from any thread."""

    @property
    def durable(self) -> bool:
        """Whether jobs outlive the process."""

    @property
    def backend(self) -> str:
        """Where jobs are kept: "memory", "redis" or "fila"."""

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue takes no more jobs. Known without asking anybody."""

    @property
    def lease_seconds(self) -> float:
        """How long a claim holds without being extended."""

    def enqueue(
        self,
        job: Any,
        priority: str = "normal",
        delay_seconds: float = 0,
        *,
        correlation_id: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> QueueItem:
        """Take a job. Raises UnknownPriority, QueueFull, QueueClosed, InvalidJob or QueueUnavailable."""

    def dequeue(self, timeout: float | None = None) -> QueueItem | None:
        """Claim the next job, waiting up to `timeout` seconds (None: as long as it takes, 0: not at all).

        None means: the timeout ended, `interrupt` was called, or the queue has been shut down and no job is ready.
        Raises QueueUnavailable when no job can come any more, for example in a forked child.
        """

    def interrupt(self) -> None:
        """Make every waiting `dequeue` return None now."""

    def ack(self, item: QueueItem) -> None:
        """The job is done. Raises LeaseLost."""

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:
        """Hand the job out again later, as its next attempt. Raises LeaseLost."""

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        """Hand the job out again later, as the same attempt. Raises LeaseLost."""

    def bury(self, item: QueueItem, error: str) -> None:
        """Move the job to the dead letters. Raises LeaseLost."""

    def extend(self, item: QueueItem) -> None:
        """Extend the lease. Raises LeaseLost."""

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        """The dead letters, oldest first."""

    def redrive(self, limit: int | None = None) -> int:
        """Make dead letters ready again, oldest first, with attempts counted from 1. Returns how many."""

    def snapshot(self) -> Snapshot:
        """Counts of jobs by state. Raises QueueUnavailable; NotAllowed if the API key may not see them."""

    def purge(self) -> None:
        """Delete every job, including claimed ones and dead letters. For tests."""

    def shutdown(self) -> None:
        """Take no more jobs. Ready jobs are still handed out; after them `dequeue` returns None."""

    def close(self) -> None:
        """Shut down, and release connections and threads."""
