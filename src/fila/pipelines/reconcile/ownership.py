"""A post belongs to the affiliate who reported it first, as in the API (`post_taken`).

Reports of one run are ordered by receipt, then by the time they are of, then by id; those of earlier runs come first.
Owners are kept for ever. A run reads those near the posts that it names (`ranges`).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fila.pipelines.reconcile import ranges

_POST = ["platform", "post_id"]
_MANY = 200_000


def of_posts(posts: DataFrame, reports: DataFrame) -> DataFrame:
    """The owners of the posts that these reports name."""
    named = reports.select(*_POST)
    return posts.where(ranges.near(named)).join(named.distinct(), _POST, "left_semi")


def with_known_owner(reports: DataFrame, posts: DataFrame) -> DataFrame:
    """Reports, each with the `owner` of its post, null where the post has none yet."""
    return reports.join(posts.select(*_POST, F.col("affiliate_id").alias("owner")), _POST, "left")


def owned(known: DataFrame) -> DataFrame:
    """The same, with an owner for every post: it goes to whoever reported it first."""
    new = known.where(F.col("owner").isNull()).drop("owner")
    return known.where(F.col("owner").isNotNull()).unionByName(_first(new))


def _first(reports: DataFrame) -> DataFrame:
    """Reports of posts without an owner, each with the owner that they come to.

    Nearly all posts have one affiliate. So affiliates are compared by hash, which moves 16 bytes a report, and only the
    posts of several are sorted out.
    """
    several = (
        reports.groupBy(_post_hash().alias("h"))
        .agg(F.min(_affiliate_hash()).alias("one"), F.max(_affiliate_hash()).alias("other"))
        .where("one != other")
        .select("h")
    )
    found = several.limit(_MANY + 1).collect()
    own = reports.withColumn("owner", F.col("affiliate_id"))
    if not found:
        return own
    if len(found) <= _MANY:
        several = F.broadcast(reports.sparkSession.createDataFrame([(row.h,) for row in found], "h bigint"))
    contested = reports.withColumn("h", _post_hash()).join(several, "h", "left_semi").drop("h")
    alone = own.withColumn("h", _post_hash()).join(several, "h", "left_anti").drop("h")
    order = F.struct("submitted_at_ms", "reported_at_ms", "report_id")
    owners = contested.groupBy(*_POST).agg(F.min_by("affiliate_id", order).alias("owner"))
    return alone.unionByName(contested.join(owners, _POST))


def _post_hash() -> Column:
    return F.xxhash64(*_POST)


def _affiliate_hash() -> Column:
    return F.xxhash64("affiliate_id")
