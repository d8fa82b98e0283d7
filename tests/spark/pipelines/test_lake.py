"""The tables: whole runs only, one after the other, whoever is stopped on the way."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import BadInput, PipelineError, RunTaken
from fila.pipelines.lake import contract, maintenance
from fila.pipelines.lake.contract import CURRENT, RESULTS, RUNS, TABLES
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lake.ledger import Ledger
from fila.pipelines.reconcile.bulk import reconcile
from fila.pipelines.reconcile.checks import Limits
from fila.pipelines.reconcile.current import current_results
from fila.pipelines.reconcile.daily import daily
from fila.reconcile.domain.settings import DEFAULTS
from tests.helpers.spark_lake import Tables
from tests.helpers.spark_old_layout import write_old_run
from tests.helpers.spark_reports import NOW_MS, metric, report, write_parquet

DAY_MS = 24 * 3_600_000


class Folder:
    """Inputs and tables of one test."""

    def __init__(self, spark, path):
        self.spark, self.path = spark, path
        path.mkdir(exist_ok=True)
        self.out = str(path / "out")

    def give(self, name, reports=(), metrics=()):
        for kind, rows in (("reports", reports), ("metrics", metrics)):
            (self.path / kind).mkdir(exist_ok=True)
            if rows:
                write_parquet(self.path / kind / f"{name}.parquet", list(rows))

    def run(self, now_ms=NOW_MS):
        return reconcile(self.spark, f"{self.path}/reports", f"{self.path}/metrics", self.out, now_ms=now_ms)

    @property
    def tables(self):
        return Tables(self.spark, self.out)


@pytest.fixture
def folder(spark, tmp_path):
    return Folder(spark, tmp_path)


def statuses(rows):
    return {row.report_id: row.status for row in rows.collect()}


@pytest.mark.slow
def test_tables_tell_what_was_said_at_an_earlier_time_also_after_maintenance(folder):
    with pytest.raises(BadInput, match="has no runs"):
        current_results(folder.spark, folder.out)
    folder.give("a", [report(1), report(2)], [metric(1)])
    first = folder.run()
    folder.give(
        "b", [report(3, 2000, reported_at=NOW_MS + DAY_MS)], [metric(2), metric(3, observed_at=NOW_MS + DAY_MS)]
    )
    folder.run(NOW_MS + DAY_MS)

    done = maintenance.maintain(folder.spark, folder.out)

    assert {each.table for each in done} >= {CURRENT, RESULTS, RUNS}
    monday, now = (statuses(current_results(folder.spark, folder.out, at)) for at in (NOW_MS + 5, None))
    assert monday == {"r1": "MATCHED", "r2": "MISSING_PLATFORM_DATA"}
    assert now == {"r1": "MATCHED", "r2": "MATCHED", "r3": "AFFILIATE_OVERCLAIMED"}
    assert current_results(folder.spark, folder.out).count() == 3  # one row for each report, and four attempts
    assert len(folder.tables.results()) == 4
    with pytest.raises(BadInput, match="no run at that time"):
        current_results(folder.spark, folder.out, NOW_MS - 1)
    before = Lake(folder.spark, folder.out).versions()
    assert not folder.run(NOW_MS + DAY_MS).changed  # a rerun changes nothing
    assert Lake(folder.spark, folder.out).versions() == before
    assert first.run == 1


def test_readers_see_whole_runs_only_and_a_run_that_was_stopped_is_finished_by_the_next(folder, monkeypatch):
    folder.give("a", [report(1), report(2)], [metric(1)])
    folder.run()
    folder.give("b", metrics=[metric(2)])
    stop_after(monkeypatch, 5)  # verdicts and the current table are written, sums and the ledger are not
    with pytest.raises(Stopped):
        folder.run(NOW_MS + 1)
    monkeypatch.undo()
    assert [row["attempt"] for row in folder.tables.results() if row["report_id"] == "r2"] == [1, 2]
    assert statuses(current_results(folder.spark, folder.out))["r2"] == "MISSING_PLATFORM_DATA"

    after = folder.run(NOW_MS + 2)

    assert (after.run, after.changed) == (2, False)  # finished, and nothing was new
    assert statuses(current_results(folder.spark, folder.out)) == {"r1": "MATCHED", "r2": "MATCHED"}
    assert len(folder.tables.current()) == 2  # the merge that was done is not done again
    assert folder.tables.totals("affiliate")["ada"]["matched"] == 2
    assert {row["attempted_at_ms"] for row in folder.tables.results(2)} == {NOW_MS + 1}


class Stopped(Exception):
    """The driver died here."""


def stop_after(monkeypatch, count):
    """Dies after so many commits to tables."""
    left = [count]

    def dying(write):
        def wrapped(*given, **more):
            done = write(*given, **more)
            left[0] -= 1
            if left[0] == 0:
                raise Stopped
            return done

        return wrapped

    for name in ("append", "merge"):
        monkeypatch.setattr(Lake, name, dying(getattr(Lake, name)))


COMMITS = 12
"""Of a run with reports and metrics: bronze, files, three of silver, four of gold, checks, the ledger."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_driver_that_dies_between_any_two_commits_changes_nothing(folder, spark, tmp_path, monkeypatch):
    """Each run dies one commit later than the one before. The tables hold what they hold without any death."""
    whole = Folder(spark, tmp_path / "whole")
    died = 0
    for number in range(COMMITS):
        at = NOW_MS + number
        rows = [report(f"{number}-{n}", 800 + 100 * n, affiliate=f"a{n % 2}", post_id=f"p{number}") for n in (0, 2)]
        rows.append(report(f"{number}-late", affiliate="z", post_id=f"late{number}"))
        figures = [metric(number)] + [{**metric(0), "post_id": f"late{number - 2}"}] * (number > 1)
        for each in (folder, whole):
            each.give(f"{number:02d}", rows, figures)
        with monkeypatch.context() as patch:
            stop_after(patch, number)
            try:
                folder.run(at)
            except Stopped:
                died += 1
        folder.run(at)
        whole.run(at)
    assert died == COMMITS - 1  # the first was not stopped, every other one was
    assert folder.tables.totals("affiliate") == whole.tables.totals("affiliate")
    assert folder.tables.totals("platform") == whole.tables.totals("platform")
    for name in ("results", "current", "alerts", "reports", "metrics"):
        ours, theirs = (sorted(json.dumps(row, sort_keys=True) for row in getattr(each.tables, name)())
                        for each in (folder, whole))  # fmt: skip
        assert ours == theirs, name


