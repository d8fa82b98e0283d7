"""What reconciliation comes to, from valid reports and metrics: `DataFrame -> DataFrame`, whole numbers throughout.

Rules of this file:
- A report gets one verdict. One that the platform knew nothing of, or not everything, stays *open*: when new figures of
  its post come it is looked at again, as its next attempt, and the verdict before is taken back.
- Everything that is kept about affiliates, campaigns and platforms is a sum, to which a run adds its part. Trust is
  such a sum too (`fila.reconcile.domain.trust`). So runs need not read what earlier runs decided.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.reconcile.domain.alerts import Kind
from fila.reconcile.domain.models import METRICS, Reason, Status
from fila.reconcile.domain.settings import Settings
from fila.spark.columns import DIFFERENCES, TOLD, classified, escalated, next_attempt_ms, score_bp

REPORT = (
    *("report_id", "affiliate_id", "campaign_id", "platform", "post_id"),
    *("views", "clicks", "conversions", "reported_at_ms"),
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
        *(*DIFFERENCES, "step_bp", *PAST),
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


def reopened(open_reports: DataFrame, new_metrics: DataFrame) -> DataFrame:
    """Open reports about whose post there is news."""
    posts = new_metrics.select("platform", "post_id").distinct()
    return open_reports.join(posts, ["platform", "post_id"], "left_semi").select(*REPORT, *PAST)


def results(candidates: DataFrame, metrics: DataFrame, settings: Settings) -> DataFrame:
    """One row for each candidate: the verdict on it, and its attempts with this one. Metrics have one row for a post.

    Spark's own choice for two large tables is to sort both, which takes half as long again as to hash one of them.
    """
    joined = candidates.join(metrics.hint("shuffle_hash"), ["platform", "post_id"], "left")
    judged = classified(joined, settings)
    missing, incomplete = ((F.col("status") == status).cast("bigint") for status in OPEN)
    return judged.withColumns(
        {
            "attempt": F.col("attempt") + 1,
            "missing": F.col("missing") + missing,
            "incomplete": F.col("incomplete") + incomplete,
        }
    ).select(*TABLES["results"])


def still_open(results: DataFrame, now_ms: int, settings: Settings) -> DataFrame:
    """The reports among these that wait for figures, and when they are due again: null for those that are given up."""
    due = next_attempt_ms(now_ms, settings.retries)
    return results.where(F.col("status").isin(*OPEN)).withColumn("next_attempt_ms", due).select(*TABLES["open"])


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


def alerts(results: DataFrame, open_now: DataFrame, before: DataFrame | None, settings: Settings) -> DataFrame:
    """What a person should hear of after this run.

    A high discrepancy is graver the more of them its affiliate has had in the time before it was reported, those of the
    same moment and those alerts of earlier runs included.
    """
    columns = TABLES["alerts"]
    about = ("affiliate_id", "campaign_id", "platform", "post_id", "report_id", "status")
    fraud = results.where(F.col("status") == str(Status.AFFILIATE_OVERCLAIMED)).select(
        *about,
        F.col("reported_at_ms").alias("at_ms"),
        F.lit(str(Kind.FRAUD)).alias("kind"),
        F.col("level").alias("severity"),
    )
    silent = open_now.where((F.col("status") == str(Status.MISSING_PLATFORM_DATA)) & F.col("next_attempt_ms").isNull())
    health = silent.select(
        *about,
        F.col("reported_at_ms").alias("at_ms"),
        F.lit(str(Kind.SYSTEM_HEALTH)).alias("kind"),
        F.when(F.col("reason") == str(Reason.AUTH_FAILED), "high").otherwise("medium").alias("severity"),
    )
    high = results.where(F.col("status") == str(Status.DISCREPANCY_HIGH)).select(
        *about, F.col("reported_at_ms").alias("at_ms"), F.lit(True).alias("new")
    )
    if before is not None:
        old = before.where(F.col("kind") == str(Kind.DATA_QUALITY))
        high = high.unionByName(old.select(*about, "at_ms", F.lit(False).alias("new")))
    window = (
        Window.partitionBy("affiliate_id")
        .orderBy("at_ms")
        .rangeBetween(-settings.alerts.repeat_window_ms, Window.currentRow)
    )
    quality = (
        high.withColumn("repeats", F.count("*").over(window))
        .where("new")
        .withColumns({"kind": F.lit(str(Kind.DATA_QUALITY)), "severity": escalated(F.col("repeats"), settings.alerts)})
    )
    return fraud.select(*columns).unionByName(health.select(*columns)).unionByName(quality.select(*columns))
