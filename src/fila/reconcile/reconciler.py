"""One attempt at one report: ask the platform, classify, decide, write. Only here the rules meet I/O."""

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from fila.reconcile.domain.classify import classify, explain
from fila.reconcile.domain.models import Fetched, Post, Reason, Status
from fila.reconcile.domain.retry import Past, next_attempt_ms
from fila.reconcile.domain.settings import Settings
from fila.reconcile.domain.trust import deltas
from fila.reconcile.store import Attempt, OpenReport, Store

logger = logging.getLogger(__name__)

ClockMs = Callable[[], int]


class Deferred(Exception):
    """The platform cannot be asked for now. It was not the report's fault and does not count as an attempt."""

    def __init__(self, platform: str, wait_ms: int) -> None:
        super().__init__(f"platform {platform} is not asked for another {wait_ms} ms")
        self.wait_ms = wait_ms


class Outcome(StrEnum):
    """What an attempt came to."""

    DONE = "done"
    TO_BE_RETRIED = "to_be_retried"
    #: The attempt was made before, or the report is done.
    REPEATED = "repeated"


class Source(Protocol):
    """Where figures come from."""

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        """The post's figures, or why there are none. BREAKER_OPEN means that nobody was asked."""


class Reconciler:
    """Makes attempts. Safe to use from many threads and processes: an attempt takes effect once."""

    def __init__(self, store: Store, source: Source, settings: Settings, clock_ms: ClockMs) -> None:
        self._store = store
        self._source = source
        self._settings = settings
        self._clock_ms = clock_ms
        self._deltas = deltas(settings)

    def attempt(self, report_id: str, number: int) -> Outcome:
        """Make the attempt, unless it was made. Raises Deferred, and StoreError when nothing could be written."""
        open_report = self._store.attempts.open_report(report_id)
        if open_report is None or number <= open_report.attempts:
            return Outcome.REPEATED
        fetched = self._source.fetch(open_report.report.post, self._clock_ms())
        now_ms = self._clock_ms()
        if fetched.failure is Reason.BREAKER_OPEN and self._may_wait(open_report, now_ms + fetched.retry_after_ms):
            self._store.due_reports.postpone(report_id, open_report.attempts + 1, now_ms + fetched.retry_after_ms)
            raise Deferred(open_report.report.post.platform, fetched.retry_after_ms)
        attempt = self._judge(open_report, fetched, now_ms)
        if not self._store.attempts.record(attempt):
            return Outcome.REPEATED
        logger.info(
            "report reconciled",
            extra={
                "report_id": report_id,
                "attempt": attempt.number,
                "status": attempt.verdict.status.value,
                "reason": attempt.verdict.reason.value,
                "retry_at_ms": attempt.retry_at_ms,
                "correlation_id": open_report.correlation_id,
            },
        )
        return Outcome.DONE if attempt.retry_at_ms is None else Outcome.TO_BE_RETRIED

    def _may_wait(self, open_report: OpenReport, until_ms: int) -> bool:
        return until_ms <= open_report.submitted_at_ms + self._settings.retries.within_ms

    def _judge(self, open_report: OpenReport, fetched: Fetched, now_ms: int) -> Attempt:
        verdict = classify(open_report.report, fetched, self._settings)
        past = Past(
            submitted_at_ms=open_report.submitted_at_ms,
            attempt=open_report.attempts + 1,
            missing=open_report.missing + (verdict.status is Status.MISSING_PLATFORM_DATA),
            incomplete=open_report.incomplete + (verdict.status is Status.INCOMPLETE_PLATFORM_DATA),
        )
        retries = self._settings.retries
        return Attempt(
            report=open_report.report,
            number=past.attempt,
            at_ms=now_ms,
            seen=fetched.observation,
            verdict=verdict,
            explanation=explain(open_report.report.claimed, fetched.observation, verdict),
            delta_bp=self._deltas[verdict.status],
            retry_at_ms=next_attempt_ms(verdict.status, past, now_ms, retries, fetched.retry_after_ms),
            alerts=self._settings.alerts,
        )
