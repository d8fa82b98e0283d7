"""Figures as cells of a screen."""

from __future__ import annotations

from datetime import UTC, datetime

from fila.cli import letters, output
from fila.cli.top.grid import Cell

DIM = {"dim": True}
BOLD = {"bold": True}
ALARM = {"bold": True, "fg": "red"}
NOTICE = {"fg": "yellow"}
_LONG_S = 120


def number(value: int) -> Cell:
    return Cell(f"{value:,}", {} if value else DIM)


def rate(value: float | None) -> Cell:
    """A second; "-" before there are two samples."""
    if value is None:
        return Cell("-", DIM)
    return Cell(f"{value:,.0f}" if value >= 10 else f"{value:.1f}", {} if value else DIM)


def age(since: datetime | None) -> Cell:
    if since is None:
        return Cell("-", DIM)
    seconds = (datetime.now(UTC) - since).total_seconds()
    return Cell(letters.age(since) if seconds >= _LONG_S else output.seconds(max(0.0, seconds)))


def bar(share: float, entitled: float, cells: int) -> Cell:
    """The share as a bar with a mark at the entitlement, and both as figures."""
    filled, mark = round(share * cells), min(cells - 1, round(entitled * cells))
    drawn = "".join("|" if cell == mark and entitled else "#" if cell < filled else "." for cell in range(cells))
    return Cell(f"{drawn} {share:>4.0%} of {entitled:.0%}", {"fg": "green"} if filled else {})
