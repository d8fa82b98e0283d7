"""Takes reports: all of a batch or none, and each once per idempotency key."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select, tuple_, update
from sqlalchemy.orm import Session

from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import Settings
from fila.reconcile.domain.suspicion import Admission, admit
from fila.reconcile.domain.trust import score_bp
from fila.reconcile.store.database import Database
from fila.reconcile.store.records import Submission, Submitted
from fila.reconcile.store.tables import AffiliateRow, PostRow, ReportRow


class SubmissionRefused(Exception):
    """A submission contradicts what is already there; nothing of its batch was taken. `index` says which one."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index


class KeyReused(SubmissionRefused):
    """The idempotency key was used for a different report."""

    def __init__(self, index: int) -> None:
        super().__init__(index, "this idempotency key was used for a different report")


class PostTaken(SubmissionRefused):
    """The post belongs to another affiliate."""

    def __init__(self, index: int) -> None:
        super().__init__(index, POST_TAKEN)


def new_report_id() -> str:
    """A unique id."""
    return uuid.uuid4().hex


class Intake:
    """Takes submissions."""

    def __init__(self, database: Database, settings: Settings, requeue_after_ms: int) -> None:
        self._database = database
        self._settings = settings
        self._requeue_after_ms = requeue_after_ms

    def submit(self, submissions: Sequence[Submission], now_ms: int) -> list[Submitted]:
        """Take reports, all or none. Raises SubmissionRefused."""
        with self._database.writing() as session:
            trust = self._lock_affiliates(session, submissions, now_ms)
            known = self._known_keys(session, submissions)
            self._own_posts(session, submissions)
            results: list[Submitted] = []
            rows: list[dict[str, Any]] = []
            for index, each in enumerate(submissions):
                affiliate_id = each.report.post.affiliate_id
                admission = admit(each.report.claimed, trust[affiliate_id], self._settings.suspicion)
                key = (affiliate_id, each.idempotency_key)
                if each.idempotency_key is not None and key in known:
                    digest, earlier = known[key]
                    if digest != each.digest:
                        raise KeyReused(index)
                    results.append(replace(earlier, repeated=True))
                    continue
                result = Submitted(each.report.report_id, admission, repeated=False)
                results.append(result)
                known[key] = each.digest, result
                rows.append(self._report_values(each, admission, now_ms))
            if rows:
                session.execute(insert(ReportRow), rows)
                for affiliate_id, count in sorted(Counter(row["affiliate_id"] for row in rows).items()):
                    session.execute(
                        update(AffiliateRow)
                        .where(AffiliateRow.id == affiliate_id)
                        .values(reports=AffiliateRow.reports + count)
                    )
            return results

    def _lock_affiliates(self, session: Session, submissions: Sequence[Submission], now_ms: int) -> dict[str, int]:
        """Their trust. Held until commit, so two submissions under one key cannot both be the first."""
        ids = sorted({each.report.post.affiliate_id for each in submissions})
        values = [{"id": each, "first_seen_ms": now_ms, "trust_total_bp": 0, "reports": 0} for each in ids]
        session.execute(self._database.insert_new(AffiliateRow), values)
        query = select(AffiliateRow.id, AffiliateRow.trust_total_bp).where(AffiliateRow.id.in_(ids))
        rows = session.execute(query.order_by(AffiliateRow.id).with_for_update())
        return {row.id: score_bp(row.trust_total_bp, self._settings.trust) for row in rows}

    def _known_keys(
        self, session: Session, submissions: Sequence[Submission]
    ) -> dict[tuple[str, str | None], tuple[str, Submitted]]:
        wanted = {(s.report.post.affiliate_id, s.idempotency_key) for s in submissions if s.idempotency_key is not None}
        if not wanted:
            return {}
        column = tuple_(ReportRow.affiliate_id, ReportRow.idempotency_key)
        rows = session.scalars(select(ReportRow).where(column.in_(sorted(wanted))))
        return {
            (row.affiliate_id, row.idempotency_key): (row.digest, Submitted(row.id, _admission(row), repeated=True))
            for row in rows
        }

    def _own_posts(self, session: Session, submissions: Sequence[Submission]) -> None:
        """A post belongs to the affiliate that reported it first. Raises PostTaken."""
        posts = {(s.report.post.platform, s.report.post.post_id): s.report.post for s in reversed(submissions)}
        values = [
            {
                "platform": post.platform,
                "post_id": post.post_id,
                "affiliate_id": post.affiliate_id,
                "campaign_id": post.campaign_id,
            }
            for _, post in sorted(posts.items())
        ]
        session.execute(self._database.insert_new(PostRow), values)
        query = select(PostRow.platform, PostRow.post_id, PostRow.affiliate_id)
        rows = session.execute(query.where(tuple_(PostRow.platform, PostRow.post_id).in_(sorted(posts))))
        owners = {(row.platform, row.post_id): row.affiliate_id for row in rows}
        for index, each in enumerate(submissions):
            post = each.report.post
            if owners[post.platform, post.post_id] != post.affiliate_id:
                raise PostTaken(index)

    def _report_values(self, submission: Submission, admission: Admission, now_ms: int) -> dict[str, Any]:
        report = submission.report
        return {
            "id": report.report_id,
            "affiliate_id": report.post.affiliate_id,
            "platform": report.post.platform,
            "post_id": report.post.post_id,
            "campaign_id": report.post.campaign_id,
            "views": report.claimed.views,
            "clicks": report.claimed.clicks,
            "conversions": report.claimed.conversions,
            "reported_at_ms": report.reported_at_ms,
            "submitted_at_ms": now_ms,
            "idempotency_key": submission.idempotency_key,
            "digest": submission.digest,
            "correlation_id": submission.correlation_id,
            "priority": admission.priority,
            "suspicion": admission.score,
            "signals": ",".join(admission.signals),
            "due_at_ms": now_ms + admission.delay_ms + self._requeue_after_ms,
            "queued": True,
            "attempts": 0,
            "missing": 0,
            "incomplete": 0,
        }


def _admission(row: ReportRow) -> Admission:
    return Admission(row.suspicion, tuple(filter(None, row.signals.split(","))), row.priority, 0)
