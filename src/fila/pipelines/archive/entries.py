"""The table of archived entries: `OUT/journal`, one row for each entry of the journal, by day (UTC).

Rules of this file:
- Entries come in order, so the number of the newest one says what is there. A batch adds what is newer, in one commit
  that bears the number of its last entry: a batch that comes again adds nothing, whatever happened in between.
- Entries that are missing are a row too, of the kind `missing`, in the same commit: `seq` is the first that is missing,
  `count` how many, `at_ns` the time of the next entry that is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.pipelines.errors import BadInput
from fila.spark.rows import JOURNAL_COLUMNS, journal_schema

MISSING = "missing"
DAY = "day"
SCHEMA = T.StructType([*journal_schema(JOURNAL_COLUMNS).fields, T.StructField(DAY, T.DateType())])
_APP = "fila-archive"
_PROPERTIES = {"delta.autoOptimize.autoCompact": "true"}  # batches write small files: 50 of a day become one


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries that were removed before they were archived, or were never written because the journal was off."""

    first: int
    count: int
    #: The time of the next entry that is there.
    at_ns: int

    def __str__(self) -> str:
        return f"entry {self.first}" if self.count == 1 else f"entries {self.first} to {self.first + self.count - 1}"


@dataclass(frozen=True, slots=True)
class Added:
    """What a batch added."""

    entries: int = 0
    last: int = 0
    gaps: tuple[Gap, ...] = ()


class Archive:
    """The archived journal in a folder."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self._spark = spark
        self.path = f"{out.rstrip('/')}/journal"
        self._last: int | None = None

    def exists(self) -> bool:
        found = self._spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr] # noqa: SLF001
        return bool(found.isDeltaTable(self._spark._jsparkSession, self.path))  # noqa: SLF001

    def read(self) -> DataFrame:
        """Raises BadInput where nothing was archived."""
        if not self.exists():
            raise BadInput(f"{self.path} is no archive: fill it with fila pipeline archive")
        return self._spark.read.format("delta").load(self.path)

    def last(self) -> int:
        """The number of the newest entry; 0 if there is none. Delta Lake answers it from the statistics of its log."""
        if not self.exists():
            return 0
        return int(self.read().agg(F.max(F.col("seq"))).collect()[0][0] or 0)

    def add(self, entries: DataFrame) -> Added:
        """Add what is newer than the newest entry that is there."""
        if self._last is None:
            self._last = self.last()
        rows = entries.where(F.col("seq") > self._last).withColumn(DAY, _day(F.col("at_ns"))).persist()
        try:
            found = rows.agg(F.count("*").alias("rows"), F.min("seq").alias("low"), F.max("seq").alias("high")).first()
            assert found is not None
            if not found.rows:
                return Added()
            gaps = []
            if found.low > self._last + 1 > 1 or found.high - found.low + 1 > found.rows:
                gaps = self._gaps(rows, found.high)
            self._write(rows, gaps, found.high)
        finally:
            rows.unpersist()
        self._last = found.high
        return Added(found.rows, found.high, tuple(gaps))

    def _write(self, rows: DataFrame, gaps: Sequence[Gap], last: int) -> None:
        if gaps:
            rows = rows.unionByName(self._as_rows(gaps))
        writer = rows.select(*SCHEMA.names).write.format("delta").mode("append").options(**_PROPERTIES)
        writer.option("txnAppId", _APP).option("txnVersion", last).partitionBy(DAY).save(self.path)

    def _gaps(self, rows: DataFrame, high: int) -> list[Gap]:
        """What is missing between the newest entry that is there and those of a batch, and between them."""
        here = rows.select("seq", "at_ns")
        behind = here.select((F.col("seq") + 1).alias("seq")).join(here.select("seq"), "seq", "left_anti")
        before = here.select((F.col("seq") - 1).alias("seq"), "at_ns").join(here.select("seq"), "seq", "left_anti")
        begins = sorted({row.seq for row in behind.collect()} - {high + 1})
        ends = sorted((row.seq, row.at_ns) for row in before.collect())
        begins = [self._last + 1, *begins] if self._last else [ends[0][0] + 1, *begins]
        found = [Gap(first, last - first + 1, at) for first, (last, at) in zip(begins, ends, strict=True)]
        return [gap for gap in found if gap.count > 0]

    def _as_rows(self, gaps: Sequence[Gap]) -> DataFrame:
        """As entries of no queue, in which what does not apply is 0 or empty."""
        said = [(gap.first, gap.count, gap.at_ns) for gap in gaps]
        frame = self._spark.createDataFrame(said, "seq bigint, count bigint, at_ns bigint")
        nothing = {"bigint": F.lit(0).cast("bigint"), "string": F.lit("")}
        others = {
            each.name: nothing[each.dataType.simpleString()]
            for each in SCHEMA
            if each.name not in {"seq", "count", "at_ns", "kind", DAY}
        }
        return frame.withColumns({**others, "kind": F.lit(MISSING), DAY: _day(F.col("at_ns"))})


def _day(at_ns: Column) -> Column:
    return F.to_date(F.timestamp_micros(F.call_function("div", at_ns, F.lit(1000).cast("bigint"))))