def test_tables_of_an_older_contract_get_the_new_columns_and_newer_ones_are_refused(folder, monkeypatch):
    folder.give("a", [report(1)], [metric(1)])
    folder.run()
    lake = Lake(folder.spark, folder.out)
    grown = replace(TABLES[RESULTS], columns=(*TABLES[RESULTS].columns, contract.Column("note", "string", since=2)))
    monkeypatch.setitem(TABLES, RESULTS, grown)
    monkeypatch.setattr(contract, "VERSION", 2)
    last = Ledger(lake).last()
    Ledger(lake).upgrade(last)
    assert lake.read(RESULTS).columns[-1] == "note"
    assert [row.note for row in lake.read(RESULTS).collect()] == [None]
    monkeypatch.setattr(contract, "VERSION", 0)
    with pytest.raises(PipelineError, match="use a newer fila"):
        Ledger(lake).upgrade(last)


def test_a_day_can_be_repeated_and_stays_failed_until_its_limits_are_others(folder):
    day = datetime.fromtimestamp(NOW_MS / 1000, UTC).date()
    for name, rows in (("reports", [report(1), report(2, -1)]), ("metrics", [metric(1)])):
        (folder.path / f"{name}-{day}").mkdir()
        write_parquet(folder.path / f"{name}-{day}" / "a.parquet", rows)
    paths = [f"{folder.path}/{name}-{{date}}" for name in ("reports", "metrics")]

    def run(limits):
        return daily(folder.spark, day, *paths, folder.out, now_ms=NOW_MS + 2 * DAY_MS, limits=limits)

    first = run(Limits(4_999))
    assert first.failure.startswith("1 of 2 rows of reports were refused")
    end_of_day = (NOW_MS // DAY_MS + 1) * DAY_MS - 1
    assert {row["attempted_at_ms"] for row in folder.tables.results()} == {end_of_day}
    again = run(Limits(4_999))
    assert (again.changed, again.failure) == (False, first.failure)
    assert run(Limits(5_000)).failure is None
    with pytest.raises(BadInput, match="has not begun"):
        daily(folder.spark, day, *paths, folder.out, now_ms=NOW_MS - DAY_MS)


def test_two_drivers_that_begin_the_same_run_write_it_once(folder, monkeypatch):
    """The second one began while the first was under way: its number is taken, and it says so."""
    folder.give("a", [report(1)], [metric(1)])
    begin, inside = Ledger.begin, []

    def begin_late(ledger, intent, received):
        if not inside:
            inside.append(1)
            folder.run(NOW_MS + 7)  # the faster one, from its beginning to its end
        return begin(ledger, intent, received)

    monkeypatch.setattr(Ledger, "begin", begin_late)
    with pytest.raises(RunTaken, match="was faster"):
        folder.run()
    assert [(row["report_id"], row["attempted_at_ms"]) for row in folder.tables.results()] == [("r1", NOW_MS + 7)]
    assert folder.tables.totals("affiliate")["ada"]["reports"] == 1


def test_a_folder_of_the_old_layout_is_imported_and_gone_on_with(folder):
    folder.give("a", [report(1), report(2)], [metric(1)])
    files = {}
    for name in ("reports", "metrics"):
        file = folder.path / name / "a.parquet"
        state = file.stat()
        files[name] = {f"file:{file}": (state.st_size, state.st_mtime_ns // 1_000_000)}
    write_old_run(folder.path / "out", asdict(DEFAULTS), files)

    assert not folder.run(NOW_MS + 1).changed  # all that it says was imported
    folder.give("b", [report(3, affiliate="bob", post_id="p1"), report(1)], [metric(2)])
    second = folder.run(NOW_MS + 2)

    assert second.run == 2
    assert statuses(current_results(folder.spark, folder.out)) == {"r1": "MATCHED", "r2": "MATCHED"}
    assert [row["report_id"] for row in folder.tables.post_taken()] == ["r3"]  # p1 is ada's
    ada = folder.tables.totals("affiliate")["ada"]
    assert (ada["reports"], ada["matched"], ada["missing_platform_data"], ada["steps_bp"]) == (2, 2, 0, 200)
    assert ada["claimed_views"] == 2000
    assert [check.passed for check in second.checks if check.name == "conservation"] == [True]
