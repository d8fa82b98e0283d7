"""What holds now, or held at a moment: the tables as a run left them, whole runs only."""

from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput
from fila.pipelines.lake.contract import CURRENT, TOTALS
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lake.ledger import Ledger
from fila.pipelines.reconcile.verdicts import DIMENSIONS


def current_results(spark: SparkSession, out: str, as_of_ms: int | None = None) -> DataFrame:
    """One row for each report: its last attempt. `as_of_ms`: as the last run before that moment left it."""
    return table(spark, out, CURRENT, as_of_ms)


def totals(spark: SparkSession, out: str, dimension: str, as_of_ms: int | None = None) -> DataFrame:
    """The sums by `affiliate`, `campaign` or `platform`; affiliates with their trust."""
    rows = table(spark, out, TOTALS, as_of_ms).where(F.col("dimension") == dimension)
    return rows.drop("dimension").withColumnRenamed("name", DIMENSIONS[dimension])


def table(spark: SparkSession, out: str, name: str, as_of_ms: int | None = None) -> DataFrame:
    """A table as a run left it, by default the last one. Raises BadInput."""
    lake = Lake(spark, out)
    ledger = Ledger(lake)
    run = ledger.last() if as_of_ms is None else ledger.at(as_of_ms)
    if run is None:
        raise BadInput(f"{out} has no runs: it is not the --out folder of a reconciliation")
    version = run.versions.get(name)
    rows = lake.read(name, version)
    if as_of_ms is not None:
        _check_kept(rows.isEmpty, f"{name} as of run {run.run}")
    return rows


def _check_kept(look: Callable[[], bool], what: str) -> None:
    try:
        look()
    except PySparkException as error:
        raise BadInput(f"{what} is no longer kept: `fila pipeline maintain` has removed its files") from error
