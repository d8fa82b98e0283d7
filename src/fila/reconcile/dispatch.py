"""Reports on their way into the queue and out of it. A job names a report and an attempt; all else is in the store."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from fila.jobs.queue import JobQueue
from fila.jobs.scheduler import DueRetry
from fila.reconcile.store import DueReport, Store

logger = logging.getLogger(__name__)


class NotOurJob(ValueError):
    """A job in the queue that does not name a report and an attempt."""


@dataclass(frozen=True, slots=True)
class ReconciliationJob:
    """Reconcile this report, as this attempt. An attempt that was made before is not made again."""

    affiliate_report_id: str
    attempt: int

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Read what a queue handed out. Raises NotOurJob."""
        if isinstance(payload, Mapping) and payload.keys() == {"affiliate_report_id", "attempt"}:
            report_id, attempt = payload["affiliate_report_id"], payload["attempt"]
            if isinstance(report_id, str) and 0 < len(report_id) <= 32 and type(attempt) is int and attempt >= 1:
                return cls(report_id, attempt)
        raise NotOurJob("expected an affiliate_report_id and an attempt")

    @property
    def payload(self) -> dict[str, Any]:
        return {"affiliate_report_id": self.affiliate_report_id, "attempt": self.attempt}


def enqueue(queue: JobQueue, due: DueReport, now_ms: int) -> None:
    """Queue the attempt, with what is left of its time as delay. Raises JobsError."""
    job = as_retry(due)
    queue.enqueue(
        job.job,
        job.priority,
        max(0, due.due_at_ms - now_ms) / 1000,
        correlation_id=job.correlation_id,
        key=job.key,
        headers=job.headers,
    )


def as_retry(due: DueReport) -> DueRetry:
    """The job: its key is the affiliate, for fair turns; its header the platform, for throttles."""
    return DueRetry(
        id=due.report_id,
        job=ReconciliationJob(due.report_id, due.attempt).payload,
        due_at=due.due_at_ms / 1000,
        priority=due.priority,
        correlation_id=due.correlation_id,
        key=due.affiliate_id,
        headers={"platform": due.platform},
    )


class StoredRetries:
    """The store as the source of the retry scheduler.

    What is named by `due` is held in the store at once, so several schedulers never name the same. What was named and
    could not be enqueued goes back at the next call. Jobs that a queue may have lost are named while it is short.
    """

    def __init__(self, store: Store, queue: JobQueue) -> None:
        self._store = store
        self._queue = queue
        self._named: dict[str, DueReport] = {}

    def due(self, before: float, limit: int) -> Sequence[DueRetry]:
        if self._named:
            self._store.due_reports.release(self._named.values())
            self._named = {}
        short = self._queue.snapshot()["ready"] < limit
        found = self._store.due_reports.take(int(before * 1000), limit, missed=short)
        self._named = {each.report_id: each for each in found}
        return [as_retry(each) for each in found]

    def mark(self, ids: Sequence[str]) -> None:
        for each in ids:
            self._named.pop(each, None)
