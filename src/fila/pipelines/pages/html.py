"""The frame of a page and its plots, as text. Every text that comes from data is escaped here, on its way in."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_NUMBER = re.compile(r"-|[-+]?[\d.,]+[kMG]?(?: ?(?:%|s|ms))?")
_CSS = """
:root{--bg:#f6f7f9;--card:#fff;--ink:#17202a;--soft:#667085;--line:#e4e7ec;--accent:#3b5bdb;--track:#eef0f4}
@media(prefers-color-scheme:dark){
:root{--bg:#12151a;--card:#1b2027;--ink:#e8ecf1;--soft:#98a2b3;--line:#2d3440;--accent:#7c9cff;--track:#272d37}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:40px 24px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.02em}
h2{font-size:17px;margin:0 0 2px;letter-spacing:-.01em}
p{margin:0 0 14px;color:var(--soft)}
.lead{font-size:16px;max-width:80ch;margin-bottom:26px}.lead b{color:var(--ink)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:14px;margin-bottom:20px}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{padding:14px 18px}
.tile b{display:block;font-size:26px;line-height:1.25;font-variant-numeric:tabular-nums;letter-spacing:-.02em}
.tile span{color:var(--soft);font-size:13px}
.grid{display:grid;grid-template-columns:repeat(12,1fr);gap:20px}
section{padding:20px 22px;grid-column:span 12;min-width:0}section.half{grid-column:span 6}
@media(max-width:820px){section.half{grid-column:span 12}}
.stack{display:flex;height:26px;border-radius:6px;overflow:hidden;background:var(--track)}
.stack i{display:block;min-width:2px;border-right:1px solid var(--card)}
.row{display:grid;grid-template-columns:minmax(90px,150px) 1fr minmax(64px,auto);gap:12px}
.row{align-items:center;margin:7px 0}
.row>span:first-child{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.row>span:last-child{text-align:right;font-variant-numeric:tabular-nums;color:var(--soft)}
.row .stack{height:18px}.bar{height:12px;border-radius:6px;background:var(--accent)}
.track{background:var(--track);border-radius:6px;height:12px}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:12px;font-size:13px;color:var(--soft)}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
.legend b{color:var(--ink);font-weight:600;font-variant-numeric:tabular-nums}
table{width:100%;border-collapse:collapse;font-size:14px}.wide{overflow-x:auto}
th{text-align:left;white-space:nowrap}th.n,td.n,th.n+th,td.n+td{padding-left:14px}
th{color:var(--soft);font-weight:500;font-size:13px;border-bottom:1px solid var(--line);padding:6px 10px 6px 0}
td{padding:7px 10px 7px 0;max-width:420px;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
td:not(.n){min-width:5.5em}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
tr:last-child td{border-bottom:0}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:11px;font-family:inherit}
.good{color:#2b8a3e}.bad{color:#e03131}
footer{margin-top:28px;color:var(--soft);font-size:13px;overflow-wrap:anywhere}
@media print{body{background:#fff}.tile,section{break-inside:avoid}}
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar, or a line of a plot."""

    name: str
    value: float
    colour: str


def page(title: str, lead: str, tiles: Iterable[tuple[str, str]], sections: Iterable[str], footer: str) -> str:
    """A whole page. `lead` and the sections are HTML, the rest is text."""
    boxes = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in tiles
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_CSS}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="lead">{lead}</p><div class="tiles">{boxes}</div>'
        f'<div class="grid">{"".join(sections)}</div><footer>{escape(footer)}</footer></main></body></html>\n'
    )


def section(title: str, about: str, body: str, *, half: bool = False) -> str:
    """A box. `body` is HTML, title and explanation are text."""
    return f"<section{' class=half' if half else ''}><h2>{escape(title)}</h2><p>{escape(about)}</p>{body}</section>"


def stacked(parts: Sequence[Part]) -> str:
    """One bar, cut into shares."""
    total = sum(part.value for part in parts) or 1
    return (
        '<div class="stack">'
        + "".join(
            f'<i style="flex:{part.value / total:.6f} 0 0;background:{part.colour}" '
            f'title="{escape(part.name)}: {number(part.value)} ({part.value / total:.1%})"></i>'
            for part in parts
            if part.value
        )
        + "</div>"
    )


def legend(parts: Sequence[Part], *, values: bool = True) -> str:
    """What the colours mean."""
    total = sum(part.value for part in parts) or 1
    told = [f" <b>{number(part.value)}</b> ({part.value / total:.1%})" if values else "" for part in parts]
    return (
        '<div class="legend">'
        + "".join(
            f'<span><i style="background:{part.colour}"></i>{escape(part.name)}{text}</span>'
            for part, text in zip(parts, told, strict=True)
        )
        + "</div>"
    )


def stacks(rows: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """One bar for each row, each of them a whole."""
    return "".join(
        f'<div class="row"><span title="{escape(name)}">{escape(name)}</span>{stacked(parts)}'
        f"<span>{number(sum(part.value for part in parts))}</span></div>"
        for name, parts in rows
    )


def bars(rows: Sequence[tuple[str, float, str, str]]) -> str:
    """Bars from a common base: name, value, what to write at its end, colour."""
    top = max((value for _, value, _, _ in rows), default=0) or 1
    return "".join(
        f'<div class="row"><span title="{escape(name)}">{escape(name)}</span>'
        f'<div class="track"><div class="bar" style="width:{max(0.5, 100 * value / top):.1f}%;background:{colour}">'
        "</div></div>"
        f"<span>{escape(text)}</span></div>"
        for name, value, text, colour in rows
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """A table of text and numbers; columns of numbers are set to the right."""
    numeric = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(head))]
    classes = [" class=n" if each else "" for each in numeric]
    top = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(head, classes, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape(cell) if isinstance(cell, str) else number(cell)}</td>"
            for cell, kind in zip(row, classes, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 520, 220, 42, 30, 12


def columns(
    labels: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float]]],
    every: int = 1,
    marks: Sequence[tuple[float, str]] = (),
    *,
    log: bool = False,
) -> str:
    """Columns side by side for each label: (name, colour, values). `marks` are vertical lines.

    With `log` each line of the grid is ten times the one below, so that a few beside very many are seen.
    """
    most = max((value for _, _, values in series for value in values), default=0)
    powers = max(1, math.ceil(math.log10(max(most, 1)) - 1e-9))
    top = nice(most)
    slot = (_WIDTH - _LEFT) / max(1, len(labels))
    wide = slot * 0.86 / max(1, len(series))
    drawn = [_lines([(part / powers, 10.0**part) for part in range(powers + 1)]) if log else _grid(top)]
    for at, (name, colour, values) in enumerate(series):
        for index, value in enumerate(values):
            part = value / top
            if log:  # one is a little more than nothing
                part = max(0.015, math.log10(value) / powers) if value >= 1 else 0
            tall = (_HEIGHT - _BOTTOM - _TOP) * part
            drawn.append(
                f'<rect x="{_LEFT + index * slot + slot * 0.07 + at * wide:.1f}" y="{_HEIGHT - _BOTTOM - tall:.1f}" '
                f'width="{wide:.1f}" height="{tall:.1f}" rx="2" fill="{colour}">'
                f"<title>{escape(name)}, {escape(labels[index])}: {number(value)}</title></rect>"
            )
    for position, text in marks:
        x = _LEFT + position * slot
        drawn.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" '
            'stroke="var(--soft)" stroke-dasharray="3 4"/>'
            f'<text x="{x + 4:.1f}" y="{_TOP + 8}">{escape(text)}</text>'
        )
    drawn += _labels(labels, slot, every)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(drawn)}</svg>'


def lines(
    labels: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float | None]]],
    every: int = 1,
    top: float | None = None,
) -> str:
    """Lines over labels: (name, colour, values). A line is interrupted where a value is None."""
    known = [value for _, _, values in series for value in values if value is not None]
    high = top or nice(max(known, default=0))
    slot = (_WIDTH - _LEFT) / max(1, len(labels))
    drawn = [_grid(high)]
    for name, colour, values in series:
        path, down = [], False
        for index, value in enumerate(values):
            if value is None:
                down = False
                continue
            x, y = (
                _LEFT + (index + 0.5) * slot,
                _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(value, high) / high,
            )
            path.append(f"{'L' if down else 'M'}{x:.1f} {y:.1f}")
            drawn.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}">'
                f"<title>{escape(name)}, {escape(labels[index])}: {value:.3g}</title></circle>"
            )
            down = True
        drawn.append(
            f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
        )
    drawn += _labels(labels, slot, every)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(drawn)}</svg>'


def heat(rows: Sequence[tuple[str, Sequence[tuple[str, str] | None]]], labels: Sequence[str], every: int = 1) -> str:
    """A grid: one row of cells (colour, text) for each name. None is an empty cell."""
    width, left, tall = 1040, 150, 22
    slot = (width - left) / max(1, len(labels))
    drawn = []
    for down, (name, cells) in enumerate(rows):
        y = down * tall
        short = name if len(name) <= 20 else name[:19] + "…"
        drawn.append(
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(short)}<title>{escape(name)}</title></text>'
        )
        for across, cell in enumerate(cells):
            colour, text = cell or ("var(--track)", "no demand")
            drawn.append(
                f'<rect x="{left + across * slot:.1f}" y="{y + 2}" width="{max(1.0, slot - 1.5):.1f}" '
                f'height="{tall - 3}" rx="2" fill="{colour}">'
                f"<title>{escape(name)}, {escape(labels[across])}: {escape(text)}</title></rect>"
            )
    bottom = len(rows) * tall
    drawn += [
        f'<text x="{left + (index + 0.5) * slot:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(label)}</text>'
        for index, label in enumerate(labels)
        if index % every == 0 and left + (index + 0.5) * slot < width - 28
    ]
    return f'<svg viewBox="0 0 {width} {bottom + 24}" role="img">{"".join(drawn)}</svg>'


def number(value: float) -> str:
    """`12,345`, `0.731`."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def short(value: float) -> str:
    """`950`, `12k`, `3.4M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def nice(value: float) -> float:
    """A round number that is not smaller."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in (1, 1.5, 2, 3, 4, 5, 8, 10) if step * size >= value * 0.999999)


def _is_number(cell: str | float) -> bool:
    """Whether it is one, or one as text, with its unit."""
    return not isinstance(cell, str) or _NUMBER.fullmatch(cell) is not None


def _grid(top: float) -> str:
    return _lines([(part / 4, top * part / 4) for part in range(5)])


def _lines(lines: Sequence[tuple[float, float]]) -> str:
    """Lines across a plot: how high, from 0 to 1, and what that stands for."""
    drawn = []
    for part, value in lines:
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * part
        drawn.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
        )
    return "".join(drawn)


def _labels(labels: Sequence[str], slot: float, every: int) -> list[str]:
    return [
        f'<text x="{_LEFT + (index + 0.5) * slot:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(label)}</text>'
        for index, label in enumerate(labels)
        if index % every == 0 and _LEFT + (index + 0.5) * slot <= _WIDTH - 3 * len(label)
    ]
