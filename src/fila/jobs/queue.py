"""What every job queue can do. Three backends keep this contract, and one suite of tests holds them to it.

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

        None means that the time was over, that the wait was interrupted, or that the queue was shut down and nothing is
        ready. Raises QueueUnavailable when nothing can come any more, as in a child of the process.
        """

    def interrupt(self) -> None:
        """Everybody who waits in `dequeue` gets None now."""

    def ack(self, item: QueueItem) -> None:
        """The job is done. Raises ClaimLost."""

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:
        """Hand the job out again later, as its next attempt. Raises ClaimLost."""

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        """Hand the job out again later, as the same attempt. Raises ClaimLost."""

    def bury(self, item: QueueItem, error: str) -> None:
        """Give the job up, keeping it for a person to look at. Raises ClaimLost."""

    def extend(self, item: QueueItem) -> None:
        """The worker is alive: the claim holds for another lease from now. Raises ClaimLost."""

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        """The jobs that were given up, the oldest first."""

    def redrive(self, limit: int | None = None) -> int:
        """Make dead jobs ready again, the oldest first, their attempts forgotten. Returns how many."""

    def snapshot(self) -> Snapshot:
        """Count what is there."""

    def purge(self) -> None:
        """Forget every job, claimed and dead ones too. For tests."""

    def shutdown(self) -> None:
        """Take no more jobs. What is ready is still handed out; who waits for more is told that there is none."""

    def close(self) -> None:
        """Shut down, and give back connections and threads."""
