"""The tables of an incremental analysis: each run adds its rows to every table, once.

Delta Lake keeps, for each table, the last number that was committed. A write with that number, or a smaller one, does
nothing. So a run that is repeated after a crash adds what is not there yet.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

APP = "fila-fairness"
_PROPERTIES = {"delta.autoOptimize.autoCompact": "true"}


class DeltaTables:
    """Tables in a folder, by name."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self.spark = spark
        self.out = out.rstrip("/") or "/"

    def path(self, name: str) -> str:
        return f"{self.out}/{name}"

    def exists(self, name: str) -> bool:
        tables = self.spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr] # noqa: SLF001
        return bool(tables.isDeltaTable(self.spark._jsparkSession, self.path(name)))  # noqa: SLF001

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path(name))

    def of_run(self, name: str, run: int) -> DataFrame:
        """The rows of a run, which has them in folders of its own."""
        return self.read(name).where(F.col("run") == run).drop("run")

    def append(self, name: str, rows: DataFrame, run: int, number: int | None = None) -> None:
        """Add the rows of a run, unless that was done before. A run that adds twice gives each time a number."""
        writer = rows.withColumn("run", F.lit(run).cast("bigint")).write.format("delta").mode("append")
        writer = writer.options(**_PROPERTIES).option("txnAppId", APP).option("txnVersion", number or run)
        writer.partitionBy("run").save(self.path(name))

    def forget(self, name: str, before: int) -> None:
        """Remove the rows of runs before this one."""
        self.spark.sql(f"DELETE FROM delta.`{self.path(name)}` WHERE run < {before}")  # noqa: S608 - a number
