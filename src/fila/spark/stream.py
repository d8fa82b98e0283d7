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

from fila.reconcile.domain.models import Status
from fila.reconcile.domain.settings import DEFAULTS, Settings
from fila.spark import gold, sources, tables
from fila.spark.bulk import Run, rules_text
from fila.spark.errors import BadInput, PipelineError
from fila.spark.files import Files
from fila.spark.gold import OPEN
from fila.spark.runs import Manifest, Runs, new_files
from fila.spark.tables import CORRUPT, PROBLEM

OnBatch = Callable[[dict[str, int]], None]
"""Hears what became of the reports of a batch: `received`, `refused`, `repeated`, `new`."""

_FINE = (str(Status.MATCHED), *OPEN)
"""What is no discrepancy."""
_OURS = re.compile(r"^(?:fila|pyspark)\.[\w.]+: ")
_BRONZE = "bronze/reports/queue"


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
        .options(maxMessagesPerTrigger=queues.max_messages, columns="message_id,payload")
        .load()
    )

    files = Files(spark)
    runs = Runs(files, out)

    def batch(frame: DataFrame, number: int) -> None:
        counts = Batch(spark, out, clock_ms(), settings, lambda _: None).take(frame, number, metrics)
        send(spark, queues, runs, producer_of(files, out), number)
        on_batch(counts)

    writer = reports.writeStream.foreachBatch(batch).option("checkpointLocation", f"{out}/checkpoint")
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).queryName(f"fila-{queues.group}").start()


class Batch(Run):
    """One batch as a run of the bulk pipeline, whose reports come from messages."""

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
        with self._runs.stage() as staged:
            manifest = self._write(received, number, metrics, before, staged)
            self._runs.publish(staged, manifest)
        return dict(manifest.summary["reports"])

    def _write(self, received: DataFrame, number: int, metrics: str, before: Manifest | None, staged: str) -> Manifest:
        table = tables.metrics()
        known = before.inputs.get("metrics", {}) if before else {}
        found = new_files(sources.find(self._files, table, metrics), known)
        self._take_in(table, sources.shapes(self._spark, self._files, table, found), staged, before)
        reports = tables.reports()
        bronze = self._save(tables.bronze(parsed(received), reports), f"{staged}/{_BRONZE}")
        self._clean(reports, [bronze], staged, before)
        self._decide(staged, before)
        became = self._counted(staged)
        if became["reports"].refused:
            first = refused(self._spark, self._runs, staged, number).groupBy(PROBLEM).count().collect()
            became["reports"].refused = {row[PROBLEM]: row["count"] for row in first}
        counts = {name: each.summary for name, each in became.items()}
        inputs = known | {file.path: (file.size, file.modified_ms) for file in found}
        return Manifest(number + 1, self._now_ms, rules_text(self._settings), {"metrics": inputs}, counts)


def parsed(messages: DataFrame) -> DataFrame:
    """Messages as rows as received: what each says as text by field, and the message itself."""
    names = [field.name for field in tables.reports().fields]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, CORRUPT)])
    said = F.from_json(
        F.col("payload").cast("string"), schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    )
    return messages.select("message_id", "payload", said.alias("said")).select("message_id", "payload", "said.*")


def producer_of(files: Files, out: str) -> str:
    """Who sends what the runs in a folder say. A new checkpoint counts batches anew, so it has a name of its own."""
    return f"spark-{json.loads(files.read(f'{out}/checkpoint/metadata'))['id']}"


def refused(spark: SparkSession, runs: Runs, run: str, before: int) -> DataFrame:
    """What a run refused and none of so many runs before it had: messages, each with the reason."""

    def of(*paths: str) -> DataFrame:
        rows = spark.read.schema(f"message_id string, payload binary, {PROBLEM} string").parquet(*paths)
        return rows.where(F.col(PROBLEM).isNotNull())

    found, earlier = of(f"{run}/{_BRONZE}"), runs.having(_BRONZE, before)
    return found.join(of(*earlier).select("message_id"), "message_id", "left_anti") if earlier else found


def send(spark: SparkSession, queues: Queues, runs: Runs, producer: str, number: int) -> None:
    """Put what a batch came to into queues, once: discrepancies, alerts, and what was refused with the reason."""
    run = runs.path(number + 1)
    results, alerts = (
        spark.read.schema(gold.schema(name)).parquet(f"{run}/gold/{name}") for name in ("results", "alerts")
    )
    results = results.where(~F.col("status").isin(*_FINE))
    no_reports = refused(spark, runs, run, number)
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
