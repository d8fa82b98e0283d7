"""What a report looks like before any platform was asked: a score, and the place in the queue that follows from it."""

from dataclasses import dataclass

from fila.reconcile.domain.models import ClaimedMetrics
from fila.reconcile.domain.settings import BP, Suspicion

HIGH = "high"
NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Admission:
    """How a report enters the queue."""

    score: int
    signals: tuple[str, ...]
    priority: str
    delay_ms: int


def admit(claim: ClaimedMetrics, trust_bp: int, suspicion: Suspicion) -> Admission:
    """Score a claim. The worst signal of each pair counts, and all together count at most 100."""
    ctr_bp, conversion_bp = suspicion.unusual_ctr_bp, suspicion.unusual_conversion_bp
    distrusted = trust_bp < suspicion.low_trust_bp
    table = (
        ("more_clicks_than_views", claim.clicks > claim.views, suspicion.impossible_points),
        ("more_conversions_than_clicks", claim.conversions > claim.clicks, suspicion.impossible_points),
        ("unusual_click_through", claim.views >= claim.clicks > claim.views * ctr_bp // BP, suspicion.unusual_points),
        (
            "unusual_conversion",
            claim.clicks >= claim.conversions > claim.clicks * conversion_bp // BP,
            suspicion.unusual_points,
        ),
        ("low_trust", distrusted, suspicion.low_trust_points),
    )
    raised = [(name, points) for name, holds, points in table if holds]
    score = min(100, sum(points for _, points in raised))
    urgent = score >= suspicion.high_priority_at
    return Admission(
        score=score,
        signals=tuple(name for name, _ in raised),
        priority=HIGH if urgent else NORMAL,
        delay_ms=suspicion.low_trust_delay_ms if distrusted and not urgent else 0,
    )
