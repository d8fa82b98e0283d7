"""The page of a reconciliation: how reports compare with platforms, whom to look at, and how trust moved."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from html import escape
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fila.pipelines.lake.ledger import Intent
from fila.pipelines.pages import html
from fila.pipelines.pages.html import Part
from fila.pipelines.reconcile.columns import DIFFERENCES
from fila.pipelines.reconcile.verdicts import STATUS_COLUMNS
from fila.reconcile.domain.models import METRICS, Status
from fila.reconcile.domain.settings import BP, Settings

_LOOKS = {
    Status.MATCHED: ("matched", "#37b24d"),
    Status.DISCREPANCY_LOW: ("low discrepancy", "#fcc419"),
    Status.DISCREPANCY_MEDIUM: ("medium discrepancy", "#ff922b"),
    Status.DISCREPANCY_HIGH: ("high discrepancy", "#f76707"),
    Status.AFFILIATE_OVERCLAIMED: ("overclaimed", "#e03131"),
    Status.INCOMPLETE_PLATFORM_DATA: ("platform told a part", "#91a7ff"),
    Status.MISSING_PLATFORM_DATA: ("platform told nothing", "#adb5bd"),
}
_STEP_BP = 500
_REACH = 20
"""The histogram of differences: columns of 5 %, so many to each side; what is beyond is in the outermost."""
_SHOWN = 12
_STACKS = 8
_TRUST_STEPS = 20
_TRUST_STEP_BP = BP // _TRUST_STEPS
_DAYS = 60
"""So many days with runs are shown side by side."""
Trend = list[dict[str, Any]]
"""For each day with runs what was said at its end, the oldest first."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the page shows, small enough for one machine."""

    summary: dict[str, Any]
    statuses: dict[str, int] = field(default_factory=dict)
    differences: dict[int, int] = field(default_factory=dict)
    trust_before: dict[int, int] = field(default_factory=dict)
    trust_now: dict[int, int] = field(default_factory=dict)
    worst: Sequence[dict[str, Any]] = ()
    platforms: Sequence[dict[str, Any]] = ()
    campaigns: Sequence[dict[str, Any]] = ()
    #: How many alerts, by kind and severity.
    alerts: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gold:
    """The tables that the page is made of."""

    totals: DataFrame
    #: Of the run.
    results: DataFrame
    alerts: DataFrame
    #: Reports that are tried again.
    waiting: DataFrame


