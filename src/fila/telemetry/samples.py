"""What a look at the broker yields, on its way out."""

from dataclasses import dataclass

from fila.telemetry.catalog import Metric


@dataclass(frozen=True, slots=True)
class Distribution:
    """How values are spread."""

    bounds: tuple[float, ...]
    """Upper bounds, each of which belongs to its bucket."""
    counts: tuple[int, ...]
    """One more than there are bounds: the last bucket has none."""
    total: float
    """The sum of all values."""


Value = float | Distribution

Samples = dict[Metric, list[tuple[tuple[str, ...], Value]]]
"""Of each metric, the values by the values of its labels."""
