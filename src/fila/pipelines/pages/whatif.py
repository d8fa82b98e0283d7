"""The page of a what-if: what happened, what would have happened, and how far the replay can be trusted."""

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

VARIANTS = {
    "recorded": ("what happened", "#adb5bd"),
    "model": ("replayed, nothing changed", "#4dabf7"),
    "whatif": ("what would have been", "#f76707"),
}
_QUEUES = 4
_KEYS = 12


@dataclass(frozen=True, slots=True)
class Figures:
    """What the page shows, small enough for one machine."""

    summary: dict[str, Any]
    queues: Sequence[str]
    keys: Mapping[str, Sequence[dict[str, Any]]]
    """By queue: a key with the figures of each variant"""
    served: Mapping[tuple[str, str], dict[int, int]]
    """By queue and variant: cost delivered in each window"""
    jain: Mapping[tuple[str, str], dict[int, float]]


def figures(tables: Mapping[str, DataFrame], summary: dict[str, Any]) -> Figures:
    """Of the busiest queues, the keys whose waits or service differ most."""
    queues = [row["queue"] for row in summary["queues"][:_QUEUES]]
    here = F.col("queue").isin(*queues)
    compared = "whatif" if summary["changes"] else "model"
    keys = tables["keys"].where(here)
    spread = keys.groupBy("queue", "key").agg(
        F.max(F.when(F.col("variant") == compared, F.col("cost"))).alias("then"),
        F.max(F.when(F.col("variant") == "recorded", F.col("cost"))).alias("was"),
        F.max("wait_ns").alias("waits"),
    )
    apart = F.abs(F.coalesce("then", F.lit(0)) - F.coalesce("was", F.lit(0)))
    most = Window.partitionBy("queue").orderBy(F.desc(apart), F.desc("waits"), "key")
    chosen = spread.withColumn("rank", F.row_number().over(most)).where(F.col("rank") <= _KEYS)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in keys.join(chosen.select("queue", "key", "rank"), ["queue", "key"]).orderBy("rank").collect():
        found.setdefault(row.queue, {}).setdefault(row.key, {"key": row.key})[row.variant] = row.asDict()
    served: dict[tuple[str, str], dict[int, int]] = {}
    sums = tables["windows"].where(here).groupBy("queue", "variant", "window").agg(F.sum("cost").alias("cost"))
    for row in sums.collect():
        served.setdefault((row.queue, row.variant), {})[row.window] = row.cost
    jain: dict[tuple[str, str], dict[int, float]] = {}
    for row in tables["jain"].where(here).collect():
        jain.setdefault((row.queue, row.variant), {})[row.window] = row.jain
    return Figures(summary, queues, {queue: list(rows.values()) for queue, rows in found.items()}, served, jain)


