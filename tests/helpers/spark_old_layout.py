"""A folder of runs as Fila wrote them before its tables: one run with a final and an open report."""

import json

from fila.reconcile.domain.models import Status
from tests.helpers.spark_reports import NOW_MS, write_parquet

HOUR_MS = 3_600_000
_SUMS = [*(str(status).lower() for status in Status), *(f"{side}_{name}" for name in ("views", "clicks", "conversions")
                                                         for side in ("claimed", "told"))]  # fmt: skip


def write_old_run(out, rules, files):
    """Reports r1 (matched) and r2 (no figures yet) of ada. `files` are those that were read, by input."""
    run = out / "runs" / "000001"
    reports = [_report(n) for n in (1, 2)]
    told = {"told_views": 1000, "told_clicks": 100, "told_conversions": 10, "observed_at_ms": NOW_MS}
    verdicts = [
        _verdict(reports[0], told, "MATCHED", "within_tolerance", 100, None),
        _verdict(reports[1], dict.fromkeys(told), "MISSING_PLATFORM_DATA", "absent", 0, NOW_MS + HOUR_MS // 2),
    ]
    sums = dict.fromkeys(_SUMS, 0) | {"matched": 1, "missing_platform_data": 1}
    sums |= {f"{side}_{name}": 1000 if name == "views" else 100 if name == "clicks" else 10
             for side in ("claimed", "told") for name in ("views", "clicks", "conversions")}  # fmt: skip
    sums |= {"reports": 2, "steps_bp": 100}
    alert = {"kind": "k", "severity": "s", "affiliate_id": "bob", "campaign_id": "", "platform": "p", "post_id": "q",
             "report_id": "r0", "at_ms": NOW_MS, "status": "x"}  # fmt: skip
    for name, rows in {
        "silver/reports": reports,
        "silver/metrics": [{"platform": "clipshare", "post_id": "p1", **told}],
        "gold/results": verdicts,
        "gold/alerts": [alert],
        "gold/affiliates": [{"affiliate_id": "ada", **sums, "trust_bp": 5100}],
        "gold/campaigns": [{"campaign_id": "c1", **sums}],
        "gold/platforms": [{"platform": "clipshare", **sums}],
    }.items():
        folder = run / name
        folder.mkdir(parents=True)
        write_parquet(folder / "part-0.parquet", rows)
    manifest = {"format": 1, "run": 1, "as_of_ms": NOW_MS, "rules": rules, "inputs": files, "summary": {"reports": 2}}
    (run / "manifest.json").write_text(json.dumps(manifest))


def _report(number):
    return {"report_id": f"r{number}", "affiliate_id": "ada", "campaign_id": "c1", "platform": "clipshare",
            "post_id": f"p{number}", "views": 1000, "clicks": 100, "conversions": 10, "reported_at_ms": NOW_MS,
            "submitted_at_ms": NOW_MS}  # fmt: skip


def _verdict(report, told, status, reason, step, again):
    missing = int(status == "MISSING_PLATFORM_DATA")
    names = ("confidence_bp", "over_bp", "difference_bp", "views_difference_bp", "clicks_difference_bp")
    return {
        **report, **told, "status": status, "level": "none", "reason": reason,
        **dict.fromkeys((*names, "conversions_difference_bp"), 0), "step_bp": step, "attempt": 1, "missing": missing,
        "incomplete": 0, "attempted_at_ms": NOW_MS, "next_attempt_ms": again,
    }  # fmt: skip
