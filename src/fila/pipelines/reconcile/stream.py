"""Streaming reconciliation: reports from a queue, held against metrics in files, batch by batch.

Each batch of the query is one run in the output folder, written as a bulk run is and by the same code, so a stream and
a bulk run over the same reports come to the same numbers. What a run says is sent to queues, all in one transaction.

Rules of this file:
- Batch b is run b + 1. A batch that is run again finds its run and only sends what that says, whatever was read this
  time: so a run and what was sent of it never differ.
- A report counts once, by its id, also when the broker delivers it again in a later batch. A message that is no report
  counts once too, by the id of the message.
- The checkpoint is in the output folder: one does not make sense without the other.
"""

import json
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

from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.files import Files
from fila.pipelines.progress import Say, described
from fila.pipelines.reconcile import sources, tables, verdicts
from fila.pipelines.reconcile.layers import Layers
from fila.pipelines.reconcile.steps import Steps, rules_text
from fila.pipelines.reconcile.tables import CORRUPT, PROBLEM, RECEIVED
from fila.pipelines.reconcile.verdicts import OPEN
from fila.pipelines.runs import Manifest, Runs
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import DEFAULTS, Settings

OnBatch = Callable[[dict[str, int]], None]
"""Hears what became of the reports of a batch: `received`, `refused`, `repeated`, `new`."""

_FINE = (str(Status.MATCHED), *OPEN)
"""What is no discrepancy."""
_OURS = re.compile(r"^(?:fila|pyspark)\.[\w.]+: ")
_BRONZE = "bronze/reports/queue"
_TAKEN = "silver/post_taken"


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
    runs = Runs(files, out)
    if not files.matches(metrics):
        raise BadInput(f"no metrics: there are no files at {metrics}")

    def batch(frame: DataFrame, number: int) -> None:
        with described(spark, f"fila stream, batch {number}", lambda _: None) as say:
            counts = Batch(spark, out, clock_ms(), settings, say).take(frame, number, metrics)
            say("sending")
            send(spark, queues, runs, producer_of(files, out), number)
        on_batch(counts)

    writer = reports.writeStream.foreachBatch(batch).option("checkpointLocation", f"{out}/checkpoint")
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).queryName(f"fila-{queues.group}").start()


class Batch:
    """One batch as a run, by the steps of the bulk pipeline. Its reports come from messages."""

    def __init__(self, spark: SparkSession, out: str, now_ms: int, settings: Settings, say: Say) -> None:
        self._spark, self._files = spark, Files(spark)
        self._runs = Runs(self._files, out)
        self._now_ms, self._settings, self._say = now_ms, settings, say

    def take(self, received: DataFrame, number: int, metrics: str) -> dict[str, int]:
        """Write the run of this batch, unless it is there. Returns what became of its reports. Raises PipelineError."""
        before = self._runs.last()
        done = before.run if before else 0
        if before is not None and done == number + 1:
            return dict(before.summary["reports"])
        if done != number:
            raise PipelineError(
                f"{self._runs.out} has {done} runs, and batch {number} is to be written: the checkpoint in it is not "
                "the one that wrote them. Begin anew in another folder"
            )
        if before is not None and before.rules != rules_text(self._settings):
            raise BadInput(f"{self._runs.out} was made under other rules: use another folder, with another group")
        with self._runs.stage(number + 1) as staged:
            manifest = self._write(received, number, metrics, before, staged)
            self._runs.publish(staged, manifest)
        return dict(manifest.summary["reports"])

    def _write(self, received: DataFrame, number: int, metrics: str, before: Manifest | None, staged: str) -> Manifest:
        reports, table = tables.both()
        found = sources.new_input(self._spark, self._files, table, self._files.find(metrics), before)
        layers = Layers(self._spark, self._files, self._runs, before, staged)
        steps = Steps(layers, self._now_ms, self._settings, self._say)
        steps.read_files(table, found.shapes)
        steps.write_silver(reports, [steps.write_bronze(reports, parsed(received, self._now_ms), "queue")])
        steps.decide()
        became = steps.counts()
        if became["reports"].refused:
            first = refused(self._spark, self._files, self._runs, staged, number).groupBy(PROBLEM).count().collect()
            became["reports"].refused = {row[PROBLEM]: row["count"] for row in first}
        summary: dict[str, Any] = {name: each.summary for name, each in became.items()}
        summary["quarantined"] = found.quarantined
        return Manifest(number + 1, self._now_ms, rules_text(self._settings), {"metrics": found.known}, summary)


