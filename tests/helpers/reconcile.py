"""Makers of reports and attempts for the tests of reconciliation."""

from fila.reconcile.domain.classify import classify, explain
from fila.reconcile.domain.models import ClaimedMetrics, Fetched, Observation, Post, Reason, Report
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.domain.trust import deltas
from fila.reconcile.store import Attempt, Submission, new_report_id

NOW = 1_700_000_000_000
MATCHED = (1_000, 100, 10)
HIGH = (2_000, 100, 10)
OVERCLAIMED = (400, 100, 10)


def submission(affiliate="ada", post="p-1", claim=MATCHED, key=None, platform="clipshare"):
    report = Report(new_report_id(), Post(platform, post, affiliate, "spring"), ClaimedMetrics(*claim), NOW)
    return Submission(report, correlation_id="c-1", idempotency_key=key)


def attempt(report, number=1, observed=MATCHED, retry_at_ms=None, at_ms=NOW, failure=None):
    """What a worker would write about this report."""
    fetched = Fetched(failure=failure) if failure else Fetched(Observation(NOW, *observed))
    verdict = classify(report, fetched, DEFAULTS)
    return Attempt(
        report=report,
        number=number,
        at_ms=at_ms,
        seen=fetched.observation,
        verdict=verdict,
        explanation=explain(report.claimed, fetched.observation, verdict),
        delta_bp=deltas(DEFAULTS)[verdict.status],
        retry_at_ms=retry_at_ms,
        alerts=DEFAULTS.alerts,
    )


def missing(report, number=1, retry_at_ms=None, reason=Reason.ABSENT):
    return attempt(report, number, retry_at_ms=retry_at_ms, failure=reason)
