"""Trust: a ledger of small signed steps per affiliate, one per report attempt.

The steps are added up as they are, and the sum is held to its bounds only when it is read. So the order in which
reports arrive does not matter: replay, batch and stream come to the same number, and a step is one addition in SQL.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import Settings, Trust


@dataclass(frozen=True, slots=True)
class TrustEvent:
    """A step. Report and attempt identify it, so it can be applied once however often it is delivered."""

    affiliate_id: str
    report_id: str
    attempt: int
    delta_bp: int


def deltas(settings: Settings) -> dict[Status, int]:
    """What each status does to trust. Silence of a platform is not the affiliate's doing: it does nothing."""
    trust = settings.trust
    return {
        Status.MATCHED: trust.matched_bp,
        Status.DISCREPANCY_LOW: trust.low_bp,
        Status.DISCREPANCY_MEDIUM: trust.medium_bp,
        Status.DISCREPANCY_HIGH: trust.high_bp,
        Status.AFFILIATE_OVERCLAIMED: trust.overclaimed_bp,
        Status.INCOMPLETE_PLATFORM_DATA: 0,
        Status.MISSING_PLATFORM_DATA: 0,
    }


def score_bp(total_bp: int, trust: Trust) -> int:
    """The trust that a sum of steps amounts to, within its bounds."""
    return max(trust.lowest_bp, min(trust.highest_bp, trust.initial_bp + total_bp))


def total_bp(events: Iterable[TrustEvent]) -> int:
    """The sum of steps, each (report, attempt) counted once."""
    return sum({(event.report_id, event.attempt): event.delta_bp for event in events}.values())
