"""Streaming reconciliation: reports from a queue, held against metrics in files, batch by batch.

Each batch of the query is one run on the tables, by the same code as a bulk run, so a stream and a bulk run over the
same reports come to the same numbers; both may write the same tables. What a run says is sent to queues, all in one
transaction.

Rules of this file:
- A batch that is run again finds its run in the ledger and only sends what that says, whatever was read this time: so a
  run and what was sent of it never differ.
- A report counts once, by its id, also when the broker delivers it again in a later batch. A message that is no report
  counts once too, by the id of the message.
- The checkpoint is in the output folder.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from fila.pipelines.errors import BadInput, PipelineError, RunTaken
from fila.pipelines.files import Files
from fila.pipelines.lake.contract import ALERTS, BRONZE, REPORTS, RESULTS
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lake.ledger import Intent, Run, stream_source
from fila.pipelines.lineage import NO_LINEAGE, Dataset, Lineage
from fila.pipelines.progress import Say, described
from fila.pipelines.reconcile import datasets, tables
from fila.pipelines.reconcile.checks import NO_LIMITS
from fila.pipelines.reconcile.pipeline import Done, Pipeline
from fila.pipelines.reconcile.steps import refused_before
from fila.pipelines.reconcile.tables import CORRUPT, MESSAGE, PAYLOAD, PROBLEM, RECEIVED
from fila.pipelines.reconcile.verdicts import OPEN, RESULT
from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import DEFAULTS, Settings

OnBatch = Callable[[dict[str, int]], None]
"""Hears what became of the reports of a batch: `received`, `refused`, `repeated`, `new`."""

_FINE = (str(Status.MATCHED), *OPEN)
"""What is no discrepancy."""
_OURS = re.compile(r"^(?:fila|pyspark)\.[\w.]+: ")
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Queues:
    """Where reports come from, and where what is found goes to."""

    addr: str
    reports: str
    discrepancies: str
    alerts: str
    #: For what is no report. By default the dead-letter queue of `reports`.
    refused: str
    #: Whom the reports are claimed for: one name for each stream.
    group: str = "reconcile"
    max_messages: int = 50_000
    lease: str = "15m"
    retry_timeout: str = "60s"

    @classmethod
    def beside(cls, addr: str, reports: str, **more: Any) -> "Queues":
        """Queues named after the one of the reports, unless others are given."""
        names = {
            "discrepancies": f"{reports}.discrepancies",
            "alerts": f"{reports}.alerts",
            "refused": f"{reports}.dlq",
        }
        return cls(addr, reports, **(names | more))


def start(
    spark: SparkSession,
    queues: Queues,
    metrics: str,
    out: str,
    *,
    clock_ms: Callable[[], int],
    settings: Settings = DEFAULTS,
    trigger: dict[str, Any] | None = None,
    on_batch: OnBatch = lambda _: None,
    lineage: Lineage = NO_LINEAGE,
) -> StreamingQuery:
    """Start the query. With no `trigger` it runs until it is stopped, a batch as soon as there are reports.

    `on_batch` is called once a batch is written and sent.
    """
    out = out.rstrip("/") or "/"
    connection = {"addr": queues.addr, "retryTimeout": queues.retry_timeout}
    reports = (
        spark.readStream.format("fila")
        .options(**connection, queue=queues.reports, group=queues.group, lease=queues.lease)
        .options(maxMessagesPerTrigger=queues.max_messages, columns="message_id,payload,enqueued_at")
        .load()
    )

    files = Files(spark)
    if not files.matches(metrics):
        raise BadInput(f"no metrics: there are no files at {metrics}")

    def batch(frame: DataFrame, number: int) -> None:
        work = f"fila stream, batch {number}"
        with (
            described(spark, work, lambda _: None) as say,
            lineage.run(datasets.job("stream", Lake(spark, out))) as told,
        ):
            own = Batch(spark, out, clock_ms, settings, say)
            taken = own.take(frame, number, metrics, stream_source(files, out))
            if taken is None:
                return
            say("sending")
            send(spark, queues, out, taken, number)
            if lineage.is_on:
                told.inputs, told.outputs = own.told(queues, metrics, taken)
        on_batch(dict(taken.summary["rows"]["reports"]))

    writer = reports.writeStream.foreachBatch(batch).option("checkpointLocation", f"{out}/checkpoint")
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).queryName(f"fila-{queues.group}").start()


class Batch:
    """One batch as a run, by the steps of the bulk pipeline. Its reports come from messages."""

    def __init__(
        self, spark: SparkSession, out: str, clock_ms: Callable[[], int], settings: Settings, say: Say
    ) -> None:
        self._pipeline = Pipeline(spark, out, settings, NO_LIMITS, say)
        self._clock_ms = clock_ms
        self._done: Done | None = None

    def take(self, received: DataFrame, number: int, metrics: str, source: str) -> Run | None:
        """Write the run of this batch, unless it is there. None for a batch before the last one, which was sent.

        Another pipeline may write the same tables: its run is then finished first. Raises PipelineError.
        """
        for _ in range(_TRIES):
            try:
                last = self._pipeline.open(self._clock_ms)
                done = last.batches.get(source, -1) if last else -1
                if done >= number:
                    return self._pipeline.ledger.of_batch(source, number) if done == number else None
                return self._write(received, number, metrics, source, last)
            except RunTaken:
                continue
        raise RunTaken(f"other runs into {self._pipeline.lake.out} were faster {_TRIES} times: run fewer at once")

    def _write(self, received: DataFrame, number: int, metrics: str, source: str, last: Run | None) -> Run:
        now_ms = max(self._clock_ms(), last.as_of_ms if last else 0)
        reports, table = tables.both()
        found = self._pipeline.input(table, metrics, must_exist=False)
        files = {table.name: found.files}
        intent = Intent(last.run + 1 if last else 1, now_ms, source, number, files, found.quarantined)
        frames = [self._pipeline.judged(parsed(received, now_ms), reports)]
        frames += self._pipeline.received(table, found, now_ms)
        self._done = self._pipeline.run(intent, frames, last, self._clock_ms)
        return self._done.run

    def told(self, queues: Queues, metrics: str, taken: Run) -> tuple[list[Dataset], list[Dataset]]:
        """What the batch has read and written."""
        lake, done = self._pipeline.lake, self._done
        inputs = [datasets.queue(queues.addr, queues.reports, done), *datasets.read(lake, {"metrics": metrics}, done)]
        names = (queues.discrepancies, queues.alerts, queues.refused)
        sent = [Dataset(f"fila://{queues.addr}", name) for name in names]
        return inputs, [*datasets.written(lake, self._pipeline.versions_before, taken), *sent]


def parsed(messages: DataFrame, now_ms: int) -> DataFrame:
    """Messages as rows as received: their fields as text, the message itself, and when it was enqueued."""
    names = [field.name for field in tables.reports().fields]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, CORRUPT)])
    said = F.from_json(
        F.col("payload").cast("string"), schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    )
    enqueued = F.least(F.unix_millis("enqueued_at"), F.lit(now_ms).cast("bigint")).alias(RECEIVED)
    message = (F.col("message_id").alias(MESSAGE), F.col("payload").alias(PAYLOAD))
    return messages.select(*message, enqueued, said.alias("said")).select(MESSAGE, PAYLOAD, RECEIVED, "said.*")


def refused(lake: Lake, run: Run) -> DataFrame:
    """What a run refused and no run before it had: messages, each with the reason."""
    columns = ("message_id", "payload", PROBLEM)
    own = lake.of_run(BRONZE, run.run).where(F.col("input") == "reports")
    earlier = refused_before(lake, run.run, run.as_of_ms)
    invalid = own.where(F.col(PROBLEM).isNotNull()).join(earlier, "message_id", "left_anti")
    # Reports of posts that are another affiliate's: one message for each.
    identity = ["report_id", "affiliate_id"]
    taken = lake.of_run(REPORTS, run.run).where(F.col(PROBLEM).isNotNull()).select(*identity, PROBLEM)
    valid = own.where(F.col(PROBLEM).isNull()).drop(PROBLEM).dropDuplicates(identity)
    return invalid.select(*columns).unionByName(valid.join(taken, identity).select(*columns))


def send(spark: SparkSession, queues: Queues, out: str, run: Run, number: int) -> None:
    """Put what a batch came to into queues, once: discrepancies, alerts, and what was refused with the reason."""
    lake = Lake(spark, out)
    results = lake.of_run(RESULTS, run.run).where(~F.col("status").isin(*_FINE)).select(*RESULT)
    alerts = lake.of_run(ALERTS, run.run).drop("day", "run")
    everything = [
        _messages(results, queues.discrepancies, _json(results), affiliate_id="affiliate_id", status="status"),
        _messages(alerts, queues.alerts, _json(alerts), affiliate_id="affiliate_id", severity="severity"),
        _messages(refused(lake, run), queues.refused, F.col("payload"), reason=PROBLEM, message_id="message_id"),
    ]
    (
        reduce(DataFrame.unionByName, everything)
        .write.format("fila")
        .mode("append")
        .options(addr=queues.addr, retryTimeout=queues.retry_timeout)
        .options(producer=run.source, runId=number)
        .save()
    )


def _json(rows: DataFrame) -> Column:
    return F.to_json(F.struct(*rows.columns)).cast("binary")


def _messages(rows: DataFrame, queue: str, payload: Column, **headers: str) -> DataFrame:
    pairs = [part for name, column in headers.items() for part in (F.lit(name), F.col(column))]
    return rows.select(F.lit(queue).alias("queue"), payload.alias("payload"), F.create_map(*pairs).alias("headers"))


def wait(query: StreamingQuery) -> None:
    """Until the query ends. Raises PipelineError when it fails."""
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise PipelineError(_reason(str(error))) from error


def _reason(text: str) -> str:
    """Why a query ended, in one line: what Spark wraps around it is of no use to a user."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if _OURS.match(line)]
    return _OURS.sub("", ours[-1]) if ours else lines[0]
