"""A stream from a queue on Spark, in a process of its own, to be killed: `python spark_job.py OPTIONS` as JSON.

It stops at points that a test has armed by making a file `POINT.armed` in the folder of points: the file becomes
`POINT.reached`, and the job goes on when there is a `POINT.go`. So a test can kill whatever it likes at that
moment. Classes of this file reach Spark's other processes by value, since they are of `__main__`.
"""

import json
import sys
import time
from pathlib import Path

import fila.spark
from fila.spark.session import open_session
from fila.spark.sink import StreamWriter
from fila.spark.source import FilaDataSource
from fila.spark.stream_reader import QueueStreamReader

# Starts sooner, at the price of code that is compiled less well.
_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=file:"
    f"{Path(fila.spark.__file__).parent / 'log4j2.properties'}"
)
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.sql.shuffle.partitions": "1",
}

options = json.loads(sys.argv[1])
points, checkpoint = options["points"], options["checkpoint"]


def reached(point):
    path = Path(points) / point
    try:
        path.with_suffix(".armed").rename(path.with_suffix(".reached"))
    except FileNotFoundError:
        return
    while not path.with_suffix(".go").exists():
        time.sleep(0.01)


class Reader(QueueStreamReader):
    def latestOffset(self, start, limit):  # noqa: N802 - Spark's name
        if start["claim"]:
            # What is acked by this call is in Spark's log of commits. It is not a promise of Spark's, so it is guarded.
            assert Path(checkpoint, "commits", str(start["claim"] - 1)).exists()
            reached("in-commit-log")  # and not acked
        end = super().latestOffset(start, limit)
        if end != start:
            reached("claimed")  # and not in Spark's log of offsets
        return end

    def read(self, partition):
        for batch in super().read(partition):
            yield batch
            reached("reading")


class Writer(StreamWriter):
    def write(self, iterator):
        def watched():
            for batch in iterator:
                yield batch
                reached("writing")

        written = super().write(watched())
        reached("written")
        return written

    def commit(self, messages, batchId):  # noqa: N803
        super().commit(messages, batchId)
        reached("committed")  # and not in Spark's log of commits


class Source(FilaDataSource):
    @classmethod
    def name(cls):
        return "fila-watched"

    def streamReader(self, schema):  # noqa: N802
        return Reader(super().streamReader(schema)._options)

    def streamWriter(self, schema, overwrite):  # noqa: N802
        return Writer(super().streamWriter(schema, overwrite)._options)


def to_queue(frame, mode):
    keyed = frame.selectExpr("payload", "message_id AS dedup_key") if mode == "dedup" else frame.select("payload")
    writer = keyed.writeStream.format("fila-watched")
    return writer.options(addr=options["addr"], queue=options["target"], mode=mode)


def to_files(frame):
    """Each batch is a file, which a repetition overwrites."""

    def write(batch, number):
        rows = [bytes(row.payload).decode() for row in batch.select("payload").collect()]
        Path(options["target"], f"{number}.json").write_text(json.dumps(rows))
        reached("committed")

    return frame.writeStream.foreachBatch(write)


def main():
    spark = open_session("crash test", options.get("master", "local[2]"), _SETTINGS)
    spark.dataSource.register(Source)
    stream = spark.readStream.format("fila-watched").options(addr=options["addr"], queue=options["queue"], group="g")
    frame = stream.options(lease=options["lease"], maxMessagesPerTrigger=options["batch"]).load()
    writer = to_files(frame) if options["mode"] == "files" else to_queue(frame, options["mode"])
    writer.option("checkpointLocation", options["checkpoint"]).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
