"""Pictures as SVG. No style attributes, which the policy forbids: places are attributes, colours are classes.

Every picture stands beside its numbers in a table; a picture itself is described by a label or hidden from readers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

_HEIGHT = 100


class Line(NamedTuple):
    """One line of a plot: values by time, None where nothing is known."""

    name: str
    values: Sequence[float | None]
    colour: str


def lines(series: Sequence[Line], label: str, columns: int) -> Markup:
    """Lines over time, the newest at the right edge. All share one scale from 0."""
    top = max((value for line in series for value in line.values if value is not None), default=0.0) or 1.0
    paths = "".join(f'<path class="line {line.colour}" d="{_path(line.values, top, columns)}"/>' for line in series)
    grid = "".join(f'<path class="grid" d="M0 {y}H{columns - 1}"/>' for y in (25, 50, 75, _HEIGHT))
    box = f'viewBox="0 -2 {columns - 1} {_HEIGHT + 4}"'
    about = f'role="img" aria-label="{escape(label)}"'
    return Markup(  # noqa: S704 - numbers and our own words; the label is escaped
        f'<svg class="plot" {box} preserveAspectRatio="none" {about}>{grid}{paths}</svg>'
    )


def peak(series: Sequence[Line]) -> float:
    return max((value for line in series for value in line.values if value is not None), default=0.0)


def _path(values: Sequence[float | None], top: float, columns: int) -> str:
    parts, pen = [], "M"
    for index, value in enumerate(values[-columns:], columns - min(columns, len(values))):
        if value is None:
            pen = "M"
            continue
        parts.append(f"{pen}{index} {_HEIGHT * (1 - value / top):.1f}")
        pen = "L"
    return "".join(parts)


def bar(part: float, mark: float | None = None, colour: str = "c1") -> Markup:
    """A bar from 0 to 1, with a mark where it should be."""
    width = 100 * min(1.0, max(0.0, part))
    line = "" if mark is None else f'<rect class="mark" x="{min(99.2, 100 * mark):.1f}" width="0.8" height="10"/>'
    return Markup(  # noqa: S704 - numbers and our own words
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="10"/><rect class="fill {colour}" width="{width:.2f}" height="10"/>'
        f"{line}</svg>"
    )


def stack(parts: Sequence[tuple[str, str, float]]) -> Markup:
    """One bar, cut into shares. `parts` are name, colour and amount."""
    total = sum(amount for _, _, amount in parts) or 1.0
    pieces, x = [], 0.0
    for _, colour, amount in parts:
        width = 100 * amount / total
        pieces.append(f'<rect class="fill {colour}" x="{x:.2f}" width="{width:.2f}" height="10"/>')
        x += width
    return Markup(  # noqa: S704 - numbers and our own words
        '<svg class="bar tall" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="10"/>{"".join(pieces)}</svg>'
    )


def strip(levels: Sequence[int | None], columns: int) -> Markup:
    """One row of a heat map: a cell for each level, one path for each colour, the newest at the right edge."""
    cells: dict[int, list[str]] = {}
    for index, level in enumerate(levels[-columns:], columns - min(columns, len(levels))):
        if level is not None:
            cells.setdefault(level, []).append(f"M{index} 0h1v1h-1z")
    paths = "".join(f'<path class="{_level(level)}" d="{"".join(each)}"/>' for level, each in sorted(cells.items()))
    return Markup(  # noqa: S704 - numbers and our own words
        f'<svg class="strip" viewBox="0 0 {columns} 1" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'
    )


def gauge(part: float, colour: str = "c1") -> Markup:
    """Half a ring, filled from the left."""
    length = 141.4 * min(1.0, max(0.0, part))
    arc = 'd="M5 50A45 45 0 0 1 95 50"'
    return Markup(  # noqa: S704 - numbers and our own words
        '<svg class="gauge" viewBox="0 0 100 56" aria-hidden="true">'
        f'<path class="ring" {arc}/><path class="ring {colour}" {arc} stroke-dasharray="{length:.1f} 300"/></svg>'
    )


def _level(level: int) -> str:
    return f"h{'m' if level < 0 else 'p' if level > 0 else ''}{abs(level)}"
