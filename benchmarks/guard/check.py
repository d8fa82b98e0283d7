"""What is allowed: the stored ratio of each path, and how far above it a run may be."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

THRESHOLDS = Path(__file__).with_name("thresholds.json")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One path: what it costs now, what it cost when the ratio was stored, and what would be too much."""

    path: str
    ratio: float
    stored: float | None
    allowed: float

    @property
    def limit(self) -> float | None:
        return None if self.stored is None else self.stored * self.allowed

    @property
    def slower(self) -> bool:
        return self.limit is not None and self.ratio > self.limit


def judge(method: str, measured: Mapping[str, float], thresholds: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Each measured path against its stored ratio. A path without one is shown and fails nobody."""
    stored, allowed = thresholds.get(kind(method), {}), thresholds["allowed"][kind(method)]
    return [Verdict(path, ratio, stored.get(path), allowed) for path, ratio in measured.items()]


def kind(method: str) -> str:
    """Both counters count the same thing."""
    return "cpu" if method == "cpu" else "instructions"


def load() -> dict[str, dict[str, float]]:
    thresholds: dict[str, dict[str, float]] = json.loads(THRESHOLDS.read_text())
    return thresholds


def store(method: str, measured: Mapping[str, float]) -> None:
    thresholds = load()
    thresholds[kind(method)] = {path: round(ratio, 2) for path, ratio in measured.items()}
    THRESHOLDS.write_text(json.dumps(thresholds, indent=2) + "\n")
