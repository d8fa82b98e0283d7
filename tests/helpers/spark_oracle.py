"""An oracle of reconciliation, written from docs/reconcile.md alone. It shares no code with the rules: plain Python."""

HOUR_MS = 3_600_000
METRICS = ("views", "clicks", "conversions")
BP = 10_000


def verdict(report, figures):
    """Status, level and trust step of a report. `figures` are the platform's, None if it told nothing."""
    told = [figures[name] for name in METRICS] if figures else [None] * 3
    if all(value is None for value in told):
        return "MISSING_PLATFORM_DATA", "none", 0
    if any(value is None for value in told):
        return "INCOMPLETE_PLATFORM_DATA", "none", 0
    over = under = 0
    for name, platform in zip(METRICS, told, strict=True):
        too_large, too_small = _shares(report[name], platform, figures["observed_at"] - report["reported_at"])
        over, under = max(over, too_large), max(under, too_small)
    if over > 5_000:
        return "AFFILIATE_OVERCLAIMED", "critical", -1_000
    if over > 2_000:
        return "AFFILIATE_OVERCLAIMED", "high", -1_000
    for above, status, level, step in (
        (2_000, "DISCREPANCY_HIGH", "high", -500),
        (1_000, "DISCREPANCY_MEDIUM", "medium", -300),
        (500, "DISCREPANCY_LOW", "low", -100),
    ):
        if max(over, under) > above:
            return status, level, step
    return "MATCHED", "none", 100


def _shares(claim, platform, figures_later_ms):
    """By which share the claim is too large, and too small, in basis points."""
    allowance = min(abs(figures_later_ms), 24 * HOUR_MS) * 1_000 // HOUR_MS
    claim_may_grow = allowance if figures_later_ms < 0 else 0
    platform_may_grow = allowance if figures_later_ms > 0 else 0
    over = max(0, claim - platform - platform * claim_may_grow // BP)
    under = max(0, platform - claim - claim * platform_may_grow // BP)
    base = max(platform, 1)
    return _up(over * BP, base), _up(under * BP, base)


def _up(dividend, divisor):
    return (dividend + divisor - 1) // divisor
