"""From queue to queue on Spark, in a process of its own, to be killed: `python spark_job.py OPTIONS` as JSON."""

import json
import sys

from fila.spark.session import open_session


def copy(spark, addr, queue, target, checkpoint, lease):
    stream = spark.readStream.format("fila").options(addr=addr, queue=queue, group="g", lease=lease)
    return (
        stream.option("maxMessagesPerTrigger", 10)
        .load()
        .select("payload")
        .writeStream.format("fila")
        .options(addr=addr, queue=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    session = open_session("crash test", "local[2]", {"spark.driver.memory": "1g"})
    copy(session, **json.loads(sys.argv[1])).awaitTermination()
