"""What can be set about the rules: one small frozen tree. Defaults live here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from fila.settings import Layers, Section, section_types, whole_number

BP = 10_000
"""The whole, in basis points."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MAX_COUNT = 10**12
"""The largest count of views, clicks or conversions. With the ranges below, no step of the rules leaves 64 bits."""
MAX_SHARE_BP = 100 * BP


@dataclass(frozen=True, slots=True)
class Tiers(Section):
    """Where one status ends and the next begins. A share exactly at a border belongs to the milder side."""

    #: Up to here claim and platform agree.
    tolerance_bp: int = whole_number(500, 0, MAX_SHARE_BP)
    #: Up to here a discrepancy is low.
    low_bp: int = whole_number(1_000, 0, MAX_SHARE_BP)
    #: Up to here it is medium, beyond it is high.
    medium_bp: int = whole_number(2_000, 0, MAX_SHARE_BP)
    #: A claim that exceeds the platform by more than this is an overclaim, whatever its tier.
    overclaim_bp: int = whole_number(2_000, 0, MAX_SHARE_BP)
    #: Beyond this the overclaim is critical.
    overclaim_critical_bp: int = whole_number(5_000, 0, MAX_SHARE_BP)
    #: Shares are taken of the platform's count, but of no less than this: raise it to be milder with small counts.
    min_base: int = whole_number(1, 1, MAX_COUNT)

    def check(self) -> None:
        self.require(self.tolerance_bp <= self.low_bp <= self.medium_bp, "tolerance_bp <= low_bp <= medium_bp")
        self.require(
            self.tolerance_bp <= self.overclaim_bp <= self.overclaim_critical_bp,
            "tolerance_bp <= overclaim_bp <= overclaim_critical_bp",
        )


@dataclass(frozen=True, slots=True)
class Growth(Section):
    """How much counts may grow between the moment of the claim and that of the platform's figures."""

    per_hour_bp: int = whole_number(1_000, 0, BP)
    #: Growth beyond this many hours is not allowed for.
    max_hours: int = whole_number(24, 0, 24 * 30)


@dataclass(frozen=True, slots=True)
class Trust(Section):
    """Trust of an affiliate and what each outcome does to it."""

    lowest_bp: int = whole_number(0, 0, BP)
    highest_bp: int = whole_number(BP, 0, BP)
    initial_bp: int = whole_number(5_000, 0, BP)
    matched_bp: int = whole_number(100, -BP, BP)
    low_bp: int = whole_number(-100, -BP, BP)
    medium_bp: int = whole_number(-300, -BP, BP)
    high_bp: int = whole_number(-500, -BP, BP)
    overclaimed_bp: int = whole_number(-1_000, -BP, BP)

    def check(self) -> None:
        ordered = self.lowest_bp <= self.initial_bp <= self.highest_bp
        self.require(ordered, "lowest_bp <= initial_bp <= highest_bp")


@dataclass(frozen=True, slots=True)
class Retries(Section):
    """When a report is tried again because the platform had nothing, or not everything, to say."""

    #: Missing data: this long times the number of the attempt.
    missing_after_ms: int = whole_number(30 * MINUTE_MS, 1, 24 * 30 * HOUR_MS)
    missing_retries: int = whole_number(5, 0, 1_000)
    incomplete_after_ms: int = whole_number(15 * MINUTE_MS, 1, 24 * 30 * HOUR_MS)
    incomplete_retries: int = whole_number(1, 0, 1_000)
    #: No attempt is planned later than this after the report was submitted.
    within_ms: int = whole_number(24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Alerts(Section):
    """When a repeated high discrepancy is more than an accident."""

    #: Repeats are counted over this long.
    repeat_window_ms: int = whole_number(7 * 24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)
    #: So many in the window, the present one included, make the alert high.
    escalate_at: int = whole_number(2, 1, 1_000_000)
    #: And so many critical.
    critical_at: int = whole_number(4, 1, 1_000_000)

    def check(self) -> None:
        self.require(self.escalate_at <= self.critical_at, "escalate_at <= critical_at")


@dataclass(frozen=True, slots=True)
class Intake(Section):
    """Which times a report may be of, beside the time of its receipt."""

    #: A report may be this old.
    max_age_ms: int = whole_number(7 * 24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)
    #: A report may be this far ahead of our clock. It then counts as of its receipt.
    max_skew_ms: int = whole_number(5 * MINUTE_MS, 0, HOUR_MS)


@dataclass(frozen=True, slots=True)
class Suspicion(Section):
    """What makes a report worth looking at first, before any platform was asked. Points add up to at most 100."""

    #: More clicks than this share of views are unusual. More clicks than views are impossible.
    unusual_ctr_bp: int = whole_number(3_000, 0, MAX_SHARE_BP)
    #: More conversions than this share of clicks are unusual. More conversions than clicks are impossible.
    unusual_conversion_bp: int = whole_number(5_000, 0, MAX_SHARE_BP)
    #: Trust below this makes every claim doubtful.
    low_trust_bp: int = whole_number(2_500, 0, BP)
    impossible_points: int = whole_number(60, 0, 100)
    unusual_points: int = whole_number(25, 0, 100)
    low_trust_points: int = whole_number(25, 0, 100)
    #: From here on a report goes ahead of the others.
    high_priority_at: int = whole_number(50, 1, 101)
    #: A report of a little trusted affiliate that is not otherwise suspicious waits this long; 0 for not at all.
    low_trust_delay_ms: int = whole_number(0, 0, 24 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Settings:
    """All rules of reconciliation."""

    tiers: Tiers = field(default_factory=Tiers)
    growth: Growth = field(default_factory=Growth)
    trust: Trust = field(default_factory=Trust)
    retries: Retries = field(default_factory=Retries)
    alerts: Alerts = field(default_factory=Alerts)
    intake: Intake = field(default_factory=Intake)
    suspicion: Suspicion = field(default_factory=Suspicion)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, object]) -> Self:
        """Read sections of keys, as a TOML file gives them. What is not understood is refused."""
        layers = Layers(section_types(cls))
        layers.add_tables(tables)
        return cls(**layers.build_all())


DEFAULTS = Settings()
