"""Writing rows to queues with Spark, against a real broker."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

PATIENCE_S = 100

# The first query of a session takes long on a busy machine.
pytestmark = pytest.mark.timeout(300)


def write(frame, broker, **options):
    frame.write.format("fila").mode("append").options(addr=broker.addr, **options).save()


def held(client, queue):
    return [message for piece in client.read_queue(queue) for message in piece]


def payloads(client, queue):
    return sorted(message.payload.decode() for message in held(client, queue))


def fill(client, queue, count, start=0):
    client.enqueue_many(queue, [f"{number}".encode() for number in range(start, start + count)])


class TestBatch:
    def test_rows_become_messages_with_all_that_they_say(self, spark, broker, client, queue):
        client.create_queue(f"{queue}-other")
        rows = [
            ("a", {"tenant": "x", "none": None}, 3, None, None, None),
            ("b", None, None, 60_000, None, None),
            ("c", None, None, None, "k", f"{queue}-other"),
        ]
        schema = (
            "payload STRING, headers MAP<STRING,STRING>, priority INT, delay_ms BIGINT, dedup_key STRING, queue STRING"
        )
        write(spark.createDataFrame(rows, schema), broker, queue=queue)
        first, second = sorted(held(client, queue), key=lambda message: message.payload)
        assert (first.payload, first.headers, first.priority) == (b"a", {"tenant": "x"}, 3)
        assert second.payload == b"b"
        assert client.queue_stats(queue).summary.delayed == 1
        assert payloads(client, f"{queue}-other") == ["c"]

    def test_a_write_that_is_repeated_under_its_run_id_adds_nothing(self, spark, broker, client, queue):
        frame = spark.range(100).selectExpr("CAST(id AS STRING) payload")
        for run in (0, 0, 1, 0):
            write(frame, broker, queue=queue, producer=f"job-{queue}", runId=run)
        assert len(held(client, queue)) == 200

    def test_a_write_that_fails_half_way_leaves_nothing(self, spark, broker, client, queue):
        frame = spark.range(0, 100, 1, 4).selectExpr("IF(id = 99, raise_error('no'), CAST(id AS STRING)) payload")
        with pytest.raises(Exception, match="no"):
            write(frame, broker, queue=queue)
        assert held(client, queue) == []

    def test_without_a_run_id_each_write_adds(self, spark, broker, client, queue):
        frame = spark.createDataFrame([(b"x",)], "payload BINARY")
        write(frame, broker, queue=queue)
        write(frame, broker, queue=queue)
        assert payloads(client, queue) == ["x", "x"]

    def test_by_key_each_is_enqueued_once(self, spark, broker, client, queue):
        frame = spark.range(50).selectExpr("CAST(id AS STRING) payload", "CAST(id % 20 AS STRING) dedup_key")
        write(frame, broker, queue=queue, mode="dedup")
        write(frame, broker, queue=queue, mode="dedup")
        assert len(held(client, queue)) == 20

    def test_a_row_that_cannot_be_written_is_named(self, spark, broker, queue):
        with pytest.raises(Exception, match="has no payload"):
            write(spark.sql("SELECT CAST(NULL AS STRING) payload"), broker, queue=queue)
        with pytest.raises(Exception, match="has no dedup_key"):
            write(spark.sql("SELECT 'a' payload, '' dedup_key"), broker, queue=queue, mode="dedup")
        with pytest.raises(Exception, match="nowhere"):
            write(spark.sql("SELECT 'a' payload"), broker, queue="nowhere")


class TestStream:
    def test_batches_are_added_once_over_a_lost_commit_and_a_broker_that_restarts(
        self, spark, broker, client, queue, tmp_path
    ):
        """The second batch is committed by the sink, but not in Spark's own log, as after a kill between the two."""
        target, in_the_way = f"{queue}-out", tmp_path / "commits" / "1"
        client.create_queue(target)
        fill(client, queue, 30)

        def obstruct(payload):
            if payload == b"15":
                in_the_way.mkdir(exist_ok=True)
            return payload

        def start(shape):
            stream = spark.readStream.format("fila").options(
                addr=broker.addr, queue=queue, group="g", maxMessagesPerTrigger=10, pollWait="50ms"
            )
            return (
                shape(stream.load().select("payload"))
                .writeStream.format("fila")
                .options(addr=broker.addr, queue=target, checkpointLocation=str(tmp_path))
                .start()
            )

        query = start(lambda frame: frame.select(F.udf(obstruct, "binary", useArrow=False)("payload").alias("payload")))
        with pytest.raises(Exception, match=r"(?i)commit|concurrent|exist"):
            query.awaitTermination(PATIENCE_S)
        assert len(held(client, target)) == 20
        assert client.group(queue, "g").floor().floor == 1, "of the source only the first batch is acked"
        in_the_way.rmdir()
        query = start(lambda frame: frame)
        query.processAllAvailable()
        assert sorted(map(int, payloads(client, target))) == list(range(30))
        broker.kill()  # the query asks for more all the time
        broker.start()
        fill(client, queue, 5, 30)
        query.processAllAvailable()
        assert sorted(map(int, payloads(client, target))) == list(range(35))
        assert query.isActive
        query.stop()
