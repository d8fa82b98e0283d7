"""Which rows of a table are near given posts, as a condition by which Spark leaves out files and pages of files.

Delta Lake knows the least and the greatest key of each file, and Parquet those of each page. So posts are covered by a
few ranges, split where the gaps between posts are widest, and what lies between the ranges is not read. Ids that grow
with time, as those of most platforms do, need few: new posts lie behind all older ones.
"""

from functools import reduce
from itertools import pairwise
from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Post = tuple[str, str]
"""Platform and id. They are in the order of Spark: that of UTF-8 is that of Python."""
MOST = 64
"""Ranges. Spark plans and compiles so many in about a second; 256 took it 6, and 1,000 took 46."""
_SAMPLE = 10_000
"""Posts that the gaps are looked for between. All posts are covered, however many there are."""
_DIGITS = 16


def near(posts: DataFrame) -> Column:
    """Whether a row's `platform` and `post_id` lie in a range of these posts."""
    key = ("platform", "post_id")
    some = posts.select(*key).orderBy(F.xxhash64(*key)).limit(_SAMPLE).collect()
    number = _number(cuts({(row.platform, row.post_id) for row in some}))
    ranges = posts.groupBy("platform", number.alias("number")).agg(
        F.min("post_id").alias("low"), F.max("post_id").alias("high")
    )
    found = ranges.limit(2 * MOST + 1).collect()
    if len(found) > 2 * MOST:
        return F.lit(True)  # as many platforms
    return _any([(F.col("platform") == row.platform) & F.col("post_id").between(row.low, row.high) for row in found])


def cuts(posts: set[Post]) -> list[Post]:
    """The posts behind the widest gaps, in order."""
    ordered = sorted(posts)
    firsts = dict(reversed(ordered))
    shared = {platform: _shared(firsts[platform], post) for platform, post in ordered}  # the last of each counts

    def gap(neighbours: tuple[Post, Post]) -> float:
        (one, low), (other, high) = neighbours
        skipped = shared[one]
        return _place(high[skipped:]) - _place(low[skipped:]) if one == other else inf

    widest = sorted(pairwise(ordered), key=gap, reverse=True)[: MOST - 1]
    return sorted(after for _, after in widest)


def _shared(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _place(post: str) -> int:
    """Where an id lies among all, by its first characters."""
    return int.from_bytes(post.encode()[:_DIGITS].ljust(_DIGITS, b"\0"), "big")


def _number(cuts: list[Post], before: int = 0) -> Column:
    """How many of the cuts are not behind a row: found by halves, since there may be millions of rows."""
    if not cuts:
        return F.lit(before)
    middle = len(cuts) // 2
    platform, post = cuts[middle]
    is_before = (F.col("platform") < platform) | ((F.col("platform") == platform) & (F.col("post_id") < post))
    return F.when(is_before, _number(cuts[:middle], before)).otherwise(_number(cuts[middle + 1 :], before + middle + 1))


def _any(conditions: list[Column]) -> Column:
    """A tree of them: Spark goes through a chain by recursion."""
    while len(conditions) > 1:
        pairs = [conditions[at : at + 2] for at in range(0, len(conditions), 2)]
        conditions = [reduce(Column.__or__, pair) for pair in pairs]
    return conditions[0] if conditions else F.lit(False)
