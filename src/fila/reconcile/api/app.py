"""The routes. Each reads, calls, answers; what they refuse is decided in `gate`, `errors` and the store."""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Path, Query, Response

from fila.jobs.errors import JobsError
from fila.jobs.queue import JobQueue
from fila.reconcile import dispatch
from fila.reconcile.access.rights import Caller
from fila.reconcile.api import errors
from fila.reconcile.api.access import AccessCheck, caller_of
from fila.reconcile.api.body import BodyLimit
from fila.reconcile.api.gate import Gate
from fila.reconcile.api.models import (
    EXAMPLE,
    Accepted,
    AcceptedMany,
    AffiliateOut,
    AffiliatesOut,
    AlertsOut,
    ErrorOut,
    Key,
    Name,
    ReportIn,
    ReportOut,
    ReportsIn,
    StatusOut,
)
from fila.reconcile.api.settings import ApiSettings
from fila.reconcile.api.shapes import affiliate_out, alert_out, report_out
from fila.reconcile.domain.alerts import Kind
from fila.reconcile.domain.intake import counted_at_ms, newest_ms, oldest_ms
from fila.reconcile.domain.models import ClaimedMetrics, Post, Report
from fila.reconcile.domain.settings import Settings
from fila.reconcile.store import DueReport, Store, Submission, Submitted, new_report_id

logger = logging.getLogger(__name__)

DESCRIPTION = """Affiliates report what their posts brought; each report is held against what the platform says.
Requests beyond what can be handled are answered with 429 and `Retry-After`."""
CORRELATION = "X-Correlation-ID"
Limit = Annotated[int, Query(ge=1, le=1_000)]
CallerOf = Annotated[Caller, Depends(caller_of)]


@dataclass(frozen=True, slots=True)
class Service:
    """What the routes work on."""

    store: Store
    queue: JobQueue
    rules: Settings
    limits: ApiSettings
    #: The platforms that reports may name; None for any.
    platforms: frozenset[str] | None
    clock_ms: Callable[[], int]


def create_app(service: Service) -> FastAPI:
    """The ASGI application."""
    app = FastAPI(
        title="Fila reconciliation",
        version=version("fila"),
        description=DESCRIPTION,
        responses={status: {"model": ErrorOut} for status in (401, 403, 413, 422, 503)},
    )
    app.add_middleware(BodyLimit, max_bytes=service.limits.max_body_bytes)
    # The last one added is the first one asked.
    app.add_middleware(
        AccessCheck, keys=service.store.keys, clock_ms=service.clock_ms, insecure=service.limits.insecure
    )
    errors.install(app)
    _add_intake(app, service, Gate(service.queue, service.limits))
    _add_views(app, service)
    return app


def _add_intake(app: FastAPI, service: Service, gate: Gate) -> None:
    refusals: dict[int | str, dict[str, Any]] = {
        409: {"model": ErrorOut, "description": "The key or the post belongs to another report or affiliate."},
        429: {"model": ErrorOut, "description": "Too much at once. `Retry-After` says when to come back."},
    }

    @app.post("/v1/reports", status_code=202, responses=refusals, tags=["reports"])
    def submit(
        report: ReportIn,
        response: Response,
        caller: CallerOf,
        correlation_id: Annotated[str, Depends(_correlation)],
        idempotency_key: Annotated[Key | None, Header()] = None,
    ) -> Accepted:
        """Send one report. The idempotency key may be in the body or in the header."""
        if idempotency_key is not None:
            report = report.model_copy(update={"idempotency_key": idempotency_key})
        [accepted] = _take(service, gate, caller, [report], correlation_id)
        response.headers[CORRELATION] = correlation_id
        return accepted

    @app.post(
        "/v1/reports/batch",
        status_code=202,
        responses=refusals,
        tags=["reports"],
        openapi_extra={"requestBody": {"content": {"application/json": {"example": {"reports": [EXAMPLE]}}}}},
    )
    def submit_many(
        batch: ReportsIn,
        response: Response,
        caller: CallerOf,
        correlation_id: Annotated[str, Depends(_correlation)],
    ) -> AcceptedMany:
        """Send several reports: all are taken, or none. With keys, the whole can be sent again."""
        if len(batch.reports) > service.limits.max_batch:
            raise errors.Refused(422, "too_many", f"a request may hold {service.limits.max_batch} reports")
        response.headers[CORRELATION] = correlation_id
        return AcceptedMany(reports=_take(service, gate, caller, batch.reports, correlation_id))


def _take(
    service: Service, gate: Gate, caller: Caller, reports: Sequence[ReportIn], correlation_id: str
) -> list[Accepted]:
    if not all(caller.is_for(each.affiliate_id) for each in reports):
        raise errors.Refused(403, "forbidden", f"this key is for reports of affiliate {caller.affiliate_id} alone")
    now_ms = service.clock_ms()
    submissions = [
        Submission(_report(service, each, index, now_ms), correlation_id, each.idempotency_key, _said_at_ms(each))
        for index, each in enumerate(reports)
    ]
    gate.admit([each.affiliate_id for each in reports])
    results = service.store.intake.submit(submissions, now_ms)
    _enqueue(service, reports, results, correlation_id)
    return [
        Accepted(
            report_id=result.report_id,
            repeated=result.repeated,
            priority=result.admission.priority,
            suspicion=result.admission.score,
            signals=list(result.admission.signals),
        )
        for result in results
    ]


