"""Numbers about numbers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over all repeats."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), min(values), max(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all do not exceed (nearest rank): always one that was measured."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def share_error_percent(delivered: Sequence[str], weights: Mapping[str, int]) -> float:
    """The largest distance of a key's share from its entitlement, in percent of the entitlement."""
    counts = Counter(delivered)
    whole = sum(weights.values())
    return max(
        abs(counts[key] / len(delivered) - weight / whole) / (weight / whole) * 100 for key, weight in weights.items()
    )
