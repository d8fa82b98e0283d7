"""How a report compares with its platform: the one definition, for single jobs and for columns of millions.

Two steps, and both are data or plain arithmetic:
1. `features`: claim, figures and the time between them become three whole numbers. It is written against `Arithmetic`,
   a handful of operations, so that the same lines run on Python's integers and on a dataframe's columns.
2. `rules`: an ordered table. Each row says "this feature above this bound means this status"; the first that holds
   counts.

Rules of this file:
- Whole numbers only, and none leaves 64 bits for counts up to `MAX_COUNT`. No floats, so no border is blurred.
- Shares are rounded up to the next basis point. A bound is a whole number of basis points, so "above the bound" is then
  decided exactly as it would be with fractions.
- The later of claim and figures may be larger by the growth allowance, never the earlier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fila.reconcile.domain.models import METRICS, ClaimedMetrics, Fetched, Level, Observation, Reason, Report, Status
from fila.reconcile.domain.settings import BP, HOUR_MS, Settings

MISSING = "missing_metrics"
"""Feature: how many of the expected metrics the platform did not tell."""
OVER = "over_bp"
"""Feature: by which share the claim exceeds the platform, of the worst metric."""
DIFFERENCE = "difference_bp"
"""Feature: by which share they differ in either direction, of the worst metric."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Reports whose `feature` is above `above` have this status, unless an earlier rule holds."""

    feature: str
    above: int
    status: Status
    level: Level
    #: For missing data this is the reason if the platform gave none.
    reason: Reason


def rules(settings: Settings) -> tuple[Rule, ...]:
    """The table, in order. Its last row always holds."""
    tiers = settings.tiers
    return (
        Rule(MISSING, len(METRICS) - 1, Status.MISSING_PLATFORM_DATA, Level.NONE, Reason.ABSENT),
        Rule(MISSING, 0, Status.INCOMPLETE_PLATFORM_DATA, Level.NONE, Reason.PARTIAL_ANSWER),
        Rule(
            OVER,
            tiers.overclaim_critical_bp,
            Status.AFFILIATE_OVERCLAIMED,
            Level.CRITICAL,
            Reason.CLAIM_EXCEEDS_PLATFORM,
        ),
        Rule(OVER, tiers.overclaim_bp, Status.AFFILIATE_OVERCLAIMED, Level.HIGH, Reason.CLAIM_EXCEEDS_PLATFORM),
        Rule(DIFFERENCE, tiers.medium_bp, Status.DISCREPANCY_HIGH, Level.HIGH, Reason.DIFFERS),
        Rule(DIFFERENCE, tiers.low_bp, Status.DISCREPANCY_MEDIUM, Level.MEDIUM, Reason.DIFFERS),
        Rule(DIFFERENCE, tiers.tolerance_bp, Status.DISCREPANCY_LOW, Level.LOW, Reason.DIFFERS),
        Rule(DIFFERENCE, -1, Status.MATCHED, Level.NONE, Reason.WITHIN_TOLERANCE),
    )


class Arithmetic(Protocol):
    """What `features` needs besides + - *: on integers here, on columns elsewhere. An unknown value is None or null."""

    def greatest(self, *values: Any) -> Any: ...

    def least(self, *values: Any) -> Any: ...

    def quotient(self, dividend: Any, divisor: Any) -> Any:
        """Of two numbers that are not negative, rounded down."""

    def known(self, value: Any, otherwise: int) -> Any:
        """The value, or `otherwise` where it is unknown."""

    def unknown(self, value: Any) -> Any:
        """1 where the value is unknown, else 0."""


class Integers:
    """`Arithmetic` on Python's own numbers."""

    @staticmethod
    def greatest(*values: int) -> int:
        return max(values)

    @staticmethod
    def least(*values: int) -> int:
        return min(values)

    @staticmethod
    def quotient(dividend: int, divisor: int) -> int:
        return dividend // divisor

    @staticmethod
    def known(value: int | None, otherwise: int) -> int:
        return otherwise if value is None else value

    @staticmethod
    def unknown(value: int | None) -> int:
        return int(value is None)


INTEGERS: Arithmetic = Integers()


@dataclass(frozen=True, slots=True)
class Features:
    """What the table looks at; integers, or columns of them."""

    missing_metrics: Any
    over_bp: Any
    difference_bp: Any
    #: Per metric in the order of `METRICS`: positive where the claim is larger, 0 where the platform told nothing.
    differences_bp: tuple[Any, ...]
    #: Observed metrics of those expected, rounded down.
    confidence_bp: Any


