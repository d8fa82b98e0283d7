"""Lines of a screen of a given width: text in columns, of which the least important give way.

Everything is escaped here: text from producers and operators cannot act on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fila.cli import output

_GAP = "  "
_CUT = "..."
_NAME_CELLS = 24
"""What the first column keeps at least, if it needs that much, before others may stand beside it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a look, such as {"fg": "red"}."""

    text: str
    look: dict[str, Any] = field(default_factory=dict)

    def shown(self, width: int | None = None, *, right: bool = False) -> str:
        """The text in its colours, padded or cut to a width."""
        from rich.cells import cell_len

        text = output.printable(self.text)
        if width is not None and cell_len(text) > width:
            text = _cut(text, width)
        padding = " " * max(0, (width or 0) - cell_len(text))
        styled = output.style(text, **self.look) if self.look and text else text
        return padding + styled if right else styled + padding

    @property
    def width(self) -> int:
        """In cells of the terminal."""
        from rich.cells import cell_len

        return cell_len(output.printable(self.text))


def _cut(text: str, width: int) -> str:
    """Its beginning and its end: names often differ at the end."""
    from rich.cells import set_cell_size

    if width < len(_CUT):
        return set_cell_size(text, width)
    tail = (width - len(_CUT)) // 2
    end = set_cell_size(text[::-1], tail)[::-1] if tail else ""
    return set_cell_size(text, width - len(_CUT) - tail) + _CUT + end


@dataclass(frozen=True, slots=True)
class Column:
    """`rank` 0 is always shown; of the others the largest gives way first."""

    title: str
    rank: int
    left: bool = False


def grid(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> list[str]:
    """A line of titles and one for each row. Without a width everything is shown."""
    needed = [max(len(column.title), *(row[index].width for row in rows), 0) for index, column in enumerate(columns)]
    kept = _kept(columns, needed, width)
    if width is not None:
        needed[0] = min(needed[0], width - sum(needed[index] + len(_GAP) for index in kept if index))
    titles = [Cell(column.title, {"bold": True}) for column in columns]
    return [
        _GAP.join(line[index].shown(needed[index], right=not columns[index].left) for index in kept).rstrip()
        for line in (titles, *rows)
    ]


def _kept(columns: Sequence[Column], needed: Sequence[int], width: int | None) -> list[int]:
    """The columns that there is room for, in their order."""
    if width is None:
        return list(range(len(columns)))
    kept = {0}
    room = width - min(needed[0], _NAME_CELLS)
    for index in sorted(range(1, len(columns)), key=lambda index: columns[index].rank):
        room -= needed[index] + len(_GAP)
        if room < 0:
            break
        kept.add(index)
    return sorted(kept)


def line(cells: Iterable[Cell], width: int | None) -> str:
    """Cells beside each other in one line. What does not fit is cut."""
    shown = ""
    room = width
    for cell in cells:
        if room is None:
            shown += cell.shown()
        elif room > 0:
            shown += cell.shown(min(cell.width, room))
            room -= min(cell.width, room)
    return shown


def lines(cells: Iterable[Cell], width: int | None) -> list[str]:
    """Cells in as many lines as they need. None is broken."""
    return output.folded([cell.shown() for cell in cells], gap=_GAP, indent=0, width=width).split("\n")
