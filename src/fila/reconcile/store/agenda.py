"""What is due.

The database, not the queue, is the truth about what is still to be done: a job that a queue lost is missed here and
queued again, which is harmless, since an attempt takes effect once.
"""

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from fila.reconcile.store.database import Database
from fila.reconcile.store.records import DueReport
from fila.reconcile.store.tables import ReportRow


class Agenda:
    """Which open reports have to be put in the queue."""

    def __init__(self, database: Database, requeue_after_ms: int) -> None:
        self._database = database
        self._requeue_after_ms = requeue_after_ms

    def take_due(self, now_ms: int, limit: int) -> list[DueReport]:
        """Open reports whose next attempt has to be queued now. They are not named again before the requeue time."""
        with self._database.writing() as session:
            query = (
                select(ReportRow)
                .where(ReportRow.due_at_ms <= now_ms)
                .order_by(ReportRow.due_at_ms)
                .limit(limit)
                .with_for_update(skip_locked=True)
            )
            rows = session.scalars(query).all()
            self._hold(session, [row.id for row in rows], now_ms)
            return [
                DueReport(row.id, row.attempts + 1, row.affiliate_id, row.platform, row.priority, row.correlation_id)
                for row in rows
            ]

    def postpone(self, report_id: str, until_ms: int) -> None:
        """Its job is in the queue, but not before then: it is not missed until the requeue time after it."""
        with self._database.writing() as session:
            self._hold(session, [report_id], until_ms)

    def release(self, ids: Sequence[str], now_ms: int) -> None:
        """Their jobs did not get into the queue: they are due now."""
        with self._database.writing() as session:
            self._hold(session, ids, now_ms - self._requeue_after_ms)

    def _hold(self, session: Session, ids: Sequence[str], from_ms: int) -> None:
        if ids:
            session.execute(
                update(ReportRow)
                .where(ReportRow.id.in_(ids), ReportRow.done_at_ms.is_(None))
                .values(due_at_ms=from_ms + self._requeue_after_ms)
            )
