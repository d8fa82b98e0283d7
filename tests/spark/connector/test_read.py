"""Reading queues and the journal with Spark, against a real broker."""

import json

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from fila import OutgoingMessage
from tests.e2e.support import eventually

PATIENCE_S = 100

# The first query of a session takes long on a busy machine.
pytestmark = pytest.mark.timeout(300)


class Reading:
    """A query that keeps what each of its batches was given, and can be started again from its checkpoint."""

    def __init__(self, spark, broker, queue, folder, **options):
        self.batches = {}
        self._stream = spark.readStream.format("fila").option("addr", broker.addr).option("queue", queue)
        self._stream = self._stream.option("group", "g").options(**options)
        self._checkpoint = str(folder)

    def start(self, on_batch=None, **trigger):
        def each(frame, number):
            rows = [bytes(row.payload).decode() for row in frame.select("payload").collect()]
            self.batches.setdefault(number, []).append(rows)
            if on_batch is not None:
                on_batch(number)

        writer = self._stream.load().writeStream.foreachBatch(each).option("checkpointLocation", self._checkpoint)
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    def run(self, on_batch=None):
        query = self.start(on_batch)
        assert query.awaitTermination(PATIENCE_S)
        return query

    @property
    def rows(self):
        """All payloads, each batch as it was when it was read last."""
        return [row for runs in self.batches.values() for row in runs[-1]]


def fill(client, queue, count, start=0):
    client.enqueue_many(queue, [f"{number}".encode() for number in range(start, start + count)])


def depth(client, queue):
    return client.queue_stats(queue).summary.depth


def in_flight(client, queue):
    return client.queue_stats(queue).summary.in_flight


def texts(count, start=0):
    return {f"{number}" for number in range(start, start + count)}


class TestQueueStream:
    def test_a_query_from_its_first_batch_over_failures_to_its_end(self, spark, broker, client, queue, tmp_path):
        """Starting a query costs far more than a batch, so this one is looked at from all sides."""
        fill(client, queue, 25)
        reading = Reading(spark, broker, queue, tmp_path, maxMessagesPerTrigger=10)

        def disturb(number):
            if number == 0:
                fill(client, queue, 4, 25)
            if number == 1:
                broker.kill()
                broker.start()

        query = reading.run(disturb)
        assert [len(runs[-1]) for runs in reading.batches.values()] == [10, 10, 5]  # not what came after the start
        assert sorted(reading.rows) == sorted(texts(25))
        assert (depth(client, queue), in_flight(client, queue)) == (4, 0)  # the last batch is acked as well
        told = query.recentProgress[0]["sources"][0]["latestOffset"]
        assert json.loads(told) == {"claim": 1, "ready": 15, "delayed": 0}

        def fail(_):
            if len(reading.batches[3]) == 1:
                raise ValueError("not yet")

        with pytest.raises(Exception, match="not yet"):
            reading.run(fail)
        assert in_flight(client, queue) == 4
        fill(client, queue, 1, 29)
        reading.run(fail)
        first, second = reading.batches[3]
        assert sorted(first) == sorted(second) == sorted(texts(4, 25))  # the same rows again, and no others
        assert sorted(reading.rows) == sorted(texts(30))
        assert (depth(client, queue), in_flight(client, queue)) == (0, 0)

    def test_another_checkpoint_takes_over_and_the_old_one_is_refused(self, spark, broker, client, queue, tmp_path):
        old, new = tmp_path / "old", tmp_path / "new"
        fenced = Reading(spark, broker, queue, old, pollWait="50ms").start(processingTime="0 seconds")
        fill(client, queue, 5)
        fenced.processAllAvailable()
        second = Reading(spark, broker, queue, new, maxMessagesPerTrigger=3, pollWait="50ms")
        query = second.start(processingTime="0 seconds")
        with pytest.raises(Exception, match="epoch"):
            fenced.awaitTermination(PATIENCE_S)
        fill(client, queue, 6, 5)
        query.processAllAvailable()
        query.stop()
        assert set(second.rows) == texts(6, 5)
        fill(client, queue, 3, 100)
        with pytest.raises(Exception, match="failOnDataLoss"):
            Reading(spark, broker, queue, old).run()
        reading = Reading(spark, broker, queue, old, failOnDataLoss="false", lease="1s")

        def fail(_):
            raise ValueError("not now")

        with pytest.raises(Exception, match="not now"):
            reading.run(fail)
        assert set(reading.rows) == texts(3, 100)
        # A query that has ended keeps nothing: its heartbeat ended with it.
        eventually(lambda: in_flight(client, queue) == 0, "the lease to end")
        assert depth(client, queue) == 3


