"""What people see: progress while it runs, a table at the end. Colours on a terminal, plain lines when piped."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.results import Report, Result, Sample
from benchmarks.stats import Spread
from benchmarks.workloads.base import Figure, Workload

_PIPED_WIDTH = 150


class Display:
    """Follows one run."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._console = Console(width=None if self._live else _PIPED_WIDTH, highlight=False)
        self._progress: Progress | None = None
        self._began = time.monotonic()

    @contextmanager
    def following(self, steps: int) -> Iterator[None]:
        """Show how many of `steps` repeats are done, until the end of the block."""
        if not self._live:
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console) as self._progress:
            self._task = self._progress.add_task("starting", total=steps)
            yield
        self._progress = None

    def step(self, text: str) -> None:
        """What is being done now."""
        if self._progress is not None:
            self._progress.update(self._task, description=escape(text))
        else:
            print(f"{time.monotonic() - self._began:7.1f} s  {text}", flush=True)

    def line(self, text: str) -> None:
        """Something to keep on the screen."""
        if self._live:
            self._console.print(escape(text))
        else:
            print(text, flush=True)

    def done(self, text: str) -> None:
        """One step is over, and what is to be said of it."""
        self.line(text)
        if self._progress is not None:
            self._progress.advance(self._task)

    def sampled(self, workload: Workload, index: int, sample: Sample) -> None:
        shown = [figure for figure in workload.figures if figure.shown][:2]
        figures = ", ".join(f"{figure.label} {_number(sample.figures[figure.name], figure.unit)}" for figure in shown)
        self.done(f"{workload.name} {index + 1}: {figures}")

    def table(self, report: Report) -> None:
        """All figures that are meant to be read, with what the design asks for."""
        self._console.print()
        self._console.print(_table(report, plain=not self._live))
        for result in report.results:
            self.line(f"{result.workload.name}: {result.setting}")
            if result.error:
                self.line(f"{result.workload.name}: FAILED: {result.error}")
        machine = report.machine
        load = ", ".join(f"{each:g}" for each in machine["load_average"])
        self.line(
            f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}, durability "
            f"{machine['durability']}, load average {load} before, {report.repeat} repeats in {report.seconds:.0f} s"
        )


def rows(result: Result) -> list[tuple[str, str, str, str, str, str]]:
    """Label, median, spread, goal, whether it is met, ratio to the floor: for each figure that is shown."""
    shown = [figure for figure in result.workload.figures if figure.shown] if result.samples else []
    return [_row(figure, result.spread(figure), result.ratio(figure)) for figure in shown]


def _row(figure: Figure, spread: Spread, ratio: Spread | None) -> tuple[str, str, str, str, str, str]:
    goal = met = ""
    if figure.goal:
        goal = f"{figure.goal.sign} {_number(figure.goal.value, figure.unit)}"
        met = "yes" if figure.goal.met_by(spread.median) else "no"
    low_high = f"{digits(spread.min)} - {digits(spread.max)}"
    return (
        figure.label,
        _number(spread.median, figure.unit),
        low_high,
        goal,
        met,
        f"{ratio.median:.2f}" if ratio else "",
    )


def _table(report: Report, *, plain: bool) -> Table:
    table = Table(
        box=box.ASCII2 if plain else box.SIMPLE_HEAD, title="quick run: not for comparison" if report.quick else None
    )
    for heading in ("workload", "figure"):
        table.add_column(heading)
    for heading in ("median", "min - max", "goal", "met", "ratio to floor"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in report.results:
        title = result.workload.title
        for row in rows(result):
            style = {"no": "yellow", "yes": "green"}.get(row[4], "")
            table.add_row(title, *row, style=style)
            title = ""
        table.add_section()
    return table


def _number(value: float, unit: str) -> str:
    return f"{digits(value)} {unit}"


def digits(value: float) -> str:
    """Three figures that matter, and whole thousands in full."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"
