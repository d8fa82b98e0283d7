"""The retry scheduler: enqueues work that an application has scheduled for later, when its time has come.

The application keeps what is to be done and when (`scheduled_retry_at`) in its own database, behind `RetrySource`; so
nothing is forgotten by a restart. A crash between enqueueing and marking enqueues a retry twice: mark it by a key under
which it is done once (`AttemptLog`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fila.jobs.errors import JobsError
from fila.jobs.queue import JobQueue
from fila.jobs.settings import JobsSection
from fila.settings import seconds, whole_number

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DueRetry:
    """One piece of work that was put off."""

    #: Names it to its source.
    id: str
    job: Any
    #: Seconds since the epoch.
    due_at: float
    priority: str = "normal"
    correlation_id: str | None = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class RetrySource(Protocol):
    """Where retries are kept until they are enqueued. Its methods may raise; they are called again later."""

    def due(self, before: float, limit: int) -> Sequence[DueRetry]:
        """Retries that are due before that time and are not marked, the earliest first."""

    def mark(self, ids: Sequence[str]) -> None:
        """They are enqueued."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings(JobsSection):
    """How often the source is asked."""

    interval_seconds: float = seconds(5.0)
    #: A retry that is due within this time is enqueued already, with the rest as its delay: it is then never late by
    #: an interval. At least the interval.
    horizon_seconds: float = seconds(10.0)
    batch: int = whole_number(500, 1)

    def check(self) -> None:
        self.require(self.horizon_seconds >= self.interval_seconds, "horizon_seconds >= interval_seconds")


class RetryScheduler:
    """Asks a source again and again, on a thread of its own."""

    def __init__(
        self,
        source: RetrySource,
        queue: JobQueue,
        settings: SchedulerSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._queue = queue
        self._settings = settings or SchedulerSettings()
        self._clock = clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def run_once(self) -> int:
        """Enqueue what is due within the horizon, or one batch of it once stopped. Returns how much it was."""
        count = 0
        while True:
            now = self._clock()
            batch = self._source.due(now + self._settings.horizon_seconds, self._settings.batch)
            for retry in batch:
                self._queue.enqueue(
                    retry.job,
                    retry.priority,
                    max(0.0, retry.due_at - now),
                    correlation_id=retry.correlation_id,
                    key=retry.key,
                    headers=retry.headers,
                )
                self._source.mark([retry.id])
            count += len(batch)
            # A batch is never left in the middle: a source may hold what it has named.
            if len(batch) < self._settings.batch or self._stopping.is_set():
                return count

    def start(self) -> None:
        """Ask now, and then at every interval."""
        if self._thread is not None:
            raise RuntimeError("the scheduler has already been started")
        self._thread = threading.Thread(target=self._live, name="fila-retry-scheduler", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """Ask no more. What is at hand, at most a batch, is enqueued; without `wait`, after the return."""
        self._stopping.set()
        if wait and self._thread is not None:
            self._thread.join()

    def _live(self) -> None:
        while not self._stopping.is_set():
            try:
                if count := self.run_once():
                    logger.info("enqueued retries", extra={"retries": count})
            except JobsError as error:
                logger.warning("retries could not be enqueued yet: %s", error)
            except Exception:
                logger.exception("the retries could not be enqueued; trying again")
            self._stopping.wait(self._settings.interval_seconds)
