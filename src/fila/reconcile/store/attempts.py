"""Writes attempts: log, snapshot, trust and alert in one transaction, each attempt once."""

from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from fila.reconcile.domain.alerts import Alert, alert_for, window_start_ms
from fila.reconcile.domain.models import ClaimedMetrics, Post, Report, Status
from fila.reconcile.store.database import Database, changed
from fila.reconcile.store.records import Attempt, OpenReport
from fila.reconcile.store.tables import AffiliateRow, AlertRow, AttemptRow, ReportRow, SnapshotRow, TrustEventRow


class Attempts:
    """The log of attempts and all that follows from it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_report(self, report_id: str) -> OpenReport | None:
        """The report; None if it is done or does not exist."""
        with self._database.reading() as session:
            row = session.get(ReportRow, report_id)
            if row is None or row.done_at_ms is not None:
                return None
            return OpenReport(
                report=_report(row),
                correlation_id=row.correlation_id,
                priority=row.priority,
                submitted_at_ms=row.submitted_at_ms,
                attempts=row.attempts,
                missing=row.missing,
                incomplete=row.incomplete,
            )

    def record(self, attempt: Attempt) -> bool:
        """Write log, snapshot, trust and alert of an attempt at once. False if that attempt was written before."""
        with self._database.writing() as session:
            if not self._log(session, attempt) or not self._advance(session, attempt):
                session.rollback()
                return False
            repeats = self._move_trust(session, attempt)
            if attempt.seen is not None:
                views, clicks, conversions = attempt.seen
                session.execute(
                    insert(SnapshotRow).values(
                        report_id=attempt.report.report_id,
                        attempt=attempt.number,
                        observed_at_ms=attempt.seen.observed_at_ms,
                        views=views,
                        clicks=clicks,
                        conversions=conversions,
                    )
                )
            verdict = attempt.verdict
            alert = alert_for(
                verdict.status,
                verdict.level,
                verdict.reason,
                attempt.alerts,
                final=attempt.retry_at_ms is None,
                repeats=repeats,
            )
            if alert is not None:
                session.execute(insert(AlertRow).values(**_alert_values(attempt, alert)))
            return True

    def _log(self, session: Session, attempt: Attempt) -> bool:
        verdict = attempt.verdict
        views_bp, clicks_bp, conversions_bp = verdict.differences_bp
        statement = self._database.insert_new(AttemptRow).values(
            report_id=attempt.report.report_id,
            attempt=attempt.number,
            affiliate_id=attempt.report.post.affiliate_id,
            at_ms=attempt.at_ms,
            status=verdict.status,
            level=verdict.level,
            reason=verdict.reason,
            confidence_bp=verdict.confidence_bp,
            over_bp=verdict.over_bp,
            difference_bp=verdict.difference_bp,
            views_bp=views_bp,
            clicks_bp=clicks_bp,
            conversions_bp=conversions_bp,
            explanation=attempt.explanation,
            retry_at_ms=attempt.retry_at_ms,
        )
        return session.scalar(statement.returning(AttemptRow.attempt)) is not None

    def _advance(self, session: Session, attempt: Attempt) -> bool:
        """The report is one attempt further. It is not when another attempt came in between."""
        verdict = attempt.verdict
        done = session.execute(
            update(ReportRow)
            .where(
                ReportRow.id == attempt.report.report_id,
                ReportRow.attempts == attempt.number - 1,
                ReportRow.done_at_ms.is_(None),
            )
            .values(
                status=verdict.status,
                level=verdict.level,
                reason=verdict.reason,
                confidence_bp=verdict.confidence_bp,
                attempts=attempt.number,
                missing=ReportRow.missing + int(verdict.status is Status.MISSING_PLATFORM_DATA),
                incomplete=ReportRow.incomplete + int(verdict.status is Status.INCOMPLETE_PLATFORM_DATA),
                due_at_ms=attempt.retry_at_ms,
                queued=False,
                done_at_ms=attempt.at_ms if attempt.retry_at_ms is None else None,
            )
        )
        return changed(done)

    def _move_trust(self, session: Session, attempt: Attempt) -> int:
        """Apply the step. Returns how many high discrepancies the affiliate has had lately, this one included.

        The affiliate's row stays locked until commit, so the count is right while others are written too.
        """
        affiliate_id = attempt.report.post.affiliate_id
        high = attempt.verdict.status is Status.DISCREPANCY_HIGH
        if attempt.delta_bp == 0 and not high:
            return 1
        session.execute(
            update(AffiliateRow)
            .where(AffiliateRow.id == affiliate_id)
            .values(trust_total_bp=AffiliateRow.trust_total_bp + attempt.delta_bp)
        )
        session.execute(
            insert(TrustEventRow).values(
                report_id=attempt.report.report_id,
                attempt=attempt.number,
                affiliate_id=affiliate_id,
                delta_bp=attempt.delta_bp,
                at_ms=attempt.at_ms,
            )
        )
        if not high:
            return 1
        since_ms = window_start_ms(attempt.at_ms, attempt.alerts)
        query = select(func.count()).where(
            AttemptRow.affiliate_id == affiliate_id,
            AttemptRow.status == Status.DISCREPANCY_HIGH,
            AttemptRow.at_ms >= since_ms,
        )
        return session.scalar(query) or 1


def _report(row: ReportRow) -> Report:
    post = Post(row.platform, row.post_id, row.affiliate_id, row.campaign_id)
    return Report(row.id, post, ClaimedMetrics(row.views, row.clicks, row.conversions), row.reported_at_ms)


def _alert_values(attempt: Attempt, alert: Alert) -> dict[str, Any]:
    return {
        "report_id": attempt.report.report_id,
        "attempt": attempt.number,
        "affiliate_id": attempt.report.post.affiliate_id,
        "platform": attempt.report.post.platform,
        "kind": alert.kind,
        "severity": alert.severity,
        "text": attempt.explanation,
        "at_ms": attempt.at_ms,
    }
