"""What was measured as tables and one picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.growth.ranges import Range
from benchmarks.peers.page import table
from benchmarks.report import digits

ALLOWED_RISE = 0.25
_LABELS = {
    "cpu_us": "server CPU per message, us",
    "enqueue_cpu_us": "enqueue, us",
    "drain_cpu_us": "drain, us",
    "delay_cpu_us": "enqueue with a delay, us",
    "park_cpu_us": "parking a key, once, us",
    "messages_per_s": "msg/s",
    "first_delivery_ms": "first delivery, ms",
    "rss_mb": "RSS, MB",
    "restart_s": "restart, s",
    "cpu_ms_per_mb": "server CPU per MB, ms",
}

_INTRODUCTION = """\
The cost of a message is the server's CPU time for it. The goal: it rises by at most a quarter over a whole range."""
_METHOD = """\
- Every point starts a fresh `fila-server` on an empty folder with the default configuration (`durability = "wal"`) and
  fills it first. Only the probe that follows is measured. Messages have 100 B unless the size is what grows.
- CPU of the server is read in steps of 10 ms. It includes what RocksDB does in the background meanwhile, such as the
  compaction of what was written before.
- First delivery is the time from the connection of a new client to its first message.
- Restart is the time from the start of the process after `kill -9` until it serves.
- One repeat measures the points of a range upwards, the next one downwards. The tables show the repeat that cost
  least, because other work on the machine only ever adds.
"""


@dataclass(frozen=True, slots=True)
class Curve:
    """One range with the cheapest repeat of each of its points, in order."""

    range: Range
    points: Mapping[int, Mapping[str, float]]

    @classmethod
    def of(cls, what: Range, samples: Mapping[int, Sequence[Mapping[str, float]]]) -> "Curve":
        taken = {point: each for point, each in samples.items() if each}
        return cls(what, {p: min(each, key=lambda costs: costs[what.cost]) for p, each in sorted(taken.items())})

    @property
    def rise(self) -> float:
        """From the smallest to the largest point, as a part of the smallest. The end counts, not what is between."""
        costs = [figures[self.range.cost] for figures in self.points.values()]
        return costs[-1] / costs[0] - 1 if len(costs) > 1 and costs[0] else 0.0

    @property
    def verdict(self) -> str:
        if self.range.natural:
            return "expected to grow"
        return "flat" if self.rise <= ALLOWED_RISE else "**rises**"


def render(curves: Sequence[Curve], facts: Mapping[str, Any], picture: str, note: str) -> str:
    """The whole page, in Markdown."""
    rows = [
        (
            each.range.title,
            " to ".join(f"{point:,}" for point in (min(each.points), max(each.points))),
            each.range.what,
            f"{each.rise:+.0%}",
            each.verdict,
        )
        for each in curves
    ]
    parts = [
        "# Cost of a message as things grow",
        "Written by `make bench-growth`; do not edit.",
        *([f"**{note}**"] if note else []),
        f"![Cost of a message as things grow]({picture})",
        _INTRODUCTION,
        table(("what grows", "from, to", "what is measured", "change of cost", "verdict"), rows),
        *[_section(each) for each in curves],
        "## How it is measured",
        _METHOD.rstrip(),
        _where(facts),
    ]
    return "\n\n".join(parts) + "\n"


def _where(facts: Mapping[str, Any]) -> str:
    return (
        f"Measured on {facts['cores']} cores ({facts['cpu']}), {facts['system']}, Python {facts['python']}, "
        f"commit `{facts['revision']}`, {facts['repeat']} repeats, load average {facts['load_average'][0]:g} before."
    )


def _section(curve: Curve) -> str:
    names = list(next(iter(curve.points.values())))
    rows = [(f"{point:,}", *(digits(figures[name]) for name in names)) for point, figures in curve.points.items()]
    heading = f"## {curve.range.title[:1].upper()}{curve.range.title[1:]}"
    return f"{heading}\n\n{table((curve.range.title, *(_LABELS[name] for name in names)), rows)}"


def draw(curves: Sequence[Curve], path: Path) -> None:
    """A panel for each range: the cost of a message, and the line that it should not cross."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = -(-len(curves) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(18, 3.6 * rows), squeeze=False)
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for axis, curve in zip(axes.flat, curves, strict=False):
        costs = [figures[curve.range.cost] for figures in curve.points.values()]
        axis.plot([max(point, 1) for point in curve.points], costs, marker="o", color="#c0392b")
        if not curve.range.natural:
            axis.axhline(costs[0] * (1 + ALLOWED_RISE), color="#7f8c8d", linestyle="--", linewidth=1)
        axis.set_xscale("log")
        axis.set_ylim(bottom=0, top=max(*costs, costs[0] * (1 + ALLOWED_RISE)) * 1.15)
        axis.set_title(f"{curve.range.title} ({curve.rise:+.0%})", fontsize=10)
        axis.set_ylabel("server CPU per message, us", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
