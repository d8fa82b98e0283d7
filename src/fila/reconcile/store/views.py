"""Read-only queries."""

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import Select, func, select

from fila.reconcile.store.database import Database
from fila.reconcile.store.tables import AffiliateRow, AlertRow, AttemptRow, Base, ReportRow

Row = TypeVar("Row", bound=Base)


class Views:
    """Reports, alerts, affiliates, and counts of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def report(self, report_id: str) -> tuple[ReportRow, Sequence[AttemptRow]] | None:
        """A report and its log."""
        with self._database.reading() as session:
            row = session.get(ReportRow, report_id)
            if row is None:
                return None
            log = select(AttemptRow).where(AttemptRow.report_id == report_id).order_by(AttemptRow.attempt)
            return row, session.scalars(log).all()

    def alerts(
        self, *, limit: int, before: int | None = None, affiliate_id: str | None = None, kind: str | None = None
    ) -> Sequence[AlertRow]:
        """The newest alerts. `before` is the id of the last one seen."""
        query = select(AlertRow).order_by(AlertRow.id.desc()).limit(limit)
        if before is not None:
            query = query.where(AlertRow.id < before)
        if affiliate_id is not None:
            query = query.where(AlertRow.affiliate_id == affiliate_id)
        if kind is not None:
            query = query.where(AlertRow.kind == kind)
        return self._all(query)

    def affiliate(self, affiliate_id: str) -> AffiliateRow | None:
        with self._database.reading() as session:
            return session.get(AffiliateRow, affiliate_id)

    def affiliates(self, *, limit: int, after: str = "") -> Sequence[AffiliateRow]:
        """Affiliates by id. `after` is the id of the last one seen."""
        return self._all(select(AffiliateRow).where(AffiliateRow.id > after).order_by(AffiliateRow.id).limit(limit))

    def least_trusted(self, limit: int) -> Sequence[AffiliateRow]:
        return self._all(select(AffiliateRow).order_by(AffiliateRow.trust_total_bp, AffiliateRow.id).limit(limit))

    def outcomes(self) -> dict[tuple[str, bool], int]:
        """Reports by status (`PENDING` before the first attempt) and whether they are done."""
        done = ReportRow.done_at_ms.is_not(None)
        status = func.coalesce(ReportRow.status, "PENDING")
        with self._database.reading() as session:
            rows = session.execute(select(status, done, func.count()).group_by(status, done))
            return {(str(name), bool(final)): count for name, final, count in rows}

    def alert_counts(self) -> dict[tuple[str, str], int]:
        """Alerts by kind and severity."""
        with self._database.reading() as session:
            rows = session.execute(
                select(AlertRow.kind, AlertRow.severity, func.count()).group_by(AlertRow.kind, AlertRow.severity)
            )
            return {(kind, severity): count for kind, severity, count in rows}

    def _all(self, query: Select[Row]) -> Sequence[Row]:
        with self._database.reading() as session:
            return session.scalars(query).all()
