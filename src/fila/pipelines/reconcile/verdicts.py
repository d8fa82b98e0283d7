"""Verdicts, sums and alerts from valid reports and metrics: `DataFrame -> DataFrame`, whole numbers throughout.

Rules of this file:
- A report without metrics, or with some of them missing, stays *open*: it is tried again when its next attempt is due,
  or earlier when there are new metrics of its post. The new verdict replaces the one before. When the rules plan no
  further attempt, the verdict is final, as every other is: the same rules as in the service (`domain.retry`).
- The sums about affiliates, campaigns and platforms, trust among them (`fila.reconcile.domain.trust`), are added to by
  each run. So a run need not read what earlier runs decided.
- An alert is of the time of the attempt that raised it. Attempts of one run are of one time; they are numbered by the
  time and the id of their report.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.pipelines.reconcile.columns import DIFFERENCES, TOLD, classified, escalated, next_attempt_ms, score_bp
from fila.reconcile.domain.alerts import Kind, window_start_ms
from fila.reconcile.domain.models import METRICS, Reason, Status
from fila.reconcile.domain.settings import Alerts as AlertSettings
from fila.reconcile.domain.settings import Settings

REPORT = (
    *("report_id", "affiliate_id", "campaign_id", "platform", "post_id"),
    *("views", "clicks", "conversions", "reported_at_ms", "submitted_at_ms"),
)
PAST = ("attempt", "missing", "incomplete")
"""What has happened to a report: the attempts so far, and how many of them ended in missing, in incomplete data."""
OPEN = (str(Status.MISSING_PLATFORM_DATA), str(Status.INCOMPLETE_PLATFORM_DATA))
STATUS_COLUMNS = {str(status): str(status).lower() for status in Status}
"""The column in which reports of each status are counted."""
BY = {"affiliates": "affiliate_id", "campaigns": "campaign_id", "platforms": "platform"}
_SUMS = (
    *("reports", *STATUS_COLUMNS.values()),
    *(f"{side}_{name}" for name in METRICS for side in ("claimed", "told")),
    "steps_bp",
)
TABLES = {
    "results": (
        *(*REPORT, *TOLD, "observed_at_ms", "status", "level", "reason", "confidence_bp", "over_bp", "difference_bp"),
        *(*DIFFERENCES, "step_bp", *PAST, "attempted_at_ms", "next_attempt_ms"),
    ),
    "open": (*REPORT, *TOLD, "status", "reason", "step_bp", *PAST, "next_attempt_ms"),
    "alerts": (
        *("kind", "severity", "affiliate_id", "campaign_id", "platform", "post_id", "report_id", "at_ms", "status"),
    ),
    "affiliates": ("affiliate_id", *_SUMS, "trust_bp"),
    "campaigns": ("campaign_id", *_SUMS),
    "platforms": ("platform", *_SUMS),
}
"""What is written, and its columns."""
_TEXT = {*REPORT[:5], "status", "level", "reason", "kind", "severity"}


def schema(table: str) -> T.StructType:
    """The columns of a table as Spark wants them, so that it need not look into files for them."""
    return T.StructType(
        [T.StructField(name, T.StringType() if name in _TEXT else T.LongType()) for name in TABLES[table]]
    )


def fresh(reports: DataFrame) -> DataFrame:
    """Reports that nobody has looked at."""
    return reports.select(*REPORT, *(F.lit(0).cast("bigint").alias(name) for name in PAST))


def due(open_reports: DataFrame, now_ms: int) -> DataFrame:
    """Open reports whose next attempt is due."""
    return open_reports.where(F.col("next_attempt_ms") <= now_ms).select(*REPORT, *PAST)


def with_news(open_reports: DataFrame, new_metrics: DataFrame, now_ms: int) -> DataFrame:
    """Open reports that are not due, but whose post has new metrics."""
    posts = new_metrics.select("platform", "post_id").distinct()
    early = open_reports.where(F.col("next_attempt_ms") > now_ms)
    return early.join(posts, ["platform", "post_id"], "left_semi").select(*REPORT, *PAST)


def results(candidates: DataFrame, metrics: DataFrame, now_ms: int, settings: Settings) -> DataFrame:
    """One row for each candidate: the verdict on it, its attempts with this one, and when the next one is due.

    Metrics have one row for a post. `next_attempt_ms` is null where the verdict is final.
    """
    joined = candidates.join(metrics, ["platform", "post_id"], "left")
    judged = classified(joined, settings)
    missing, incomplete = ((F.col("status") == status).cast("bigint") for status in OPEN)
    counted = judged.withColumns(
        {
            "attempt": F.col("attempt") + 1,
            "missing": F.col("missing") + missing,
            "incomplete": F.col("incomplete") + incomplete,
            "attempted_at_ms": F.lit(now_ms).cast("bigint"),
        }
    )
    return counted.withColumn("next_attempt_ms", next_attempt_ms(now_ms, settings.retries)).select(*TABLES["results"])


def still_open(results: DataFrame) -> DataFrame:
    """The reports among these that are tried again."""
    return results.where(F.col("next_attempt_ms").isNotNull()).select(*TABLES["open"])


def changes(results: DataFrame, taken_back: DataFrame | None) -> DataFrame:
    """What a run adds to the sums: its verdicts, less those they replace."""
    columns = ("affiliate_id", "campaign_id", "platform", "status", "step_bp", *METRICS, *TOLD)
    added = results.select(*columns, F.lit(1).alias("sign"))
    return added if taken_back is None else added.unionByName(taken_back.select(*columns, F.lit(-1).alias("sign")))


def tally(changes: DataFrame, by: str) -> DataFrame:
    """The sums by affiliate, campaign or platform. Told figures count only where the platform told all of them."""
    sign = F.col("sign")
    judged = ~F.col("status").isin(*OPEN)
    sums: list[Column] = [F.sum(sign).alias("reports")]
    sums += [
        F.sum(F.when(F.col("status") == status, sign).otherwise(0)).alias(name)
        for status, name in STATUS_COLUMNS.items()
    ]
    for name in METRICS:
        sums.append(F.sum(F.when(judged, F.col(name) * sign).otherwise(0)).alias(f"claimed_{name}"))
        sums.append(F.sum(F.when(judged, F.col(f"told_{name}") * sign).otherwise(0)).alias(f"told_{name}"))
    sums.append(F.sum(F.col("step_bp") * sign).alias("steps_bp"))
    return changes.groupBy(by).agg(*sums)


def added(before: DataFrame | None, tally: DataFrame, by: str) -> DataFrame:
    """The sums so far with those of a run."""
    if before is None:
        return tally
    names = [name for name in tally.columns if name != by]
    both = before.select(by, *names).unionByName(tally)
    return both.groupBy(by).agg(*(F.sum(name).alias(name) for name in names))


def trusted(affiliates: DataFrame, settings: Settings) -> DataFrame:
    """Affiliates with their trust, from the sum of their steps."""
    return affiliates.withColumn("trust_bp", score_bp(F.col("steps_bp"), settings.trust))


def alerts(results: DataFrame, before: DataFrame | None, settings: Settings) -> DataFrame:
    """The alerts of this run. `before` are those of earlier runs: high discrepancies are counted over all of them."""
    status, at_ms = F.col("status"), F.col("attempted_at_ms").alias("at_ms")
    about = ("affiliate_id", "campaign_id", "platform", "post_id", "report_id", "status")
    fraud = results.where(status == str(Status.AFFILIATE_OVERCLAIMED)).select(
        *about, at_ms, F.lit(str(Kind.FRAUD)).alias("kind"), F.col("level").alias("severity")
    )
    final = F.col("next_attempt_ms").isNull()
    health = results.where((status == str(Status.MISSING_PLATFORM_DATA)) & final).select(
        *(*about, at_ms, F.lit(str(Kind.SYSTEM_HEALTH)).alias("kind")),
        F.when(F.col("reason") == str(Reason.AUTH_FAILED), "high").otherwise("medium").alias("severity"),
    )
    high = results.where(status == str(Status.DISCREPANCY_HIGH)).select(*about, at_ms, "reported_at_ms")
    quality = _numbered(high, before, settings.alerts).withColumns(
        {"kind": F.lit(str(Kind.DATA_QUALITY)), "severity": escalated(F.col("repeats"), settings.alerts)}
    )
    columns = TABLES["alerts"]
    return fraud.select(*columns).unionByName(health.select(*columns)).unionByName(quality.select(*columns))


def _numbered(high: DataFrame, before: DataFrame | None, settings: AlertSettings) -> DataFrame:
    """High discrepancies of one time, each with how many its affiliate has had within the window, itself included."""
    order = Window.partitionBy("affiliate_id").orderBy("reported_at_ms", "report_id")
    numbered = high.withColumn("repeats", F.row_number().over(order))
    if before is None:
        return numbered
    recent = before.where(F.col("kind") == str(Kind.DATA_QUALITY)).select("affiliate_id", F.col("at_ms").alias("then"))
    within = F.col("then") >= window_start_ms(F.col("at_ms"), settings)
    counted = high.select("affiliate_id", "at_ms").distinct().join(recent, "affiliate_id").where(within)
    earlier = counted.groupBy("affiliate_id").agg(F.count("*").alias("earlier"))
    both = numbered.join(earlier, "affiliate_id", "left")
    return both.withColumn("repeats", F.col("repeats") + F.coalesce("earlier", F.lit(0)))
