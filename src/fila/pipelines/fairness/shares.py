"""Who got what, who was entitled to what, and who was starved: from stays, by queue, key and window of time.

Rules of this file:
- Service is cost of leases, as the scheduler counts it.
- A key *wants* service while a message of it is ready. What a queue served in a window is owed to its keys by weight
  times the time that they wanted it. So a key that wanted nothing is owed nothing: being quiet is not being starved.
- A key *contends* in a window that it wanted service for nearly all of. Fairness is judged among those that contend.
- A starved key whose messages waited for a throttle nearly all the time was starved by it, and by no other key.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fila.pipelines.fairness.history import READY
from fila.pipelines.fairness.waits import WAIT_CAUSES

CONTENDS = 0.9
"""The part of a window that a key must want service for."""
STARVED_BELOW = 0.5
"""A key that contends and gets less than this part of what it is owed is starved."""
STARVED_FROM = 5
"""Less than this cost owed in a window says nothing."""
LIMITED_FROM = 0.8
"""A starved key whose waits were a throttle's for this part, or more, was starved by the throttle."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is looked at, and how it is cut."""

    first_ns: int
    end_ns: int
    window_ns: int

    def window(self, at_ns: Column) -> Column:
        """The number of the window that a moment is in."""
        return F.call_function("div", at_ns - self.first_ns, F.lit(self.window_ns).cast("bigint"))

    def start_ns(self, window: Column) -> Column:
        return window * self.window_ns + self.first_ns

    def length_ns(self, window: Column) -> Column:
        """All windows are of one length, but for the last."""
        return F.least(self.start_ns(window) + self.window_ns, F.lit(self.end_ns)) - self.start_ns(window)

    @property
    def windows(self) -> int:
        return max(1, -(-(self.end_ns - self.first_ns) // self.window_ns))


def demand(stays: DataFrame, span: Span) -> DataFrame:
    """How long each key wanted service, by window: the time that at least one message of it was ready."""
    by_key = Window.partitionBy("queue", "key").orderBy("from_ns", "from_seq")
    before = by_key.rowsBetween(Window.unboundedPreceding, -1)
    within = stays.withColumn("from_ns", F.greatest("from_ns", F.lit(span.first_ns)))
    ready = within.where((F.col("state") == READY) & (F.col("to_ns") > F.col("from_ns")))
    marked = ready.withColumn("covered", F.max("to_ns").over(before)).withColumn(
        "island", F.sum((F.col("covered").isNull() | (F.col("from_ns") > F.col("covered"))).cast("int")).over(by_key)
    )
    islands = marked.groupBy("queue", "key", "island").agg(
        F.min("from_ns").alias("from_ns"), F.max("to_ns").alias("to_ns"), F.max("weight").alias("weight")
    )
    cut = islands.withColumn(
        "window", F.explode(F.sequence(span.window(F.col("from_ns")), span.window(F.col("to_ns") - 1)))
    )
    start = span.start_ns(F.col("window"))
    part = F.least(F.col("to_ns"), start + span.window_ns) - F.greatest(F.col("from_ns"), start)
    return cut.groupBy("queue", "key", "window").agg(F.sum(part).alias("wanted_ns"), F.max("weight").alias("weight"))


def events(steps: DataFrame, span: Span) -> DataFrame:
    """What happened to the messages of each key, by window."""
    kind = F.col("kind")
    counted = {
        "enqueued": kind == "enqueued",
        "leased": kind == "leased",
        "acked": kind == "acked",
        "retries": kind.isin("nacked", "expired", "returned"),
        "dead": kind == "dead",
    }
    return steps.groupBy("queue", "key", span.window(F.col("at_ns")).alias("window")).agg(
        *(F.sum(holds.cast("bigint")).alias(name) for name, holds in counted.items()),
        F.sum(F.when(kind == "leased", F.col("cost")).otherwise(0)).alias("cost"),
        F.sum(F.when((kind == "leased") & (F.col("attempt") > 1), F.col("cost")).otherwise(0)).alias("retry_cost"),
        F.max("weight").alias("seen_weight"),
    )


def cells(demand: DataFrame, events: DataFrame, span: Span) -> DataFrame:
    """One row for each queue, key and window: what it got, what it was owed, and whether it was starved."""
    both = demand.join(events, ["queue", "key", "window"], "full").withColumns(
        {"weight": F.coalesce("weight", "seen_weight", F.lit(1)), "wanted_ns": F.coalesce("wanted_ns", F.lit(0))}
    )
    numbers = ("enqueued", "leased", "acked", "retries", "dead", "cost", "retry_cost")
    both = both.drop("seen_weight").fillna(0, list(numbers))
    queue = Window.partitionBy("queue", "window")
    claim = F.col("weight").cast("double") * F.col("wanted_ns")
    total, claims = F.sum("cost").over(queue), F.sum(claim).over(queue)
    owed = F.coalesce(F.try_divide(total * claim, claims), F.lit(0.0))
    contends = F.col("wanted_ns") >= CONTENDS * span.length_ns(F.col("window"))
    return both.withColumns(
        {
            "start_ns": span.start_ns(F.col("window")),
            "owed": owed,
            "share": F.try_divide("cost", total),
            "entitled": F.try_divide(owed, total),
            "contends": contends,
        }
    ).withColumn(
        "starved",
        F.col("contends") & (F.col("owed") >= STARVED_FROM) & (F.col("cost") < STARVED_BELOW * F.col("owed")),
    )


def jain(cells: DataFrame) -> DataFrame:
    """Jain's index of each queue and window, over service against what was owed: 1 is fair, 1/n is one taking all."""
    served = F.try_divide("cost", "owed")
    return (
        cells.where("contends and owed > 0")
        .groupBy("queue", "window", "start_ns")
        .agg(
            F.count("*").alias("keys"),
            F.try_divide(F.pow(F.sum(served), 2), F.count("*") * F.sum(served * served)).alias("jain"),
        )
        .where("keys > 1 and jain is not null")
    )


def starvation(cells: DataFrame, waits: DataFrame, span: Span) -> DataFrame:
    """Who was starved, from when to when, of how much, and by whom.

    `limited` is the part of its messages' waits in that time that a throttle can be to blame for. `by_whom` are the
    keys that got more than they were owed meanwhile; none where the throttle is to blame.
    """
    by_key = Window.partitionBy("queue", "key").orderBy("window")
    hit = cells.where("starved").withColumn("run", F.col("window") - F.row_number().over(by_key))
    stretches = hit.groupBy("queue", "key", "run").agg(
        F.min("window").alias("first_window"),
        F.max("window").alias("last_window"),
        F.sum("cost").alias("got"),
        F.sum("owed").alias("owed"),
        F.max("weight").alias("weight"),
    )
    others = cells.select(
        "queue", F.col("key").alias("other"), "window", (F.col("cost") - F.col("owed")).alias("excess")
    )
    pairs = (
        stretches.join(others, "queue")
        .where("window between first_window and last_window and other != key")
        .groupBy("queue", "key", "first_window", "other")
        .agg(F.sum("excess").alias("excess"))
        .where("excess > 0")
    )
    largest = F.slice(F.sort_array(F.collect_list(F.struct("excess", "other")), asc=False), 1, 3)
    by_whom = pairs.groupBy("queue", "key", "first_window").agg(largest.alias("top"))
    named = F.transform("top", lambda each: F.struct(each["other"].alias("key"), each["excess"].alias("excess")))
    began = span.start_ns(F.col("first_window"))
    ended = F.least(span.start_ns(F.col("last_window") + 1), F.lit(span.end_ns))
    within = F.least("to_ns", ended) - F.greatest("from_ns", began)
    blamed = F.least("throttle", within)  # when a limit held a message up is not told: it is taken to be here
    limited = (
        waits.join(F.broadcast(stretches), ["queue", "key"])
        .where(within > 0)
        .groupBy("queue", "key", "first_window")
        .agg(F.try_divide(F.sum(blamed), F.sum(within)).alias("limited"))
    )
    limited_by = F.coalesce("limited", F.lit(0.0))
    others_to_blame = F.when(limited_by < LIMITED_FROM, F.coalesce(named, F.array())).otherwise(F.array())
    one = ["queue", "key", "first_window"]
    return (
        stretches.join(by_whom, one, "left")
        .join(limited, one, "left")
        .select(
            *("queue", "key", "weight", "got", "owed"),
            began.alias("from_ns"),
            ended.alias("to_ns"),
            (F.col("last_window") - F.col("first_window") + 1).alias("windows"),
            others_to_blame.alias("by_whom"),
            limited_by.alias("limited"),
        )
    )


def keys(cells: DataFrame, waits: DataFrame) -> DataFrame:
    """One row for each queue and key, over the whole time."""
    sums = cells.groupBy("queue", "key").agg(
        F.max("weight").alias("weight"),
        *(F.sum(name).alias(name) for name in ("enqueued", "leased", "acked", "retries", "dead", "cost", "retry_cost")),
        F.sum("owed").alias("owed"),
        F.sum(F.col("starved").cast("bigint")).alias("starved_windows"),
    )
    whole = F.col("to_ns") - F.col("from_ns")
    waited = waits.groupBy("queue", "key").agg(
        *(F.sum(name).alias(f"{name}_ns") for name in WAIT_CAUSES),
        F.max(whole).alias("longest_wait_ns"),
        F.percentile_approx(whole, 0.95).alias("p95_wait_ns"),
    )
    queue = Window.partitionBy("queue")
    return sums.join(waited, ["queue", "key"], "left").withColumns(
        {
            "share": F.try_divide("cost", F.sum("cost").over(queue)),
            "entitled": F.try_divide("owed", F.sum("owed").over(queue)),
        }
    )
