"""Keeps the tables small: compaction of small files, and removal of files that no kept version needs.

Both change no row. A run may be under way at the same time.
"""

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.lake.contract import TABLES
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lake.ledger import Ledger
from fila.pipelines.progress import Say, described

KEPT_DAYS, LEAST_DAYS = 30, 7


@dataclass(frozen=True, slots=True)
class Maintained:
    """What became of the files of a table."""

    table: str
    compacted: int
    into: int


def maintain(
    spark: SparkSession, out: str, *, keep_days: int = KEPT_DAYS, say: Say = lambda _: None
) -> list[Maintained]:
    """Compact all tables, and remove files that were replaced more than `keep_days` ago. Raises PipelineError."""
    lake = Lake(spark, out)
    ledger = Ledger(lake)
    if ledger.last() is None:
        raise BadInput(f"{out} has no runs: it is not the --out folder of a reconciliation")
    done = []
    try:
        with described(spark, "fila maintain", say) as tell:
            for name in TABLES:
                if lake.exists(name):
                    tell(f"compacting {name}")
                    done.append(_compact(lake, name))
            ledger.refresh()
            for each in done:
                tell(f"removing old files of {each.table}")
                spark.sql(f"VACUUM delta.`{lake.path(each.table)}` RETAIN {keep_days * 24} HOURS")
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error
    return done


def _compact(lake: Lake, name: str) -> Maintained:
    with lake.paged(name):
        found = lake.spark.sql(f"OPTIMIZE delta.`{lake.path(name)}`").select("metrics.*").collect()[0]
    return Maintained(name, found.numFilesRemoved, found.numFilesAdded)
