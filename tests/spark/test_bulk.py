"""Bulk reconciliation, end to end on files: what is refused, what is decided, and what a second run adds."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from fila.reconcile.domain.classify import classify
from fila.reconcile.domain.models import Claim, Fetched, Observation, Post, Report, Status
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS, Settings, Trust
from fila.reconcile.domain.trust import deltas, score_bp
from fila.spark import gold
from fila.spark.bulk import reconcile
from fila.spark.errors import BadInput, PipelineError

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


class Place:
    """Inputs and output of one test."""

    def __init__(self, spark, folder: Path):
        self.spark, self.folder = spark, folder
        self.reports, self.metrics, self.out = folder / "reports", folder / "metrics", folder / "out"

    def run(self, **more):
        return reconcile(self.spark, str(self.reports), str(self.metrics), str(self.out), **({"now_ms": NOW_MS} | more))

    def rows(self, outcome, what):
        return [row.asDict() for row in self.spark.read.parquet(f"{outcome.folder}/{what}").collect()]

    def tree(self):
        return {str(path): path.stat().st_mtime_ns for path in sorted(self.out.rglob("*")) if path.is_file()}


@pytest.fixture
def place(spark, tmp_path):
    return Place(spark, tmp_path)


def test_three_formats_come_to_one_result_and_bad_rows_are_kept_with_their_reason(place):
    write_csv(
        place.reports / "a.csv",
        [report(1), report(2, 1300), report(3, "many"), report(4, affiliate=" "), report(5, -1)],
    )
    write_json(
        place.reports / "b.jsonl",
        [report(6, 1600, affiliate="bob"), '{"report_id": "r7"', report(8, platform=" ClipShare ")],
    )
    reordered = [{name: report(9, 1060)[name] for name in reversed(REPORTS)}, report(1)]
    write_parquet(place.reports / "c.parquet", [{name: row[name] for name in reversed(REPORTS)} for row in reordered])
    write_json(place.metrics / "m.json", [metric(n) for n in (1, 2, 6, 9)] + [metric(1, 1, observed_at=NOW_MS - 1)])
    write_csv(place.metrics / "n.csv", [metric(8, "", clicks="")])

    outcome = place.run()

    found = {row["report_id"]: row["status"] for row in place.rows(outcome, "gold/results")}
    assert found == {
        "r1": "MATCHED",
        "r2": "AFFILIATE_OVERCLAIMED",
        "r6": "AFFILIATE_OVERCLAIMED",
        "r8": "INCOMPLETE_PLATFORM_DATA",
        "r9": "DISCREPANCY_LOW",
    }
    refused = Counter(
        row["fila_problem"]
        for shape in (Path(outcome.folder) / "bronze/reports").iterdir()
        for row in place.rows(outcome, f"bronze/reports/{shape.name}")
        if row["fila_problem"]
    )
    assert refused == {
        "views is not a whole number from 0 to 1000000000000": 2,
        "affiliate_id is empty": 1,
        "the line cannot be read": 1,
    }
    assert outcome.summary["reports"] == 5
    counted = place.spark.read.parquet(f"{outcome.folder}/silver/reports").count()
    assert counted == 5  # r1 came twice
    page = Path(outcome.report).read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "affiliate_id is empty" in page


def test_trust_sums_and_alerts_are_those_of_the_domain(place):
    claims = [
        ("ada", 1000),
        ("ada", 1010),
        ("ada", 800),
        ("ada", 790),
        ("ada", 780),
        ("ada", 770),
        ("bob", 1210),
        ("bob", 1501),
        ("cyd", 1080),
    ]
    rows = [report(n, views, affiliate) for n, (affiliate, views) in enumerate(claims)]
    rows.append(
        report(99, affiliate="cyd", reported_at=NOW_MS - 30 * HOUR_MS)
    )  # of an unknown post, and too old to try again
    write_parquet(place.reports / "a.parquet", rows)
    write_parquet(place.metrics / "a.parquet", [metric(n) for n in range(len(claims))])

    outcome = place.run()

    seen = Fetched(Observation(NOW_MS, 1000, 100, 10))
    totals, statuses = Counter(), Counter()
    for affiliate, views in claims:
        verdict = classify(
            Report("r", Post("clipshare", "p", affiliate), Claim(views, 100, 10), NOW_MS), seen, DEFAULTS
        )
        totals[affiliate] += deltas(DEFAULTS)[verdict.status]
        statuses[verdict.status] += 1
    trust = {row["affiliate_id"]: (row["steps_bp"], row["trust_bp"]) for row in place.rows(outcome, "gold/affiliates")}
    assert trust == {name: (total, score_bp(total, DEFAULTS.trust)) for name, total in totals.items()}
    [platform] = place.rows(outcome, "gold/platforms")
    assert {status: platform[status.lower()] for status in statuses} == statuses
    assert (platform["reports"], platform["missing_platform_data"]) == (10, 1)
    assert platform["claimed_views"] == sum(views for _, views in claims)
    assert platform["told_views"] == 1000 * len(claims)
    alerts = Counter((row["kind"], row["severity"]) for row in place.rows(outcome, "gold/alerts"))
    assert alerts == {
        ("data_quality", "high"): 3,
        ("fraud", "high"): 1,
        ("fraud", "critical"): 1,
        ("system_health", "medium"): 1,
    }
    for name in gold.TABLES:  # a later run, and whoever reads with these schemas, finds what was written
        [file, *_] = (Path(outcome.folder) / "gold" / name).glob("part-*.parquet")
        written = [
            (field.name, "bigint" if field.type == pa.int64() else str(field.type)) for field in pq.read_schema(file)
        ]
        assert written == [(field.name, field.dataType.simpleString()) for field in gold.schema(name)]


def test_a_second_run_does_only_what_is_new(place):
    write_parquet(place.reports / "a.parquet", [report(1), report(2), report(3, 2000)])
    write_parquet(place.metrics / "a.parquet", [metric(1), metric(3)])
    first = place.run()
    assert [(row["report_id"], row["next_attempt_ms"]) for row in place.rows(first, "gold/open")] == [
        ("r2", NOW_MS + DEFAULTS.retries.missing_after_ms)
    ]
    before = place.tree()

    again = place.run(now_ms=NOW_MS + 5)
    assert not again.changed
    assert again.summary == first.summary
    assert place.tree() == before

    write_csv(place.reports / "b.csv", [report(4), report(1, 5)])  # r1 is known: the first one counts
    write_csv(place.metrics / "b.csv", [metric(2), metric(4), metric(3, 2000, observed_at=NOW_MS + 1)])
    third = place.run()
    assert third.run == 2
    assert {path: at for path, at in place.tree().items() if "/runs/000001/" in path} == {
        path: at for path, at in before.items() if "/runs/000001/" in path
    }
    results = {row["report_id"]: (row["status"], row["attempt"]) for row in place.rows(third, "gold/results")}
    assert results == {"r4": ("MATCHED", 1), "r2": ("MATCHED", 2)}  # r3 keeps its verdict
    assert place.rows(third, "gold/open") == []
    [ada] = place.rows(third, "gold/affiliates")
    assert (ada["reports"], ada["matched"], ada["affiliate_overclaimed"], ada["missing_platform_data"]) == (4, 3, 1, 0)
    steps = deltas(DEFAULTS)
    assert ada["steps_bp"] == 3 * steps[Status.MATCHED] + steps[Status.AFFILIATE_OVERCLAIMED]

    with pytest.raises(BadInput, match="other rules"):
        place.run(settings=Settings(trust=Trust(matched_bp=1)))
    write_csv(place.reports / "b.csv", [report(5), report(6)])
    with pytest.raises(BadInput, match=r"b\.csv has changed"):
        place.run()


def test_files_in_parts_come_to_what_they_come_to_at_once(place, tmp_path):
    rows = [report(n, 900 + 37 * n % 700, affiliate=f"a{n % 5}") for n in range(40)]
    figures = [metric(n, None if n % 7 == 0 else 1000) for n in range(40) if n % 9]
    whole = Place(place.spark, tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    write_parquet(whole.reports / "all.parquet", rows)
    write_parquet(whole.metrics / "all.parquet", figures)
    write_parquet(place.reports / "1.parquet", rows[:25])
    write_parquet(place.metrics / "1.parquet", figures[:10])
    place.run()
    write_parquet(place.reports / "2.parquet", rows[25:])
    write_parquet(place.metrics / "2.parquet", figures[10:])

    at_once, in_parts = whole.run(), place.run()

    for table, by in (("affiliates", "affiliate_id"), ("campaigns", "campaign_id"), ("platforms", "platform")):
        found = [
            sorted(each.rows(run, f"gold/{table}"), key=lambda row: row[by])
            for each, run in ((whole, at_once), (place, in_parts))
        ]
        assert found[0] == found[1]


def test_a_report_is_held_against_the_latest_figures_of_any_run_also_when_none_are_new(place):
    write_parquet(place.reports / "a.parquet", [report(1)])
    write_parquet(place.metrics / "a.parquet", [metric(1)])
    place.run()
    write_parquet(place.metrics / "b.parquet", [metric(1, 5000, observed_at=NOW_MS + 1)])
    place.run()
    write_parquet(place.reports / "b.parquet", [report(2, post_id="p1")])

    third = place.run()

    [result] = place.rows(third, "gold/results")
    assert (result["report_id"], result["status"], result["told_views"]) == ("r2", "DISCREPANCY_HIGH", 5000)
    [ada] = place.rows(third, "gold/affiliates")
    assert (ada["reports"], ada["matched"], ada["discrepancy_high"]) == (2, 1, 1)
    assert [row["report_id"] for row in place.rows(third, "gold/alerts")] == ["r2"]


def test_text_without_a_year_is_no_moment(place):
    """Spark takes a time alone for that time today, so that a verdict would depend on the day of the run."""
    moments = ("12:30", "T1", "now", "2026", "2026-09", "2026-09-20 12:30", "\t2026-09-20T12:30:00+02:00")
    rows = [report(number, reported_at=text) for number, text in enumerate(moments)]
    write_json(place.reports / "a.json", rows)
    write_json(place.metrics / "a.json", [metric(0)])

    outcome = place.run()

    [shape] = (Path(outcome.folder) / "bronze/reports").iterdir()
    refused = {
        row["reported_at"]: row["fila_problem"]
        for row in place.rows(outcome, f"bronze/reports/{shape.name}")
        if row["fila_problem"]
    }
    assert refused == dict.fromkeys(moments[:3], "reported_at is not a moment")


def broken_inputs():
    def lacks_columns(place):
        write_csv(place.reports / "a.csv", [{"report_id": "r1", "views": 1}])

    def has_a_strange_type(place):
        write_parquet(place.reports / "a.parquet", [report(1, views=[1, 2])])

    def is_no_parquet(place):
        place.reports.mkdir()
        (place.reports / "a.parquet").write_text("report_id,views\n")

    def has_no_known_format(place):
        place.reports.mkdir()
        (place.reports / "a.xlsx").write_text("")

    def is_not_there(place):
        pass

    yield lacks_columns, r"a\.csv: missing columns affiliate_id, platform, .*found report_id, views"
    yield has_a_strange_type, r"a\.parquet: column views has type array<bigint>, expected whole numbers"
    yield is_no_parquet, r"a\.parquet is not a Parquet file"
    yield has_no_known_format, r"a\.xlsx: its format is unknown"
    yield is_not_there, "no reports: there are no files at"


@pytest.mark.parametrize("make, text", list(broken_inputs()), ids=lambda value: getattr(value, "__name__", ""))
def test_input_that_cannot_be_used_is_named_and_nothing_is_written(place, make, text):
    make(place)
    write_parquet(place.metrics / "m.parquet", [metric(1)])
    with pytest.raises(BadInput, match=text):
        place.run()
    assert not place.out.exists() or list(place.out.rglob("*")) == []


def test_a_run_that_fails_late_leaves_nothing(place, monkeypatch):
    write_parquet(place.reports / "a.parquet", [report(1)])
    write_parquet(place.metrics / "a.parquet", [metric(1)])
    monkeypatch.setattr("fila.spark.pages.reconcile.render", lambda *_: (_ for _ in ()).throw(PipelineError("no")))
    with pytest.raises(PipelineError):
        place.run()
    assert [path for path in place.out.rglob("*") if path.is_file()] == []
