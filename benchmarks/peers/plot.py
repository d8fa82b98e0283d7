"""The comparison as one picture: a panel for each figure that people ask about first."""

from pathlib import Path
from typing import Any

from benchmarks.peers.results import OURS, Comparison
from benchmarks.peers.workloads import Figure, Workload
from benchmarks.report import digits

_COLUMNS = 3
_OURS, _OTHERS = "#c0392b", "#7f8c8d"


def draw(comparison: Comparison, path: Path) -> None:
    """Bars of medians with whiskers from the smallest to the largest repeat."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = [(workload, size, figure) for workload, size in comparison.settings() for figure in _shown(workload)]
    rows = -(-len(panels) // _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(5 * _COLUMNS, 2.7 * rows), squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (workload, size, what) in zip(axes.flat, panels, strict=False):
        _panel(axis, comparison, workload, size, what)
    if comparison.quick:
        figure.suptitle("a quick run: says nothing about speed")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _shown(workload: Workload) -> tuple[Figure, ...]:
    shown = {"latency": ("p50_ms", "p99_ms"), "restart": ("rss_mb", "consumable_s")}
    names = shown.get(workload.name, (workload.figures[0].name,))
    return tuple(figure for figure in workload.figures if figure.name in names)


def _panel(axis: Any, comparison: Comparison, workload: Workload, size: int, figure: Figure) -> None:
    cells = comparison.measured(workload, size)[::-1]
    spreads = [cell.spread(figure.name) for cell in cells]
    medians = [spread.median for spread in spreads]
    whiskers = [[each.median - each.min for each in spreads], [each.max - each.median for each in spreads]]
    colours = [_OURS if cell.peer.startswith(OURS) else _OTHERS for cell in cells]
    axis.barh(
        [comparison.peers[cell.peer]["title"] for cell in cells], medians, xerr=whiskers, color=colours, capsize=2
    )
    for row, (median, spread) in enumerate(zip(medians, spreads, strict=True)):
        axis.annotate(
            digits(median), (spread.max, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7
        )
    axis.set_title(f"{workload.title}, {size:,} B\n{figure.label}, {figure.unit} ({figure.better} is good)", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.margins(x=0.18)
    axis.spines[["top", "right"]].set_visible(False)
