"""Fairness from the journal: what is waited for, who is starved by whom, and the proof that nothing is lost."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from fila import Client
from fila.client import journal as client_journal
from fila.pipelines.errors import BadInput
from fila.pipelines.fairness import history, shares, slices
from fila.pipelines.fairness import waits as waiting
from fila.pipelines.fairness.analysis import analyse
from fila.pipelines.fairness.shares import Span
from fila.testing import ServerProcess
from tests.helpers.spark_journal import S, Story


def rows(frame, *columns):
    return sorted(tuple(row[name] for name in columns) for row in frame.collect())


def test_a_wait_is_split_by_what_it_was_for(spark):
    story = Story()
    story.tell(0, "started", queue="")
    story.tell(0, "created")
    story.tell(0, "enqueued", "m1", "a")
    story.tell(0, "enqueued", "m2", "a", until_ns=4 * S)
    story.tell(4, "due", "m2", "a")
    story.tell(5, "enqueued", "m3", "b")
    story.tell(5, "enqueued", "m4", "b")
    story.tell(10, "consumers", count=1)  # until here nobody was there
    # What held a message back the broker says when it delivers it. Of m4, which waits to the end, it has not: until the
    # consumer was busy it must have been a limit.
    story.tell(13, "leased", "m3", "b", attempt=1, throttled_ns=3 * S)
    story.tell(20, "leased", "m1", "a", attempt=1)
    story.tell(22, "acked", "m3", "b", attempt=1)
    story.tell(25, "leased", "m2", "a", attempt=1, throttled_ns=9 * S)
    story.tell(26, "acked", "m1", "a", attempt=1)
    story.tell(27, "acked", "m2", "a", attempt=1)
    told = story.frame(spark)
    steps = history.steps(told)
    stays = history.stays(steps, told, 27 * S)
    waits = waiting.waits(stays, steps, told).groupBy("message_id").sum(*waiting.WAIT_CAUSES)
    assert {row[0]: tuple(each / S for each in row[1:]) for row in waits.collect()} == {
        "m1": (0, 10, 0, 10),
        "m2": (4, 6, 9, 6),
        "m3": (0, 5, 3, 0),
        "m4": (0, 5, 3, 14),
    }


def limited():
    """`a` may have one message in ten seconds, `b` is served all the time; both have a backlog to the end."""
    story = Story()
    story.tell(0, "started", queue="")
    story.tell(0, "created")
    story.tell(0, "consumers", count=1)
    for key, count in (("a", 20), ("b", 400)):
        for number in range(count):
            story.tell(0, "enqueued", f"{key}{number}", key)
    served = [(second + part / 10, "b") for second in range(35) for part in range(1, 10)]
    served += [(0.05, "a"), (10, "a"), (20, "a"), (30, "a")]
    sent = dict.fromkeys("ab", 0)
    for at, key in sorted(served):
        message, held = f"{key}{sent[key]}", int((at - 0.05) * S) if key == "a" else 0
        story.tell(at, "leased", message, key, attempt=1, throttled_ns=held)
        story.tell(at + 0.04, "acked", message, key, attempt=1)
        sent[key] += 1
    story.tell(35, "counted", count=420 - len(served))
    return story


def test_time_that_a_limit_holds_a_key_is_the_limits_for_all_its_messages(spark, tmp_path):
    """Also for those behind the one that is held, which nobody has delivered yet."""
    story = limited()
    told = story.frame(spark)
    steps = history.steps(told)
    waits = waiting.waits(history.stays(steps, told, 35 * S), steps, told)
    still = {row.key: row for row in waits.where("last").groupBy("key").sum("throttle", "fair_share").collect()}
    assert still["a"]["sum(throttle)"] / (16 * S) == pytest.approx(34.95)
    assert still["a"]["sum(fair_share)"] / (16 * S) == pytest.approx(0.05)
    assert still["b"]["sum(throttle)"] / (85 * S) < 0.1  # since its last delivery the consumer is idle

    found = analyse(spark, str(tmp_path / "out"), now_ms=0, files=story.write(tmp_path / "j.parquet"), window_s=5)
    for row in spark.read.parquet(f"{found.folder}/starvation").collect():
        assert (row.key, row.by_whom) == ("a", [])
        assert row.limited > 0.9
    page = Path(found.report).read_text()
    assert "because a <b>limit</b> held it back: it got" in page
    assert "more than their part" not in page


def test_a_hold_up_that_is_over_is_not_charged_twice(spark):
    """Deliveries tell of a hold-up long after it: what waits since then is in nobody's way but the others'."""
    story = Story()
    story.tell(0, "started", queue="")
    story.tell(0, "created")
    story.tell(0, "consumers", count=1)
    for number in range(4):
        story.tell(0, "enqueued", f"a{number}", "a")
    story.tell(0, "enqueued", "b0", "b")
    story.tell(1, "leased", "b0", "b", attempt=1)
    for number, at in enumerate((10, 15, 20)):  # held from 2 to 10
        story.tell(at, "leased", f"a{number}", "a", attempt=1, throttled_ns=8 * S)
    told = story.frame(spark)
    steps = history.steps(told)
    waits = waiting.waits(history.stays(steps, told, 30 * S), steps, told)
    [still] = waits.where("last").collect()
    assert (still.message_id, still.throttle / S, still.fair_share / S) == ("a3", 8, 22)


def flooded():
    """Two keys of one weight and one of three want service for 30 s; `a` is given nothing in the second ten."""
    story = Story()
    story.tell(0, "started", queue="")
    story.tell(0, "created")
    story.tell(0, "consumers", count=1)
    for key, count in (("a", 200), ("b", 200), ("c", 400)):
        for number in range(count):
            story.tell(0, "enqueued", f"{key}{number}", key, weight=3 if key == "c" else 1)
    sent = dict.fromkeys("abc", 0)
    for second in range(30):
        turns = "abccc" * 2 if not 10 <= second < 20 else "bbccc" * 2
        for turn, key in enumerate(turns):
            message = f"{key}{sent[key]}"
            at = second + turn / 10 + 0.05
            weight = 3 if key == "c" else 1
            story.tell(at, "leased", message, key, weight=weight, attempt=1)
            story.tell(at + 0.01, "acked", message, key, weight=weight, attempt=1)
            sent[key] += 1
    story.tell(30, "counted", count=800 - 300)
    return story


def test_who_was_starved_when_and_by_whom(spark):
    told = flooded().frame(spark)
    span = Span(0, 30 * S, 5 * S)
    steps = history.steps(told).persist()
    stays = history.stays(steps, told, span.end_ns)
    cells = shares.cells(shares.demand(stays, span), shares.events(steps, span), span).persist()

    got = {(row.key, row.window): (row.cost, round(row.owed, 6), row.contends) for row in cells.collect()}
    for window in range(6):
        fair = not 2 <= window < 4
        assert got["a", window] == (10 if fair else 0, 10, True)
        assert got["b", window] == (10 if fair else 20, 10, True)
        assert got["c", window] == (30, 30, True)
    waits = spark.createDataFrame(
        [("q", "a", 0, 20 * S, 8 * S), ("q", "a", 15 * S, 25 * S, 0), ("q", "b", 0, 30 * S, 30 * S)],
        "queue string, key string, from_ns bigint, to_ns bigint, throttle bigint",
    )
    [stretch] = shares.starvation(cells, waits, span).collect()
    assert stretch.limited == pytest.approx(8 / 15)  # of 10 s and 5 s of waiting within the stretch
    assert (stretch.queue, stretch.key, stretch.from_ns, stretch.to_ns) == ("q", "a", 10 * S, 20 * S)
    assert (stretch.got, stretch.owed) == (0, 20)
    assert [(each.key, each.excess) for each in stretch.by_whom] == [("b", 20)]
    index = {row.window: row.jain for row in shares.jain(cells).collect()}
    assert all(index[window] == pytest.approx(1) for window in (0, 1, 4, 5))
    assert index[2] == pytest.approx((0 + 2 + 1) ** 2 / (3 * (0 + 4 + 1)))


def test_a_whole_history_is_proven_and_a_broken_one_is_named(spark, tmp_path):
    story = flooded()
    whole = analyse(spark, str(tmp_path / "whole"), now_ms=0, files=story.write(tmp_path / "whole.parquet"), window_s=5)
    assert whole.summary["conserved"]
    assert (whole.summary["enqueued"], whole.summary["acked"], whole.summary["pending"]) == (800, 300, 500)
    page = Path(whole.report).read_text()
    assert "<b>a</b> was starved in <b>q</b> from 00:00:10 to 00:00:20" in page
    assert "Every message is accounted for." in page

    story.rows[-1]["count"] = 490
    story.tell(31, "acked", "a199", "a", attempt=1)
    story.tell(31, "leased", "nobody", "z", attempt=1, enqueued_at_ns=5 * S)
    story.tell(32, "enqueued", "b199", "b")
    del story.rows[700]
    found = analyse(spark, str(tmp_path / "broken"), now_ms=0, files=story.write(tmp_path / "broken.parquet"))
    assert not found.summary["conserved"]
    assert found.summary["missing_entries"] == 1
    problems = rows(spark.read.parquet(f"{found.folder}/broken"), "message_id", "problem")
    assert ("a199", "acked while ready") in problems
    assert ("nobody", "leased without having been enqueued") in problems
    assert ("b199", "enqueued a second time") in problems
    assert ("", "the broker counted 490 messages, its history says 499") in problems


def test_every_kind_of_entry_is_known():
    about_queues = {"", "started", "counted", "consumers", "created", "updated", "deleted", "configured"}
    assert set(client_journal.KINDS.values()) == about_queues | set(history.KINDS)


def test_dead_letters_retries_and_redriving_balance(spark):
    story = Story()
    story.tell(0, "created")
    story.tell(0, "created", queue="q.dlq")
    story.tell(1, "enqueued", "m", "a")
    story.tell(2, "leased", "m", "a", attempt=1)
    story.tell(3, "nacked", "m", "a", attempt=1, until_ns=5 * S)
    story.tell(5, "due", "m", "a")
    story.tell(6, "leased", "m", "a", attempt=2)
    story.tell(7, "dead", "m", "a", attempt=2, target="q.dlq")
    story.tell(8, "counted", queue="q.dlq", count=1)
    told = story.frame(spark)
    steps = history.steps(told)
    stays = history.stays(steps, told, 9 * S)
    books, mismatched = history.balance(told)
    assert rows(books, "queue", "enqueued", "moved_in", "dead", "holds") == [("q", 1, 0, 1, 0), ("q.dlq", 0, 1, 0, 1)]
    assert mismatched.count() == 0
    assert history.broken(steps, 0).count() == 0
    assert rows(history.ends(stays, steps), "queue", "message_id", "end") == [("q.dlq", "m", "dead")]
    [cell] = shares.events(steps, Span(0, 9 * S, 9 * S)).where("queue = 'q'").collect()
    assert (cell.leased, cell.retries, cell.dead, cell.cost, cell.retry_cost) == (2, 1, 1, 2, 1)


def test_messages_of_a_queue_that_is_made_anew_end_with_their_own_queue(spark):
    story = Story()
    for life in (0, 10):
        story.tell(life, "created")
        story.tell(life + 1, "enqueued", f"m{life}", "a")
        story.tell(life + 5, "deleted", count=1)
    story.tell(20, "created")
    story.tell(21, "enqueued", "m20", "a")
    told = story.frame(spark)
    stays = history.stays(history.steps(told), told, 30 * S)
    assert rows(stays, "message_id", "to_ns", "deleted") == [
        ("m0", 5 * S, True),
        ("m10", 15 * S, True),
        ("m20", 30 * S, False),
    ]


def test_sums_are_the_same_however_the_history_is_sliced_and_no_window_is_over_a_whole_queue(spark, monkeypatch):
    story = flooded()
    story.tell(3.5, "consumers", count=0)
    story.tell(12.5, "consumers", count=2)
    story.tell(31, "counted", count=1)  # which is wrong
    told = story.frame(spark)
    steps = history.steps(told).persist()
    stays = history.stays(steps, told, 40 * S).persist()

    def found():
        waited = waiting.waits(stays, steps, told)
        books, mismatched = history.balance(told)
        plans = [frame._jdf.queryExecution().optimizedPlan().toString() for frame in (waited, books)]
        return [sorted(map(tuple, frame.collect())) for frame in (waited, books, mismatched)], plans

    in_one, _ = found()
    monkeypatch.setattr(slices, "ENTRIES", 7)
    monkeypatch.setattr(slices, "LENGTH_NS", S // 3)
    in_many, plans = found()
    assert in_many == in_one
    assert len(in_one[2]) == 1
    for plan in plans:
        windows = [line for line in plan.splitlines() if "windowspecdefinition(queue" in line]
        assert windows
        rows_of_slices = ("net#", "busy#", "begins#", "nobody#", "idle#")
        for line in windows:
            of_queue = line.rpartition("], [")[0].rpartition("], [")[2]
            assert "slice#" in of_queue or "key#" in of_queue or any(name in line for name in rows_of_slices), line


def test_a_live_broker_is_read_and_accounted_for(spark, tmp_path):
    with ServerProcess(config="[journal]\nenabled = true\n") as server, Client(server.addr) as client:
        client.create_queue("orders", fairness_header="tenant", max_attempts=2)
        for tenant in ("ada", "bob"):
            for number in range(20):
                client.enqueue("orders", {"tenant": tenant}, b"x", delay_ms=60_000 if number == 0 else 0)
        with client.consume("orders", max_in_flight=5) as messages:
            for count, message in enumerate(messages):
                message.nack("no") if count % 5 == 0 else message.ack()
                if count == 34:
                    break
        found = analyse(spark, str(tmp_path / "out"), now_ms=0, broker=server.addr)
        held = {info.name: client.queue_stats(info.name) for info in client.list_queues()}
    summary = found.summary
    assert summary["conserved"], summary
    assert summary["enqueued"] == 40
    assert summary["acked"] + summary["dead"] + summary["pending"] == 40
    books = {row.queue: row for row in spark.read.parquet(f"{found.folder}/conservation").collect()}
    assert sum(row.holds for row in books.values()) == summary["dead"] + summary["pending"]
    assert set(books) <= set(held)


def test_what_is_no_journal_is_refused(spark, tmp_path):
    pq.write_table(pa.table({"seq": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="missing columns at_ns, kind, queue"):
        analyse(spark, str(tmp_path / "out"), now_ms=0, files=str(tmp_path / "a.parquet"))
    with pytest.raises(BadInput, match=r"there are no \.parquet files"):
        analyse(spark, str(tmp_path / "out"), now_ms=0, files=str(tmp_path / "nothing"))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
