"""What can be set about the rules: one small frozen tree. Defaults live here and nowhere else.

Each field carries the range it may have, so a tree with a value that makes no sense cannot exist, however it was made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

BP = 10_000
"""The whole, in basis points."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MAX_COUNT = 10**12
"""The largest count of views, clicks or conversions. With the ranges below, no step of the rules leaves 64 bits."""
MAX_NUMBER = 1_000_000_000
"""Of settings that have no narrower range: as seconds 31 years, as milliseconds 11 days."""
MAX_SHARE_BP = 100 * BP


class SettingsError(ValueError):
    """A setting is unknown or out of its range. The text names it and says what was expected."""


def whole(default: int, low: int, high: int) -> Any:
    """A field for a whole number within these bounds."""
    return field(default=default, metadata={"range": (low, high)})


class Section:
    """Checks every whole number against its range."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type] # every section is a dataclass
            low, high = each.metadata.get("range", (None, None))
            value = getattr(self, each.name)
            if low is not None and not (type(value) is int and low <= value <= high):
                raise SettingsError(
                    f"{type(self).__name__}.{each.name} = {value!r}: expected a whole number from {low} to {high}"
                )
        self.check()

    def check(self) -> None:
        """What must hold between fields."""


@dataclass(frozen=True, slots=True)
class Tiers(Section):
    """Where one status ends and the next begins. A share exactly at a border belongs to the milder side."""

    #: Up to here claim and platform agree.
    tolerance_bp: int = whole(500, 0, MAX_SHARE_BP)
    #: Up to here a discrepancy is low.
    low_bp: int = whole(1_000, 0, MAX_SHARE_BP)
    #: Up to here it is medium, beyond it is high.
    medium_bp: int = whole(2_000, 0, MAX_SHARE_BP)
    #: A claim that exceeds the platform by more than this is an overclaim, whatever its tier.
    overclaim_bp: int = whole(2_000, 0, MAX_SHARE_BP)
    #: Beyond this the overclaim is critical.
    overclaim_critical_bp: int = whole(5_000, 0, MAX_SHARE_BP)
    #: Shares are taken of the platform's count, but of no less than this: raise it to be milder with small counts.
    min_base: int = whole(1, 1, MAX_COUNT)

    def check(self) -> None:
        if not self.tolerance_bp <= self.low_bp <= self.medium_bp:
            raise SettingsError("Tiers: expected tolerance_bp <= low_bp <= medium_bp")
        if not self.tolerance_bp <= self.overclaim_bp <= self.overclaim_critical_bp:
            raise SettingsError("Tiers: expected tolerance_bp <= overclaim_bp <= overclaim_critical_bp")


@dataclass(frozen=True, slots=True)
class Growth(Section):
    """How much counts may grow between the moment of the claim and that of the platform's figures."""

    per_hour_bp: int = whole(1_000, 0, BP)
    #: Growth beyond this many hours is not allowed for.
    max_hours: int = whole(24, 0, 24 * 30)


@dataclass(frozen=True, slots=True)
class Trust(Section):
    """Trust of an affiliate and what each outcome does to it."""

    lowest_bp: int = whole(0, 0, BP)
    highest_bp: int = whole(BP, 0, BP)
    initial_bp: int = whole(5_000, 0, BP)
    matched_bp: int = whole(100, -BP, BP)
    low_bp: int = whole(-100, -BP, BP)
    medium_bp: int = whole(-300, -BP, BP)
    high_bp: int = whole(-500, -BP, BP)
    overclaimed_bp: int = whole(-1_000, -BP, BP)

    def check(self) -> None:
        if not self.lowest_bp <= self.initial_bp <= self.highest_bp:
            raise SettingsError("Trust: expected lowest_bp <= initial_bp <= highest_bp")


@dataclass(frozen=True, slots=True)
class Retries(Section):
    """When a report is tried again because the platform had nothing, or not everything, to say."""

    #: Missing data: this long times the number of the attempt.
    missing_after_ms: int = whole(30 * MINUTE_MS, 1, 24 * 30 * HOUR_MS)
    missing_retries: int = whole(5, 0, 1_000)
    incomplete_after_ms: int = whole(15 * MINUTE_MS, 1, 24 * 30 * HOUR_MS)
    incomplete_retries: int = whole(1, 0, 1_000)
    #: No attempt is planned later than this after the report was submitted.
    within_ms: int = whole(24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Alerts(Section):
    """When a repeated high discrepancy is more than an accident."""

    #: Repeats are counted over this long.
    repeat_window_ms: int = whole(7 * 24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)
    #: So many in the window, the present one included, make the alert high.
    escalate_at: int = whole(2, 1, 1_000_000)
    #: And so many critical.
    critical_at: int = whole(4, 1, 1_000_000)

    def check(self) -> None:
        if self.escalate_at > self.critical_at:
            raise SettingsError("Alerts: expected escalate_at <= critical_at")


@dataclass(frozen=True, slots=True)
class Suspicion(Section):
    """What makes a report worth looking at first, before any platform was asked. Points add up to at most 100."""

    #: More clicks than this share of views are unusual. More clicks than views are impossible.
    unusual_ctr_bp: int = whole(3_000, 0, MAX_SHARE_BP)
    #: More conversions than this share of clicks are unusual. More conversions than clicks are impossible.
    unusual_conversion_bp: int = whole(5_000, 0, MAX_SHARE_BP)
    #: Trust below this makes every claim doubtful.
    low_trust_bp: int = whole(2_500, 0, BP)
    impossible_points: int = whole(60, 0, 100)
    unusual_points: int = whole(25, 0, 100)
    low_trust_points: int = whole(25, 0, 100)
    #: From here on a report goes ahead of the others.
    high_priority_at: int = whole(50, 1, 101)
    #: A report of a little trusted affiliate that is not otherwise suspicious waits this long; 0 for not at all.
    low_trust_delay_ms: int = whole(0, 0, 24 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Settings:
    """All rules of reconciliation."""

    tiers: Tiers = field(default_factory=Tiers)
    growth: Growth = field(default_factory=Growth)
    trust: Trust = field(default_factory=Trust)
    retries: Retries = field(default_factory=Retries)
    alerts: Alerts = field(default_factory=Alerts)
    suspicion: Suspicion = field(default_factory=Suspicion)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, object]) -> Self:
        """Read sections of keys, as a TOML file gives them. What is not understood is refused."""
        sections: dict[str, Any] = {each.name: each.type for each in fields(cls)}
        chosen: dict[str, Any] = {}
        for name, table in tables.items():
            if name not in sections:
                raise SettingsError(f"unknown section {name!r}: expected one of {', '.join(sections)}")
            if not isinstance(table, Mapping):
                raise SettingsError(f"{name} = {table!r}: expected a section, [{name}]")
            known = [each.name for each in fields(sections[name])]
            for key in table:
                if key not in known:
                    raise SettingsError(f"unknown key {name}.{key}: expected one of {', '.join(known)}")
            chosen[name] = sections[name](**table)
        return cls(**chosen)


DEFAULTS = Settings()
