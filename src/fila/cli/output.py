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
    from rich.table import Table

#: The width without a terminal: no table is folded.
_PIPE_WIDTH = 100_000
_GAP = 3
"""Between two columns on a terminal."""


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


def done(as_json: bool, answer: dict[str, Any], text: str) -> None:
    """Writes what a command has done: as JSON, or as a line of text."""
    if as_json:
        emit_json(answer)
    else:
        click.echo(printable(text))


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
    """Writes an aligned table: text to the left, numbers to the right.

    No cell is cut or broken, so that ids can be copied: on a terminal that is too narrow for the table, each row is
    written as a block of its own.
    """
    from rich.cells import cell_len

    rows = list(rows)
    cells = [[_cell(value) for value in row] for row in rows]
    screen = console()
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sys.stdout.isatty() and sum(widths) + _GAP * (len(widths) - 1) > screen.width:
        _blocks(columns, cells, screen.width)
        return
    numeric = [all(isinstance(value, int) for value in column) for column in zip(*rows, strict=True)]
    screen.print(_grid(columns, cells, numeric or [False] * len(columns)))


def _grid(columns: Sequence[str], cells: Iterable[Sequence[str]], numeric: Sequence[bool]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD if sys.stdout.isatty() else None, header_style="bold", pad_edge=False, show_edge=False)
    for index, title in enumerate(columns):
        grid.add_column(title, justify="right" if numeric[index] and index else "left", no_wrap=True)
    for row in cells:
        grid.add_row(*map(Text, row))
    return grid


def _blocks(columns: Sequence[str], cells: Iterable[Sequence[str]], width: int) -> None:
    """Each row: the first cell on a line of its own, then the others behind their titles."""
    for first, *others in cells:
        click.echo(style(first, bold=True))
        titles = (style(title.lower(), dim=True) for title in columns[1:])
        named = [f"{title} {cell}" for title, cell in zip(titles, others, strict=True) if cell]
        if named:
            named[0] = f"  {named[0]}"
            click.echo(folded(named, gap="   ", indent=2, width=width))


def folded(parts: Iterable[str], *, gap: str, indent: int, width: int | None) -> str:
    """The parts in lines of at most `width` columns, those after the first indented. No part is broken.

    Without a width they are one line.
    """
    if width is None:
        return gap.join(parts)
    from rich.cells import cell_len

    lines: list[str] = []
    room = 0
    for part in parts:
        taken = cell_len(click.unstyle(part))
        if lines and len(gap) + taken <= room:
            lines[-1] += gap + part
            room -= len(gap) + taken
        else:
            room = width - taken - (indent if lines else 0)
            lines.append(part)
    return ("\n" + " " * indent).join(lines)


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None for anything else."""
    return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None


def pairs(rows: Iterable[tuple[str, str | int]]) -> None:
    """Writes names and values in two aligned columns."""
    cells = [(name, _cell(value)) for name, value in rows]
    width = max(len(name) for name, _ in cells)
    for name, value in cells:
        click.echo(f"  {name:<{width}}  {value}")


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
