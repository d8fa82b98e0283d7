"""What the demonstration shows of tenants: who got how much, and who waited how long."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from examples.demo.ledger import Ledger, Share, Tenant, Waits
from examples.screen import Screen, table_of


class Display(Screen):
    good = "fair under load, and nothing was lost by kill -9"

    def update(self, ledger: Ledger) -> None:
        """Shows the present state."""
        delivered = Counter(each.tenant for each in ledger.delivered)
        counts = "  ".join(f"{tenant.name} {delivered[tenant.name]}" for tenant in ledger.tenants)
        self.show(self._picture(ledger, delivered), f"{delivered.total():6} delivered: {counts}")

    def shares(self, shares: Sequence[Share]) -> None:
        """Who got how much of the broker while all wanted it."""
        table = table_of("tenant", "weight", "delivered", "entitled to", "got", "off by", "first in, first out")
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
        table = table_of("tenant", "messages", "median wait", "longest wait", "median in FIFO", "longest in FIFO")
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

    def _picture(self, ledger: Ledger, delivered: Counter[str]) -> RenderableType:
        enqueued = Counter(each.tenant for each in ledger.enqueued)
        total = max(1, delivered.total())
        table = table_of("tenant", "weight", "", "delivered", "waiting", "share so far")
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
        pace = f"{delivered.total():,} delivered in {self.elapsed:.0f} s"
        return Group(table, Text(f"  {pace}", style="dim"))


def _name(tenant: Tenant) -> Text:
    return Text(tenant.name, style="cyan" if tenant.quiet else "magenta")


def _wait(deliveries: float, seconds: float) -> str:
    took = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f"{deliveries:,.0f} / {took:>6}"