def render(shown: Figures, manifest: Manifest) -> str:
    """The page."""
    summary, found = shown.summary, shown.summary["reproduction"]
    sections = [_queues(summary)]
    for queue in shown.queues:
        sections += _queue(shown, queue)
    sections.append(_reproduction(found))
    compared = found["alike"] + found["different"]
    tiles = (
        ("changes", f"{len(summary['changes'])}"),
        ("deliveries compared", f"{compared:,}"),
        ("chosen again", f"{found['alike'] / compared:.4%}" if compared else "-"),
        ("parts", f"{summary['parts']:,}"),
    )
    length = (summary["end_ns"] - summary["first_ns"]) / 1e9
    at = datetime.fromtimestamp(summary["first_ns"] / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    windows = f"in windows of {summary['window_s']:g} s"
    footer = f"{summary['entries']:,} entries of {length:,.1f} s from {at} UTC, {windows}. Run {manifest.run}."
    return html.page("What if", _lead(summary), tiles, sections, footer)


def _lead(summary: dict[str, Any]) -> str:
    found = summary["reproduction"]
    changes = ", ".join(f"<b>{escape(text)}</b>" for text in summary["changes"])
    first = f"The journal once more with {changes}." if changes else "The journal once more, with nothing changed."
    if found["different"] or found["unknown"]:
        trust = f'<b class="bad">The scheduler chose otherwise {found["different"]:,} times: see the end.</b>'
    else:
        trust = f"With nothing changed the scheduler chose all {found['alike']:,} deliveries again, in their order."
    return f"{first} {trust}"


def _queues(summary: dict[str, Any]) -> str:
    head = ("queue", "", "deliveries", "left waiting", "mean wait", "95 % wait", "longest", "Jain")
    rows: list[tuple[str, ...]] = []
    for queue in summary["queues"]:
        for variant, (name, _) in VARIANTS.items():
            told = queue.get(variant)
            if told is None:
                continue
            waits = (duration(told[each]) for each in ("mean_wait_ns", "p95_wait_ns", "longest_ns"))
            jain = "-" if told["jain"] is None else f"{told['jain']:.3f}"
            rows.append((queue["queue"], name, f"{told['leased']:,}", f"{told['backlog']:,}", *waits, jain))
    about = (
        "Compare what would have been with the replay in which nothing is changed: both are made by the same model of "
        "consumers, so that only the change is between them. A wait is the time from when a message is ready to its "
        "delivery; messages that are left waiting at the end have none."
    )
    return html.section("Queues", about, html.table(head, rows))


def _queue(shown: Figures, queue: str) -> list[str]:
    summary = shown.summary
    step = round(summary["window_s"] * 1e9)
    count = max(1, -(-(summary["end_ns"] - summary["first_ns"]) // step))
    labels = moments.starts(summary["first_ns"], step, count)
    there = {variant: told for variant, told in VARIANTS.items() if (queue, variant) in shown.served}
    served = [
        (name, colour, [float(shown.served[queue, variant].get(window, 0)) for window in range(count)])
        for variant, (name, colour) in there.items()
    ]
    jain = [
        (name, colour, [shown.jain.get((queue, variant), {}).get(window) for window in range(count)])
        for variant, (name, colour) in there.items()
    ]
    legend = html.legend([Part(name, 0, colour) for name, colour in there.values()], values=False)
    every = max(1, count // 5)
    head = ("key", "", "deliveries", "share", "left waiting", "mean wait", "95 % wait", "longest")
    rows: list[tuple[str, ...]] = []
    for key in shown.keys.get(queue, ()):
        for variant, (name, _) in there.items():
            told = key.get(variant)
            if told is not None:
                share = "-" if told["share"] is None else f"{told['share']:.1%}"
                waits = (duration(told[each]) for each in ("mean_wait_ns", "p95_wait_ns", "longest_ns"))
                rows.append(
                    (key["key"] or "(no key)", name, f"{told['leased']:,}", share, f"{told['backlog']:,}", *waits)
                )
    return [
        html.section(
            f"{queue}: service", "Cost delivered in each window.", html.lines(labels, served, every) + legend, half=True
        ),
        html.section(
            f"{queue}: Jain's index",
            "1 is fair; 1/n means that one of n keys took everything.",
            html.lines(labels, jain, every, top=1.0) + legend,
            half=True,
        ),
        html.section(f"{queue}: keys", "Those whose service differs most.", html.table(head, rows)),
    ]


def _reproduction(found: dict[str, Any]) -> str:
    rows = [
        ("chosen again, at the same place", found["alike"]),
        ("chosen otherwise", found["different"]),
        ("not compared", found["skipped"]),
        ("entries that contradict the ones before", found["unknown"]),
    ]
    body = html.table(("deliveries of the journal", "count"), rows)
    if found["first"]:
        body += html.table(("the first that differ",), [(text,) for text in found["first"]])
    about = (
        "The journal's ticks were repeated with nothing changed, and the scheduler was asked for as many messages as "
        "it was asked for then. Not compared are suspects, claims, and what comes before a queue was empty once where "
        "the journal begins in the middle."
    )
    return html.section("Can the replay be trusted?", about, body)


def duration(ns: float | None) -> str:
    """`12.3 ms`, `4.5 s`."""
    if ns is None:
        return "-"
    return f"{ns / 1e9:,.1f} s" if ns >= 1e9 else f"{ns / 1e6:,.1f} ms"
