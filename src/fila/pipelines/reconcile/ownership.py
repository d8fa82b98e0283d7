"""A post belongs to the affiliate who reported it first, as in the API (`post_taken`).

Reports of one run are ordered by receipt, then by the time they are of, then by id; those of earlier runs come first.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_POST = ("platform", "post_id")
_MANY = 200_000


def split(reports: DataFrame, earlier: DataFrame | None) -> tuple[DataFrame, DataFrame | None]:
    """The reports of posts that are their affiliate's own, and those of posts that are another's (None: no such).

    `earlier` are the accepted reports of all runs before. Nearly all posts have one affiliate. So affiliates are
    compared by hash, which moves 16 bytes a report, and only the posts of several are sorted out.
    """
    everything = reports if earlier is None else reports.unionByName(earlier)
    several = (
        everything.groupBy(_post_hash().alias("h"))
        .agg(F.min(_affiliate_hash()).alias("one"), F.max(_affiliate_hash()).alias("other"))
        .where("one != other")
        .select("h")
    )
    found = several.limit(_MANY + 1).collect()
    if not found:
        return reports, None
    if len(found) <= _MANY:
        several = F.broadcast(reports.sparkSession.createDataFrame([(row.h,) for row in found], "h bigint"))
    owned = _owned(_contested(reports, several), None if earlier is None else _contested(earlier, several))
    alone = reports.withColumn("h", _post_hash()).join(several, "h", "left_anti").drop("h")
    mine = F.col("owner") == F.col("affiliate_id")
    return alone.unionByName(owned.where(mine).drop("owner")), owned.where(~mine).drop("owner")


def _owned(reports: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """Reports, each with the `owner` of its post."""
    order = F.struct("submitted_at_ms", "reported_at_ms", "report_id")
    claims = reports.select(*_POST, "affiliate_id", F.struct(F.lit(1), order).alias("order"))
    if earlier is not None:
        claims = claims.unionByName(earlier.select(*_POST, "affiliate_id", F.struct(F.lit(0), order).alias("order")))
    return reports.join(claims.groupBy(*_POST).agg(F.min_by("affiliate_id", "order").alias("owner")), list(_POST))


def _contested(reports: DataFrame, several: DataFrame) -> DataFrame:
    return reports.withColumn("h", _post_hash()).join(several, "h", "left_semi").drop("h")


def _post_hash() -> Column:
    return F.xxhash64(*_POST)


def _affiliate_hash() -> Column:
    return F.xxhash64("affiliate_id")
