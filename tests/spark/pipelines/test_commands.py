"""`fila pipeline daily`, `verdicts`, `checks` and `maintain`: two days of a data team, as it types them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from fila.cli.main import cli
from tests.helpers.spark_reports import metric, report, write_parquet

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
MONDAY, TUESDAY = (TODAY - timedelta(days=days) for days in (2, 1))


@pytest.fixture
def fila(spark, tmp_path, monkeypatch):
    """Runs a command on the tables. Returns its exit code and what it printed."""
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # commands end their session, and this one is shared

    def run(command, *more):
        done = CliRunner().invoke(cli, ["pipeline", command, "--out", f"{tmp_path}/lake", *more])
        return done.exit_code, done.stdout + done.stderr

    def daily(day, *more):
        paths = [word for name in ("reports", "metrics") for word in (f"--{name}", f"{tmp_path}/{name}/{{date}}")]
        return run("daily", "--date", f"{day:%Y-%m-%d}", *paths, *more)

    run.daily = daily
    return run


def told(answer):
    code, text = answer
    assert code == 0, text
    return json.loads(text[text.index("{") if text.lstrip()[0] == "{" else text.index("[") :])


def give(folder, day, reports, metrics):
    """Files of a day: claims of its noon, figures of its beginning."""
    begin_ms = int(day.timestamp() * 1000)
    for name, rows, time in (("reports", reports, "reported_at"), ("metrics", metrics, "observed_at")):
        (folder / name).mkdir(exist_ok=True)
        at_ms = begin_ms + 12 * 3_600_000 * (name == "reports")
        write_parquet(folder / name / f"{day:%Y-%m-%d}" / "a.parquet", [row | {time: at_ms} for row in rows])


@pytest.mark.slow
def test_two_days_their_checks_and_what_was_said(fila, spark, tmp_path):
    give(tmp_path, MONDAY, [report(1), report(2, -1), report(3, affiliate="bob")], [metric(1)])
    give(tmp_path, TUESDAY, [report(4, 9_000, affiliate="eve")], [metric(3), metric(4)])

    code, text = fila.daily(MONDAY, "--max-refused", "10%", "--max-age", "1h")
    assert code == 4
    assert "1 of 3 rows of reports were refused" in text
    assert "the newest metrics of the run are 24.0 hours old" in text
    failed = told(fila("checks", "--failed", "--json"))
    assert [row["name"] for row in failed] == ["freshness_metrics", "refused_reports"]
    assert fila.daily(MONDAY, "--max-refused", "10%", "--max-age", "1h")[0] == 4  # a failed day stays failed
    code, text = fila.daily(MONDAY, "--max-refused", "34%", "--max-age", "36h")
    assert (code, text.startswith("There is no new input")) == (0, True)
    assert fila.daily(TUESDAY)[0] == 0
    assert fila.daily(TODAY + timedelta(days=1))[0] == 1

    said = told(fila("verdicts", "--as-of", f"{MONDAY:%Y-%m-%d}", "--json"))
    assert said["statuses"] == {"MATCHED": 1, "MISSING_PLATFORM_DATA": 1}
    assert {row["name"] for row in told(fila("checks", "--runs", "1", "--json")) if not row["passed"]} == set()
    assert {row["files"] >= row["into"] for row in told(fila("maintain", "--json"))} == {True}
    said = told(fila("verdicts", "--json"))
    assert said["statuses"] == {"AFFILIATE_OVERCLAIMED": 1, "MATCHED": 2}
    assert [row["attempt"] for row in told(fila("verdicts", "--report", "r3", "--json"))["verdicts"]] == [2]
    code, text = fila("verdicts", "--affiliate", "eve", "--export", f"{tmp_path}/eve")
    assert code == 0
    assert text.rstrip().endswith(f"Wrote 1 rows to {tmp_path}/eve")
    assert [row.report_id for row in spark.read.parquet(f"{tmp_path}/eve").collect()] == ["r4"]
