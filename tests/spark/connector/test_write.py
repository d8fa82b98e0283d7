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
        for run in (0, 0, 1, 1, 0):
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

    @pytest.mark.parametrize(
        "select, options, said",
        [
            ("'a' payload", {}, "option 'queue' is needed"),
            ("'a' body", {"queue": "q"}, "'body' is none of a message's"),
            ("1 payload", {"queue": "q"}, "'payload' is int, expected binary or string"),
            ("'a' payload", {"queue": "q", "runId": "1"}, "'runId' needs 'producer'"),
            ("'a' payload", {"queue": "q", "mode": "dedup"}, "needs a column 'dedup_key'"),
            ("CAST(NULL AS STRING) payload", {"queue": "q"}, "has no payload"),
        ],
    )
    def test_what_cannot_be_written_is_named(self, spark, broker, select, options, said):
        with pytest.raises(Exception, match=said):
            write(spark.sql(f"SELECT {select}"), broker, **options)


class TestStream:
    def test_a_batch_that_is_run_again_after_its_commit_adds_nothing(self, spark, broker, client, queue, tmp_path):
        """The second batch is committed by the sink, but not in Spark's own log, as after a kill between the two."""
        target, in_the_way = f"{queue}-out", tmp_path / "commits" / "1"
        client.create_queue(target)
        client.enqueue_many(queue, [f"{number}".encode() for number in range(30)])

        def obstruct(payload):
            if payload == b"15":
                in_the_way.mkdir(exist_ok=True)
            return payload

        def run(shape):
            stream = spark.readStream.format("fila").options(
                addr=broker.addr, queue=queue, group="g", maxMessagesPerTrigger=10
            )
            query = (
                shape(stream.load().select("payload"))
                .writeStream.format("fila")
                .options(addr=broker.addr, queue=target, checkpointLocation=str(tmp_path))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(PATIENCE_S)

        with pytest.raises(Exception, match=r"(?i)commit|concurrent|exist"):
            run(lambda frame: frame.select(F.udf(obstruct, "binary", useArrow=False)("payload").alias("payload")))
        assert len(held(client, target)) == 20
        assert client.queue_stats(queue).summary.in_flight == 10
        in_the_way.rmdir()
        run(lambda frame: frame)
        assert sorted(map(int, payloads(client, target))) == list(range(30))
        assert client.queue_stats(queue).summary.in_flight == 0
