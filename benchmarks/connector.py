"""Spark's source and sink on a real broker: `python -m benchmarks.connector [--rows N] [--bytes N] [--repeat N]`.

What is measured, in one session, repeats taking turns so that a slow minute hits everybody:
- source: a stream over a full queue into nothing, all batches of one run, from start to end;
- plain: the same rows by a consumer of the SDK in this process, delivered and acked in batches;
- look: the same rows by `spark.read`, which takes nothing;
- sink: the same number of rows from Spark into a queue, by transaction;
- plain_sink: the same rows by `enqueue_many` of the SDK.
The first round is the cold one. Each round has queues of its own.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import machine
from fila import Client
from fila.spark.session import open_session
from fila.testing import ServerProcess


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=100_000, help="rows of a batch of the stream")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    spark = open_session("fila bench", options.master, {"spark.driver.memory": "2g"})
    taken = {}
    try:
        with ServerProcess() as server, Client(server.addr, timeout=120) as client:
            for repeat in range(options.repeat + 1):
                for name, seconds in one_round(spark, server.addr, client, options, repeat):
                    taken.setdefault(name, []).append(seconds)
                    print(f"{repeat}: {name} {options.rows / seconds:,.0f} rows/s", file=sys.stderr)
    finally:
        spark.stop()
    for name, times in taken.items():
        warm = times[1:] or times
        print(
            f"{name:<11} best {options.rows / min(warm):>10,.0f} rows/s  median "
            f"{options.rows / statistics.median(warm):>10,.0f}  cold {options.rows / times[0]:>10,.0f}"
        )
    if options.out:
        figures = {"seconds": taken, "rows": options.rows, "bytes": options.bytes, "machine": machine.facts()}
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


def one_round(spark, addr, client, options, repeat):
    payload = b"x" * options.bytes
    names = {name: f"{name}-{repeat}" for name in ("source", "plain", "sink")}
    for name in names.values():
        client.create_queue(name)
    yield "plain_sink", timed(lambda: client.enqueue_many(names["source"], [payload] * options.rows))
    client.enqueue_many(names["plain"], [payload] * options.rows)
    connection = {"addr": addr, "queue": names["source"], "columns": "seq,payload"}
    yield "look", timed(lambda: nothing(spark.read.format("fila").options(**connection).load()))
    yield "source", timed(lambda: stream(spark, connection, options.batch))
    yield "plain", timed(lambda: consume(client, names["plain"], options.rows))
    rows = spark.range(options.rows).selectExpr(f"CAST(repeat('x', {options.bytes}) AS BINARY) payload")
    rows = rows.coalesce(2)
    yield "sink", timed(lambda: rows.write.format("fila").mode("append").options(addr=addr, queue=names["sink"]).save())
    counted = sum(len(piece) for piece in client.read_queue(names["sink"]))
    assert counted == options.rows, f"{counted} rows arrived"
    for name in names.values():
        client.delete_queue(name, force=True)


def stream(spark, connection, batch):
    with tempfile.TemporaryDirectory(prefix="fila-bench-connector-") as checkpoint:
        query = (
            spark.readStream.format("fila")
            .options(**connection, group="bench", maxMessagesPerTrigger=batch)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def nothing(frame):
    frame.write.format("noop").mode("overwrite").save()


def consume(client, queue, rows):
    with client.consume_batches(queue, max_in_flight=5_000) as batches:
        left = rows
        for messages in batches:
            client.ack_many(messages)
            left -= len(messages)
            if left <= 0:
                return


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
