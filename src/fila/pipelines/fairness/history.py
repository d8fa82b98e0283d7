"""Messages told from the journal: where each one was, from when to when, and whether that can be.

A journal entry takes a message from one state to the next. So two neighbouring entries of a message make a *stay*: it
was in this queue, in this state, between these moments. Waits, demand and service are all made of stays.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fila.pipelines.fairness import slices

COLUMNS = {
    **dict.fromkeys(("seq", "at_ns"), "bigint"),
    **dict.fromkeys(("kind", "queue", "fairness_key"), "string"),
    "weight": "bigint",
    "message_id": "string",
    **dict.fromkeys(("enqueued_at_ns", "attempt", "cost", "until_ns", "count"), "bigint"),
    "target": "string",
    "throttled_ns": "bigint",
}
"""The columns of an exported journal that are used here."""

READY, DELAYED, LEASED, GONE = "ready", "delayed", "leased", "gone"
WAITING = (READY, DELAYED)
_FAILED = ("nacked", "expired", "returned", "released")
_MOVED = ("dead", "redriven")
"""Messages of these go on in another queue."""
_LEFT = ("acked", *_MOVED, "dropped")
"""And with all of these they leave the one in which they were."""
_LEGAL = {
    "due": (DELAYED,),
    "leased": (READY,),
    "acked": (LEASED,),
    **dict.fromkeys(_FAILED, (LEASED,)),
    "dead": (LEASED, READY),  # a full queue drops what is ready
    "redriven": WAITING,
    "dropped": (READY, DELAYED, LEASED),
}
"""From which states a message may go on with an entry of each kind. `enqueued` is the first and only the first."""
KINDS = ("enqueued", *_LEGAL)
"""The entries of messages. Those of other kinds, which a newer broker may write, are left out."""


def steps(journal: DataFrame) -> DataFrame:
    """The entries of messages, each with the state that it leads to and the one that it comes from."""
    kind = F.col("kind")
    waits = F.when(F.col("until_ns") > F.col("at_ns"), DELAYED).otherwise(READY)
    state = (
        F.when(kind.isin("enqueued", *_FAILED), waits)
        .when(kind.isin("due", *_MOVED), READY)
        .when(kind == "leased", LEASED)
        .otherwise(GONE)
    )
    told = journal.where((F.col("message_id") != "") & kind.isin(*KINDS)).select(
        *("seq", "at_ns", "kind", "queue", "weight", "message_id", "enqueued_at_ns", "attempt", "cost", "throttled_ns"),
        F.col("fairness_key").alias("key"),
        state.alias("state"),
        F.when(kind.isin(*_MOVED), F.col("target")).otherwise(F.col("queue")).alias("queue_after"),
    )
    of_message = Window.partitionBy("message_id").orderBy("seq")
    return told.withColumns(
        {
            "was": F.lag("state").over(of_message),
            "queue_before": F.lag("queue_after").over(of_message),
            "next_seq": F.lead("seq").over(of_message),
            "next_ns": F.lead("at_ns").over(of_message),
            "next_kind": F.lead("kind").over(of_message),
            "next_throttled": F.lead("throttled_ns").over(of_message),
        }
    )


def stays(steps: DataFrame, journal: DataFrame, end_ns: int) -> DataFrame:
    """Where messages were: queue, key, weight, state, and from when to when. What goes on lasts until `end_ns`.

    Of a stay that ended with a delivery it is known for how long of it a throttle held the message up.
    """
    deleted = (
        journal.where(F.col("kind") == "deleted")
        .groupBy(F.col("queue").alias("queue_after"))
        .agg(F.collect_list(F.struct("seq", "at_ns")).alias("deletions"))
    )
    there = steps.where(F.col("state") != GONE).join(F.broadcast(deleted), "queue_after", "left")
    # A name may be given to a new queue, which may be deleted too: the first deletion after the entry is its queue's.
    gone = F.array_min(F.filter("deletions", lambda each: each["seq"] > F.col("seq")))
    return there.select(
        F.col("queue_after").alias("queue"),
        *("key", "weight", "cost", "message_id", "state", "attempt"),
        F.col("seq").alias("from_seq"),
        F.col("at_ns").alias("from_ns"),
        F.col("next_seq").alias("to_seq"),
        F.coalesce("next_ns", gone["at_ns"], F.lit(end_ns)).alias("to_ns"),
        (F.col("next_seq").isNull() & gone.isNotNull()).alias("deleted"),
        F.col("next_seq").isNull().alias("last"),
        F.when(F.col("next_kind") == "leased", F.col("next_throttled")).alias("throttled"),
    )


def broken(steps: DataFrame, first_ns: int) -> DataFrame:
    """Entries that cannot follow those before them: message, entry, and what is wrong.

    A message that was enqueued before the journal begins may begin with anything.
    """
    kind, was = F.col("kind"), F.col("was")
    illegal = reduce(
        Column.__or__,
        ((kind == name) & ~was.isin(*states) for name, states in _LEGAL.items()),
    )
    problem = F.coalesce(
        F.when((kind == "enqueued") & was.isNotNull(), F.lit("enqueued a second time")),
        F.when(
            (kind != "enqueued") & was.isNull() & (F.col("enqueued_at_ns") >= first_ns),
            F.concat(kind, F.lit(" without having been enqueued")),
        ),
        F.when(was.isNotNull() & illegal, F.concat(kind, F.lit(" while "), was)),
        F.when(
            was.isNotNull() & (F.col("queue_before") != F.col("queue")),
            F.concat(F.lit("was in "), F.col("queue_before")),
        ),
    )
    return (
        steps.withColumn("problem", problem)
        .where("problem is not null")
        .select("message_id", "seq", "at_ns", "queue", "key", "kind", "problem")
    )


def balance(journal: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The books of each queue, and where the broker's own counts do not agree with them.

    For each queue: held at the beginning + came in - went out = held at the end. The broker writes down now and then
    how many messages a queue holds (`counted`); each of these is held against the books.
    """
    kind = F.col("kind")
    moved = kind.isin(*_MOVED)
    names = ("enqueued", *_LEFT)
    here = journal.where(kind.isin(*names, "deleted", "counted", "created")).select(
        *("queue", "seq"),
        *((kind == name).cast("bigint").alias(name) for name in names),
        F.lit(0).cast("bigint").alias("moved_in"),
        F.when(kind == "deleted", F.col("count")).otherwise(0).alias("deleted"),
        F.when(kind == "counted", F.col("count")).when(kind == "created", F.lit(0)).alias("counted"),
    )
    zero = F.lit(0).cast("bigint")
    there = journal.where(moved).select(
        *(F.col("target").alias("queue"), "seq"),
        *(zero.alias(name) for name in names),
        F.lit(1).cast("bigint").alias("moved_in"),
        zero.alias("deleted"),
        F.lit(None).cast("bigint").alias("counted"),
    )
    entries = here.unionByName(there)
    came, went = F.col("enqueued") + F.col("moved_in"), F.lit(0)
    for name in (*_LEFT, "deleted"):
        went = went + F.col(name)
    in_order = Window.partitionBy("queue", slices.SLICE).orderBy("seq")
    running = slices.with_sums_before(slices.by_number(entries), {"net": came - went})
    running = running.withColumn("so_far", F.col("net_before") + F.sum(came - went).over(in_order))
    counted = running.where("counted is not null").select("queue", "seq", "counted", "so_far")
    base = counted.groupBy("queue").agg(F.min_by(F.col("counted") - F.col("so_far"), "seq").alias("base"))
    expected = F.col("base") + F.col("so_far")
    mismatched = (
        counted.join(base, "queue")
        .where(F.col("counted") != expected)
        .select("queue", "seq", "counted", expected.alias("expected"))
    )
    sums = entries.groupBy("queue").agg(
        *(F.sum(name).alias(name) for name in ("enqueued", "moved_in", *_LEFT, "deleted"))
    )
    sums = sums.join(base, "queue", "left").withColumn("held_before", F.coalesce("base", zero)).drop("base")
    return sums.withColumn("holds", F.col("held_before") + came - went), mismatched


def ends(stays: DataFrame, steps: DataFrame) -> DataFrame:
    """What became of messages, by the queue that they are, or ended, in."""
    last = steps.where("next_seq is null")
    gone = last.where(F.col("state") == GONE).select(
        F.col("queue_after").alias("queue"), "message_id", F.col("kind").alias("end")
    )
    buried = (
        steps.where(F.col("kind").isin(*_MOVED))
        .groupBy("message_id")
        .agg(F.max_by("kind", "seq").alias("move"))
        .where("move = 'dead'")
    )
    there = (
        stays.where("last")
        .join(buried, "message_id", "left")
        .select(
            "queue",
            "message_id",
            F.when(F.col("deleted"), "deleted")
            .when(F.col("move").isNotNull(), "dead")
            .otherwise(F.lit("pending"))
            .alias("end"),
        )
    )
    return gone.unionByName(there)
