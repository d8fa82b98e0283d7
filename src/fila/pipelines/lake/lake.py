"""The tables of an output folder: read, append and merge, each once for a run.

Delta Lake keeps, for each table and application, the last number that was committed. A write with that number, or a
smaller one, does nothing. Our numbers are those of runs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Self

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import PipelineError, RunTaken
from fila.pipelines.files import Files
from fila.pipelines.lake.contract import TABLES

DAY_MS = 24 * 3_600_000
_APP = "fila"
_TXN = "spark.databricks.delta.write.txn"
_KEPT = {
    "delta.autoOptimize.autoCompact": "true",  # streams write many small files: 50 of a partition become one
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 60 days",
}
"""Properties of every table."""
_PAGE_ROWS = 2_000
"""Of a table with an order: a row that is looked up costs a page. Parquet's own limit is 20,000."""
_MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated")
"""What Delta Lake counts of a merge, beside the rows that it only copied into another file."""


class Lake:
    """Tables are named by their path in the output folder, such as `gold/results`."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self.spark, self.files = spark, Files(spark)
        self.out = out.rstrip("/") or "/"

    def path(self, name: str) -> str:
        return f"{self.out}/{name}"

    def exists(self, name: str) -> bool:
        tables: Any = self.spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr] # noqa: SLF001
        return bool(tables.isDeltaTable(self.spark._jsparkSession, self.path(name)))  # noqa: SLF001

    def read(self, name: str, version: int | None = None) -> DataFrame:
        """A table as it is, or as it was at a version; one that is not there yet is empty."""
        if not self.exists(name):
            return self.spark.createDataFrame([], TABLES[name].schema)
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path(name))

    def of_run(self, name: str, run: int) -> DataFrame:
        """The rows that a run has added to a table."""
        return self.read(name).where(F.col("run") == run)

    def append(self, name: str, rows: DataFrame, run: int, note: str | None = None) -> None:
        """Add the rows of a run, unless that was done before."""
        table = TABLES[name]
        rows = rows.select(*table.schema.names)
        if table.order:
            rows = rows.sortWithinPartitions(*table.order)
        writer = rows.write.format("delta").mode("append").options(**_KEPT)
        writer = writer.option("txnAppId", _APP).option("txnVersion", run)
        if note is not None:
            writer = writer.option("userMetadata", note)
        with self._committing(name), self.paged(name):
            writer.partitionBy(*table.partitions).save(self.path(name))

    def note(self, name: str, text: str) -> None:
        """An empty commit that says something."""
        rows = self.spark.createDataFrame([], TABLES[name].schema)
        rows.write.format("delta").mode("append").option("userMetadata", text).save(self.path(name))

    def merge(self, name: str, rows: DataFrame, run: int, on: str, updates: Mapping[str, str]) -> None:
        """Merge the rows of a run (`s`) into a table (`t`), unless that was done before."""
        if not self.exists(name):
            self.append(name, rows, run)
            return
        view, columns = f"fila_merge_{name.replace('/', '_')}", TABLES[name].schema.names
        rows.select(*columns).createOrReplaceTempView(view)
        changed = ", ".join(f"t.{column} = {value}" for column, value in updates.items())
        statement = (
            f"MERGE INTO delta.`{self.path(name)}` t USING {view} s ON {on} WHEN MATCHED THEN UPDATE SET {changed} "  # noqa: S608
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(f's.{each}' for each in columns)})"
        )
        with self._committing(name), self._numbered(run):
            self.spark.sql(statement)
        self.spark.catalog.dropTempView(view)

    def version(self, name: str) -> int:
        """The newest version of a table."""
        jvm: Any = self.spark._jvm  # noqa: SLF001
        none = jvm.scala.Option.empty()
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, self.path(name))  # noqa: SLF001
        return int(log.update(False, none, none).version())

    def versions(self) -> dict[str, int]:
        """The newest version of each table that is there."""
        return {name: self.version(name) for name in TABLES if self.exists(name)}

    def notes(self, name: str, count: int = 20) -> Iterator[str]:
        """What the newest commits to a table say of themselves, the newest first. Runs no Spark job."""
        if not self.exists(name):
            return
        newest = self.version(name)
        for info in self._commits(name, range(newest, max(newest - count, -1), -1)):
            if info.get("userMetadata"):
                yield info["userMetadata"]

    def rows_written(self, name: str, since: int, until: int) -> int:
        """The rows that the commits after version `since` have put into a table. Runs no Spark job."""
        commits = self._commits(name, range(since + 1, until + 1))
        return sum(_rows_of(info["operation"], info.get("operationMetrics", {})) for info in commits)

    def _commits(self, name: str, versions: range) -> Iterator[dict[str, Any]]:
        """What commits say of themselves, as far as they are kept."""
        for version in versions:
            where = f"{self.path(name)}/_delta_log/{version:020d}.json"
            lines = self.files.read(where).splitlines() if self.files.exists(where) else []
            for action in map(json.loads, lines):
                if "commitInfo" in action:
                    yield action["commitInfo"]

    def add_columns(self, name: str, columns: Sequence[tuple[str, str]]) -> None:
        have = set(self.read(name).columns)
        wanted = ", ".join(f"`{column}` {kind}" for column, kind in columns if column not in have)
        if wanted and self.exists(name):
            self.spark.sql(f"ALTER TABLE delta.`{self.path(name)}` ADD COLUMNS ({wanted})")

    def _numbered(self, run: int) -> AbstractContextManager[None]:
        """What SQL statements write is numbered by the session, not by an option."""
        return self._set({f"{_TXN}AppId": _APP, f"{_TXN}Version": str(run)})

    def paged(self, name: str) -> AbstractContextManager[None]:
        """While files of this table are written."""
        return self._set({"parquet.page.row.count.limit": str(_PAGE_ROWS)} if TABLES[name].order else {})

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        conf = self.spark.conf
        for key, value in settings.items():
            conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                conf.unset(key)

    @contextmanager
    def _committing(self, name: str) -> Iterator[None]:
        """Raises RunTaken where another driver commits to the table at the same time."""
        try:
            yield
        except PySparkException as error:
            if "DELTA_CONCURRENT" in str(error) or "Concurrent" in type(error).__name__:
                raise RunTaken(
                    f"another run wrote to {self.path(name)} at the same time: run again, which finishes both"
                ) from error
            raise


class RunRows:
    """What a run has added to each table. The rows of a small run are read once, and kept until it is done."""

    def __init__(self, lake: Lake, run: int, *, small: bool) -> None:
        self._lake, self._run, self._small = lake, run, small
        self._kept: dict[str, DataFrame] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for rows in self._kept.values():
            rows.unpersist()

    def __call__(self, name: str) -> DataFrame:
        if not self._small:
            return self._lake.of_run(name, self._run)
        if name not in self._kept:
            self._kept[name] = self._lake.of_run(name, self._run).persist()
        return self._kept[name]

    def keep(self, rows: DataFrame) -> DataFrame:
        """Keeps other rows too, under no name, if the run is small."""
        if self._small:
            self._kept[f"other {len(self._kept)}"] = rows.persist()
        return rows


def _rows_of(operation: str, metrics: Mapping[str, str]) -> int:
    """The rows that a commit has written anew: none of a compaction."""
    counted = {"WRITE": ("numOutputRows",), "MERGE": _MERGED}.get(operation, ())
    return sum(int(metrics.get(name, 0)) for name in counted)


def day_of(ms: Column | int) -> Column:
    """The day (UTC) of a moment."""
    millis = ms if isinstance(ms, Column) else F.lit(ms).cast("bigint")
    return F.to_date(F.timestamp_millis(millis))


def since_day(ms: int) -> Column:
    """Whether a row is stored under the day of a moment, or a later one: Spark then reads no other files."""
    return F.col("day") >= F.lit(datetime.fromtimestamp(max(ms, 0) / 1000, UTC).date())


def checked_path(out: str) -> str:
    """Raises PipelineError for a folder whose name cannot stand in a statement."""
    if "`" in out or "'" in out:
        raise PipelineError(f"--out {out} has a quotation mark: use another name")
    return out