class TestQueueBatch:
    def test_a_look_shows_all_columns_and_takes_nothing(self, spark, broker, client, queue):
        ids = client.enqueue_many(
            queue, [OutgoingMessage(b"a", {"tenant": "x"}, priority=2), b"b", OutgoingMessage(b"c", delay_ms=60_000)]
        )
        frame = spark.read.format("fila").option("addr", broker.addr).option("queue", queue).load()
        for _ in range(2):
            rows = frame.orderBy("seq").collect()
            assert [row.message_id for row in rows] == ids
        assert [bytes(row.payload) for row in rows] == [b"a", b"b", b"c"]
        assert [row.headers for row in rows] == [{"tenant": "x"}, {}, {}]
        assert [row.priority for row in rows] == [2, 5, 5]
        assert {row.queue for row in rows} == {queue}
        assert rows[0].enqueued_at.timestamp() == pytest.approx(rows[0].seq / 1e9, abs=1e-5)
        assert client.queue_stats(queue).summary.depth == 3
        ready = frame.sparkSession.read.format("fila").options(addr=broker.addr, queue=queue, readyOnly="true").load()
        assert ready.count() == 2

    def test_a_range_and_some_columns(self, spark, broker, client, queue):
        fill(client, queue, 10)
        look = spark.read.format("fila").options(addr=broker.addr, queue=queue, columns="payload,seq", partitions=3)
        frame = look.load()
        assert frame.columns == ["payload", "seq"]
        seqs = sorted(row.seq for row in frame.collect())
        assert len(seqs) == 10
        part = look.option("startSeq", seqs[3]).option("endSeq", seqs[6]).load()
        assert sorted(row.seq for row in part.collect()) == seqs[3:7]
        typed = spark.read.format("fila").schema("seq BIGINT").options(addr=broker.addr, queue=queue).load()
        assert typed.agg(F.count("*"), F.min("seq")).collect()[0] == (10, seqs[0])


class TestJournal:
    def test_entries_come_once_over_all_partitions(self, spark, broker, client, queue):
        fill(client, queue, 30)
        expected = [entry.seq for entry in client.read_journal(queue=queue)]
        look = spark.read.format("fila").options(addr=broker.addr, journal="true", queue=queue, partitions=3)
        rows = look.load().orderBy("seq").collect()
        assert [row.seq for row in rows][: len(expected)] == expected
        assert sum(row.kind == "enqueued" for row in rows) == 30
        some = look.option("startSeq", expected[5]).option("endSeq", expected[9]).load()
        assert sorted(row.seq for row in some.collect()) == expected[5:10]


def test_what_is_wrong_with_options_reaches_the_user(spark):
    with pytest.raises(Exception, match="unknown option grup"):
        spark.read.format("fila").options(queue="q", grup="g").load().collect()
    with pytest.raises(Exception, match="option 'columns': there is no 'body'"):
        spark.readStream.format("fila").options(queue="q", columns="payload,body").load()


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}])
def test_what_is_wrong_with_options_of_a_stream_is_what_the_query_fails_with(spark, tmp_path, trigger):
    """PySpark hides what is raised where the reader is made behind an UnboundLocalError."""
    stream = spark.readStream.format("fila").options(queue="q", group="g", lease="long").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(**trigger).start()
    with pytest.raises(Exception, match="option lease = 'long'") as failed:
        query.awaitTermination(PATIENCE_S)
    assert "UnboundLocalError" not in str(failed.value)
