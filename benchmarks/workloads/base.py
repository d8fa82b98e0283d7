"""What a workload is: something that is repeated, and the figures that each repeat yields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.scale import Scale


@dataclass(frozen=True, slots=True)
class Goal:
    """What the design asks for on a 2-core machine."""

    sign: Literal["<", "<=", ">="]
    value: float

    def met_by(self, value: float) -> bool:
        match self.sign:
            case "<":
                return value < self.value
            case "<=":
                return value <= self.value
            case ">=":
                return value >= self.value


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of every repeat. `shown` ones are in the table, all are in the file."""

    name: str
    label: str
    unit: str
    goal: Goal | None = None
    #: The floor and its figure that this one is divided by.
    floor: tuple[str, str] | None = None
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """One repeat."""

    scale: Scale
    #: Counted from 0.
    index: int
    #: Tells whoever watches what is being done.
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ways:
    """Several ways of doing the same work, side by side in a page: the figure `{column}_{row}` in each cell."""

    #: Below `docs/`.
    page: str
    columns: Mapping[str, str]
    rows: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that is measured. Each repeat starts from a fresh server and an empty disk."""

    name: str
    title: str
    setting: Callable[[Scale], str]
    figures: tuple[Figure, ...]
    sample: Callable[[Run], Mapping[str, float]]
    #: Floors that are measured for the file, though no figure is divided by them.
    beside: tuple[str, ...] = ()
    ways: Ways | None = None

    @property
    def floors(self) -> tuple[str, ...]:
        """What is measured right before each repeat."""
        return tuple(dict.fromkeys((*(figure.floor[0] for figure in self.figures if figure.floor), *self.beside)))


def cpu_figures(floor: str) -> tuple[Figure, ...]:
    """What messages cost server and clients, against what they cost the two sides of a bare stream."""
    return tuple(
        Figure(name, f"{side} CPU per 100,000", "s", floor=(floor, name))
        for side, name in (("server", "server_cpu_s_per_100k"), ("client", "client_cpu_s_per_100k"))
    )
