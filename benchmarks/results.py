"""What was measured, as the file holds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.scale import Scale
from benchmarks.stats import Spread
from benchmarks.workloads.base import Figure, Workload

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """One repeat of a workload, and the floors that were measured right before it."""

    figures: Mapping[str, float]
    floors: Mapping[str, Mapping[str, float]]
    load_average: Sequence[float]


@dataclass(frozen=True, slots=True)
class Result:
    """A workload with all its repeats. `error` says why there are fewer than asked for."""

    workload: Workload
    setting: str
    samples: Sequence[Sample]
    error: str = ""

    def spread(self, figure: Figure) -> Spread:
        return Spread.of([sample.figures[figure.name] for sample in self.samples])

    def ratio(self, figure: Figure) -> Spread | None:
        """The figure divided by its floor, each repeat by its own."""
        if figure.floor is None:
            return None
        floor, name = figure.floor
        return Spread.of([sample.figures[figure.name] / sample.floors[floor][name] for sample in self.samples])

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.workload.name,
            "title": self.workload.title,
            "setting": self.setting,
            "error": self.error,
            "figures": {figure.name: self._figure(figure) for figure in self.workload.figures} if self.samples else {},
            "samples": [asdict(sample) for sample in self.samples],
        }

    def _figure(self, figure: Figure) -> dict[str, Any]:
        spread, ratio = self.spread(figure), self.ratio(figure)
        return {
            "label": figure.label,
            "unit": figure.unit,
            **asdict(spread),
            "goal": asdict(figure.goal) if figure.goal else None,
            "goal_met": figure.goal.met_by(spread.median) if figure.goal else None,
            "floor": ".".join(figure.floor) if figure.floor else None,
            "ratio_to_floor": asdict(ratio) if ratio else None,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmarks."""

    began: str
    seconds: float
    quick: bool
    repeat: int
    scale: Scale
    machine: Mapping[str, Any]
    load_average_after: Sequence[float]
    results: Sequence[Result]

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "began": self.began,
            "seconds": round(self.seconds, 1),
            "quick": self.quick,
            "repeat": self.repeat,
            "scale": asdict(self.scale),
            "machine": dict(self.machine),
            "load_average_after": list(self.load_average_after),
            "workloads": [result.as_json() for result in self.results],
        }

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.began.replace(':', '').replace('+0000', 'Z')}.json"
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n")
        return path
