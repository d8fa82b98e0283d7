"""How `fila reconcile status` shows what is in the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from fila.cli import output
from fila.reconcile.domain.models import Level, Status
from fila.reconcile.domain.settings import BP, Trust
from fila.reconcile.domain.trust import score_bp
from fila.reconcile.store import Store
from fila.reconcile.store.tables import AttemptRow, ReportRow

ORDER = ["PENDING", *Status]
COLOURS = {Level.CRITICAL: "red", Level.HIGH: "red", Level.MEDIUM: "yellow", Level.LOW: "yellow"}


def overview(store: Store, trust: Trust, affiliates: int) -> dict[str, Any]:
    """The whole at one moment."""
    outcomes = store.views.outcomes()
    return {
        "outcomes": {
            status: {"done": outcomes.get((status, True), 0), "open": outcomes.get((status, False), 0)}
            for status in ORDER
            if (status, True) in outcomes or (status, False) in outcomes
        },
        "alerts": [
            {"kind": kind, "severity": severity, "count": count}
            for (kind, severity), count in sorted(store.views.alert_counts().items())
        ],
        "least_trusted": [
            {"affiliate_id": row.id, "trust": score_bp(row.trust_total_bp, trust) / BP, "reports": row.reports}
            for row in store.views.least_trusted(affiliates)
        ],
    }


def show_overview(shown: dict[str, Any]) -> None:
    if not shown["outcomes"]:
        click.echo("No reports yet.", err=True)
        return
    output.table(
        ("STATUS", "DONE", "OPEN"),
        [(status, counts["done"], counts["open"]) for status, counts in shown["outcomes"].items()],
    )
    if shown["alerts"]:
        click.echo()
        rows = [(each["kind"], each["severity"], each["count"]) for each in shown["alerts"]]
        output.table(("ALERTS", "SEVERITY", "COUNT"), rows)
    click.echo()
    output.table(
        ("LEAST TRUSTED", "TRUST", "REPORTS"),
        [(each["affiliate_id"], f"{each['trust']:.2f}", each["reports"]) for each in shown["least_trusted"]],
    )


def report_json(row: ReportRow, log: Sequence[AttemptRow]) -> dict[str, Any]:
    """One report with its log."""
    return {
        "report_id": row.id,
        "affiliate_id": row.affiliate_id,
        "platform": row.platform,
        "post_id": row.post_id,
        "status": row.status or "PENDING",
        "done": row.done_at_ms is not None,
        "views": row.views,
        "clicks": row.clicks,
        "conversions": row.conversions,
        "submitted_at": _moment(row.submitted_at_ms),
        "attempts": [
            {
                "attempt": line.attempt,
                "at": _moment(line.at_ms),
                "status": line.status,
                "level": line.level,
                "reason": line.reason,
                "explanation": line.explanation,
                "retry_at": None if line.retry_at_ms is None else _moment(line.retry_at_ms),
            }
            for line in log
        ],
    }


def show_report(shown: dict[str, Any]) -> None:
    output.pairs(
        [
            ("report", shown["report_id"]),
            ("affiliate", shown["affiliate_id"]),
            ("post", f"{shown['platform']} {shown['post_id']}"),
            ("claimed", f"{shown['views']:,} views, {shown['clicks']:,} clicks, {shown['conversions']:,} conversions"),
            ("submitted", shown["submitted_at"]),
            ("status", shown["status"] + ("" if shown["done"] else " (open)")),
        ]
    )
    for line in shown["attempts"]:
        status = output.style(line["status"], fg=COLOURS.get(Level(line["level"]), "green"))
        again = f", again at {line['retry_at']}" if line["retry_at"] else ""
        click.echo(f"  {line['attempt']}. {line['at']}  {status}: {output.printable(line['explanation'])}{again}")


def _moment(at_ms: int) -> str:
    return output.moment(datetime.fromtimestamp(at_ms / 1000, UTC))
