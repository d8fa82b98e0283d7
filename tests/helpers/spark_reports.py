"""Reports and metrics as rows and as files, for tests of reconciliation on Spark."""

import csv
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq

NOW_MS = 1_790_000_000_000
REPORTS = (
    "report_id",
    "affiliate_id",
    "campaign_id",
    "platform",
    "post_id",
    "views",
    "clicks",
    "conversions",
    "reported_at",
)
METRICS = ("platform", "post_id", "views", "clicks", "conversions", "observed_at")


def report(number, views=1000, affiliate="ada", **more):
    row = dict(
        zip(REPORTS, (f"r{number}", affiliate, "c1", "clipshare", f"p{number}", views, 100, 10, NOW_MS), strict=True)
    )
    return row | more


def metric(number, views=1000, **more):
    row = dict(zip(METRICS, ("clipshare", f"p{number}", views, 100, 10, NOW_MS), strict=True))
    return row | more


def of_now(rows):
    """Reports or metrics of this moment, for programs that read the clock themselves."""
    now_ms = time.time_ns() // 1_000_000
    return [row | {name: now_ms for name in ("reported_at", "observed_at") if name in row} for row in rows]


def write_csv(path, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_json(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def write_parquet(path, rows):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
