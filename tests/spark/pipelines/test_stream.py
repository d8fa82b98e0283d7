"""Streaming reconciliation, against a real broker, and held against a bulk run over the same reports."""

import json
from collections import Counter
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import BadInput
from fila.pipelines.lineage import NO_LINEAGE, Lineage
from fila.pipelines.reconcile import stream
from fila.pipelines.reconcile.bulk import reconcile
from fila.pipelines.reconcile.stream import Batch, Queues
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS
from tests.helpers.spark_lake import Tables

NOW_MS = 1_790_000_000_000
PATIENCE_S = 200

pytestmark = pytest.mark.timeout(480)


def report(number, views=1000, **more):
    return {
        "report_id": f"r{number}",
        "affiliate_id": f"a{number % 3}",
        "campaign_id": "c",
        "platform": "clipshare",
        "post_id": f"p{number}",
        "views": views,
        "clicks": 100,
        "conversions": 10,
        "reported_at": NOW_MS + number,
    } | more


VIEWS = (1000, 1060, 1300, 850, 2000, 1150)
REPORTS = [json.dumps(report(number, VIEWS[number % len(VIEWS)])) for number in range(24)]
REPORTS += [REPORTS[3], json.dumps(report(30, -1)), "{", json.dumps(report(31, affiliate_id=""))]


@pytest.fixture
def metrics(tmp_path):
    rows = [
        {"platform": "clipshare", "post_id": f"p{n}", "views": 1000, "clicks": 100, "conversions": 10}
        | {"observed_at": NOW_MS}
        for n in range(22)
    ]
    rows[5]["clicks"] = None
    file = tmp_path / "metrics.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.fixture
def queues(client, broker, queue):
    made = Queues.beside(broker.addr, queue, group="g", max_messages=20)
    client.create_queue(made.discrepancies)
    client.create_queue(made.alerts)
    return made


def run(spark, queues, metrics, out, lineage=NO_LINEAGE):
    trigger = {"availableNow": True}
    query = stream.start(spark, queues, metrics, str(out), clock_ms=lambda: NOW_MS, trigger=trigger, lineage=lineage)
    assert query.awaitTermination(PATIENCE_S)


def take(spark, out, frame, number, metrics, now_ms=NOW_MS, source="s"):
    return Batch(spark, str(out), lambda: now_ms, DEFAULTS, lambda _: None).take(frame, number, metrics, source)


def messages(spark, payloads):
    """Messages of a batch, by id, enqueued at NOW_MS."""
    schema = "message_id string, payload binary, enqueued_at timestamp"
    at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    return spark.createDataFrame([(name, text.encode(), at) for name, text in payloads], schema)


def counted(rows):
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def sent(client, queue):
    return [message for piece in client.read_queue(queue) for message in piece]


def test_what_is_no_report_is_sent_once_also_when_it_comes_again_in_a_later_batch(
    spark, client, queue, queues, metrics, tmp_path
):
    """As after a kill between sending and Spark's commit that outlasts the lease."""
    out = str(tmp_path / "out")
    other = json.dumps(report(99, post_id="p0", affiliate_id=" b "))  # the post is that of REPORTS[0]
    first = [("m1", "{"), ("m2", REPORTS[0]), ("m4", other)]
    batches = (first, [*first, ("m3", "{")])
    counts = []
    for number, batch in enumerate(batches):
        frame = messages(spark, batch)
        done = take(spark, out, frame, number, metrics, source=f"p-{queue}")
        counts.append(done.summary["rows"]["reports"])
        for _ in range(2):  # the second time it adds nothing
            stream.send(spark, queues, out, done, number)
    reasons = [(message.headers["message_id"], message.headers["reason"]) for message in sent(client, queues.refused)]
    unreadable = "the line cannot be read"
    assert sorted(reasons) == [("m1", unreadable), ("m3", unreadable), ("m4", POST_TAKEN)]
    assert counts == [
        {"received": 3, "refused": 2, "repeated": 0, "new": 1},
        {"received": 4, "refused": 1, "repeated": 3, "new": 0},
    ]


def test_metrics_that_cannot_be_used_do_not_stop_the_stream(spark, queues, tmp_path):
    """Neither an empty folder nor a file without its columns: else the same batch would fail for ever."""
    with pytest.raises(BadInput, match="no metrics"):
        run(spark, queues, str(tmp_path / "nowhere"), tmp_path / "other")
    folder, out = tmp_path / "metrics", str(tmp_path / "out")
    folder.mkdir()
    for number, text in enumerate(("", '{"platform": "clipshare"}\n')):
        if text:
            (folder / "lacking.json").write_text(text)
        frame = messages(spark, [("m", json.dumps(report(number)))])
        last = take(spark, out, frame, number, str(folder))
        assert last.summary["rows"]["reports"]["new"] == 1
    [(path, reason)] = last.summary["quarantined"].items()
    assert path.endswith("lacking.json")
    assert "missing columns post_id" in reason


