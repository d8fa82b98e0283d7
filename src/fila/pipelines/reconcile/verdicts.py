"""Verdicts, sums and alerts from valid reports and metrics: `DataFrame -> DataFrame`, whole numbers throughout.

Rules of this file:
- A report without metrics, or with some of them missing, stays *open*: it is tried again when its next attempt is due,
  or earlier when there are new metrics of its post. The new verdict replaces the one before. When the rules plan no
  further attempt, the verdict is final, as every other is: the same rules as in the service (`domain.retry`).
- The sums about affiliates, campaigns and platforms, trust among them (`fila.reconcile.domain.trust`), are added to by
  each run. A result carries what the one before it added (`previous_*`), which is taken back. So a run need not read
  what earlier runs decided.
- An alert is of the time of the attempt that raised it. Attempts of one run are of one time; they are numbered by the
  time and the id of their report.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fila.pipelines.reconcile.columns import DIFFERENCES, TOLD, classified, escalated, next_attempt_ms, score_sql
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
DIMENSIONS = {"affiliate": "affiliate_id", "campaign": "campaign_id", "platform": "platform"}
"""What is added up by, and the column that names it."""
_PREVIOUS = ("previous_status", "previous_step_bp")
RESULT = (
    *(*REPORT, *TOLD, "observed_at_ms", "status", "level", "reason", "confidence_bp", "over_bp", "difference_bp"),
    *(*DIFFERENCES, "step_bp", *PAST, "attempted_at_ms", "next_attempt_ms"),
)
"""The columns of a verdict."""
_ALERT = ("kind", "severity", "affiliate_id", "campaign_id", "platform", "post_id", "report_id", "at_ms", "status")


def fresh(reports: DataFrame) -> DataFrame:
    """Reports that nobody has looked at."""
    none = (F.lit(None).cast("string").alias(_PREVIOUS[0]), F.lit(None).cast("bigint").alias(_PREVIOUS[1]))
    return reports.select(*REPORT, *(F.lit(0).cast("bigint").alias(name) for name in PAST), *none)


def due(open_reports: DataFrame, now_ms: int) -> DataFrame:
    """Open reports whose next attempt is due."""
    return _again(open_reports.where(F.col("next_attempt_ms") <= now_ms))


def with_news(open_reports: DataFrame, new_metrics: DataFrame, now_ms: int) -> DataFrame:
    """Open reports that are not due, but whose post has new metrics."""
    posts = new_metrics.select("platform", "post_id").distinct()
    early = open_reports.where(F.col("next_attempt_ms") > now_ms)
    return _again(early.join(posts, ["platform", "post_id"], "left_semi"))


def _again(open_reports: DataFrame) -> DataFrame:
    said = (F.col("status").alias(_PREVIOUS[0]), F.col("step_bp").alias(_PREVIOUS[1]))
    return open_reports.select(*REPORT, *PAST, *said)


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
    return counted.withColumn("next_attempt_ms", next_attempt_ms(now_ms, settings.retries)).select(*RESULT, *_PREVIOUS)


def changes(results: DataFrame) -> DataFrame:
    """What a run adds to the sums: its verdicts, less those they replace."""
    columns = ("affiliate_id", "campaign_id", "platform", "status", "step_bp", *METRICS, *TOLD)
    replaced = results.where(F.col(_PREVIOUS[0]).isNotNull()).withColumns(
        {"status": F.col(_PREVIOUS[0]), "step_bp": F.col(_PREVIOUS[1])}
    )
    return results.select(*columns, F.lit(1).alias("sign")).unionByName(
        replaced.select(*columns, F.lit(-1).alias("sign"))
    )


def tally(changes: DataFrame, *by: str) -> DataFrame:
    """The sums by these columns. Told figures count only where the platform told all of them."""
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
    return changes.groupBy(*by).agg(*sums)


def totals(results: DataFrame) -> DataFrame:
    """What a run adds to the sums by affiliate, campaign and platform: by `dimension` and `name`."""
    each = F.explode(
        F.array(*(F.struct(F.lit(name).alias("dimension"), F.col(by).alias("name")) for name, by in DIMENSIONS.items()))
    )
    return tally(changes(results).withColumn("of", each).select("*", "of.*"), "dimension", "name")


def trust_sql(steps: str, dimension: str, settings: Settings) -> str:
    """The trust of an affiliate as SQL, null for what is none."""
    return f"CASE WHEN {dimension} = 'affiliate' THEN {score_sql(steps, settings.trust)} END"


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
    columns = _ALERT
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
