"""Fairness of an archive, piece by piece, comes to what a whole analysis comes to, and reads what is new."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from fila import Client, OutgoingMessage
from fila.pipelines.archive import stream
from fila.pipelines.archive.entries import SCHEMA, Archive
from fila.pipelines.errors import BadInput
from fila.pipelines.fairness import history, increments
from fila.pipelines.fairness import waits as waiting
from fila.pipelines.fairness.analysis import analyse
from fila.pipelines.fairness.tables import DeltaTables
from fila.pipelines.fairness.waits import WAIT_CAUSES
from fila.testing import ServerProcess
from tests.helpers.spark_journal import S, Story

CELL = ("queue", "key", "start_ns", "weight", "cost", "wanted_ns", "enqueued", "leased", "acked", "retries", "dead")
BOOKS = ("enqueued", "moved_in", "acked", "dead", "redriven", "dropped", "deleted")


def archived(spark, folder, rows):
    """Adds entries of a story to an archive."""
    names = [field.name for field in SCHEMA if field.name != "day"]
    nothing = {field.name: 0 if field.dataType.simpleString() == "bigint" else "" for field in SCHEMA}
    whole = [tuple((nothing | row)[name] for name in names) for row in rows]
    schema = [field for field in SCHEMA if field.name != "day"]
    Archive(spark, str(folder)).add(spark.createDataFrame(whole, type(SCHEMA)(schema)))


def told(frame, *columns):
    return sorted(
        tuple(round(row[name], 9) if isinstance(row[name], float) else row[name] for name in columns)
        for row in frame.collect()
    )


def busy():
    """Two keys share a queue for 40 s; messages are retried, die, wait for delays, for consumers and for a limit."""
    story = Story()
    story.tell(0, "started", queue="")
    story.tell(0, "created")
    story.tell(0, "created", queue="q.dlq")
    story.tell(0, "counted", count=0)
    for number in range(60):
        story.tell(0.5, "enqueued", f"a{number}", "a")
        story.tell(0.5, "enqueued", f"b{number}", "b", weight=2)
    story.tell(1, "enqueued", "late", "a", until_ns=22 * S)
    story.tell(2, "consumers", count=2)
    for turn in range(34):
        at = 2 + turn
        if turn == 12:
            story.tell(at, "consumers", count=0)
        if 12 <= turn < 17:
            continue
        if turn == 17:
            story.tell(at, "consumers", count=1)
        for key, count in (("a", 1), ("b", 2)):
            for part in range(count):
                message = f"{key}{turn * count + part if turn < 12 else (turn - 5) * count + part}"
                more = {"weight": 2 if key == "b" else 1, "attempt": 1}
                held = S if key == "a" and turn % 4 == 1 else 0
                story.tell(at + 0.1 + part / 10, "leased", message, key, throttled_ns=held, **more)
                story.tell(at + 0.5 + part / 10, "acked", message, key, **more)
        if turn == 20:
            story.tell(at + 0.8, "due", "late", "a")
        if turn in {22, 30}:
            story.tell(at + 0.8, "leased", "late", "a", attempt=turn // 20)
            story.tell(at + 0.9, "nacked" if turn == 22 else "dead", "late", "a", target="q.dlq" if turn == 30 else "")
    story.tell(37, "counted", count=120 - 87)
    story.tell(37, "counted", queue="q.dlq", count=1)
    story.tell(40, "consumers", count=2)
    story.rows.sort(key=lambda row: row["at_ns"])  # a broker writes its entries in the order of time
    for number, row in enumerate(story.rows, 1):
        row["seq"] = number
    return story


def pieces(story, *ends_s):
    rows, found = story.rows, []
    for end in ends_s:
        found.append([row for row in rows if row["at_ns"] < end * S])
        rows = rows[len(found[-1]) :]
    return [*found, rows]


@pytest.mark.slow
def test_piece_by_piece_comes_to_what_the_whole_comes_to(spark, tmp_path):
    story = busy()
    source, out = tmp_path / "archive", tmp_path / "out"
    runs = []
    for piece in pieces(story, 7.3, 16.05, 29):
        archived(spark, source, piece)
        done = increments.advance(spark, str(source), str(out), now_ms=0, window_s=5)
        runs.append(done.runs)
        assert done.conserved
    assert runs == [1, 1, 1, 1]
    assert increments.advance(spark, str(source), str(out), now_ms=0).runs == 0
    tables = DeltaTables(spark, str(out))
    whole = analyse(spark, str(tmp_path / "whole"), now_ms=0, files=story.write(tmp_path / "j.parquet"), window_s=5)
    assert whole.summary["conserved"], spark.read.parquet(f"{whole.folder}/broken").collect()
    read = {name: spark.read.parquet(f"{whole.folder}/{name}") for name in ("windows", "jain", "conservation")}

    cells = read["windows"].where(F.col("start_ns") < 40 * S)
    for columns in (CELL, ("queue", "key", "start_ns", "owed", "share", "entitled", "contends", "starved")):
        assert told(tables.read("windows"), *columns) == told(cells, *columns)
    index = read["jain"].where(F.col("start_ns") < 40 * S)
    assert told(tables.read("jain"), "queue", "start_ns", "jain") == told(index, "queue", "start_ns", "jain")

    sums = (
        tables.read("conservation")
        .groupBy("queue")
        .agg(
            *(F.sum(name).alias(name) for name in BOOKS),
            F.max_by("holds", "run").alias("holds"),
            F.min("balanced").alias("balanced"),
        )
    )
    columns = ("queue", *BOOKS, "holds", "balanced")
    assert told(sums, *columns) == told(read["conservation"], *columns)

    frame = story.frame(spark)
    steps = history.steps(frame)
    waits = waiting.waits(history.stays(steps, frame, 41 * S), steps, frame).where("not last")
    ended = waits.groupBy("queue", "key").agg(*(F.sum(name).alias(f"{name}_ns") for name in WAIT_CAUSES))
    summed = (
        tables.read("keys")
        .groupBy("queue", "key")
        .agg(*(F.sum(f"{name}_ns").alias(f"{name}_ns") for name in WAIT_CAUSES))
    )
    columns = ("queue", "key", *(f"{name}_ns" for name in WAIT_CAUSES))
    by_cause = [row for row in told(summed, *columns) if row[2] is not None]
    assert by_cause == told(ended, *columns)
    assert sum(row[2] for row in by_cause) > 0 < sum(row[3] for row in by_cause)
    assert "Nothing is lost" in Path(done.found.report).read_text()


@pytest.mark.slow
def test_history_begins_anew_where_entries_are_missing_and_the_run_says_so(spark, tmp_path):
    source, out = tmp_path / "archive", tmp_path / "out"
    story = Story()
    story.tell(0, "created")
    for number in range(4):
        story.tell(1, "enqueued", f"m{number}", "a", enqueued_at_ns=S)
    lost = len(story.rows)
    story.tell(2, "enqueued", "lost", "a")
    story.tell(12, "counted", count=5)
    story.tell(13, "leased", "lost", "a", attempt=1, enqueued_at_ns=2 * S)
    story.tell(14, "acked", "lost", "a", attempt=1, enqueued_at_ns=2 * S)
    story.tell(21, "counted", count=4)
    rows = story.rows[:lost] + story.rows[lost + 1 :]
    archived(spark, source, rows[:lost])
    archived(spark, source, rows[lost:])
    done = increments.advance(spark, str(source), str(out), now_ms=0, window_s=10)
    found = done.found
    assert (done.runs, done.conserved) == (2, False)
    assert (found.summary["missing_entries"], found.summary["broken"], found.summary["conserved"]) == (1, 0, False)
    books = DeltaTables(spark, str(out)).read("conservation").orderBy("run").collect()
    assert [(row.held_before, row.enqueued, row.acked, row.holds) for row in books] == [(0, 4, 0, 4), (5, 0, 1, 4)]
    story.tell(22, "acked", "m0", "a", attempt=1, enqueued_at_ns=S)
    story.tell(31, "counted", count=4)  # it holds 3
    archived(spark, source, story.rows[-2:])
    story.tell(41, "counted", count=4)
    archived(spark, source, story.rows[-1:])
    found = increments.advance(spark, str(source), str(out), now_ms=0).found
    problems = [row.problem for row in DeltaTables(spark, str(out)).read("broken").collect()]
    assert problems == ["the broker counted 4 messages, its history says 3"]
    assert found.summary["missing_entries"] == 0
    with pytest.raises(BadInput, match="has windows of 10 s"):
        increments.advance(spark, str(source), str(out), now_ms=0, window_s=5)


@pytest.mark.slow
def test_a_run_opens_no_file_of_entries_that_were_analysed(spark, tmp_path):
    """The files of earlier days may even be gone."""
    source, out = tmp_path / "archive", tmp_path / "out"
    day = 86_400
    story = Story()
    story.tell(10, "created")
    story.tell(20, "enqueued", "m", "a", enqueued_at_ns=20 * S)
    story.tell(day - 1, "counted", count=1)
    archived(spark, source, story.rows)
    old = len(story.rows)
    story.tell(day + 10, "leased", "m", "a", attempt=1, enqueued_at_ns=20 * S)
    archived(spark, source, story.rows[old:])
    assert increments.advance(spark, str(source), str(out), now_ms=0, window_s=43_200).runs == 1
    for file in Path(source, "journal", "day=1970-01-01").glob("*.parquet"):
        file.unlink()
    story.tell(2 * day + 10, "acked", "m", "a", attempt=1, enqueued_at_ns=20 * S)
    archived(spark, source, story.rows[-1:])
    found = increments.advance(spark, str(source), str(out), now_ms=0).found
    assert found.summary["conserved"]
    assert (found.summary["carried"], found.summary["pending"]) == (1, 1)


class Killed(Exception):
    """The driver dies."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_that_is_stopped_after_any_commit_is_finished_by_the_next(spark, tmp_path, monkeypatch):
    source = tmp_path / "archive"
    for piece in pieces(busy(), 12):
        archived(spark, source, piece)
    smooth = increments.advance(spark, str(source), str(tmp_path / "smooth"), now_ms=0, window_s=20).found
    append, seen = DeltaTables.append, set()

    def dying(self, name, rows, run, number=None):
        append(self, name, rows, run, number)
        if (name, run, number) not in seen:
            seen.add((name, run, number))
            raise Killed

    monkeypatch.setattr(DeltaTables, "append", dying)
    while True:
        try:
            found = increments.advance(spark, str(source), str(tmp_path / "rough"), now_ms=0, window_s=20).found
            break
        except Killed:
            continue
    monkeypatch.undo()
    assert found.summary == smooth.summary
    assert {name for name, _, _ in seen} == {
        *("windows", "jain", "starvation", "keys", "conservation", "broken", "state", "runs")
    }
    rough, even = (DeltaTables(spark, str(tmp_path / name)) for name in ("rough", "smooth"))
    for name, columns in (("windows", (*CELL, "owed", "run")), ("conservation", ("queue", "run", *BOOKS, "holds"))):
        assert told(rough.read(name), *columns) == told(even.read(name), *columns)


