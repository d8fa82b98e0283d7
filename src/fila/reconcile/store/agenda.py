"""What is due.

The database, not the queue, is the truth about what is still to be done: a job that a queue lost is missed here and
queued again, which is harmless, since an attempt takes effect once.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import select, true, update
from sqlalchemy.orm import Session

from fila.reconcile.store.database import Database
from fila.reconcile.store.records import DueReport
from fila.reconcile.store.tables import ReportRow


class Agenda:
    """Which open reports have to be put in the queue."""

    def __init__(self, database: Database, requeue_after_ms: int) -> None:
        self._database = database
        self._requeue_after_ms = requeue_after_ms

    def take_due(self, before_ms: int, limit: int, *, missed: bool) -> list[DueReport]:
        """Open reports whose next attempt is due by then. They count as queued, and as missed after the requeue time.

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
            self._hold(session, [row.id for row in rows], before_ms)
            return due

    def postpone(self, report_id: str, until_ms: int) -> None:
        """Its job is in the queue, but not before then: it is not missed until the requeue time after it."""
        with self._database.writing() as session:
            self._hold(session, [report_id], until_ms)

    def release(self, due_at_ms: Mapping[str, int]) -> None:
        """Jobs of these reports did not get into the queue: they are due at these times again."""
        with self._database.writing() as session:
            for report_id, at_ms in sorted(due_at_ms.items()):
                values = {"due_at_ms": at_ms, "queued": False}
                still = ReportRow.id == report_id, ReportRow.done_at_ms.is_(None)
                session.execute(update(ReportRow).where(*still).values(values))

    def _hold(self, session: Session, ids: Sequence[str], from_ms: int) -> None:
        if ids:
            session.execute(
                update(ReportRow)
                .where(ReportRow.id.in_(ids), ReportRow.done_at_ms.is_(None))
                .values(due_at_ms=from_ms + self._requeue_after_ms, queued=True)
            )


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
