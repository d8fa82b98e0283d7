"""Rows as they go over the wire: times as text, shares and trust as people write them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from fila.reconcile.api.models import AffiliateOut, AlertOut, AttemptOut, ReportOut
from fila.reconcile.domain.settings import BP, Trust
from fila.reconcile.domain.trust import score_bp
from fila.reconcile.store.tables import AffiliateRow, AlertRow, AttemptRow, ReportRow


def moment(at_ms: int) -> str:
    """ISO 8601, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def report_out(row: ReportRow, log: Sequence[AttemptRow]) -> ReportOut:
    return ReportOut(
        report_id=row.id,
        affiliate_id=row.affiliate_id,
        platform=row.platform,
        post_id=row.post_id,
        campaign_id=row.campaign_id,
        views=row.views,
        clicks=row.clicks,
        conversions=row.conversions,
        status=row.status or "PENDING",
        level=row.level,
        reason=row.reason,
        confidence=None if row.confidence_bp is None else row.confidence_bp / BP,
        done=row.done_at_ms is not None,
        priority=row.priority,
        submitted_at=moment(row.submitted_at_ms),
        attempts=[_attempt_out(line) for line in log],
    )


def _attempt_out(line: AttemptRow) -> AttemptOut:
    return AttemptOut(
        attempt=line.attempt,
        at=moment(line.at_ms),
        status=line.status,
        level=line.level,
        reason=line.reason,
        confidence=line.confidence_bp / BP,
        difference_percent=line.difference_bp / 100,
        explanation=line.explanation,
        retry_at=None if line.retry_at_ms is None else moment(line.retry_at_ms),
    )


def alert_out(row: AlertRow) -> AlertOut:
    return AlertOut(
        id=row.id,
        kind=row.kind,
        severity=row.severity,
        affiliate_id=row.affiliate_id,
        platform=row.platform,
        report_id=row.report_id,
        text=row.text,
        at=moment(row.at_ms),
    )


def affiliate_out(row: AffiliateRow, trust: Trust) -> AffiliateOut:
    return AffiliateOut(
        affiliate_id=row.id,
        trust=score_bp(row.trust_total_bp, trust) / BP,
        reports=row.reports,
        first_seen=moment(row.first_seen_ms),
    )