def test_a_stream_and_bulk_runs_add_to_the_same_tables(spark, metrics, tmp_path):
    """Each knows the reports, the posts and the open reports of the other."""
    out, reports = str(tmp_path / "out"), tmp_path / "reports"
    reports.mkdir()

    def bulk(name, *rows):
        (reports / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return reconcile(spark, str(reports), str(tmp_path / "*.json"), out, now_ms=NOW_MS)

    bulk("1.json", report(0), report(1, post_id="late"))
    both = [
        ("m1", json.dumps(report(0, 5))),
        ("m2", json.dumps(report(2))),
        ("m3", json.dumps(report(3, post_id="p0"))),
    ]
    streamed = take(spark, out, messages(spark, both), 0, metrics)
    told = {"platform": "clipshare", "post_id": "late", "views": 1000, "clicks": 100, "conversions": 10}
    (tmp_path / "more.json").write_text(json.dumps(told | {"observed_at": NOW_MS}) + "\n")
    last = bulk("2.json", report(2, 7))

    assert (streamed.run, last.run) == (2, 3)
    assert streamed.summary["rows"]["reports"] == {"received": 3, "refused": 0, "repeated": 1, "new": 2}
    tables = Tables(spark, out)
    found = {row["report_id"]: (row["status"], row["attempt"], row["views"]) for row in tables.current()}
    matched = {"r0": ("MATCHED", 1, 1000), "r1": ("MATCHED", 2, 1000), "r2": ("MATCHED", 1, 1000)}
    assert found == matched | {"r3": ("MATCHED", 1, 1000)}
    [platform] = tables.totals("platform").values()
    assert (platform["reports"], platform["matched"]) == (4, 4)


def test_a_report_counts_as_of_when_it_was_enqueued(spark, metrics, tmp_path):
    """The stream may be behind: what was in the future at the enqueue stays so, what was in time stays in time."""
    limits, now_ms = DEFAULTS.intake, NOW_MS + 24 * HOUR_MS
    ahead = {"ahead": NOW_MS + HOUR_MS, "a little ahead": NOW_MS + 1000, "old": NOW_MS - limits.max_age_ms}
    rows = [report(n, 3400, report_id=name, reported_at=at) for n, (name, at) in enumerate(ahead.items())]
    frame = messages(spark, [(row["report_id"], json.dumps(row)) for row in rows])
    take(spark, tmp_path / "out", frame, 0, metrics, now_ms)
    tables = Tables(spark, tmp_path / "out")
    assert {row["report_id"]: row["problem"] for row in tables.received("reports") if row["problem"]} == {
        "ahead": "reported_at is in the future"
    }
    found = {row["report_id"]: (row["reported_at_ms"], row["submitted_at_ms"]) for row in tables.results()}
    assert found == {"a little ahead": (NOW_MS, NOW_MS), "old": (ahead["old"], NOW_MS)}


def test_a_stream_that_fails_on_the_way_comes_to_what_bulk_comes_to(
    spark, client, queue, queues, metrics, tmp_path, monkeypatch
):
    client.enqueue_many(queue, [text.encode() for text in REPORTS])
    out = tmp_path / "out"
    send, failed = stream.send, []

    def fail_once(*given):
        if given[-1] == 0 and not failed:
            failed.append(1)
            raise RuntimeError("not now")
        send(*given)

    monkeypatch.setattr(stream, "send", fail_once)
    events = []
    lineage = Lineage(lambda event: events.append(json.loads(event)))
    with pytest.raises(Exception, match="not now"):
        run(spark, queues, metrics, out, lineage)
    run(spark, queues, metrics, out, lineage)
    assert [each["eventType"] for each in events] == ["START", "FAIL", "START", "COMPLETE", "START", "COMPLETE"]
    first, last = events[3], events[5]
    assert first["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 0  # the one that failed had read it
    for event in (first, last):
        names = [each["name"] for each in event["outputs"] if each["namespace"] == f"fila://{queues.addr}"]
        assert names == [queues.discrepancies, queues.alerts, queues.refused]
        assert [each["name"] for each in event["inputs"]] == [queue, metrics]
    assert last["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == len(REPORTS) - queues.max_messages
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    texts = [jobs.apply(at).description() for at in range(jobs.size())]
    texts = {text.get() for text in texts if text.isDefined()}
    assert any(text.startswith("fila stream, batch 1: ") for text in texts)

    (tmp_path / "reports.json").write_text("".join(f"{text}\n" for text in REPORTS))
    bulk = reconcile(spark, str(tmp_path / "reports.json"), metrics, str(tmp_path / "bulk"), now_ms=NOW_MS)
    assert bulk.changed
    ours, theirs = Tables(spark, out), Tables(spark, tmp_path / "bulk")
    for dimension in ("affiliate", "campaign", "platform"):
        assert ours.totals(dimension) == theirs.totals(dimension)
    for name in ("current", "open", "results", "alerts"):
        assert counted(getattr(ours, name)()) == counted(getattr(theirs, name)()), name

    found = [json.loads(message.payload) for message in sent(client, queues.discrepancies)]
    expected = Counter(
        row["report_id"] for row in theirs.results() if row["status"].startswith(("DISCREPANCY", "AFFILIATE"))
    )
    assert expected
    assert Counter(each["report_id"] for each in found) == expected
    assert len(sent(client, queues.alerts)) == len(theirs.alerts()) > 0
    refused = {message.payload.decode(): message.headers["reason"] for message in sent(client, queues.refused)}
    assert refused == {
        REPORTS[-3]: "views is not a whole number from 0 to 1000000000000",
        REPORTS[-2]: "the line cannot be read",
        REPORTS[-1]: "affiliate_id is empty",
    }
    assert client.queue_stats(queue).summary.in_flight == 0