def _report(service: Service, given: ReportIn, index: int, now_ms: int) -> Report:
    if service.platforms is not None and given.platform not in service.platforms:
        known = ", ".join(sorted(service.platforms))
        raise errors.Refused(422, "invalid", f"reports.{index}: unknown platform: expected one of {known}")
    said_at_ms, limits = _said_at_ms(given), service.rules.intake
    reported_at_ms = now_ms if said_at_ms is None else said_at_ms
    if not oldest_ms(now_ms, limits) <= reported_at_ms <= newest_ms(now_ms, limits):
        raise errors.Refused(422, "invalid", f"reports.{index}: reported_at is too old or in the future")
    post = Post(given.platform, given.post_id, given.affiliate_id, given.campaign_id)
    claim = ClaimedMetrics(given.views, given.clicks, given.conversions)
    return Report(new_report_id(), post, claim, counted_at_ms(reported_at_ms, now_ms))


def _said_at_ms(given: ReportIn) -> int | None:
    return None if given.reported_at is None else int(given.reported_at.timestamp() * 1000)


def _enqueue(service: Service, reports: Sequence[ReportIn], results: Sequence[Submitted], correlation_id: str) -> None:
    """Queue what is new. What the queue does not take now is due in the store, and queued from there."""
    now_ms = service.clock_ms()
    fresh = {
        result.report_id: (
            DueReport(
                report_id=result.report_id,
                attempt=1,
                due_at_ms=now_ms + result.admission.delay_ms,
                affiliate_id=given.affiliate_id,
                platform=given.platform,
                priority=result.admission.priority,
                correlation_id=correlation_id,
            )
        )
        for given, result in zip(reports, results, strict=True)
        if not result.repeated
    }
    for report_id, due in list(fresh.items()):
        try:
            dispatch.enqueue(service.queue, due, now_ms)
        except JobsError as error:
            logger.warning(
                "not all reports could be queued; the rest is due in the store",
                extra={"left": len(fresh), "error": str(error)},
            )
            service.store.due_reports.release(fresh.values())
            return
        del fresh[report_id]


def _add_views(app: FastAPI, service: Service) -> None:
    views, trust = service.store.views, service.rules.trust

    @app.get("/v1/reports/{report_id}", responses={404: {"model": ErrorOut}}, tags=["reports"])
    def report(report_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")], caller: CallerOf) -> ReportOut:
        """What became of a report, with every attempt."""
        found = views.report(report_id)
        if found is None or not caller.is_for(found[0].affiliate_id):
            raise errors.Refused(404, "not_found", "there is no report of that id")
        return report_out(*found)

    @app.get("/v1/alerts", tags=["alerts"])
    def alerts(
        limit: Limit = 100,
        before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
        affiliate_id: Name | None = None,
        kind: Kind | None = None,
    ) -> AlertsOut:
        """The newest alerts first."""
        rows = views.alerts(limit=limit, before=before, affiliate_id=affiliate_id, kind=kind)
        more = rows[-1].id if len(rows) == limit else None
        return AlertsOut(alerts=[alert_out(row) for row in rows], next_before=more)

    @app.get("/v1/affiliates", tags=["affiliates"])
    def affiliates(limit: Limit = 100, after: Name | None = None) -> AffiliatesOut:
        """Affiliates with their trust, by id."""
        rows = views.affiliates(limit=limit, after=after or "")
        more = rows[-1].id if len(rows) == limit else None
        return AffiliatesOut(affiliates=[affiliate_out(row, trust) for row in rows], next_after=more)

    @app.get("/v1/affiliates/{affiliate_id}", responses={404: {"model": ErrorOut}}, tags=["affiliates"])
    def affiliate(affiliate_id: Name) -> AffiliateOut:
        """One affiliate with its trust."""
        row = views.affiliate(affiliate_id)
        if row is None:
            raise errors.Refused(404, "not_found", "there is no affiliate of that id")
        return affiliate_out(row, trust)

    @app.get("/v1/status", tags=["service"])
    def status() -> StatusOut:
        """How much is open and done, and how the queue is."""
        outcomes = views.outcomes()
        by_status: dict[str, int] = {}
        for (name, _), count in outcomes.items():
            by_status[name] = by_status.get(name, 0) + count
        return StatusOut(
            open=sum(count for (_, final), count in outcomes.items() if not final),
            done=sum(count for (_, final), count in outcomes.items() if final),
            outcomes=by_status,
            alerts={f"{kind}/{severity}": count for (kind, severity), count in views.alert_counts().items()},
            queue=dict(service.queue.snapshot()),
        )

    @app.get("/healthz", tags=["service"])
    def health() -> dict[str, str]:
        """Whether the store answers."""
        views.affiliates(limit=1)
        return {"status": "ok"}


def _correlation(x_correlation_id: Annotated[Key | None, Header()] = None) -> str:
    return x_correlation_id or uuid.uuid4().hex
