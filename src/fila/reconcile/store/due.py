"""Open reports whose next attempt is due.

The database, not the queue, is the truth about what is still to be done. A job that a queue lost is overdue here and
queued again. That is harmless, since an attempt takes effect once.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, select, true, update

from fila.reconcile.store.database import Database
from fila.reconcile.store.records import DueReport
from fila.reconcile.store.tables import ReportRow


class DueReports:
    """Open reports that have to be put in the queue."""

    def __init__(self, database: Database, requeue_after_ms: int) -> None:
        self._database = database
        self._requeue_after_ms = requeue_after_ms

    def take(self, before_ms: int, limit: int, *, missed: bool) -> list[DueReport]:
        """Open reports whose next attempt is due by then. They count as queued, and as lost after the requeue time.

        With `missed`, also those whose job was queued and not heard of. Ask for them when the queue is short: in a long
        one they are more likely to wait than to be lost, and would be in it twice.
        """
        with self._database.writing() as session:
            query = (
                select(ReportRow)
                .where(ReportRow.due_at_ms <= before_ms, true() if missed else ReportRow.queued.is_(False))
                .order_by(ReportRow.due_at_ms)
                .limit(limit)
                .with_for_update(skip_locked=True)
            )
            rows = session.scalars(query).all()
            due = [_due(row) for row in rows]
            if due:
                values = {"due_at_ms": before_ms + self._requeue_after_ms, "queued": True}
                session.execute(update(ReportRow).where(ReportRow.id.in_([row.id for row in rows])).values(values))
            return due

    def postpone(self, report_id: str, attempt: int, until_ms: int) -> None:
        """The job of this attempt is in the queue, but not before then: it is not missed until the requeue time after
        it. An attempt that was made meanwhile has planned the next one, and that holds.
        """
        with self._database.writing() as session:
            values = {"due_at_ms": until_ms + self._requeue_after_ms, "queued": True}
            session.execute(update(ReportRow).where(*_waits_for(report_id, attempt)).values(values))

    def release(self, reports: Iterable[DueReport]) -> None:
        """The jobs of these did not get into the queue, as far as is known: they are due at their times again. One that
        did, and made its attempt, has planned the next one, and that holds.
        """
        with self._database.writing() as session:
            for due in sorted(reports, key=lambda each: each.report_id):
                values = {"due_at_ms": due.due_at_ms, "queued": False}
                session.execute(update(ReportRow).where(*_waits_for(due.report_id, due.attempt)).values(values))


def _waits_for(report_id: str, attempt: int) -> tuple[ColumnElement[bool], ...]:
    """The report is open and this is its next attempt."""
    return ReportRow.id == report_id, ReportRow.attempts == attempt - 1, ReportRow.done_at_ms.is_(None)


def _due(row: ReportRow) -> DueReport:
    return DueReport(
        report_id=row.id,
        attempt=row.attempts + 1,
        due_at_ms=row.due_at_ms or 0,
        affiliate_id=row.affiliate_id,
        platform=row.platform,
        priority=row.priority,
        correlation_id=row.correlation_id,
    )
