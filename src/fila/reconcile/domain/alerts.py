"""What a person should hear of, and how urgently.

Repeats are counted by the time of attempts, not by what reports say: the high discrepancies of an affiliate from
`window_start_ms` of the present attempt up to it, both included.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fila.reconcile.domain.models import Level, Reason, Status
from fila.reconcile.domain.settings import Alerts


class Kind(StrEnum):
    """Whose business an alert is."""

    FRAUD = "fraud"
    DATA_QUALITY = "data_quality"
    SYSTEM_HEALTH = "system_health"


@dataclass(frozen=True, slots=True)
class Alert:
    kind: Kind
    severity: Level


def alert_for(
    status: Status, level: Level, reason: Reason, alerts: Alerts, *, final: bool, repeats: int = 1
) -> Alert | None:
    """The alert that an attempt calls for, if any.

    `final` says that there will be no further attempt. `repeats` counts the high discrepancies of this affiliate within
    the window, the present one included.
    """
    match status:
        case Status.AFFILIATE_OVERCLAIMED:
            return Alert(Kind.FRAUD, level)
        case Status.DISCREPANCY_HIGH:
            return Alert(Kind.DATA_QUALITY, escalated(repeats, alerts))
        case Status.MISSING_PLATFORM_DATA if final:
            return Alert(Kind.SYSTEM_HEALTH, Level.HIGH if reason is Reason.AUTH_FAILED else Level.MEDIUM)
        case _:
            return None


def window_start_ms(at_ms: Any, alerts: Alerts) -> Any:
    """Since when repeats count for an attempt; of an integer or of a column."""
    return at_ms - alerts.repeat_window_ms


def escalated(repeats: int, alerts: Alerts) -> Level:
    """How grave the n-th high discrepancy of an affiliate is."""
    if repeats >= alerts.critical_at:
        return Level.CRITICAL
    return Level.HIGH if repeats >= alerts.escalate_at else Level.MEDIUM
