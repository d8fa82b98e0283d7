"""What goes into the store and comes out of it, besides rows."""

import hashlib
from dataclasses import dataclass

from fila.reconcile.domain.classify import Classification
from fila.reconcile.domain.models import Observation, Report
from fila.reconcile.domain.settings import Alerts
from fila.reconcile.domain.suspicion import Admission


@dataclass(frozen=True, slots=True)
class Submission:
    """A report as it arrives."""

    report: Report
    correlation_id: str
    idempotency_key: str | None = None
    #: The time that the affiliate gave; None when it left that to us, and sent again it may be another.
    said_at_ms: int | None = None

    @property
    def digest(self) -> str:
        """Of what the affiliate said. Two submissions under one key must agree in it."""
        post, claim = self.report.post, self.report.claimed
        said: tuple[object, ...] = (post.platform, post.post_id, post.affiliate_id, post.campaign_id, *claim)
        if self.said_at_ms is not None:
            said = (*said, self.said_at_ms)
        return hashlib.sha256(repr(said).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission."""

    report_id: str
    admission: Admission
    #: Whether it was there already, under the same idempotency key.
    repeated: bool


@dataclass(frozen=True, slots=True)
class OpenReport:
    """A report that still waits for a verdict, and what happened to it so far."""

    report: Report
    correlation_id: str
    priority: str
    submitted_at_ms: int
    attempts: int
    missing: int
    incomplete: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """All that one attempt brought, to be written at once."""

    report: Report
    number: int
    at_ms: int
    seen: Observation | None
    verdict: Classification
    explanation: str
    delta_bp: int
    #: When the next one follows; None when this was the last.
    retry_at_ms: int | None
    alerts: Alerts


@dataclass(frozen=True, slots=True)
class DueReport:
    """An open report whose next attempt has to be put in the queue."""

    report_id: str
    attempt: int
    due_at_ms: int
    affiliate_id: str
    platform: str
    priority: str
    correlation_id: str
