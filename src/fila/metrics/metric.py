"""What a metric is, and its values on their way out.

A counter never goes down while the process lives; it starts at 0 with it. Units are those of UCUM, as OpenTelemetry has
them. In Prometheus a name has underscores for dots, its unit if that is seconds, and `_total` if it is a counter.
"""

from dataclasses import dataclass
from enum import Enum


class MetricType(Enum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric: its name, its labels, and what it says. There is one object for each, so it is a quick key."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    help: str
    unit: str = "1"
    #: A second name in Prometheus, without prefix and unit.
    alias: str = ""
    #: Whether those of many add up; else the greatest of them stands for all.
    adds_up: bool = True

    @property
    def prometheus_name(self) -> str:
        name = self.name.replace(".", "_")
        if self.unit == "s":
            name += "_seconds"
        return name + "_total" if self.type is MetricType.COUNTER else name


@dataclass(frozen=True, slots=True)
class Distribution:
    """How values are spread: what a histogram shows."""

    bounds: tuple[float, ...]
    """Upper bounds, each of which belongs to its bucket."""
    counts: tuple[int, ...]
    """One more than there are bounds: the last bucket has none."""
    total: float
    """The sum of all values."""


Value = float | Distribution

Samples = dict[Metric, list[tuple[tuple[str, ...], Value]]]
"""The values of each metric, by the values of its labels."""
