"""A run tells what it read and wrote, by the counts and versions that are in the tables."""

import json
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import BadInput
from fila.pipelines.lake.contract import RUNS, TABLES
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lineage import lineage_to
from fila.pipelines.reconcile.checks import Limits
from fila.pipelines.reconcile.daily import daily
from tests.helpers.spark_reports import NOW_MS, metric, report, write_parquet

DAY_MS = 24 * 3_600_000


def test_a_day_tells_its_inputs_checks_and_tables(spark, tmp_path):
    day, out, events = datetime.fromtimestamp(NOW_MS / 1000, UTC).date(), tmp_path / "out", tmp_path / "events"
    reports, metrics = tmp_path / "reports" / str(day), tmp_path / "metrics"
    reports.parent.mkdir()
    write_parquet(reports / "a.parquet", [report(1), report(2, -1), report(3)])
    write_parquet(metrics / "a.parquet", [metric(1)])
    lake = Lake(spark, str(out))

    def run(found=tmp_path):
        paths = (f"{found}/reports/{{date}}", f"{tmp_path}/metrics/*.parquet", str(out))
        limits, lineage = Limits(1_000), lineage_to(str(events), {})
        return daily(spark, day, *paths, now_ms=NOW_MS + DAY_MS, limits=limits, lineage=lineage)

    def told():
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        events.unlink()
        assert len({each["run"]["runId"] for each in lines}) == 1
        assert {each["job"]["name"] for each in lines} == {f"reconcile:{out}"}
        return lines[0]["eventType"], lines[-1]["eventType"], lines[-1]

    assert run().failure.startswith("1 of 3 rows of reports were refused")
    began, ended, event = told()
    assert (began, ended) == ("START", "COMPLETE")
    assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == f"{day}T00:00:00.000Z"
    read = {each["name"]: each["inputFacets"] for each in event["inputs"]}
    assert set(read) == {str(reports), str(metrics)}
    size = (reports / "a.parquet").stat().st_size
    statistics = {name: read[str(reports)]["inputStatistics"][name] for name in ("rowCount", "fileCount", "size")}
    assert statistics == {"rowCount": 3, "fileCount": 1, "size": size}
    checks = {
        each["assertion"]: each for where in read.values() for each in where["dataQualityAssertions"]["assertions"]
    }
    assert {name for name, each in checks.items() if not each["success"]} == {"refused_reports"}
    assert (checks["refused_reports"]["actual"], checks["refused_reports"]["expected"]) == ("3334", "at most 1000")
    assert {"freshness_metrics", "conservation", "duplicates", "nulls", "volume_reports"} <= set(checks)
    written = {each["name"].removeprefix(f"{out}/"): each for each in event["outputs"]}
    versions = {name: int(each["facets"]["version"]["datasetVersion"]) for name, each in written.items()}
    assert versions | {RUNS: 0} == lake.versions()
    rows = {name: each["outputFacets"]["outputStatistics"]["rowCount"] for name, each in written.items()}
    assert rows == {name: lake.read(name).count() for name in written}
    assert set(written) == set(TABLES) - {RUNS}  # whose commit comes last, and names the versions of the others
    columns = written["gold/current_results"]["facets"]["schema"]["fields"]
    assert [each["name"] for each in columns] == TABLES["gold/current_results"].schema.names

    assert not run().changed
    began, ended, event = told()
    assert (began, ended, event["outputs"]) == ("START", "COMPLETE", [])
    assert [each["inputFacets"]["inputStatistics"]["rowCount"] for each in event["inputs"]] == [0, 0]

    with pytest.raises(BadInput, match="no reports"):
        run(tmp_path / "nowhere")
    began, ended, event = told()
    assert (began, ended) == ("START", "FAIL")
    assert "no reports" in event["run"]["facets"]["errorMessage"]["message"]

    write_parquet(metrics / "b.parquet", [metric(3)])
    assert run().run == 2
    _, _, event = told()
    rows = {
        each["name"].removeprefix(f"{out}/"): each["outputFacets"]["outputStatistics"]["rowCount"]
        for each in event["outputs"]
    }
    assert (rows["gold/results"], rows["gold/current_results"], rows["silver/metrics"]) == (1, 1, 1)  # a merge
    assert "silver/reports" not in rows