def parsed(messages: DataFrame, now_ms: int) -> DataFrame:
    """Messages as rows as received: their fields as text, the message itself, and when it was enqueued."""
    names = [field.name for field in tables.reports().fields]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, CORRUPT)])
    said = F.from_json(
        F.col("payload").cast("string"), schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    )
    enqueued = F.least(F.unix_millis("enqueued_at"), F.lit(now_ms).cast("bigint")).alias(RECEIVED)
    whole = messages.select("message_id", "payload", enqueued, said.alias("said"))
    return whole.select("message_id", "payload", RECEIVED, "said.*")


def producer_of(files: Files, out: str) -> str:
    """Who sends what the runs in a folder say. A new checkpoint counts batches anew, so it has a name of its own."""
    return f"spark-{json.loads(files.read(f'{out}/checkpoint/metadata'))['id']}"


def refused(spark: SparkSession, files: Files, runs: Runs, run: str, before: int) -> DataFrame:
    """What a run refused and none of so many runs before it had: messages, each with the reason."""

    def of(*paths: str) -> DataFrame:
        rows = spark.read.schema(f"message_id string, payload binary, {PROBLEM} string").parquet(*paths)
        return rows.where(F.col(PROBLEM).isNotNull())

    invalid, earlier = of(f"{run}/{_BRONZE}"), runs.having(_BRONZE, before)
    if earlier:
        invalid = invalid.join(of(*earlier).select("message_id"), "message_id", "left_anti")
    return invalid.unionByName(_post_taken(spark, run)) if files.exists(f"{run}/{_TAKEN}") else invalid


def _post_taken(spark: SparkSession, run: str) -> DataFrame:
    """The messages of a run whose post is another affiliate's, one for each report."""
    schema = f"message_id string, payload binary, {PROBLEM} string, report_id string, affiliate_id string"
    rows = spark.read.schema(schema).parquet(f"{run}/{_BRONZE}").where(F.col(PROBLEM).isNull())
    identity = ["report_id", "affiliate_id"]
    named = rows.withColumns({name: F.trim(name) for name in identity})
    taken = named.join(spark.read.parquet(f"{run}/{_TAKEN}"), identity, "left_semi").dropDuplicates(identity)
    return taken.select("message_id", "payload", F.lit(POST_TAKEN).alias(PROBLEM))


def send(spark: SparkSession, queues: Queues, runs: Runs, producer: str, number: int) -> None:
    """Put what a batch came to into queues, once: discrepancies, alerts, and what was refused with the reason."""
    run = runs.path(number + 1)
    results, alerts = (
        spark.read.schema(verdicts.schema(name)).parquet(f"{run}/gold/{name}") for name in ("results", "alerts")
    )
    results = results.where(~F.col("status").isin(*_FINE))
    no_reports = refused(spark, Files(spark), runs, run, number)
    everything = [
        _messages(results, queues.discrepancies, _json(results), affiliate_id="affiliate_id", status="status"),
        _messages(alerts, queues.alerts, _json(alerts), affiliate_id="affiliate_id", severity="severity"),
        _messages(no_reports, queues.refused, F.col("payload"), reason=PROBLEM, message_id="message_id"),
    ]
    (
        reduce(DataFrame.unionByName, everything)
        .write.format("fila")
        .mode("append")
        .options(addr=queues.addr, retryTimeout=queues.retry_timeout)
        .options(producer=producer, runId=number)
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