@pytest.mark.slow
def test_from_a_broker_by_the_archive_to_the_figures(spark, tmp_path):
    with ServerProcess(config="[journal]\nenabled = true\n") as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders", fairness_header="tenant")

        def work(count):
            names = ("ada", "bob")
            client.enqueue_many("orders", [OutgoingMessage(b"", {"tenant": names[n % 2]}) for n in range(count)])
            with client.consume("orders", max_in_flight=5) as messages:
                for done, message in enumerate(messages):
                    message.ack()
                    if done == count // 2 - 1:
                        break

        found = []
        for part in range(2):
            work(40)
            if part == 0:
                server.kill()
                server.start()
            query = stream.start(spark, {"addr": server.addr}, str(tmp_path / "a"), trigger={"availableNow": True})
            assert query.awaitTermination(240)
            found.append(increments.advance(spark, str(tmp_path / "a"), str(tmp_path / "out"), now_ms=0, window_s=1))
        depth = client.queue_stats("orders").summary.depth
    tables = DeltaTables(spark, str(tmp_path / "out"))
    assert all(each.conserved for each in found), tables.read("broken").collect()
    last = tables.read("conservation").where("queue = 'orders'").orderBy(F.desc("run")).first()
    assert last.balanced
    assert abs(last.holds - depth) <= 45  # the windows that are not over are left to the next run
