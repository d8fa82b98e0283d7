"""The page of a fairness analysis: who got what, who waited for what, who was starved, and was anything lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from fila.pipelines.pages import html, moments
from fila.pipelines.pages.html import Part
from fila.pipelines.runs import Manifest

_QUEUES = 4
_KEYS = 14
_ROWS = 25
_BLAMED = 0.1
"""A limit that took less than this part of the waits is not worth mentioning."""
_TURNS = {
    "delay": ("its delay", "#91a7ff"),
    "no_consumer": ("a consumer", "#adb5bd"),
    "throttle": ("a limit", "#fcc419"),
    "fair_share": ("its turn", "#3bc9db"),
}
_SCALE = (
    (0.5, "#c92a2a", "less than half of what it was owed"),
    (0.8, "#ff922b", "less"),
    (1.25, "#69db7c", "about what it was owed"),
    (2.0, "#4dabf7", "more"),
    (float("inf"), "#5f3dc4", "more than twice"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the page shows, small enough for one machine."""

    summary: dict[str, Any]
    queues: Sequence[str]
    keys: Mapping[str, Sequence[dict[str, Any]]]
    cells: Mapping[str, Sequence[dict[str, Any]]]
    jain: Mapping[str, Sequence[dict[str, Any]]]
    starvation: Sequence[dict[str, Any]]
    books: Sequence[dict[str, Any]]
    broken: Sequence[dict[str, Any]]


def figures(tables: Mapping[str, DataFrame], summary: dict[str, Any]) -> Figures:
    """Everything that the page shows: of the busiest queues, their keys that were owed most."""
    served = tables["keys"].groupBy("queue").agg(F.sum("cost").alias("cost")).where("cost > 0")
    queues = [row.queue for row in served.orderBy(F.desc("cost"), "queue").limit(_QUEUES).collect()]
    here = F.col("queue").isin(*queues)
    first = Window.partitionBy("queue").orderBy(F.desc("starved_windows"), F.desc("owed"), "key")
    ranked = tables["keys"].where(here).withColumn("rank", F.row_number().over(first))
    keys = _by_queue(ranked.where(F.col("rank") <= _KEYS).orderBy("rank"))
    names = {row["key"] for rows in keys.values() for row in rows}
    starvation = tables["starvation"].orderBy(F.desc(F.col("owed") - F.col("got"))).limit(_ROWS)
    return Figures(
        summary=summary,
        queues=queues,
        keys=keys,
        cells=_by_queue(tables["windows"].where(here & F.col("key").isin(*names))),
        jain=_by_queue(tables["jain"].where(here)),
        starvation=[row.asDict(recursive=True) for row in starvation.collect()],
        books=[row.asDict() for row in tables["conservation"].orderBy("queue").limit(_ROWS).collect()],
        broken=[row.asDict() for row in tables["broken"].orderBy("seq").limit(_ROWS).collect()]
        if summary["broken"]
        else [],
    )


