"""The run of one day, for a scheduler: it may be repeated, and a repetition changes nothing.

The run is as of the end of the day, or as of now while the day lasts. A repetition finds no new files. It then answers
with the checks of the day, so that a day that failed stays failed until its data or the limits are others.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput
from fila.pipelines.lake.contract import CHECKS
from fila.pipelines.lake.lake import DAY_MS, Lake
from fila.pipelines.lineage import NO_LINEAGE, Lineage
from fila.pipelines.progress import Say
from fila.pipelines.reconcile import bulk
from fila.pipelines.reconcile.bulk import Outcome
from fila.pipelines.reconcile.checks import NO_LIMITS, Check, Limits, judged
from fila.reconcile.domain.settings import DEFAULTS, Settings


def daily(
    spark: SparkSession,
    day: date,
    reports: str,
    metrics: str,
    out: str,
    *,
    now_ms: int,
    settings: Settings = DEFAULTS,
    limits: Limits = NO_LIMITS,
    say: Say = lambda _: None,
    lineage: Lineage = NO_LINEAGE,
) -> Outcome:
    """Reconcile the files of a day. `{date}` in a path is the day. Raises PipelineError."""
    begin_ms = int(datetime.combine(day, time(), UTC).timestamp() * 1000)
    if begin_ms > now_ms:
        raise BadInput(f"{day} has not begun: give a day that has")
    as_of_ms = min(now_ms, begin_ms + DAY_MS - 1)
    reports, metrics = (path.replace("{date}", day.isoformat()) for path in (reports, metrics))
    done = bulk.reconcile(
        spark,
        reports,
        metrics,
        out,
        now_ms=as_of_ms,
        settings=settings,
        limits=limits,
        say=say,
        lineage=lineage,
        day=(begin_ms, begin_ms + DAY_MS),
    )
    return done if done.changed else replace(done, checks=_checks_of(Lake(spark, out), day, limits))


def _checks_of(lake: Lake, day: date, limits: Limits) -> list[Check]:
    """The checks of the last run of a day, held against the limits of now."""
    rows = lake.read(CHECKS).where(F.col("day") == F.lit(day)).collect()
    last = max((row.run for row in rows), default=0)
    found = [Check(*(row[name] for name in Check.__slots__)) for row in rows if row.run == last]
    return [judged(check, limits) for check in found]
