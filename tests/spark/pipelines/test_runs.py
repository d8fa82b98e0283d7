"""Runs count as a whole, one at a time, and leave nothing but themselves."""

import itertools
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

from fila.pipelines.errors import BadInput, RunTaken
from fila.pipelines.fairness.tables import DeltaTables
from fila.pipelines.files import Files
from fila.pipelines.runs import Content, Runs
from tests.helpers.spark_reports import write_parquet

TABLES = ("keys", "windows")


def writing(what, between=lambda: None):
    """Writes two tables of one row."""

    def write(folder):
        for name in TABLES:
            (Path(folder) / name).mkdir(parents=True)
            write_parquet(Path(folder) / name / "part-0.parquet", [{"what": what}])
            between()
        return Content({}, {}, {}, lambda manifest: f"page of {what}, run {manifest.run}")

    return write


def add(runs, what, between=lambda: None):
    return runs.add(0, writing(what, between), lambda _: None)[0]


def seen(runs):
    """What each table of the last run says."""
    return [row.what for name in TABLES for row in runs.table(name).collect()]


def folders(out):
    return sorted(path.name for path in (out / "runs").iterdir())


class Killed(BaseException):
    """The driver died here."""


class Death:
    """Comes after so many steps. From then on nothing is done, no cleaning up either."""

    def __init__(self, monkeypatch, steps):
        self._left = steps
        for owner, name in ((Files, "write"), (Files, "remove"), (DeltaTables, "append")):
            monkeypatch.setattr(owner, name, self._dying(getattr(owner, name)))

    def step(self):
        if self._left == 0:
            raise Killed
        self._left -= 1

    def _dying(self, act):
        def wrapped(*given, **more):
            self.step()
            return act(*given, **more)

        return wrapped


@pytest.mark.slow
def test_readers_see_whole_runs_wherever_a_driver_is_killed_and_the_next_run_leaves_nothing_of_it(
    spark, tmp_path, monkeypatch
):
    runs = Runs(spark, str(tmp_path))
    with pytest.raises(BadInput, match="has no run"):
        runs.table("keys")
    before, counted = add(runs, "first"), 1
    for steps in itertools.count():
        with monkeypatch.context() as patch:
            death = Death(patch, steps)
            try:
                add(runs, f"killed after {steps}", death.step)
                break
            except Killed:
                pass
        last = runs.last()
        counted += last != before
        before = last
        one, other = seen(runs)
        assert one == other
        pages = [path.read_text() for path in tmp_path.rglob("*.html")]
        assert pages
        assert {int(page.rpartition(" ")[2]) for page in pages} <= set(range(1, last.run + 1))  # of runs that count
    assert steps > 5
    assert counted > 1  # some came after the commit
    published = {row.folder for row in DeltaTables(spark, str(tmp_path)).read("published").collect()}
    assert folders(tmp_path) == sorted(published)
    assert len(published) == counted + 1
    assert len([*(tmp_path / "pages").glob("*.html")]) == len(published)  # also of those that were killed before
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == [
        "pages",
        "published",
        "report.html",
        "runs",
    ]
    assert (tmp_path / "report.html").read_text() == f"page of killed after {steps}, run {counted + 1}"


def test_of_two_runs_at_once_the_slower_one_fails_and_leaves_nothing(spark, tmp_path):
    rival = Runs(spark, str(tmp_path))

    def overtake():
        if rival.last() is None:
            add(rival, "faster")

    with pytest.raises(RunTaken, match="another run"):
        add(Runs(spark, str(tmp_path)), "slower", overtake)
    assert seen(rival) == ["faster", "faster"]
    assert folders(tmp_path) == [rival.last().folder.rpartition("/")[2]]
    assert (tmp_path / "report.html").read_text() == "page of faster, run 1"


def test_a_run_whose_folder_the_faster_one_has_removed_says_that_it_was_slower(spark, tmp_path):
    def write(folder):
        add(Runs(spark, str(tmp_path)), "faster")
        spark.read.parquet(folder)

    with pytest.raises(RunTaken, match="another run") as caught:
        Runs(spark, str(tmp_path)).add(0, write, lambda _: None)
    assert isinstance(caught.value.__cause__, AnalysisException)


def test_a_run_that_fails_leaves_nothing(spark, tmp_path):
    runs = Runs(spark, str(tmp_path))

    def fail():
        raise BadInput("the journal is empty")

    with pytest.raises(BadInput, match="is empty"):
        add(runs, "half", fail)
    assert folders(tmp_path) == []
    assert runs.last() is None


def test_a_folder_of_the_layout_before_is_read_and_gone_on_with(spark, tmp_path):
    writing("old")(f"{tmp_path}/runs/000001")
    (tmp_path / ".staging-000002-dead").mkdir()
    runs = Runs(spark, str(tmp_path))
    assert seen(runs) == ["old", "old"]

    assert add(runs, "new").run == 2

    assert seen(runs) == ["new", "new"]
    assert folders(tmp_path)[0] == "000001"
    assert not (tmp_path / ".staging-000002-dead").exists()
