"""Whether and when a report is tried again. A decision is a value; whoever asked stores it with the attempt."""

from dataclasses import dataclass

from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import Retries


@dataclass(frozen=True, slots=True)
class Past:
    """What has happened to a report, the attempt just made included."""

    submitted_at_ms: int
    #: Attempts are numbered from 1.
    attempt: int
    #: How many of them ended in missing, and in incomplete data.
    missing: int = 0
    incomplete: int = 0


def next_attempt_ms(status: Status, past: Past, now_ms: int, retries: Retries, retry_after_ms: int = 0) -> int | None:
    """When to try again, or None when this was the last attempt. A platform's wish to be left alone is respected."""
    match status:
        case Status.MISSING_PLATFORM_DATA:
            wait_ms, more = retries.missing_after_ms * past.attempt, past.missing <= retries.missing_retries
        case Status.INCOMPLETE_PLATFORM_DATA:
            wait_ms, more = retries.incomplete_after_ms, past.incomplete <= retries.incomplete_retries
        case _:
            return None
    at_ms = now_ms + max(wait_ms, retry_after_ms)
    return at_ms if more and at_ms <= past.submitted_at_ms + retries.within_ms else None
