"""What was measured with each peer, and what of it is worth saying."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.workloads import WORKLOADS, Figure, Workload
from benchmarks.stats import Spread

FORMAT = 1
OURS = "fila"


@dataclass(frozen=True, slots=True)
class Cell:
    """All repeats of one workload with one peer and one size. `error` says why there are fewer than asked for."""

    peer: str
    workload: str
    size: int
    samples: Sequence[Mapping[str, float]]
    error: str = ""

    def spread(self, name: str) -> Spread:
        return Spread.of([sample[name] for sample in self.samples])

    def as_json(self) -> dict[str, Any]:
        return {
            "peer": self.peer,
            "workload": self.workload,
            "size": self.size,
            "error": self.error,
            "samples": [dict(sample) for sample in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run over all peers, as its file holds it."""

    began: str
    seconds: float
    quick: bool
    repeat: int
    scale: Mapping[str, float]
    machine: Mapping[str, Any]
    load_average_after: Sequence[float]
    #: By name: title, versions, fsync, durability, client.
    peers: Mapping[str, Mapping[str, str]]
    #: By name: why it was not measured.
    skipped: Mapping[str, str]
    cells: Sequence[Cell]

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "began": self.began,
            "seconds": round(self.seconds, 1),
            "quick": self.quick,
            "repeat": self.repeat,
            "scale": dict(self.scale),
            "machine": dict(self.machine),
            "load_average_after": list(self.load_average_after),
            "peers": {name: dict(facts) for name, facts in self.peers.items()},
            "skipped": dict(self.skipped),
            "cells": [cell.as_json() for cell in self.cells],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Comparison":
        if data.get("format") != FORMAT:
            raise ValueError(f"not a file of this command: format {data.get('format')!r}, not {FORMAT}")
        fields = {name: data[name] for name in data if name not in {"format", "cells"}}
        return cls(**fields, cells=[Cell(**cell) for cell in data["cells"]])

    def measured(self, workload: Workload, size: int) -> list[Cell]:
        """The peers that have figures, in the order in which they are listed."""
        found = [cell for cell in self.cells if (cell.workload, cell.size) == (workload.name, size) and cell.samples]
        return sorted(found, key=lambda cell: list(self.peers).index(cell.peer))

    def settings(self) -> list[tuple[Workload, int]]:
        """Workloads and sizes that have figures."""
        return [(workload, size) for workload in WORKLOADS for size in workload.sizes if self.measured(workload, size)]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one figure of ours compares with the best of the others: above 1 is ahead of it, below 1 behind."""

    workload: Workload
    size: int
    figure: Figure
    ours: float
    best: float
    best_peer: str

    @property
    def lead(self) -> float:
        ours, best = self.ours, self.best
        if self.figure.better == "low":
            ours, best = best, ours
        return ours / best if best else 1.0


def standings(comparison: Comparison, ours: str = OURS) -> list[Standing]:
    """Every figure of ours beside the best of all other brokers. Other settings of our own are no others."""
    found: list[Standing] = []
    for workload, size in comparison.settings():
        cells = {cell.peer: cell for cell in comparison.measured(workload, size)}
        others = {name: cell for name, cell in cells.items() if not name.startswith(OURS)}
        if ours not in cells or not others:
            continue
        for figure in workload.figures:
            medians = {name: cell.spread(figure.name).median for name, cell in others.items()}
            pick = max if figure.better == "high" else min
            best = pick(medians, key=lambda name: medians[name])
            mine = cells[ours].spread(figure.name).median
            found.append(Standing(workload, size, figure, mine, medians[best], best))
    return found
