"""Reports on their way into the queue. A job names a report and an attempt; everything else is in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fila.jobs.queue import JobQueue
from fila.reconcile.store import DueReport


class NotOurJob(ValueError):
    """A job in the queue that does not name a report and an attempt."""


@dataclass(frozen=True, slots=True)
class ReconciliationJob:
    """Reconcile this report, as this attempt. An attempt that was made before is not made again."""

    report_id: str
    attempt: int

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        """Read what a queue handed out. Raises NotOurJob."""
        if isinstance(payload, Mapping) and payload.keys() == {"report_id", "attempt"}:
            report_id, attempt = payload["report_id"], payload["attempt"]
            if isinstance(report_id, str) and 0 < len(report_id) <= 32 and type(attempt) is int and attempt >= 1:
                return cls(report_id, attempt)
        raise NotOurJob("expected a report_id and an attempt")

    @property
    def payload(self) -> dict[str, Any]:
        return {"report_id": self.report_id, "attempt": self.attempt}


def enqueue(queue: JobQueue, due: DueReport, delay_ms: int = 0) -> None:
    """Queue the attempt. Its key is the affiliate, for fair turns; its header the platform, for throttles.

    Raises JobsError.
    """
    queue.enqueue(
        ReconciliationJob(due.report_id, due.attempt).payload,
        priority=due.priority,
        delay_seconds=delay_ms / 1000,
        correlation_id=due.correlation_id,
        key=due.affiliate_id,
        headers={"platform": due.platform},
    )
