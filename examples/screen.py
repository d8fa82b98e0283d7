"""What the demonstrations share: a live picture on a terminal, a line a second in a pipe, tables at the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

_PIPE_WIDTH = 160
_LINE_EVERY_S = 1.0


class Screen:
    """Writes to the terminal or pipe that stdout is."""

    good: str
    """What the verdict says when every claim holds"""

    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if Console().is_terminal else _PIPE_WIDTH)
        self._live: Live | None = None
        self._started = time.monotonic()
        self._last_line = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since `watching` was opened."""
        return time.monotonic() - self._started

    def title(self, text: str) -> None:
        """The beginning of a chapter."""
        self.console.print(f"\n[bold]{text}[/]")

    def say(self, text: str) -> None:
        """A line that stays, above the live picture."""
        self.console.print(f"  {text}")

    def event(self, text: str) -> None:
        """A line that stays, with the time at which it happened."""
        self.say(f"[dim]{self.elapsed:5.1f} s[/]  {text}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While it is open, `show` shows what goes on."""
        self._started = time.monotonic()
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=8, transient=True) as self._live:
            yield
        self._live = None

    def show(self, picture: RenderableType, line: str) -> None:
        """The present state: the picture on a terminal, else the line, at most once a second."""
        if self._live is not None:
            self._live.update(picture)
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self.event(line)

    def claim(self, text: str, *, holds: bool) -> None:
        """One line of the verdict."""
        self.say(f"[green]ok  [/] {text}" if holds else f"[bold red]FAIL[/] {text}")

    def verdict(self, failed: int) -> None:
        """The last line."""
        bad = f"[bold red]FAILED[/]: {failed} of the claims above"
        self.console.print(f"\n{bad if failed else f'[bold green]PASSED[/]: {self.good}'}")


def table_of(*titles: str) -> Table:
    """A table with the first column to the left, and figures to the right."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=True)
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index else "left", no_wrap=True)
    return table
