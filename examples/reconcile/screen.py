"""What the demonstration shows: a live picture on a terminal, a line a second in a pipe, tables at the end."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fila.reconcile.domain.models import Status

STYLES = {
    Status.MATCHED: "green",
    Status.DISCREPANCY_LOW: "yellow",
    Status.DISCREPANCY_MEDIUM: "yellow",
    Status.DISCREPANCY_HIGH: "red",
    Status.AFFILIATE_OVERCLAIMED: "bold red",
    Status.INCOMPLETE_PLATFORM_DATA: "cyan",
    Status.MISSING_PLATFORM_DATA: "magenta",
}
SEVERITIES = {"medium": "yellow", "high": "red", "critical": "bold red"}
_PIPE_WIDTH = 140
Outcomes = Mapping[tuple[str, bool], int]


class Screen:
    """Writes to the terminal or pipe that stdout is."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if Console().is_terminal else _PIPE_WIDTH)
        self._live: Live | None = None
        self._started = time.monotonic()
        self._last_line = 0.0

    def title(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")

    def say(self, text: str) -> None:
        self.console.print(f"  {text}")

    def event(self, text: str) -> None:
        """A line that stays, with the time at which it happened."""
        self.say(f"[dim]{time.monotonic() - self._started:5.1f} s[/]  {text}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it is open, `update` shows what goes on."""
        self._started = time.monotonic()
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=8, transient=True) as self._live:
            yield
        self._live = None

    def update(self, outcomes: Outcomes, waiting: int, refused: int) -> None:
        """The present state."""
        total = sum(outcomes.values())
        done = sum(count for (_, final), count in outcomes.items() if final)
        if self._live is not None:
            self._live.update(self._picture(outcomes, done, total, waiting, refused))
        elif time.monotonic() - self._last_line >= 1:
            self._last_line = time.monotonic()
            self.event(f"{done:4} of {total:4} reports done, {waiting:4} waiting, {refused:4} requests refused")

    def outcomes(self, outcomes: Outcomes) -> None:
        total = sum(outcomes.values())
        table = _table("status", "reports", "share", "")
        table.columns[3].justify = "left"
        for status in Status:
            count = outcomes.get((status, True), 0)
            bar = ProgressBar(total=max(1, total), completed=count, width=30)
            table.add_row(Text(status, style=STYLES[status]), str(count), f"{count / max(1, total):.0%}", bar)
        self.console.print(table)

    def trust(self, rows: Sequence[tuple[str, str, int, int]]) -> None:
        """Name, character, reports, trust in basis points."""
        table = _table("affiliate", "character", "reports", "trust", "")
        table.columns[1].justify = table.columns[4].justify = "left"
        for name, character, reports, trust_bp in rows:
            style = "green" if trust_bp > 5_000 else "red" if trust_bp < 5_000 else ""
            bar = ProgressBar(total=10_000, completed=trust_bp, width=30)
            table.add_row(name, character, str(reports), Text(f"{trust_bp / 10_000:.2f}", style=style), bar)
        self.console.print(table)

    def alerts(self, counts: Mapping[tuple[str, str], int], examples: Sequence[tuple[str, str, str]]) -> None:
        """Counts by kind and severity, and the newest as examples."""
        table = _table("alert", "severity", "count")
        table.columns[1].justify = "left"
        for (kind, severity), count in sorted(counts.items()):
            table.add_row(kind, Text(severity, style=SEVERITIES.get(severity, "")), str(count))
        self.console.print(table)
        for severity, affiliate, text in examples:
            self.say(f"[{SEVERITIES.get(severity, 'dim')}]{severity:<8}[/] {affiliate}: {text}")

    def claim(self, text: str, *, holds: bool) -> None:
        self.say(f"[green]ok  [/] {text}" if holds else f"[bold red]FAIL[/] {text}")

    def verdict(self, failed: int) -> None:
        good = "[bold green]PASSED[/]: every claim was judged once, whatever the platforms did"
        self.console.print(f"\n{f'[bold red]FAILED[/]: {failed} of the claims above' if failed else good}")

    def _picture(self, outcomes: Outcomes, done: int, total: int, waiting: int, refused: int) -> RenderableType:
        table = _table("status", "done", "to be retried", "")
        table.columns[3].justify = "left"
        for status in Status:
            final, again = outcomes.get((status, True), 0), outcomes.get((status, False), 0)
            bar = ProgressBar(total=max(1, total), completed=final, width=30)
            table.add_row(Text(status, style=STYLES[status]), str(final), str(again or ""), bar)
        elapsed = time.monotonic() - self._started
        line = f"  {elapsed:.0f} s   {done} of {total} reports done, {waiting} jobs waiting, {refused} requests refused"
        return Group(table, Text(line, style="dim"))


def _table(*titles: str) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=True)
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index else "left", no_wrap=True)
    return table
