"""What the demonstration shows: a live picture on a terminal, a line a second in a pipe, tables at the end."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ledger import Ledger, Share, Tenant, Waits
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 160
_LINE_EVERY_S = 1.0


class Display:
    """Writes to the terminal or pipe that stdout is."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if Console().is_terminal else _PIPE_WIDTH)
        self._live: Live | None = None
        self._started = time.monotonic()
        self._last_line = 0.0

    def title(self, text: str) -> None:
        """The beginning of a chapter."""
        self.console.print(f"\n[bold]{text}[/]")

    def say(self, text: str) -> None:
        """A line that stays, above the live picture."""
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

    def update(self, ledger: Ledger) -> None:
        """Shows the present state."""
        delivered = Counter(each.tenant for each in ledger.delivered)
        if self._live is not None:
            self._live.update(self._picture(ledger, delivered))
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            counts = "  ".join(f"{tenant.name} {delivered[tenant.name]}" for tenant in ledger.tenants)
            self.event(f"{delivered.total():6} delivered: {counts}")

    def shares(self, shares: Sequence[Share]) -> None:
        """Who got how much of the broker while all wanted it."""
        table = _table("tenant", "weight", "delivered", "entitled to", "got", "off by", "first in, first out")
        for share in shares:
            table.add_row(
                _name(share.tenant),
                str(share.tenant.weight),
                f"{share.delivered:,}",
                f"{share.entitled:.1%}",
                Text(f"{share.got:.1%}", style="green" if abs(share.got - share.entitled) <= 0.01 else "red"),
                f"{100 * (share.got - share.entitled):+.2f} pt",
                Text(f"{share.under_fifo:.1%}", style="dim"),
            )
        self.console.print(table)

    def waits(self, waits: Sequence[Waits]) -> None:
        """Who waited how long from enqueue to delivery."""
        table = _table("tenant", "messages", "median wait", "longest wait", "median in FIFO", "longest in FIFO")
        for each in waits:
            deliveries, seconds, fifo_deliveries, fifo_seconds = each.typical()
            table.add_row(
                _name(each.tenant),
                f"{len(each.deliveries):,}",
                _wait(deliveries, seconds),
                _wait(max(each.deliveries), max(each.seconds)),
                Text(_wait(fifo_deliveries, fifo_seconds), style="dim"),
                Text(_wait(max(each.fifo_deliveries), max(each.fifo_seconds)), style="dim"),
            )
        self.console.print(table)

    def claim(self, text: str, *, holds: bool) -> None:
        """One line of the verdict."""
        self.say(f"[green]ok  [/] {text}" if holds else f"[bold red]FAIL[/] {text}")

    def verdict(self, failed: int) -> None:
        """The last line."""
        good = "[bold green]PASSED[/]: fair under load, and nothing was lost by kill -9"
        self.console.print(f"\n{f'[bold red]FAILED[/]: {failed} of the claims above' if failed else good}")

    def _picture(self, ledger: Ledger, delivered: Counter[str]) -> RenderableType:
        enqueued = Counter(each.tenant for each in ledger.enqueued)
        total = max(1, delivered.total())
        table = _table("tenant", "weight", "", "delivered", "waiting", "share so far")
        table.columns[2].justify = "left"
        for tenant in ledger.tenants:
            done, known = delivered[tenant.name], enqueued[tenant.name]
            table.add_row(
                _name(tenant),
                str(tenant.weight),
                ProgressBar(total=max(1, known), completed=min(done, known), width=32),
                f"{done:,}",
                f"{max(0, known - done):,}",
                f"{done / total:.1%}",
            )
        elapsed = time.monotonic() - self._started
        pace = f"{delivered.total():,} delivered in {elapsed:.0f} s"
        return Group(table, Text(f"  {pace}", style="dim"))


def _table(*titles: str) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=True)
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index else "left", no_wrap=True)
    return table


def _name(tenant: Tenant) -> Text:
    return Text(tenant.name, style="cyan" if tenant.quiet else "magenta")


def _wait(deliveries: float, seconds: float) -> str:
    took = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"{deliveries:,.0f} / {took:>6}"
