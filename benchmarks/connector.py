"""Spark's source and sink on a real broker: `python -m benchmarks.connector [--rows N] [--bytes N] [--repeat N]`.

What is measured, in one session, repeats taking turns so that a slow minute hits everybody:
- source: a stream over a full queue into nothing, with `seq` and `payload`: the batches, each from asking for what
  there is to the log of commits, without the start of the query, which costs the same for any number of rows;
- source_all: the same with all columns;
- plain: the same rows by a consumer of the SDK in this process, delivered and acked in batches;
- look: the same rows by `spark.read`, which takes nothing;
- sink: the same number of rows from Spark into a queue, by transaction;
- plain_sink: the same rows by `enqueue_many` of the SDK.
The first round is the cold one. Each round has queues of its own, and rows enough that what the JVM compiles for each
query is little beside them. `--write` puts the table into docs/benchmarks-spark.md.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

from benchmarks import machine, sections
from fila import Client
from fila.spark.session import open_session
from fila.testing import ServerProcess

_NAMES = {
    "source": "stream, `seq` and `payload`",
    "source_all": "stream, all columns",
    "look": "`spark.read`, `seq` and `payload`",
    "plain": "SDK: consumer, acked in batches",
    "sink": "`df.write`, by transaction",
    "plain_sink": "SDK: `enqueue_many`",
}
_GOALS = {"source": 100_000, "sink": 80_000}

Seconds = dict[str, list[float]]
"""Of every round, by what was measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=100_000, help="rows of a batch of the stream")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks-spark.md")
    options = parser.parse_args()
    before = machine.load_average()
    spark = open_session("fila bench", options.master, {"spark.driver.memory": "2g"})
    taken: Seconds = {}
    broker_s: Seconds = {}
    try:
        with ServerProcess() as server, Client(server.addr, timeout=120) as client:
            broker = psutil.Process(server.pid)
            for repeat in range(options.repeat + 1):
                for name, seconds, cpu_s in one_round(spark, server.addr, client, broker, options, repeat):
                    taken.setdefault(name, []).append(seconds)
                    broker_s.setdefault(name, []).append(cpu_s)
                    print(f"{repeat}: {name} {options.rows / seconds:,.0f} rows/s", file=sys.stderr)
    finally:
        spark.stop()
    table = as_table(taken, broker_s, options.rows)
    print(table)
    facts = machine.facts() | {"load_average": before}
    if options.write:
        sections.replace(sections.SPARK_PAGE, "connector", as_section(table, facts, options))
    if options.out:
        figures = {"seconds": taken, "broker_cpu_s": broker_s, "rows": options.rows, "bytes": options.bytes}
        options.out.write_text(json.dumps(figures | {"machine": facts}, indent=1) + "\n")


def as_table(taken: Seconds, broker_s: Seconds, rows: int) -> str:
    lines = ["| | rows/s, median | best | first, cold | broker, CPU us a row | goal |", "|---|---|---|---|---|---|"]
    for name, words in _NAMES.items():
        times = taken[name]
        warm = times[1:] or times
        rates = (statistics.median(warm), min(warm), times[0])
        goal = f"{_GOALS[name]:,}" if name in _GOALS else ""
        cost = min(broker_s[name]) / rows * 1e6
        lines.append(f"| {words} | {' | '.join(f'{rows / each:,.0f}' for each in rates)} | {cost:.1f} | {goal} |")
    return "\n".join(lines)


def as_section(table: str, facts: dict[str, Any], options: argparse.Namespace) -> str:
    load = ", ".join(f"{each:.1f}" for each in facts["load_average"])
    lines = [
        "## Connector",
        "",
        f"{options.rows:,} rows of {options.bytes:,} bytes. Spark on `{options.master}` and the broker on one machine:",
        f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}, durability `{facts['durability']}`.",
        f"Revision {facts['revision']}. Load average before the run: {load}.",
        f"{options.repeat} rounds after the first. Streams have batches of {options.batch:,}; the start of a query is",
        "not in their figures, everything that a batch costs is.",
        "",
        table,
    ]
    return "\n".join(lines)


def one_round(
    spark: SparkSession, addr: str, client: Client, broker: psutil.Process, options: argparse.Namespace, repeat: int
) -> Iterator[tuple[str, float, float]]:
    """What was measured, its seconds, and those of the broker's CPU."""
    payload = b"x" * options.bytes
    names = {name: f"{name}-{repeat}" for name in ("source", "source_all", "plain", "sink")}
    for name in names.values():
        client.create_queue(name)

    def timed(name: str, work: Callable[[], object]) -> tuple[str, float, float]:
        cpu_s, start = sum(broker.cpu_times()[:2]), time.perf_counter()
        told = work()
        seconds = told if isinstance(told, float) else time.perf_counter() - start
        return name, seconds, sum(broker.cpu_times()[:2]) - cpu_s

    yield timed("plain_sink", lambda: client.enqueue_many(names["source"], [payload] * options.rows))
    for name in ("source_all", "plain"):
        client.enqueue_many(names[name], [payload] * options.rows)
    every = {"addr": addr, "queue": names["source_all"]}
    some = {"addr": addr, "queue": names["source"], "columns": "seq,payload"}
    yield timed("look", lambda: nothing(spark.read.format("fila").options(**some).load()))
    yield timed("source", lambda: stream(spark, some, options.batch))
    yield timed("source_all", lambda: stream(spark, every, options.batch))
    yield timed("plain", lambda: consume(client, names["plain"], options.rows))
    rows = spark.range(options.rows).selectExpr(f"CAST(repeat('x', {options.bytes}) AS BINARY) payload").coalesce(2)
    write = rows.write.format("fila").mode("append").options(addr=addr, queue=names["sink"])
    yield timed("sink", write.save)
    for name, left in (("source", 0), ("source_all", 0), ("plain", 0), ("sink", options.rows)):
        depth = client.queue_stats(names[name]).summary.depth
        assert depth == left, f"{name}: {depth} messages are there, {left} should be"
        client.delete_queue(names[name], force=True)


def stream(spark: SparkSession, connection: dict[str, str], batch: int) -> float:
    """The seconds of its batches."""
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
        batches = [each for each in query.recentProgress if each["numInputRows"]]
        return float(sum(each["durationMs"]["triggerExecution"] for each in batches)) / 1000


def nothing(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def consume(client: Client, queue: str, rows: int) -> None:
    with client.consume_batches(queue, max_in_flight=5_000) as batches:
        left = rows
        for messages in batches:
            client.ack_many(messages)
            left -= len(messages)
            if left <= 0:
                return


if __name__ == "__main__":
    main()