def features(
    claimed: Sequence[Any], observed: Sequence[Any], lead_ms: Any, settings: Settings, on: Arithmetic = INTEGERS
) -> Features:
    """What the table looks at.

    `lead_ms` is how much later the platform's figures are than the claim, negative when they are earlier, unknown when
    there are none. `observed` may hold unknown values, `claimed` may not.
    """
    limit_ms = settings.growth.max_hours * HOUR_MS
    lead = on.known(lead_ms, 0)
    claim_grows_bp = _allowance_bp(on.least(on.greatest(lead * -1, 0), limit_ms), settings, on)
    platform_grows_bp = _allowance_bp(on.least(on.greatest(lead, 0), limit_ms), settings, on)
    overs: list[Any] = []
    unders: list[Any] = []
    missing: Any = 0
    for claim, figure in zip(claimed, observed, strict=True):
        known = on.known(figure, 0)
        told = on.unknown(figure) * -1 + 1
        base = on.greatest(known, settings.tiers.min_base)
        over = on.greatest(claim - known - on.quotient(known * claim_grows_bp, BP), 0)
        under = on.greatest(known - claim - on.quotient(claim * platform_grows_bp, BP), 0)
        overs.append(_share_bp(over, base, on) * told)
        unders.append(_share_bp(under, base, on) * told)
        missing = on.unknown(figure) + missing
    expected = len(METRICS)
    return Features(
        missing_metrics=missing,
        over_bp=on.greatest(*overs),
        difference_bp=on.greatest(*overs, *unders),
        differences_bp=tuple(over - under for over, under in zip(overs, unders, strict=True)),
        confidence_bp=on.quotient((missing * -1 + expected) * BP, expected),
    )


def _allowance_bp(elapsed_ms: Any, settings: Settings, on: Arithmetic) -> Any:
    return on.quotient(elapsed_ms * settings.growth.per_hour_bp, HOUR_MS)


def _share_bp(part: Any, base: Any, on: Arithmetic) -> Any:
    return on.quotient(part * BP + base - 1, base)


@dataclass(frozen=True, slots=True)
class Classification:
    """The verdict on one attempt."""

    status: Status
    level: Level
    reason: Reason
    confidence_bp: int
    over_bp: int
    difference_bp: int
    differences_bp: tuple[int, int, int]


def classify(report: Report, fetched: Fetched, settings: Settings) -> Classification:
    """Hold a claim against what its platform said, or against its silence: a fold over the table."""
    seen = fetched.observation
    observed = tuple(seen) if seen else (None,) * len(METRICS)
    lead_ms = seen.observed_at_ms - report.reported_at_ms if seen else None
    found = features(tuple(report.claimed), observed, lead_ms, settings)
    rule = next(each for each in rules(settings) if getattr(found, each.feature) > each.above)
    first, second, third = found.differences_bp
    return Classification(
        status=rule.status,
        level=rule.level,
        reason=fetched.failure or rule.reason,
        confidence_bp=found.confidence_bp,
        over_bp=found.over_bp,
        difference_bp=found.difference_bp,
        differences_bp=(first, second, third),
    )


def explain(claim: ClaimedMetrics, seen: Observation | None, verdict: Classification) -> str:
    """The verdict for a person, in one line."""
    if verdict.status is Status.MISSING_PLATFORM_DATA:
        return _SILENCE[verdict.reason]
    told = tuple(seen or ())
    if verdict.status is Status.INCOMPLETE_PLATFORM_DATA:
        absent = [name for name, value in zip(METRICS, told, strict=True) if value is None]
        return f"the platform did not tell {' and '.join(absent)}"
    worst = max(range(len(METRICS)), key=lambda index: abs(verdict.differences_bp[index]))
    share = verdict.differences_bp[worst]
    if share == 0:
        return "claim and platform agree"
    side = "more" if share > 0 else "less"
    return (
        f"{METRICS[worst]}: {tuple(claim)[worst]:,} claimed, {told[worst]:,} on the platform, "
        f"{abs(share) / 100:.2f} % {side} than growth explains"
    )


_SILENCE = {
    Reason.ABSENT: "the platform knows nothing of this post",
    Reason.BREAKER_OPEN: "the platform was not asked: it had failed too often just before",
    Reason.RATE_LIMITED: "the platform refused to answer: too many requests",
    Reason.AUTH_FAILED: "the platform refused our credentials",
    Reason.UNREACHABLE: "the platform could not be reached or did not answer sensibly",
}
