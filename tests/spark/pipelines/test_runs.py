"""Runs appear as a whole, one at a time."""

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import RunTaken
from fila.pipelines.files import Files
from fila.pipelines.runs import Manifest, Runs


class Rival:
    """A file system on which another run is published between the look and the rename."""

    def __init__(self, system, run):
        self._system, self._run = system, run

    def __getattr__(self, name):
        return getattr(self._system, name)

    def mkdirs(self, parent):
        self._run.mkdir(parents=True)
        (self._run / "manifest.json").write_text("theirs")
        return self._system.mkdirs(parent)


def test_what_a_killed_run_left_is_removed_by_the_next_and_a_run_under_way_is_not(spark, tmp_path):
    left, under_way = tmp_path / ".staging-000001-dead", tmp_path / ".staging-000002-alive"
    for folder in (left, under_way):
        folder.mkdir()
        (folder / "part").write_text("rows")
    runs = Runs(Files(spark), str(tmp_path))
    with runs.stage(2) as staged:
        assert not left.exists()
        Files(spark).write(f"{staged}/table", "ours")
        runs.publish(staged, Manifest(2, 0, {}, {}))
    assert (under_way / "part").exists()
    assert runs.last().run == 2


def test_of_two_runs_at_once_the_slower_one_fails_and_leaves_nothing(spark, tmp_path, monkeypatch):
    taken = tmp_path / "runs" / "000001"
    files = Files(spark)
    at = files._at
    runs = Runs(files, str(tmp_path))

    def publish():
        with runs.stage(1) as staged:
            files.write(f"{staged}/table", "ours")
            monkeypatch.setattr(files, "_at", lambda where: (at(where)[0], Rival(at(where)[1], taken)))
            runs.publish(staged, Manifest(1, 0, {}, {}))

    with pytest.raises(RunTaken, match="another run"):
        publish()
    assert [path.name for path in tmp_path.rglob("*") if not path.name.endswith(".crc")] == [
        "runs",
        "000001",
        "manifest.json",
    ]
    assert (taken / "manifest.json").read_text() == "theirs"
