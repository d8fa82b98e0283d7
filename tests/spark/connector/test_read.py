"""Reading queues and the journal with Spark, against a real broker."""

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


def texts(count, start=0):
    return {f"{number}" for number in range(start, start + count)}


class TestQueueStream:
    def test_all_is_read_once_in_batches_and_acked_at_the_end(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 25)
        reading = Reading(spark, broker, queue, tmp_path, maxMessagesPerTrigger=10)
        reading.run()
        assert [len(runs[-1]) for runs in reading.batches.values()] == [10, 10, 5]
        assert sorted(reading.rows) == sorted(texts(25))
        summary = client.queue_stats(queue).summary
        assert (summary.depth, summary.in_flight) == (0, 0)

    def test_a_run_over_what_is_there_leaves_what_comes_later(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 5)
        reading = Reading(spark, broker, queue, tmp_path, maxMessagesPerTrigger=3)
        reading.run(on_batch=lambda number: fill(client, queue, 4, 100) if number == 0 else None)
        assert set(reading.rows) == texts(5)
        reading.run()
        assert set(reading.rows) == texts(5) | texts(4, 100)

    def test_a_batch_that_failed_is_read_again_with_the_same_rows(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 20)
        reading = Reading(spark, broker, queue, tmp_path, maxMessagesPerTrigger=10)

        def fail(number):
            if number == 1 and len(reading.batches[1]) == 1:
                raise ValueError("no")

        query = reading.start(fail)
        with pytest.raises(Exception, match="no"):
            query.awaitTermination(PATIENCE_S)
        assert client.queue_stats(queue).summary.in_flight == 10  # what the first batch had is acked, the second is not
        reading.run(fail)
        first, second = reading.batches[1]
        assert sorted(first) == sorted(second)
        assert sorted(reading.rows) == sorted(texts(20))
        assert client.queue_stats(queue).summary.in_flight == 0

    def test_a_query_that_has_ended_holds_nothing_beyond_its_lease(self, spark, broker, client, queue, tmp_path):
        """Its heartbeat ends with it."""
        fill(client, queue, 5)

        def fail(_):
            raise ValueError("no")

        query = Reading(spark, broker, queue, tmp_path, lease="3s").start(fail)
        with pytest.raises(Exception, match="no"):
            query.awaitTermination(PATIENCE_S)
        eventually(lambda: client.queue_stats(queue).summary.in_flight == 0, "the lease to end")

    def test_a_new_checkpoint_goes_on_where_the_group_is(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 5)
        Reading(spark, broker, queue, tmp_path / "a").run()
        fill(client, queue, 5, 5)
        reading = Reading(spark, broker, queue, tmp_path / "b")
        reading.run()
        assert set(reading.rows) == texts(5, 5)

    def test_a_second_query_takes_over_and_the_first_one_is_fenced(self, spark, broker, client, queue, tmp_path):
        first = Reading(spark, broker, queue, tmp_path / "a", pollWait="50ms").start(processingTime="0 seconds")
        fill(client, queue, 5)
        first.processAllAvailable()
        second = Reading(spark, broker, queue, tmp_path / "b")
        second.run()
        with pytest.raises(Exception, match="epoch"):
            first.awaitTermination(PATIENCE_S)
        fill(client, queue, 5, 5)
        second.run()
        assert set(second.rows) == texts(5, 5)

    def test_an_old_checkpoint_is_refused_unless_loss_is_accepted(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 3)
        Reading(spark, broker, queue, tmp_path / "old").run()
        fill(client, queue, 6, 3)
        Reading(spark, broker, queue, tmp_path / "new", maxMessagesPerTrigger=3).run()
        fill(client, queue, 3, 9)
        with pytest.raises(Exception, match="failOnDataLoss"):
            Reading(spark, broker, queue, tmp_path / "old").run()
        reading = Reading(spark, broker, queue, tmp_path / "old", failOnDataLoss="false")
        reading.run()
        assert set(reading.rows) == texts(3, 9)

    def test_progress_tells_the_backlog(self, spark, broker, client, queue, tmp_path):
        fill(client, queue, 10)
        query = Reading(spark, broker, queue, tmp_path, maxMessagesPerTrigger=4).run()
        told = [each["sources"][0]["latestOffset"] for each in query.recentProgress]
        assert any('"ready"' in str(each) or "ready" in str(each) for each in told)

    def test_a_broker_that_restarts_is_waited_for(self, spark, tmp_path):
        from fila import Client
        from fila.testing import ServerProcess

        with ServerProcess() as server, Client(server.addr, timeout=30) as client:
            client.create_queue("q")
            fill(client, "q", 20)
            reading = Reading(spark, server, "q", tmp_path, maxMessagesPerTrigger=5)

            def restart(number):
                if number == 1:
                    server.kill()
                    server.start()

            reading.run(restart)
            assert sorted(reading.rows) == sorted(texts(20))


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


@pytest.mark.parametrize(
    "options, said",
    [
        ({}, "option 'queue' is needed"),
        ({"queue": "q", "grup": "g"}, "unknown option 'grup'"),
        ({"queue": "q", "partitions": "many"}, "expected a whole number from 1"),
        ({"queue": "q", "columns": "payload,body"}, "there is no 'body'"),
    ],
)
def test_bad_options_are_named_before_anything_runs(spark, options, said):
    with pytest.raises(Exception, match=said):
        spark.read.format("fila").options(**options).load().collect()


def test_a_stream_needs_a_group(spark, broker, queue, tmp_path):
    stream = spark.readStream.format("fila").options(addr=broker.addr, queue=queue).load()
    with pytest.raises(Exception, match="option 'group' is needed"):
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
