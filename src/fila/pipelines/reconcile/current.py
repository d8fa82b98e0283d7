"""The verdict that holds for each report now, over all runs of a folder."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput
from fila.pipelines.files import Files
from fila.pipelines.reconcile import verdicts
from fila.pipelines.runs import Runs


def current_results(spark: SparkSession, out: str) -> DataFrame:
    """One row for each report: its last attempt, with the columns of `gold/results`. Raises BadInput.

    `gold/results` of all runs has a row for each attempt, so counting those counts reports several times.
    """
    runs = Runs(Files(spark), out)
    last = runs.last()
    if last is None:
        raise BadInput(f"{out} has no runs: it is not the --out folder of a reconciliation")
    every = spark.read.schema(verdicts.schema("results")).parquet(*runs.having("gold/results", last.run))
    # Attempts are numbered without gaps, so attempt n replaces n - 1. Few reports have a second one.
    replaced = every.where("attempt > 1").select("report_id", (F.col("attempt") - 1).alias("attempt"))
    return every.join(replaced, ["report_id", "attempt"], "left_anti").select(*verdicts.TABLES["results"])
