"""Archives a broker's journal as it is written: a stream from the journal into the table of entries.

The checkpoint is in the output folder. Entries that the broker removed before they were archived do not stop the
stream: the table says which they are, and `on_batch` hears of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fila.pipelines.archive.entries import Added, Archive
from fila.pipelines.progress import described

OnBatch = Callable[[Added], None]


def start(
    spark: SparkSession,
    connection: Mapping[str, Any],
    out: str,
    *,
    max_entries: int = 500_000,
    trigger: Mapping[str, Any] | None = None,
    on_batch: OnBatch = lambda _: None,
) -> StreamingQuery:
    """Start the query. `connection` are options of the data source: the address, TLS, the file of the key.

    Without a `trigger` it runs until it is stopped, a batch as soon as there are entries.
    """
    archive = Archive(spark, out)
    journal = spark.readStream.format("fila").options(
        **connection, journal="true", failOnDataLoss="false", maxEntriesPerTrigger=max_entries
    )
    # Of a lost checkpoint the table itself knows where to go on.
    journal = journal.option("startSeq", archive.last() + 1) if archive.exists() else journal

    def batch(frame: DataFrame, number: int) -> None:
        with described(spark, f"fila archive, batch {number}", lambda _: None) as say:
            say("writing")
            on_batch(archive.add(frame))

    writer = journal.load().writeStream.foreachBatch(batch).option("checkpointLocation", f"{out}/checkpoint")
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).queryName("fila-archive").start()
