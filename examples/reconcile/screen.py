"""What the demonstration shows of reports: outcomes, trust and alerts."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from examples.screen import Screen, table_of
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
Outcomes = Mapping[tuple[str, bool], int]


class ReportScreen(Screen):
    good = "every claim was judged once, whatever the platforms did"

    def update(self, outcomes: Outcomes, waiting: int, refused: int) -> None:
        """The present state."""
        total = sum(outcomes.values())
        done = sum(count for (_, final), count in outcomes.items() if final)
        line = f"{done:4} of {total:4} reports done, {waiting:4} waiting, {refused:4} requests refused"
        self.show(self._picture(outcomes, done, total, waiting, refused), line)

    def outcomes(self, outcomes: Outcomes) -> None:
        total = sum(outcomes.values())
        table = table_of("status", "reports", "share", "")
        table.columns[3].justify = "left"
        for status in Status:
            count = outcomes.get((status, True), 0)
            bar = ProgressBar(total=max(1, total), completed=count, width=30)
            table.add_row(Text(status, style=STYLES[status]), str(count), f"{count / max(1, total):.0%}", bar)
        self.console.print(table)

    def trust(self, rows: Sequence[tuple[str, str, int, int]]) -> None:
        """Name, character, reports, trust in basis points."""
        table = table_of("affiliate", "character", "reports", "trust", "")
        table.columns[1].justify = table.columns[4].justify = "left"
        for name, character, reports, trust_bp in rows:
            style = "green" if trust_bp > 5_000 else "red" if trust_bp < 5_000 else ""
            bar = ProgressBar(total=10_000, completed=trust_bp, width=30)
            table.add_row(name, character, str(reports), Text(f"{trust_bp / 10_000:.2f}", style=style), bar)
        self.console.print(table)

    def alerts(self, counts: Mapping[tuple[str, str], int], examples: Sequence[tuple[str, str, str]]) -> None:
        """Counts by kind and severity, and the newest as examples."""
        table = table_of("alert", "severity", "count")
        table.columns[1].justify = "left"
        for (kind, severity), count in sorted(counts.items()):
            table.add_row(kind, Text(severity, style=SEVERITIES.get(severity, "")), str(count))
        self.console.print(table)
        for severity, affiliate, text in examples:
            self.say(f"[{SEVERITIES.get(severity, 'dim')}]{severity:<8}[/] {affiliate}: {text}")

    def _picture(self, outcomes: Outcomes, done: int, total: int, waiting: int, refused: int) -> RenderableType:
        table = table_of("status", "done", "to be retried", "")
        table.columns[3].justify = "left"
        for status in Status:
            final, again = outcomes.get((status, True), 0), outcomes.get((status, False), 0)
            bar = ProgressBar(total=max(1, total), completed=final, width=30)
            table.add_row(Text(status, style=STYLES[status]), str(final), str(again or ""), bar)
        counts = f"{done} of {total} reports done, {waiting} jobs waiting, {refused} requests refused"
        return Group(table, Text(f"  {self.elapsed:.0f} s   {counts}", style="dim"))
