"""The archive of the journal: every entry once, whatever is killed, and what is missing is said."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from fila import Client, OutgoingMessage
from fila.pipelines.archive import stream
from fila.pipelines.archive.entries import MISSING, Archive, Gap
from fila.pipelines.errors import BadInput
from fila.spark.rows import JOURNAL_COLUMNS, journal_schema
from fila.testing import ServerProcess
from tests.e2e.support import eventually
from tests.helpers.spark_crash import PATIENCE_S

S = 1_000_000_000
DAY_S = 86_400
ON = "[journal]\nenabled = true\n"


def entries(spark, *seqs, every_s=1):
    nothing = {field.name: 0 if field.dataType.simpleString() == "bigint" else "" for field in SCHEMA}
    rows = [nothing | {"seq": seq, "at_ns": seq * every_s * S + 123_456_789, "kind": "enqueued"} for seq in seqs]
    return spark.createDataFrame([tuple(row[name] for name in SCHEMA.names) for row in rows], SCHEMA)


SCHEMA = journal_schema(JOURNAL_COLUMNS)


def held(archive, kind=None):
    rows = archive.read().where(F.col("kind") == kind if kind else F.col("kind") != MISSING)
    return [row.seq for row in rows.orderBy("seq").collect()]


def files(archive):
    return len(list(Path(archive.path).rglob("*.parquet")))


def test_entries_are_added_once_whoever_brings_them_again(spark, tmp_path):
    archive = Archive(spark, str(tmp_path))
    assert (archive.last(), archive.exists()) == (0, False)
    with pytest.raises(BadInput, match="is no archive"):
        archive.read()
    added = archive.add(entries(spark, 5, 6, 7, 8))
    assert (added.entries, added.last, added.gaps) == (4, 8, ())  # what came before it began is not missing from it
    before = files(archive)
    for again in (archive, Archive(spark, str(tmp_path))):
        assert again.add(entries(spark, 5, 6, 7, 8)).entries == 0
        assert again.add(entries(spark)).entries == 0
    assert files(archive) == before
    late = Archive(spark, str(tmp_path))  # as a driver that was slow: it looked before the others wrote
    late._last = 0
    late.add(entries(spark, 5, 6, 7, 8))
    assert held(archive) == [5, 6, 7, 8]
    assert archive.add(entries(spark, 7, 8, 9)).entries == 1
    assert held(archive) == [5, 6, 7, 8, 9]


def test_what_is_missing_is_a_row_in_the_commit_of_what_comes_after_it(spark, tmp_path):
    archive = Archive(spark, str(tmp_path))
    archive.add(entries(spark, 3, 4))
    added = archive.add(entries(spark, 8, 9, 11, 12, 20))
    assert [(gap.first, gap.count) for gap in added.gaps] == [(5, 3), (10, 1), (13, 7)]
    assert added.gaps[0] == Gap(5, 3, 8 * S + 123_456_789)
    assert [str(gap) for gap in added.gaps[:2]] == ["entries 5 to 7", "entry 10"]
    rows = archive.read().where(F.col("kind") == MISSING).orderBy("seq").collect()
    assert (rows[0].seq, rows[0]["count"], rows[0].queue, rows[0].at_ns) == (5, 3, "", 8 * S + 123_456_789)
    assert [row.seq for row in rows] == [5, 10, 13]
    assert archive.add(entries(spark, 21)).gaps == ()
    assert held(archive) == [3, 4, 8, 9, 11, 12, 20, 21]


def test_days_are_partitions_and_the_newest_entry_is_found_without_reading_any(spark, tmp_path):
    archive = Archive(spark, str(tmp_path))
    archive.add(entries(spark, 1, 2, 3, every_s=DAY_S))
    assert sorted(path.name for path in Path(archive.path).glob("day=*")) == [
        f"day=1970-01-0{day}" for day in (2, 3, 4)
    ]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        archive.read().agg(F.max("seq")).explain()
    assert "FileScan" not in said.getvalue()
    assert archive.last() == 3


def run(spark, server, out, **given):
    batches = []
    query = stream.start(
        spark, {"addr": server.addr}, str(out), trigger={"availableNow": True}, on_batch=batches.append, **given
    )
    assert query.awaitTermination(PATIENCE_S)
    return batches


@pytest.mark.slow
def test_a_journal_outlives_what_the_broker_keeps(spark, tmp_path):
    """Over restarts of the broker and a lost checkpoint. Only what went while nobody archived is missing, and named."""
    config = ON + "max_bytes = 1_048_576\n"
    with ServerProcess(config=config) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q", fairness_header="tenant")

        def fill(part):
            names = [f"tenant-{part}-{number}-{'x' * 60}" for number in range(3000)]
            client.enqueue_many("q", [OutgoingMessage(b"", {"tenant": name}) for name in names])

        out = tmp_path / "archive"
        archive = Archive(spark, str(out))
        for part in range(6):
            fill(part)
            assert not any(added.gaps for added in run(spark, server, out, max_entries=2500))
            if part == 1:
                server.kill()
                server.start()
            if part == 2:
                (out / "checkpoint").rename(tmp_path / "lost")
        with client.read_journal_batches(1) as found:
            header = next(found)
        assert header.first_available_seq > 1
        assert held(archive) == list(range(1, header.next_seq))
        for part in range(6):
            fill(part)
        newest = list(client.read_journal(1))
        batches = run(spark, server, out)
        [gap] = [gap for added in batches for gap in added.gaps]
        assert (gap.first, gap.first + gap.count) == (header.next_seq, newest[0].seq)
        assert gap.at_ns == newest[0].at_ns
        assert held(archive) == [*range(1, header.next_seq), *(entry.seq for entry in newest)]
        rows = archive.read().where(F.col("seq") >= newest[0].seq).where(F.col("kind") != MISSING).orderBy("seq")
        for row, entry in zip(rows.toLocalIterator(), newest, strict=True):
            assert all(row[name] == getattr(entry, name) for name in JOURNAL_COLUMNS)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_command_that_is_killed_between_commits_goes_on(spark, tmp_path):
    with ServerProcess(config=ON) as server, Client(server.addr, timeout=60) as client:
        client.create_queue("q")
        client.enqueue_many("q", [b""] * 4000)
        out, log = tmp_path / "archive", tmp_path / "log"
        command = [Path(sys.executable).parent / "fila", "pipeline", "archive", "--broker", server.addr]
        command += ["--out", out, "--max-entries", "500", "--once", "--master", "local[2]", "--json"]

        def begin():
            with log.open("ab") as said:
                return subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)

        def kill(process):
            for each in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            process.wait()

        for commits in (1, 4):
            process = begin()
            try:
                eventually(
                    lambda commits=commits: len(list(out.glob("journal/_delta_log/*.json"))) >= commits,
                    "a commit",
                    PATIENCE_S,
                )
            finally:
                kill(process)
        log.write_bytes(b"")
        assert begin().wait(PATIENCE_S) == 0, log.read_text()[-3000:]
        told = json.loads(log.read_text().splitlines()[-1]) if "\n{" in log.read_text() else json.loads(log.read_text())
        newest = [entry.seq for entry in client.read_journal(1)]
        assert (told["last"], told["missing"]) == (newest[-1], 0)
        assert held(Archive(spark, str(out))) == newest
