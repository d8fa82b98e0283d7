"""What messages waited for, from stays.

Rules of this file:
- A ready message waits for a consumer while its queue has none; for a throttle as long as the broker records when it
  delivers the message (`throttled_ns`); else for its turn.
- A throttle that holds the first message of a key holds those behind it too. Of these, while they wait, the broker has
  recorded nothing. So the hold-ups of a key are taken from its deliveries, and count for all its messages.
- A key whose last two deliveries were both released by a throttle is held again after the last one. Of other keys it is
  assumed, from their last delivery on, when there are consumers and none of them is busy with the queue.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from fila.pipelines.fairness import slices
from fila.pipelines.fairness.history import DELAYED, LEASED, READY

WAIT_CAUSES = ("delay", "no_consumer", "throttle", "fair_share")
"""What messages wait for."""
_KEY = ["queue", "key"]


def waits(stays: DataFrame, steps: DataFrame, journal: DataFrame) -> DataFrame:
    """Stays of waiting messages, each with what it waited for, in nanoseconds."""
    ready = stays.where(F.col("state") == READY)
    holdups = _holdups(ready)
    last = holdups.groupBy(*_KEY).agg(
        F.max("to_ns").alias("delivered_ns"), F.max_by("again", "to_ns").alias("held_again")
    )
    known = ready.join(last, _KEY, "left").withColumn("held_again", F.coalesce("held_again", F.lit(False)))
    split = known.join(_by_queue(known, steps, journal), ["queue", "from_seq"])
    split = split.join(_held(known, holdups, last), [*_KEY, "from_seq"], "left")
    whole, zero = F.col("to_ns") - F.col("from_ns"), F.lit(0).cast("bigint")
    assumed = F.when(F.col("held_again"), zero).otherwise(F.col("idle"))
    throttle = F.coalesce("throttled", F.coalesce("held", zero) + assumed)
    columns = (*_KEY, "message_id", "from_ns", "to_ns", "last")
    waited = split.withColumn("throttle", F.least(throttle, whole - F.col("no_consumer"))).select(
        *columns,
        zero.alias("delay"),
        "no_consumer",
        "throttle",
        (whole - F.col("no_consumer") - F.col("throttle")).alias("fair_share"),
    )
    delayed = stays.where(F.col("state") == DELAYED).select(
        *columns, whole.alias("delay"), *(zero.alias(name) for name in WAIT_CAUSES[1:])
    )
    return waited.unionByName(delayed)


def _holdups(ready: DataFrame) -> DataFrame:
    """Of each key, by moment of delivery: since when a throttle had held it; `again`: so had it the time before.

    A delivery tells of all hold-ups since its message was ready, those before the previous delivery included, which are
    taken off. What is left was between the two.
    """
    in_order = Window.partitionBy(*_KEY).orderBy("to_ns", "to_seq")
    before_ns = F.lag("to_ns").over(in_order)
    later = F.greatest(F.lit(0), F.col("from_ns") - F.lag("from_ns").over(in_order))
    overlap = F.lag("throttled").over(in_order) - later
    told_before = F.when(F.col("from_ns") < before_ns, F.greatest(F.lit(0), overlap)).otherwise(0)
    room = F.col("to_ns") - F.greatest(F.col("from_ns"), F.coalesce(before_ns, "from_ns"))
    length = F.least(F.greatest(F.lit(0), F.col("throttled") - told_before), room)
    moments = (
        ready.where(F.col("throttled").isNotNull())
        .withColumn("length", length)
        .groupBy(*_KEY, "to_ns")
        .agg(F.max("length").alias("length"))
    )
    held_before = F.lag(F.col("length") > 0, 1, False).over(Window.partitionBy(*_KEY).orderBy("to_ns"))
    return moments.withColumn("again", (F.col("length") > 0) & held_before).select(
        *_KEY, (F.col("to_ns") - F.col("length")).alias("since_ns"), "to_ns", "again"
    )


def _held(ready: DataFrame, holdups: DataFrame, last: DataFrame) -> DataFrame:
    """Of messages that were not delivered: for how long the hold-ups of their key lasted while they waited."""
    nothing = F.lit(None).cast("bigint").alias("from_seq")
    edges = [
        holdups.select(*_KEY, F.col("since_ns").alias("at_ns"), F.lit(1).alias("held")),
        holdups.select(*_KEY, F.col("to_ns").alias("at_ns"), F.lit(-1).alias("held")),
        last.where("held_again").select(*_KEY, F.col("delivered_ns").alias("at_ns"), F.lit(1).alias("held")),
    ]
    changes = reduce(DataFrame.unionByName, edges).withColumns({"from_seq": nothing, "side": F.lit(0)})
    waiting = ready.where(F.col("throttled").isNull())
    probes = [
        waiting.select(*_KEY, F.col(at).alias("at_ns"), F.lit(0).alias("held"), "from_seq", F.lit(side).alias("side"))
        for at, side in (("from_ns", -1), ("to_ns", 1))
    ]
    in_order = Window.partitionBy(*_KEY).orderBy("at_ns", "side", "held", "from_seq")
    timed = reduce(DataFrame.unionByName, [changes, *probes]).withColumn("now_held", F.sum("held").over(in_order))
    timed = timed.withColumn("lasted", _lasted(in_order))
    so_far = _so_far(timed, {"held": F.col("now_held") > 0}, in_order).where("from_seq is not null")
    return so_far.groupBy(*_KEY, "from_seq").agg(F.sum(F.col("held") * F.col("side")).alias("held"))


def _by_queue(ready: DataFrame, steps: DataFrame, journal: DataFrame) -> DataFrame:
    """Of each stay: how long its queue had no consumer; and, since the last delivery of its key, how long there were
    consumers of whom none was busy (`idle`).
    """
    nothing = F.lit(None).cast("bigint")
    changes = _consumers(ready, steps, journal).withColumns(
        {"from_seq": nothing, "side": F.lit(0), "idle_side": F.lit(0)}
    )
    ends = F.coalesce("to_seq", F.lit(2**62))
    since = F.greatest("from_ns", F.coalesce("delivered_ns", "from_ns"))
    probes = [
        _probe(ready, F.col("from_ns"), F.col("from_seq"), side=-1, idle_side=0),
        _probe(ready.where(F.col("throttled").isNull()), since, F.col("from_seq"), side=0, idle_side=-1),
        _probe(ready, F.col("to_ns"), ends, side=1, idle_side=1),
    ]
    in_order = Window.partitionBy("queue", slices.SLICE).orderBy("at_ns", "seq")
    sliced = slices.by_time(reduce(DataFrame.unionByName, [changes, *probes]))
    sliced = slices.with_sums_before(slices.with_neighbours(sliced, "consumers"), {"busy": F.col("busy")})
    now_there = F.coalesce(F.last("consumers", ignorenulls=True).over(in_order), "consumers_before", F.lit(0))
    timed = sliced.withColumns(
        {
            "now_busy": F.col("busy_before") + F.sum("busy").over(in_order),
            "now_there": now_there,
            "lasted": _lasted(in_order, F.col("next_ns")),
        }
    )
    there = F.col("now_there") > 0
    states = {"nobody": ~there, "idle": there & (F.col("now_busy") == 0)}
    timed = slices.with_sums_before(timed, {name: _length(holds) for name, holds in states.items()})
    so_far = _so_far(timed, states, in_order)
    so_far = so_far.withColumns({name: F.col(name) + F.col(f"{name}_before") for name in states})
    return (
        so_far.where("from_seq is not null")
        .groupBy("queue", "from_seq")
        .agg(
            F.sum(F.col("nobody") * F.col("side")).alias("no_consumer"),
            F.sum(F.col("idle") * F.col("idle_side")).alias("idle"),
        )
    )


def _consumers(ready: DataFrame, steps: DataFrame, journal: DataFrame) -> DataFrame:
    """When a queue got or lost a consumer, and when one of them became busy with it or free again."""
    nothing = F.lit(None).cast("bigint").alias("consumers")
    busy = steps.where(F.col("state") == LEASED).select(
        F.col("queue_after").alias("queue"), "at_ns", "seq", F.lit(1).alias("busy"), nothing
    )
    free = steps.where(F.col("was") == LEASED).select(
        F.col("queue_before").alias("queue"), "at_ns", "seq", F.lit(-1).alias("busy"), nothing
    )
    counted = journal.where(F.col("kind") == "consumers").select(
        "queue", "at_ns", "seq", F.lit(0).alias("busy"), F.col("count").alias("consumers")
    )
    started = (
        journal.where(F.col("kind") == "started")
        .select("at_ns", "seq", F.lit(0).alias("busy"), F.lit(0).cast("bigint").alias("consumers"))
        .crossJoin(ready.select("queue").distinct())
    )
    return busy.unionByName(free).unionByName(counted).unionByName(started)


def _probe(stays: DataFrame, at_ns: Column, seq: Column, *, side: int, idle_side: int) -> DataFrame:
    """A look at the sums so far, at a moment of each stay: how often they count for it."""
    return stays.select(
        *("queue", at_ns.alias("at_ns"), seq.alias("seq"), F.lit(0).alias("busy")),
        F.lit(None).cast("bigint").alias("consumers"),
        *("from_seq", F.lit(side).alias("side"), F.lit(idle_side).alias("idle_side")),
    )


def _so_far(timed: DataFrame, states: dict[str, Column], in_order: WindowSpec) -> DataFrame:
    """Of each state, for how long it has held before each row."""
    # Up to but without each row: what lasts from it on is not yet over there.
    until = in_order.rowsBetween(Window.unboundedPreceding, -1)
    sums = {name: F.coalesce(F.sum(_length(holds)).over(until), F.lit(0)) for name, holds in states.items()}
    return timed.withColumns(sums)


def _lasted(in_order: WindowSpec, end: Column | None = None) -> Column:
    """From each row to the next one, or to the end where there is none."""
    following = F.lead("at_ns").over(in_order)
    following = following if end is None else F.coalesce(following, end)
    return F.coalesce(following - F.col("at_ns"), F.lit(0))


def _length(holds: Column) -> Column:
    return F.when(holds, F.col("lasted")).otherwise(0)
