"""Made-up reports and metrics, for a first try, demonstrations and benchmarks: the same seed gives the same rows.

A few affiliates claim far too much, some are sloppy, and platforms do not know everything.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

PLATFORMS = ("clipshare", "photogram", "streamly", "threadbox")


@dataclass(frozen=True, slots=True)
class Sample:
    """How much to make. Reports are of the twelve hours before `until_ms`."""

    reports: int
    until_ms: int
    affiliates: int = 500
    campaigns: int = 12
    seed: int = 1
    #: Numbers of reports begin here, so that a second sample brings others.
    first: int = 0


def reports(spark: SparkSession, sample: Sample) -> DataFrame:
    """What affiliates claim. One row in a thousand makes no sense."""
    ids = _ids(spark, sample)
    cheats, sloppy = F.pmod(_affiliate(sample), F.lit(29)) == 7, F.pmod(_affiliate(sample), F.lit(11)) == 3
    factor = (
        F.when(cheats & (_part(sample, "cheat") < 700), 1250 + _part(sample, "by"))
        .when(sloppy, 850 + _part(sample, "by") * 3 / 10)
        .otherwise(985 + _part(sample, "by") * 3 / 100)
    )
    claimed = {name: F.floor(true * factor / 1000) for name, true in _true(sample).items()}
    return ids.select(
        F.format_string("r%012d", F.col("id")).alias("report_id"),
        F.format_string("affiliate-%04d", _affiliate(sample)).alias("affiliate_id"),
        F.format_string("campaign-%02d", F.pmod(_hash(sample, "campaign"), F.lit(sample.campaigns))).alias(
            "campaign_id"
        ),
        _platform(sample).alias("platform"),
        _post().alias("post_id"),
        F.when(_part(sample, "bad") == 0, F.lit(-1)).otherwise(claimed["views"]).alias("views"),
        claimed["clicks"].alias("clicks"),
        claimed["conversions"].alias("conversions"),
        _reported_at_ms(sample).alias("reported_at"),
    )


def metrics(spark: SparkSession, sample: Sample) -> DataFrame:
    """What platforms tell: nothing of three posts in a hundred, not everything of two."""
    silent = F.when(F.col("platform") == PLATFORMS[2], _part(sample, "silent") < 60).otherwise(
        _part(sample, "silent") < 20
    )
    told = _true(sample)
    partly = _part(sample, "partly") < 20
    rows = _ids(spark, sample).select(
        _platform(sample).alias("platform"),
        _post().alias("post_id"),
        told["views"].alias("views"),
        told["clicks"].alias("clicks"),
        F.when(~partly, told["conversions"]).alias("conversions"),
        (_reported_at_ms(sample) + _part(sample, "lag") * 600).alias("observed_at"),
        "id",
    )
    return rows.where(~silent).drop("id")


def _ids(spark: SparkSession, sample: Sample) -> DataFrame:
    return spark.range(sample.first, sample.first + sample.reports)


def _hash(sample: Sample, what: str) -> Column:
    return F.xxhash64(F.col("id"), F.lit(f"{what}/{sample.seed}"))


def _part(sample: Sample, what: str) -> Column:
    """A number from 0 to 999."""
    return F.pmod(_hash(sample, what), F.lit(1000))


def _affiliate(sample: Sample) -> Column:
    return F.pmod(_hash(sample, "affiliate"), F.lit(sample.affiliates))


def _platform(sample: Sample) -> Column:
    return F.element_at(F.array(*map(F.lit, PLATFORMS)), (F.pmod(_hash(sample, "platform"), F.lit(4)) + 1).cast("int"))


def _post() -> Column:
    return F.format_string("post-%012d", F.col("id"))


def _true(sample: Sample) -> dict[str, Column]:
    views = F.pmod(_hash(sample, "views"), F.lit(90_000)) + 1_000
    return {"views": views, "clicks": F.floor(views / 20), "conversions": F.floor(views / 400)}


def _reported_at_ms(sample: Sample) -> Column:
    return F.lit(sample.until_ms) - F.pmod(_hash(sample, "at"), F.lit(12 * 3_600_000))