def figures(gold: Gold, before: DataFrame | None, settings: Settings) -> Figures:
    """Everything that the page of a run shows. `before` are the totals as they were."""
    affiliates, platforms, campaigns = (_of(gold.totals, name) for name in ("affiliate", "platform", "campaign"))
    results, alerts, waiting = gold.results, gold.alerts, gold.waiting
    none = F.lit(None)
    told = F.when(F.col("confidence_bp") == BP, _difference_step())
    counts = _counts(
        results.select(F.lit("results"), F.col("attempt") > 1, told),
        affiliates.select(F.lit("trust"), _trust_step(), none),
        waiting.select(F.lit("open"), F.lit(True), none),
        alerts.select(F.lit("alerts"), "kind", "severity"),
        *([_of(before, "affiliate").select(F.lit("trust before"), _trust_step(), none)] if before is not None else []),
    )
    totals = _rows(affiliates.agg(*(F.sum(name).alias(name) for name in ("reports", *STATUS_COLUMNS.values()))))[0]
    statuses = {status: int(totals[name] or 0) for status, name in STATUS_COLUMNS.items()}
    differences: Counter[int] = Counter()
    for (_, step), count in counts["results"].items():
        if step is not None:
            differences[int(step)] += count
    trust = {int(step or 0): count for (step, _), count in counts["trust"].items()}
    known = sum(trust.values())
    trust_before = {int(step or 0): count for (step, _), count in counts["trust before"].items()}
    if before is None:
        trust_before = {settings.trust.initial_bp // _TRUST_STEP_BP: known}
    found_alerts = {(str(kind), str(severity)): count for (kind, severity), count in counts["alerts"].items()}
    return Figures(
        summary={
            "classified": sum(counts["results"].values()),
            "looked_at_again": sum(count for (again, _), count in counts["results"].items() if again == "true"),
            "reports": totals["reports"] or 0,
            "affiliates": known,
            "statuses": statuses,
            "alerts": sum(found_alerts.values()),
            "retries": counts["open"]["true", None],
        },
        statuses=statuses,
        differences=differences,
        trust_before=trust_before,
        trust_now=trust,
        worst=_rows(affiliates.where("steps_bp < 0").orderBy("steps_bp", "name").limit(_SHOWN)),
        platforms=_rows(platforms.orderBy(F.desc("reports"), "name").limit(_SHOWN)),
        campaigns=_rows(campaigns.orderBy(F.desc("reports"), "name").limit(_SHOWN)),
        alerts=found_alerts,
    )


def _counts(*parts: DataFrame) -> dict[str, Counter[tuple[str | None, str | None]]]:
    """How often each row is there, as text: by its first column, then by the other two. All in one query."""
    named = [
        part.toDF("what", "a", "b").select("what", *(F.col(name).cast("string").alias(name) for name in "ab"))
        for part in parts
    ]
    found: dict[str, Counter[tuple[str | None, str | None]]] = defaultdict(Counter)
    for row in reduce(DataFrame.unionAll, named).groupBy("what", "a", "b").count().collect():
        found[row.what][row.a, row.b] = row["count"]
    return found


def trend(before: Trend, as_of_ms: int, statuses: Mapping[str, int]) -> Trend:
    """What was said on earlier days, and now. A run keeps it for the next one, so that none reads the others."""
    day = datetime.fromtimestamp(as_of_ms / 1000, UTC).date().isoformat()
    judged = sum(statuses[str(status)] for status in _LOOKS if not str(status).endswith("DATA"))
    now = {"day": day, "judged": judged}
    now |= {str(status): statuses[str(status)] for status in (Status.MATCHED, Status.AFFILIATE_OVERCLAIMED)}
    return [*(each for each in before if each["day"] != day), now][-_DAYS:]


def render(
    shown: Figures,
    refused: Mapping[str, Mapping[str, int]],
    quarantined: Mapping[str, str],
    days: Trend,
    intent: Intent,
) -> str:
    """The page. `refused` are rows, by input and reason; `quarantined` are files that were left out, with why."""
    parts = _mix(shown.statuses)
    total = sum(shown.statuses.values()) or 1
    judged = sum(shown.statuses[str(status)] for status in _LOOKS if not str(status).endswith("DATA")) or 1
    matched, over = (shown.statuses[str(status)] for status in (Status.MATCHED, Status.AFFILIATE_OVERCLAIMED))
    first = shown.worst[0]["name"] if shown.worst else None
    lead = (
        f"Of <b>{judged if sum(shown.statuses.values()) else 0:,}</b> reports that could be held against a platform, "
        f"<b>{matched / judged:.1%}</b> agree with it and <b>{over / judged:.1%}</b> claim far too much. "
        + (
            f"Whoever looks at one affiliate should look at <b>{escape(str(first))}</b>."
            if first is not None
            else "Nobody stands out."
        )
    )
    tiles = (
        ("reports", f"{sum(shown.statuses.values()):,}"),
        ("affiliates", f"{shown.summary['affiliates']:,}"),
        ("agree", f"{matched / judged:.1%}"),
        ("overclaimed", f"{over:,}"),
        ("alerts in this run", f"{shown.summary['alerts']:,}"),
        ("wait for figures", f"{sum(shown.statuses[str(s)] for s in _LOOKS if str(s).endswith('DATA')):,}"),
    )
    sections = [
        html.section(
            "How reports compare with their platforms",
            f"All {total:,} reports so far.",
            html.stacked(parts) + html.legend(parts),
        ),
        html.section(
            "How far claim and platform are apart",
            "Reports of this run by their worst metric, after what growth explains. To the right the claim is larger. "
            "Each line stands for ten times as many as the one below.",
            _difference_plot(shown.differences),
            half=True,
        ),
        html.section(
            "How trust moved", "Affiliates by trust, before this run and after it.", _trust_plot(shown), half=True
        ),
        html.section(
            "Who lost most trust",
            "The sum of all steps, in points of a hundred.",
            _worst_plot(shown.worst),
        ),
        html.section(
            "By platform",
            "What the reports of each platform came to.",
            html.stacks(_mixes(shown.platforms[:_STACKS])),
            half=True,
        ),
        html.section(
            "By campaign",
            "The largest campaigns.",
            html.stacks(_mixes(shown.campaigns[:_STACKS])),
            half=True,
        ),
        html.section(
            "What advertisers would pay for",
            "Claimed against told, of reports whose platform told everything.",
            _claims_table(shown.campaigns),
        ),
        html.section("Alerts of this run", "What a person should hear of.", _alerts(shown.alerts), half=True),
        html.section(
            "Rows that were refused",
            "They are kept in bronze, each with its reason.",
            _refused(refused),
            half=True,
        ),
    ]
    if len(days) > 1:
        about = (
            "Of all reports that could be held against a platform by then, in percent, as said at the end of each day."
        )
        sections.insert(1, html.section("Day by day", about, _trend_plot(days)))
    if quarantined:
        table = html.table(("file", "reason"), sorted(quarantined.items()))
        about = "They could not be used. The next run tries them again."
        sections.append(html.section("Metrics files that were left out", about, table))
    at = datetime.fromtimestamp(intent.as_of_ms / 1000, UTC)
    files = sum(map(len, intent.files.values()))
    footer = f"Run {intent.run}, as of {at:%Y-%m-%d %H:%M} UTC, {files:,} new files. Point at a bar to see its count."
    return html.page("Reconciliation", lead, tiles, sections, footer)


def _of(totals: DataFrame, dimension: str) -> DataFrame:
    return totals.where(F.col("dimension") == dimension)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def _difference_step() -> Column:
    """The step of 5 % that the worst signed difference of a report is in."""
    worst = F.greatest(*(F.abs(F.col(name)) for name in DIFFERENCES))
    signed = F.coalesce(*(F.when(F.abs(F.col(name)) == worst, F.col(name)) for name in DIFFERENCES))
    return F.floor(F.least(F.greatest(signed, F.lit(-_REACH * _STEP_BP)), F.lit(_REACH * _STEP_BP - 1)) / _STEP_BP)


def _trust_step() -> Column:
    return F.least(F.floor(F.col("trust_bp") / _TRUST_STEP_BP), F.lit(_TRUST_STEPS - 1))


def _mix(statuses: dict[str, int]) -> list[Part]:
    return [Part(name, statuses.get(str(status), 0), colour) for status, (name, colour) in _LOOKS.items()]


def _mixes(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[Part]]]:
    return [
        (
            str(row["name"]) or "(none)",
            [Part(name, row[STATUS_COLUMNS[str(status)]], colour) for status, (name, colour) in _LOOKS.items()],
        )
        for row in rows
    ]


