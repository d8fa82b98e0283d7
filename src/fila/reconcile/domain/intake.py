"""When a report counts as being of: one rule for the API, files and queues, on integers and on columns.

- A report may be older than its receipt by `max_age_ms`, and newer by `max_skew_ms`, for clocks that differ.
- One that is newer counts as of its receipt. Else a time in the future would buy a growth allowance.
- A post belongs to the affiliate whose report of it was accepted first. Reports of others are refused (`POST_TAKEN`).
"""

from typing import Any

from fila.reconcile.domain.classify import INTEGERS, Arithmetic
from fila.reconcile.domain.settings import Intake

POST_TAKEN = "this post was first reported by another affiliate"


def oldest_ms(received_at_ms: Any, limits: Intake) -> Any:
    """The earliest `reported_at` that is accepted."""
    return received_at_ms - limits.max_age_ms


def newest_ms(received_at_ms: Any, limits: Intake) -> Any:
    """The latest `reported_at` that is accepted."""
    return received_at_ms + limits.max_skew_ms


def counted_at_ms(reported_at_ms: Any, received_at_ms: Any, on: Arithmetic = INTEGERS) -> Any:
    """When the figures of an accepted report are of."""
    return on.least(reported_at_ms, received_at_ms)
