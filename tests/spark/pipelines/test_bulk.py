"""Bulk reconciliation, end to end on files: what is refused, what is decided, and what a second run adds."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import BadInput
from fila.pipelines.files import FileInfo, Files
from fila.pipelines.lake.lake import Lake
from fila.pipelines.reconcile import sources, tables
from fila.pipelines.reconcile.bulk import reconcile
from fila.pipelines.reconcile.checks import NO_LIMITS
from fila.pipelines.reconcile.pipeline import Pipeline
from fila.reconcile.domain.classify import classify
from fila.reconcile.domain.models import ClaimedMetrics, Fetched, Observation, Post, Report, Status
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS, Retries, Settings, Trust
from fila.reconcile.domain.trust import deltas, score_bp
from tests.helpers.spark_lake import Tables
from tests.helpers.spark_reports import NOW_MS, REPORTS, metric, report, write_csv, write_json, write_parquet


class Workspace:
    """Inputs and output of one test."""

    def __init__(self, spark, folder: Path):
        self.spark, self.folder = spark, folder
        self.reports, self.metrics, self.out = folder / "reports", folder / "metrics", folder / "out"

    def run(self, **more):
        return reconcile(self.spark, str(self.reports), str(self.metrics), str(self.out), **({"now_ms": NOW_MS} | more))

    @property
    def tables(self):
        return Tables(self.spark, self.out)

    def judged(self, table):
        """What the files of an input are understood as, without a run."""
        pipeline = Pipeline(self.spark, str(self.out), DEFAULTS, NO_LIMITS, lambda _: None)
        found = pipeline.input(table, str(self.folder / table.name))
        return [row for frame in pipeline.received(table, found, NOW_MS) for row in frame.collect()]

    def tree(self):
        return {str(path): path.stat().st_mtime_ns for path in sorted(self.out.rglob("*")) if path.is_file()}


@pytest.fixture
def work(spark, tmp_path):
    return Workspace(spark, tmp_path)


def test_three_formats_come_to_one_result_and_bad_rows_are_kept_with_their_reason(work):
    write_csv(
        work.reports / "a.csv",
        [report(1), report(2, 1300), report(3, "many"), report(4, affiliate=" "), report(5, -1)],
    )
    write_json(
        work.reports / "b.jsonl",
        [report(6, 1600, affiliate="bob"), '{"report_id": "r7"', report(8, platform=" ClipShare ")],
    )
    reordered = [{name: report(9, 1060)[name] for name in reversed(REPORTS)}, report(1)]
    write_parquet(work.reports / "c.parquet", [{name: row[name] for name in reversed(REPORTS)} for row in reordered])
    write_json(work.metrics / "m.json", [metric(n) for n in (1, 2, 6, 9)] + [metric(1, 1, observed_at=NOW_MS - 1)])
    write_csv(work.metrics / "n.csv", [metric(8, "", clicks="")])

    outcome = work.run()

    found = {row["report_id"]: row["status"] for row in work.tables.results(outcome.run)}
    assert found == {
        "r1": "MATCHED",
        "r2": "AFFILIATE_OVERCLAIMED",
        "r6": "AFFILIATE_OVERCLAIMED",
        "r8": "INCOMPLETE_PLATFORM_DATA",
        "r9": "DISCREPANCY_LOW",
    }
    refused = Counter(row["problem"] for row in work.tables.received("reports") if row["problem"])
    assert refused == {
        "views is not a whole number from 0 to 1000000000000": 2,
        "affiliate_id is empty": 1,
        "the line cannot be read": 1,
    }
    assert outcome.summary["reports"] == 5
    assert len(work.tables.reports()) == 5  # r1 came twice
    [line] = [row["received"] for row in work.tables.received("reports") if row["problem"] == "affiliate_id is empty"]
    assert json.loads(line)["affiliate_id"] == " "  # a refused row is kept as it came
    page = Path(outcome.report).read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "affiliate_id is empty" in page


def test_trust_sums_and_alerts_are_those_of_the_domain(work):
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
    rows.append(report(99, affiliate="cyd"))  # of an unknown post, and not tried again
    write_parquet(work.reports / "a.parquet", rows)
    write_parquet(work.metrics / "a.parquet", [metric(n) for n in range(len(claims))])

    outcome = work.run(settings=Settings(retries=Retries(missing_retries=0)))

    seen = Fetched(Observation(NOW_MS, 1000, 100, 10))
    totals, statuses = Counter(), Counter()
    for affiliate, views in claims:
        verdict = classify(
            Report("r", Post("clipshare", "p", affiliate), ClaimedMetrics(views, 100, 10), NOW_MS), seen, DEFAULTS
        )
        totals[affiliate] += deltas(DEFAULTS)[verdict.status]
        statuses[verdict.status] += 1
    trust = {name: (row["steps_bp"], row["trust_bp"]) for name, row in work.tables.totals("affiliate").items()}
    assert trust == {name: (total, score_bp(total, DEFAULTS.trust)) for name, total in totals.items()}
    [platform] = work.tables.totals("platform").values()
    assert {status: platform[status.lower()] for status in statuses} == statuses
    assert (platform["reports"], platform["missing_platform_data"]) == (10, 1)
    assert platform["claimed_views"] == sum(views for _, views in claims)
    assert platform["told_views"] == 1000 * len(claims)
    alerts = Counter((row["kind"], row["severity"]) for row in work.tables.alerts(outcome.run))
    assert alerts == {
        ("data_quality", "medium"): 1,
        ("data_quality", "high"): 2,
        ("fraud", "high"): 1,
        ("fraud", "critical"): 1,
        ("system_health", "medium"): 1,
    }


def test_a_second_run_does_only_what_is_new(work):
    write_parquet(work.reports / "a.parquet", [report(1), report(2), report(3, 2000)])
    write_parquet(work.metrics / "a.parquet", [metric(1), metric(3)])
    first = work.run()
    assert [(row["report_id"], row["next_attempt_ms"]) for row in work.tables.open()] == [
        ("r2", NOW_MS + DEFAULTS.retries.missing_after_ms)
    ]
    before = work.tree()

    again = work.run(now_ms=NOW_MS + 5)
    assert not again.changed
    assert again.summary == first.summary
    assert work.tree() == before

    write_csv(work.reports / "b.csv", [report(4), report(1, 5)])  # r1 is known: the first one counts
    write_csv(work.metrics / "b.csv", [metric(2), metric(4), metric(3, 2000, observed_at=NOW_MS + 1)])
    third = work.run()
    assert third.run == 2
    assert before.items() <= work.tree().items() | {(path, at) for path, at in before.items() if "report.html" in path}
    results = {row["report_id"]: (row["status"], row["attempt"]) for row in work.tables.results(third.run)}
    assert results == {"r4": ("MATCHED", 1), "r2": ("MATCHED", 2)}  # r3 keeps its verdict
    assert work.tables.open() == []
    ada = work.tables.totals("affiliate")["ada"]
    assert (ada["reports"], ada["matched"], ada["affiliate_overclaimed"], ada["missing_platform_data"]) == (4, 3, 1, 0)
    steps = deltas(DEFAULTS)
    assert ada["steps_bp"] == 3 * steps[Status.MATCHED] + steps[Status.AFFILIATE_OVERCLAIMED]

    with pytest.raises(BadInput, match="other rules"):
        work.run(settings=Settings(trust=Trust(matched_bp=1)))
    write_csv(work.reports / "b.csv", [report(5), report(6)])
    with pytest.raises(BadInput, match=r"b\.csv has changed"):
        work.run()


def test_files_in_parts_come_to_what_they_come_to_at_once(work, tmp_path):
    rows = [report(n, 900 + 37 * n % 700, affiliate=f"a{n % 5}") for n in range(40)]
    figures = [metric(n, None if n % 7 == 0 else 1000) for n in range(40) if n % 9]
    whole = Workspace(work.spark, tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    write_parquet(whole.reports / "all.parquet", rows)
    write_parquet(whole.metrics / "all.parquet", figures)
    write_parquet(work.reports / "1.parquet", rows[:25])
    write_parquet(work.metrics / "1.parquet", figures[:10])
    work.run()
    write_parquet(work.reports / "2.parquet", rows[25:])
    write_parquet(work.metrics / "2.parquet", figures[10:])

    at_once, in_parts = whole.run(), work.run()

    assert (at_once.run, in_parts.run) == (1, 2)
    for dimension in ("affiliate", "campaign", "platform"):
        assert whole.tables.totals(dimension) == work.tables.totals(dimension)
    found = [sorted(each.tables.current(), key=lambda row: row["report_id"]) for each in (whole, work)]
    assert [{**row, "attempt": 0, "missing": 0} for row in found[0]] == [
        {**row, "attempt": 0, "missing": 0} for row in found[1]
    ]


def test_a_report_is_held_against_the_latest_figures_of_any_run_also_when_none_are_new(work):
    write_parquet(work.reports / "a.parquet", [report(1)])
    write_parquet(work.metrics / "a.parquet", [metric(1)])
    work.run()
    write_parquet(work.metrics / "b.parquet", [metric(1, 5000, observed_at=NOW_MS + 1)])
    work.run()
    write_parquet(work.reports / "b.parquet", [report(2, post_id="p1")])

    third = work.run()

    [result] = work.tables.results(third.run)
    assert (result["report_id"], result["status"], result["told_views"]) == ("r2", "DISCREPANCY_HIGH", 5000)
    ada = work.tables.totals("affiliate")["ada"]
    assert (ada["reports"], ada["matched"], ada["discrepancy_high"]) == (2, 1, 1)
    assert [row["report_id"] for row in work.tables.alerts(third.run)] == ["r2"]


def test_growth_cannot_be_bought_with_a_time_in_the_future(work):
    """As the API: a claim may be a little ahead of our clock, and then counts as of now; it may not be too old."""
    limits = DEFAULTS.intake
    moments = {
        "day ahead": NOW_MS + 24 * HOUR_MS,
        "year 9999": 253_402_300_799_999,
        "just too new": NOW_MS + limits.max_skew_ms + 1,
        "just new enough": NOW_MS + limits.max_skew_ms,
        "just old enough": NOW_MS - limits.max_age_ms,
        "just too old": NOW_MS - limits.max_age_ms - 1,
    }
    write_parquet(
        work.reports / "a.parquet",
        [report(n, 3400, report_id=name, reported_at=at) for n, (name, at) in enumerate(moments.items())],
    )

    found = {row.report_id: row for row in work.judged(tables.reports())}

    assert {name: row.problem for name, row in found.items() if row.problem} == {
        "day ahead": "reported_at is in the future",
        "year 9999": "reported_at is in the future",
        "just too new": "reported_at is in the future",
        "just too old": "reported_at is more than 168 hours old",
    }
    assert {name: row.reported_at_ms for name, row in found.items() if not row.problem} == {
        "just new enough": NOW_MS,
        "just old enough": moments["just old enough"],
    }


def test_seconds_are_not_taken_for_milliseconds(work):
    """They would be of January 1970, and the claim could grow for a whole day."""
    write_json(work.reports / "a.json", [report(1), report(2, reported_at=NOW_MS // 1000)])
    write_json(work.metrics / "a.json", [metric(1, 100, observed_at=NOW_MS // 1000), metric(2)])

    for table, name in ((tables.reports(), "reported_at"), (tables.metrics(), "observed_at")):
        text = f"{name} is too small for milliseconds since 1970: it may be in seconds"
        assert [row.problem for row in work.judged(table) if row.problem] == [text]


def test_text_without_a_year_is_no_moment(work):
    """Spark takes a time alone for that time today, so that a verdict would depend on the day of the run."""
    moments = ("12:30", "T1", "now", "2026-09-20", "2026-09-20 12:30", "\t2026-09-20T12:30:00+02:00")
    rows = [report(number, reported_at=text) for number, text in enumerate(moments)]
    write_json(work.reports / "a.json", rows)

    refused = {
        json.loads(row.received)["reported_at"]: row.problem for row in work.judged(tables.reports()) if row.problem
    }
    assert refused == dict.fromkeys(moments[:3], "reported_at is not a moment")


def broken_inputs():
    def lacks_columns(work):
        write_csv(work.reports / "a.csv", [{"report_id": "r1", "views": 1}])

    def has_a_strange_type(work):
        write_parquet(work.reports / "a.parquet", [report(1, views=[1, 2])])

    def is_no_parquet(work):
        work.reports.mkdir()
        (work.reports / "a.parquet").write_text("report_id,views\n")

    def has_no_known_format(work):
        work.reports.mkdir()
        (work.reports / "a.xlsx").write_text("")

    def is_not_there(work):
        pass

    yield lacks_columns, r"a\.csv: missing columns affiliate_id, platform, .*found report_id, views"
    yield has_a_strange_type, r"a\.parquet: column views has type array<bigint>, expected whole numbers"
    yield is_no_parquet, r"a\.parquet is not a Parquet file"
    yield has_no_known_format, r"a\.xlsx: its format is unknown"
    yield is_not_there, "no reports: there are no files at"


@pytest.mark.parametrize("make, text", list(broken_inputs()), ids=lambda value: getattr(value, "__name__", ""))
def test_input_that_cannot_be_used_is_named_and_nothing_is_written(work, make, text):
    make(work)
    write_parquet(work.metrics / "m.parquet", [metric(1)])
    with pytest.raises(BadInput, match=text):
        work.run()
    assert not work.out.exists() or list(work.out.rglob("*")) == []


def test_metrics_files_that_cannot_be_used_are_left_out_until_they_are_mended(work):
    write_parquet(work.reports / "a.parquet", [report(1), report(2)])
    work.metrics.mkdir()
    first = work.run()  # an empty folder
    assert first.summary["statuses"]["MISSING_PLATFORM_DATA"] == 2
    write_csv(work.metrics / "lacking.csv", [{"platform": "clipshare", "post_id": "p1"}])
    (work.metrics / "broken.parquet").write_text("nothing of the kind")
    (work.metrics / "notes.txt").write_text("")
    write_parquet(work.metrics / "strange.parquet", [metric(2, [1])])
    nothing = work.run(now_ms=NOW_MS + 1)
    assert not nothing.changed
    assert sorted(Path(path).name for path in nothing.quarantined) == [
        "broken.parquet",
        "lacking.csv",
        "notes.txt",
        "strange.parquet",
    ]
    write_parquet(work.metrics / "good.parquet", [metric(2)])
    second = work.run(now_ms=NOW_MS + 2)
    assert [row["report_id"] for row in work.tables.results(second.run)] == ["r2"]
    assert len(second.summary["quarantined"]) == 4
    page = Path(second.report).read_text()
    assert "lacking.csv: missing columns views, clicks, conversions, observed_at" in page
    write_csv(work.metrics / "lacking.csv", [metric(1)])
    third = work.run(now_ms=NOW_MS + 3)
    assert [row["report_id"] for row in work.tables.results(third.run)] == ["r1"]
    assert len(third.quarantined) == 3


def jobs_of(spark):
    """Numbers and descriptions of the jobs that Spark remembers, which are not all of a long session."""
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    found = [(jobs.apply(at).jobId(), jobs.apply(at).description()) for at in range(jobs.size())]
    return [(number, text.get() if text.isDefined() else "") for number, text in found]


def last_job(spark):
    return max((number for number, _ in jobs_of(spark)), default=-1)


def test_files_elsewhere_are_looked_at_without_a_job_for_each(work, monkeypatch):
    """As files of HDFS or an object store, which this process cannot open by their path."""
    monkeypatch.setattr(FileInfo, "local", None)
    write_csv(work.reports / "a.csv", [report(1)])
    write_json(work.reports / "b.json", [report(2)])
    (work.reports / "c.jsonl.gz").write_bytes(gzip.compress(json.dumps(report(3)).encode() + b"\n"))
    write_parquet(work.reports / "d.parquet", [report(4)])
    files = Files(work.spark)
    found = sources.find(files, tables.reports(), str(work.reports))
    reader = sources._Reader(work.spark, files, tables.reports())
    before = last_job(work.spark)
    shapes = {file.name: reader.shape_of(file) for file in found}
    assert last_job(work.spark) == before
    assert [shape[0] for shape in shapes.values()] == ["csv", "json", "json", "parquet"]
    assert shapes["a.csv"][1:] == REPORTS
    (work.reports / "e.parquet").write_text("no")
    with pytest.raises(BadInput, match="not a Parquet file"):
        reader.shape_of(sources.find(files, tables.reports(), str(work.reports / "e.parquet"))[0])


def test_plans_have_no_step_in_one_task_no_python_and_no_forced_join_and_jobs_say_what_they_are_for(work, monkeypatch):
    """A join that is forced to hash runs out of memory where one that sorts would spill."""
    before = last_job(work.spark)
    plans = {}

    def append(lake, what, rows, *more):
        plans[what] = rows._jdf.queryExecution().toString()
        return written(lake, what, rows, *more)

    written = Lake.append
    monkeypatch.setattr(Lake, "append", append)
    write_parquet(work.reports / "a.parquet", [report(1), report(2)])
    write_parquet(work.metrics / "a.parquet", [metric(1)])
    work.run()
    write_parquet(work.reports / "b.parquet", [report(3)])
    write_parquet(work.metrics / "b.parquet", [metric(2)])
    work.run()
    assert {"gold/results", "gold/alerts", "gold/totals", "silver/reports"} <= set(plans)
    for what, plan in plans.items():
        if what.startswith("ledger/"):
            continue  # a few rows of the driver
        for word in ("Coalesce 1", "Repartition 1", "SinglePartition", "EvalPython", "MapInPandas", "strategy="):
            assert word not in plan.replace("strategy=broadcast", ""), (what, word)
    texts = [text for number, text in jobs_of(work.spark) if number > before]
    assert texts
    assert all("fila reconcile: " in text for text in texts)
    assert work.spark.sparkContext.getLocalProperty("spark.job.description") is None
