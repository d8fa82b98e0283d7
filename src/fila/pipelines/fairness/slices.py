"""Sums over all entries of a queue so far, in slices: a window over a whole queue would be one task.

Entries are cut into slices that follow each other. Inside a slice a window does the work; what it begins with are the
sums of the slices before it, of which there is a row each.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

SLICE = "slice"
ENTRIES = 100_000
"""Of a slice by number"""
LENGTH_NS = 10_000_000_000
"""Of a slice by time"""
_WHERE = ["queue", SLICE]


def by_number(rows: DataFrame) -> DataFrame:
    return rows.withColumn(SLICE, F.call_function("div", F.col("seq"), F.lit(ENTRIES).cast("bigint")))


def by_time(rows: DataFrame) -> DataFrame:
    return rows.withColumn(SLICE, F.call_function("div", F.col("at_ns"), F.lit(LENGTH_NS).cast("bigint")))


def with_sums_before(rows: DataFrame, sums: Mapping[str, Column]) -> DataFrame:
    """Each row with the sums over all slices of its queue before its own, as NAME_before."""
    each = rows.groupBy(*_WHERE).agg(*(F.sum(value).alias(name) for name, value in sums.items()))
    earlier = Window.partitionBy("queue").orderBy(SLICE).rowsBetween(Window.unboundedPreceding, -1)
    before = [F.coalesce(F.sum(name).over(earlier), F.lit(0)).alias(f"{name}_before") for name in sums]
    return rows.join(each.select(*_WHERE, *before), _WHERE)


def with_neighbours(rows: DataFrame, last: str) -> DataFrame:
    """Each row with the last value of a column in the slices before its own, and the time at which the next begins."""
    order = F.when(F.col(last).isNotNull(), F.struct("at_ns", "seq"))
    each = rows.groupBy(*_WHERE).agg(F.max_by(last, order).alias("last"), F.min("at_ns").alias("begins"))
    in_order = Window.partitionBy("queue").orderBy(SLICE)
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    edges = each.select(
        *_WHERE,
        F.last("last", ignorenulls=True).over(earlier).alias(f"{last}_before"),
        F.lead("begins").over(in_order).alias("next_ns"),
    )
    return rows.join(edges, _WHERE)