def _difference_plot(differences: dict[int, int]) -> str:
    if not differences:
        return "<p>No report of this run could be held against a platform.</p>"
    steps = range(-_REACH, _REACH)
    labels = [f"{step * _STEP_BP // 100} %" for step in steps]
    values = [float(differences.get(step, 0)) for step in steps]
    return html.columns(
        labels, [("reports", "var(--accent)", values)], every=5, marks=[(_REACH, "claim = platform")], log=True
    )


def _trust_plot(shown: Figures) -> str:
    labels = [f"{step * 100 // _TRUST_STEPS}" for step in range(_TRUST_STEPS)]
    series = [
        ("before", "#adb5bd", [float(shown.trust_before.get(step, 0)) for step in range(_TRUST_STEPS)]),
        ("now", "var(--accent)", [float(shown.trust_now.get(step, 0)) for step in range(_TRUST_STEPS)]),
    ]
    key = html.legend([Part("before", 0, "#adb5bd"), Part("now", 0, "var(--accent)")], values=False)
    return html.columns(labels, series, every=2) + key


def _worst_plot(worst: Sequence[dict[str, Any]]) -> str:
    if not worst:
        return "<p>Nobody has lost any.</p>"
    bars = html.bars(
        [
            (
                row["name"],
                -row["steps_bp"],
                _worst_text(row),
                "#e03131" if row["affiliate_overclaimed"] * 2 > row["reports"] else "#ff922b",
            )
            for row in worst
        ]
    )
    key = html.legend(
        [Part("most reports overclaimed", 0, "#e03131"), Part("other discrepancies", 0, "#ff922b")], values=False
    )
    return bars + key


def _worst_text(row: dict[str, Any]) -> str:
    steps, over, reports, trust = (row[name] for name in ("steps_bp", "affiliate_overclaimed", "reports", "trust_bp"))
    return f"{steps / 100:,.0f} · {over:,} of {reports:,} overclaimed · trust {trust / BP:.2f}"


def _trend_plot(days: Trend) -> str:
    drawn = []
    for status in (Status.MATCHED, Status.AFFILIATE_OVERCLAIMED):
        name, colour = _LOOKS[status]
        shares = [100 * each[str(status)] / each["judged"] if each["judged"] else None for each in days]
        drawn.append((name, colour, shares))
    legend = html.legend([Part(name, 0, colour) for name, colour, _ in drawn], values=False)
    return html.lines([each["day"] for each in days], drawn, max(1, -(-len(days) // 8)), top=100.0) + legend


def _claims_table(campaigns: Sequence[dict[str, Any]]) -> str:
    head = ["campaign", "reports"]
    head += [text for name in METRICS for text in (f"{name} claimed", "told", "apart")]
    rows: list[list[str | int]] = []
    for row in campaigns:
        cells: list[str | int] = [row["name"] or "(none)", row["reports"]]
        for name in METRICS:
            claimed, told = row[f"claimed_{name}"], row[f"told_{name}"]
            cells += [html.short(claimed), html.short(told), f"{(claimed - told) / told:+.1%}" if told else "-"]
        rows.append(cells)
    return html.table(head, rows)


def _alerts(alerts: Mapping[tuple[str, str], int]) -> str:
    if not alerts:
        return "<p>None.</p>"
    ordered = sorted(alerts.items(), key=lambda each: (each[0][0], -each[1]))
    return html.table(("kind", "severity", "alerts"), [(*what, count) for what, count in ordered])


def _refused(refused: Mapping[str, Mapping[str, int]]) -> str:
    rows = [
        (name, reason, count)
        for name, reasons in refused.items()
        for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:_SHOWN]
    ]
    return html.table(("input", "reason", "rows"), rows) if rows else "<p>None.</p>"
