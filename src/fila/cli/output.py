"""Output of the CLI: escaped text, colour, aligned tables, JSON.

The one rule: text from a producer or a broker never reaches the terminal unescaped. `printable` escapes everything that
could move the cursor, change colours or reorder text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

#: The width without a terminal: no table is folded.
_PIPE_WIDTH = 100_000


def printable(text: str, keep: str = "") -> str:
    """The text with control and other invisible characters as escapes, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def emit_json(value: Any) -> None:
    """Writes one line of JSON. It is printable ASCII, so it is safe on a terminal too."""
    click.echo(to_json(value))


def to_json(value: Any) -> str:
    """One line of printable ASCII."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("\x7f", "\\u007f")


def wants_colour(stream: TextIO) -> bool:
    """Whether to use colour: on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, **looks: Any) -> str:
    """The text for stdout, with colours and weights if stdout is a terminal."""
    return click.style(text, **looks) if wants_colour(sys.stdout) else text


def console(*, stderr: bool = False) -> Console:
    """A rich console for tables and progress. It never folds lines that go into a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Writes an aligned table: text to the left, numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    grid = Table(box=SIMPLE_HEAD if sys.stdout.isatty() else None, header_style="bold", pad_edge=False, show_edge=False)
    for index, title in enumerate(columns):
        numeric = all(isinstance(row[index], int) for row in rows)
        grid.add_column(title, justify="right" if numeric and index else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(_cell(value)) for value in row))
    console().print(grid)


def pairs(rows: Iterable[tuple[str, str | int]]) -> None:
    """Writes names and values in two aligned columns."""
    cells = [(name, _cell(value)) for name, value in rows]
    width = max(len(name) for name, _ in cells)
    for name, value in cells:
        click.echo(f"  {name:<{width}}  {value}")


def confirm(question: str) -> None:
    """Asks for confirmation. Raises UsageError when stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{question} Cannot ask for confirmation, since stdin is not a terminal. Add --yes to confirm."
        )
    click.confirm(question, abort=True, err=True)


def count(number: int, noun: str) -> str:
    """`1 message`, `20,000 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(milliseconds: int) -> str:
    """The shortest exact form: `30 s`, `1.5 s`, `5 min`, `250 ms`."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds} ms"


def duration_ms(milliseconds: float) -> str:
    """A measured time, to three digits: `0.42 ms`, `118 ms`, `2.5 s`, `3 min`."""
    if milliseconds < 1000:
        return f"{milliseconds:.3g} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def seconds(value: float) -> str:
    """A measured time in the unit that fits it: `1.3 s`, `25 ms`, `410 us`."""
    if value >= 1:
        return f"{value:,.1f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"


def moment(when: datetime) -> str:
    """A point in time to the second, in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(value)
