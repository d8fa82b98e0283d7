"""Streaming reconciliation, against a real broker, and held against a bulk run over the same reports."""

import json
from collections import Counter

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from fila.reconcile.domain.settings import DEFAULTS
from fila.spark import stream
from fila.spark.bulk import reconcile
from fila.spark.files import Files
from fila.spark.runs import Runs
from fila.spark.stream import Batch, Queues

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


def run(spark, queues, metrics, out):
    trigger = {"availableNow": True}
    query = stream.start(spark, queues, metrics, str(out), clock_ms=lambda: NOW_MS, trigger=trigger)
    assert query.awaitTermination(PATIENCE_S)


def rows(folder, name):
    return pq.read_table(f"{folder}/gold/{name}").to_pylist()


def counted(*folders, name):
    return Counter(json.dumps(row, sort_keys=True) for folder in folders for row in rows(folder, name))


def sent(client, queue):
    return [message for piece in client.read_queue(queue) for message in piece]


def test_what_is_no_report_is_sent_once_also_when_it_comes_again_in_a_later_batch(
    spark, client, queue, queues, metrics, tmp_path
):
    """As after a kill between sending and Spark's commit that outlasts the lease."""
    out = str(tmp_path / "out")
    batches = ([("m1", "{"), ("m2", REPORTS[0])], [("m1", "{"), ("m2", REPORTS[0]), ("m3", "{")])
    counts = []
    for number, messages in enumerate(batches):
        frame = spark.createDataFrame(
            [(name, text.encode()) for name, text in messages], "message_id string, payload binary"
        )
        counts.append(Batch(spark, out, NOW_MS, DEFAULTS, lambda _: None).take(frame, number, metrics))
        for _ in range(2):  # the second time it adds nothing
            stream.send(spark, queues, Runs(Files(spark), out), f"p-{queue}", number)
    assert Counter(message.headers["message_id"] for message in sent(client, queues.refused)) == {"m1": 1, "m3": 1}
    assert counts == [
        {"received": 2, "refused": 1, "repeated": 0, "new": 1},
        {"received": 3, "refused": 1, "repeated": 2, "new": 0},
    ]


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
    with pytest.raises(Exception, match="not now"):
        run(spark, queues, metrics, out)
    run(spark, queues, metrics, out)

    (tmp_path / "reports.json").write_text("".join(f"{text}\n" for text in REPORTS))
    bulk = reconcile(spark, str(tmp_path / "reports.json"), metrics, str(tmp_path / "bulk"), now_ms=NOW_MS)
    batches = [f"{out}/runs/{number:06d}" for number in (1, 2)]
    for name in ("affiliates", "campaigns", "platforms", "open"):
        assert counted(batches[-1], name=name) == counted(bulk.folder, name=name)
    for name in ("results", "alerts"):
        assert counted(*batches, name=name) == counted(bulk.folder, name=name)

    found = [json.loads(message.payload) for message in sent(client, queues.discrepancies)]
    expected = Counter(
        row["report_id"]
        for row in rows(bulk.folder, "results")
        if row["status"].startswith(("DISCREPANCY", "AFFILIATE"))
    )
    assert expected
    assert Counter(each["report_id"] for each in found) == expected
    assert len(sent(client, queues.alerts)) == len(rows(bulk.folder, "alerts")) > 0
    refused = {message.payload.decode(): message.headers["reason"] for message in sent(client, queues.refused)}
    assert refused == {
        REPORTS[-3]: "views is not a whole number from 0 to 1000000000000",
        REPORTS[-2]: "the line cannot be read",
        REPORTS[-1]: "affiliate_id is empty",
    }
    assert client.queue_stats(queue).summary.in_flight == 0