def _by_queue(rows: DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.collect():
        found.setdefault(row.queue, []).append(row.asDict())
    return found


def render(shown: Figures, manifest: Manifest) -> str:
    """The page."""
    summary = shown.summary
    sections = [_starvation(shown)]
    for queue in shown.queues:
        sections += _queue(shown, queue)
    sections += [_conservation(shown)]
    length = (summary["end_ns"] - summary["first_ns"]) / 1e9
    at = _time(summary["first_ns"], date=True)
    tiles = (
        ("messages", f"{summary['enqueued'] + summary['carried']:,}"),
        ("acked", f"{summary['acked']:,}"),
        ("dead", f"{summary['dead']:,}"),
        ("pending", f"{summary['pending']:,}"),
        ("starvations", f"{summary['starved']:,}"),
        ("lost", "none" if summary["conserved"] else f"{summary['broken'] or '?'}"),
    )
    windows = f"in windows of {summary['window_s']:g} s"
    footer = f"{summary['entries']:,} entries of {length:,.1f} s from {at} UTC, {windows}. Run {manifest.run}."
    return html.page("Fairness", _lead(shown), tiles, sections, footer)


def _lead(shown: Figures) -> str:
    worst = shown.starvation[0] if shown.starvation else None
    if worst is None:
        first = "<b>Nobody was starved.</b>"
    else:
        names = [f"<b>{escape(each['key'] or '(no key)')}</b>" for each in worst["by_whom"]]
        by = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        because = " because a <b>limit</b> held it back" if worst["limited"] >= _BLAMED else ""
        first = (
            f"<b>{escape(worst['key'] or '(no key)')}</b> was starved in <b>{escape(worst['queue'])}</b> from "
            f"{_time(worst['from_ns'])} to {_time(worst['to_ns'])}{because}: it got {worst['got']:,} of "
            f"{worst['owed']:,.0f}" + (f", while {by} got more than their part." if by else ".")
        )
    summary = shown.summary
    proof = (
        "Every message is accounted for."
        if summary["conserved"]
        else f'<b class="bad">{summary["broken"]:,} contradictions, {summary["missing_entries"]:,} entries missing.</b>'
    )
    return f"{first} {proof}"


def _queue(shown: Figures, queue: str) -> list[str]:
    keys, span = shown.keys[queue], _Windows(shown.summary)
    heat_rows = []
    for row in keys:
        found = {cell["window"]: cell for cell in shown.cells.get(queue, ()) if cell["key"] == row["key"]}
        heat_rows.append((row["key"] or "(no key)", [_cell(found.get(window)) for window in range(span.count)]))
    scale = html.legend(
        [Part(text, 0, colour) for _, colour, text in _SCALE] + [Part("wanted nothing", 0, "var(--track)")],
        values=False,
    )
    jain = {row["window"]: row["jain"] for row in shown.jain.get(queue, ())}
    values: list[float | None] = [jain.get(window) for window in range(span.count)]
    waits = [
        (
            row["key"] or "(no key)",
            [Part(text, (row[f"{name}_ns"] or 0) / 1e9, colour) for name, (text, colour) in _TURNS.items()],
        )
        for row in keys
    ]
    table = html.table(
        (
            "key",
            "weight",
            "share",
            "entitled",
            "leased",
            "retries",
            "dead",
            "cost",
            "of it retries",
            "p95 wait",
            "longest",
        ),
        [
            (
                row["key"] or "(no key)",
                row["weight"],
                f"{row['share'] or 0:.1%}",
                f"{row['entitled'] or 0:.1%}",
                row["leased"],
                row["retries"],
                row["dead"],
                row["cost"],
                row["retry_cost"],
                _duration(row["p95_wait_ns"]),
                _duration(row["longest_wait_ns"]),
            )
            for row in keys
        ],
    )
    return [
        html.section(
            f"{queue}: what keys got of what they were owed",
            "One row for each key, one column for each window of time.",
            html.heat(heat_rows, span.labels, span.every) + scale,
        ),
        html.section(
            f"{queue}: Jain's index",
            "Over the keys that wanted service all the time. 1 is fair.",
            html.lines(span.labels, [("Jain's index", "var(--accent)", values)], 2 * span.every, top=1.0)
            if jain
            else "<p>Never did two keys want service for a whole window.</p>",
            half=True,
        ),
        html.section(
            f"{queue}: what messages waited for",
            "The sum over all messages of a key, in seconds.",
            html.stacks(waits) + html.legend([Part(text, 0, colour) for text, colour in _TURNS.values()], values=False),
            half=True,
        ),
        html.section(f"{queue}: keys", "Over the whole time. Share and entitlement are of cost.", table),
    ]


def _culprits(row: dict[str, Any]) -> list[str]:
    limit = [f"a limit ({row['limited']:.0%} of its waits)"] if row["limited"] >= _BLAMED else []
    return limit + [f"{each['key'] or '(no key)'} (+{each['excess']:,.0f})" for each in row["by_whom"]]


def _starvation(shown: Figures) -> str:
    rows = [
        (
            row["queue"],
            row["key"] or "(no key)",
            f"{_time(row['from_ns'])} to {_time(row['to_ns'])}",
            row["got"],
            round(row["owed"]),
            ", ".join(_culprits(row)) or "nobody in particular",
        )
        for row in shown.starvation
    ]
    body = html.table(("queue", "who", "when", "got", "was owed", "by whom"), rows) if rows else "<p>Nobody was.</p>"
    return html.section(
        "Who was starved, when, and by whom",
        "Keys that wanted service and got less than half of their part. The others got so much more than theirs.",
        body,
    )


def _conservation(shown: Figures) -> str:
    names = ("held_before", "enqueued", "moved_in", "acked", "dead", "redriven", "dropped", "deleted", "holds", "seen")
    head = (
        "queue",
        "held before",
        "enqueued",
        "moved in",
        "acked",
        "to dead letters",
        "redriven",
        "dropped",
        "deleted",
        "holds",
        "seen",
        "",
    )
    rows = [
        (row["queue"], *(row[name] for name in names), "ok" if row["balanced"] else "BROKEN") for row in shown.books
    ]
    body = html.table(head, rows)
    if shown.broken:
        body += "<p></p>" + html.table(
            ("message", "queue", "entry", "what is wrong"),
            [(row["message_id"] or "-", row["queue"], str(row["seq"] or "-"), row["problem"]) for row in shown.broken],
        )
    return html.section(
        "Nothing is lost",
        "Held before + enqueued + moved in = acked + dead + redriven + dropped + deleted + what the queue holds.",
        body,
    )


class _Windows:
    """The windows as labels."""

    def __init__(self, summary: dict[str, Any]) -> None:
        step = round(summary["window_s"] * 1e9)
        self.count = max(1, -(-(summary["end_ns"] - summary["first_ns"]) // step))
        self.labels = moments.starts(summary["first_ns"], step, self.count)
        self.every = max(1, self.count // 8)


def _cell(cell: dict[str, Any] | None) -> tuple[str, str] | None:
    if cell is None or not (cell["wanted_ns"] or cell["cost"]):
        return None
    owed, got = cell["owed"], cell["cost"]
    if owed < 1:
        ratio = 1.0 if got <= 1 else 2.5
    else:
        ratio = got / owed
    colour = next(colour for below, colour, _ in _SCALE if ratio < below)
    return colour, f"got {got:,} of {owed:,.1f}"


def _time(ns: int, *, date: bool = False) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")


def _duration(ns: int | None) -> str:
    if ns is None:
        return "-"
    return f"{ns / 1e9:,.1f} s" if ns >= 1e9 else f"{ns / 1e6:,.1f} ms"
