"""What is replayed by itself, as tables: the journal cut into parts, and the rows of each in the order of a replay.

A part is a *group* of queues on one day (UTC). Queues that share a throttle key are of one group, as are a queue and
its dead-letter queue: nothing else connects queues. A part holds
- the entries of its queues and of its day;
- the settings from before, as they were told;
- a row `carried` for each message that was there when the day began, or that the journal has from the middle;
- with each message that appears, what became of its deliveries (`holds`).

Nothing passes through the driver but the names of queues and which throttles they share.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fila.pipelines.whatif.entries import CARRIED, COLUMNS, DAY_NS, DELAYED, LEASED, OF_MESSAGES, READY

HOLDS = "array<struct<seq: bigint, ns: bigint, kind: string, delay: bigint, alone: bigint>>"
_FAILED = ("nacked", "expired", "returned", "released")
_MOVED = ("dead", "redriven")
_SETTINGS = ("created", "counted", "updated", "deleted", "configured")


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a journal."""

    first_ns: int
    last_ns: int

    @property
    def days(self) -> range:
        return range(self.first_ns // DAY_NS, self.last_ns // DAY_NS + 1)


def groups(journal: DataFrame) -> dict[str, int]:
    """The number of the group of each queue."""
    throttles = F.from_json(F.col("note"), "throttles array<string>")["throttles"]
    told = journal.where("kind = 'enqueued' and note != ''").select("queue", F.explode(throttles).alias("throttle"))
    shared = (
        told.groupBy("throttle").agg(F.sort_array(F.collect_set("queue")).alias("queues")).where("size(queues) > 1")
    )
    together = [row.queues for row in shared.select("queues").distinct().collect()]
    moved = journal.where("target != ''").select("queue", "target").distinct().collect()
    together += [[row.queue, row.target] for row in moved]
    queues = [row.queue for row in journal.where("queue != ''").select("queue").distinct().collect()]
    together += [[name, source] for name in queues if (source := name.removesuffix(".dlq")) != name]
    return _joined(sorted(queues), together)


def _joined(queues: Iterable[str], together: Iterable[Iterable[str]]) -> dict[str, int]:
    leader = {name: name for name in queues}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for names in together:
        first, *others = names
        for other in others:
            leader[find(other)] = find(first)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(find(name), len(numbers)) for name in list(leader)}


def cut(journal: DataFrame, group_of: dict[str, int], span: Span, *, by_day: bool) -> DataFrame:
    """The rows of all parts: `part`, `place`, the columns of an entry, and `holds`. A part begins with what is told
    again, then with messages that were there; inside a place the order is that of the journal.
    """
    names = journal.sparkSession.createDataFrame(list(group_of.items()), "of string, group int")
    first = span.days.start
    day = F.floor(F.col("at_ns") / DAY_NS).cast("int") if by_day else F.lit(first)
    entries = journal.withColumn("day", day)
    steps = _steps(entries.where((F.col("message_id") != "") & F.col("kind").isin(*OF_MESSAGES)))
    holds = _holds(steps)
    others = entries.where("kind != 'enqueued'").withColumn("holds", _none())
    rows = others.select(*COLUMNS, "day", "holds")
    rows = rows.unionByName(_with_later(steps.where("kind = 'enqueued'").withColumn("holds", _none()), holds))
    rows = rows.unionByName(_begun(steps, holds, span, by_day=by_day))
    if by_day and len(span.days) > 1:
        rows = rows.unionByName(_stayed(steps, holds, span)).unionByName(_settings(entries, span.days))
    mine = rows.join(F.broadcast(names), F.col("queue") == F.col("of")).drop("of")
    common = rows.where("queue = ''").crossJoin(F.broadcast(names.select("group").distinct()))
    part, kind = F.format_string("%d:%d", "group", "day").alias("part"), F.col("kind")
    again = F.col("at_ns") < F.col("day").cast("bigint") * DAY_NS
    place = F.when(kind == CARRIED, 1).when(again, 0).otherwise(2).alias("place")
    return mine.unionByName(common).select(part, place, *COLUMNS, "holds")


def _begun(steps: DataFrame, holds: DataFrame, span: Span, *, by_day: bool) -> DataFrame:
    """Messages that the journal has from the middle: they were there when it began."""
    kind, first = F.col("kind"), span.days.start
    days = F.sequence(F.lit(first), F.col("day")) if by_day else F.array(F.lit(first))
    rows = steps.where("before is null and kind != 'enqueued'").withColumn("to", F.explode(days))
    at = F.greatest(F.lit(span.first_ns), F.col("to").cast("bigint") * DAY_NS)
    place = (
        F.when(kind == "due", DELAYED)
        .when(kind.isin("acked", *_FAILED) | ((kind == "dead") & (F.col("cause") != "dropped")), LEASED)
        .otherwise(READY)
    )
    delay = _delay(F.col("until_ns"), F.col("at_ns"))
    ends = F.array(_hold(F.lit(0), F.col("at_ns") - at, kind, delay, F.col("count")))
    there = rows.withColumns(
        {
            "holds": F.when(place == LEASED, ends).otherwise(_none()),
            "cause": place,
            "attempt": F.greatest(F.col("attempt") - 1, F.lit(0)),
            "until_ns": F.when(place == DELAYED, F.col("until_ns")).otherwise(F.lit(0)),
            "count": F.lit(0).cast("bigint"),
            "began": at,
            "day": F.col("to"),
        }
    )
    return _as_carried(there, holds, itself=True)


def _stayed(steps: DataFrame, holds: DataFrame, span: Span) -> DataFrame:
    """For each day but the first the messages that were there when it began, and had been told about."""
    kind = F.col("kind")
    last_day = F.coalesce(F.col("next_day"), F.lit(span.days.stop - 1))
    over = steps.where(~kind.isin("acked", "dropped")).where(last_day > F.col("day"))
    over = over.withColumn("to", F.explode(F.sequence(F.col("day") + 1, last_day)))
    start = F.col("to").cast("bigint") * DAY_NS
    place = (
        F.when(kind == "leased", LEASED)
        .when(kind.isin("enqueued", *_FAILED) & (F.col("until_ns") > 0), DELAYED)
        .otherwise(READY)
    )
    ends = F.array(_ending(F.lit(0), F.col("next_at") - start))
    there = over.withColumns(
        {
            "holds": F.when(place == LEASED, ends).otherwise(_none()),
            "queue": F.when(kind.isin(*_MOVED), F.col("target")).otherwise(F.col("queue")),
            "attempt": F.when(kind.isin("leased", "due"), F.col("attempt") - 1)
            .when(kind.isin("enqueued", "redriven"), F.lit(0))
            .otherwise(F.col("attempt")),
            "until_ns": F.when(place == DELAYED, F.col("until_ns")).otherwise(F.lit(0)),
            "count": F.when(kind.isin(*_FAILED), F.col("count")).otherwise(F.lit(0)),
            "cause": place,
            "began": start,
            "day": F.col("to"),
        }
    )
    return _as_carried(there, holds, itself=False)


def _settings(entries: DataFrame, days: range) -> DataFrame:
    """Settings of earlier days, told again to each later one; of consumers only the last."""
    newest_first = Window.partitionBy("queue", "day").orderBy(F.desc("seq"))
    lasting = entries.where(F.col("kind").isin(*_SETTINGS))
    consumers = (
        entries.where("kind = 'consumers'").withColumn("n", F.row_number().over(newest_first)).where("n = 1").drop("n")
    )
    told = lasting.unionByName(consumers)
    later = told.withColumn("day", F.explode(F.sequence(F.col("day") + 1, F.lit(days.stop))))
    return later.where(F.col("day") < days.stop).select(*COLUMNS, "day").withColumn("holds", _none())


def _steps(messages: DataFrame) -> DataFrame:
    """The entries of messages, each with what came next, and with what the message keeps: its throttles and cost."""
    of_message = Window.partitionBy("enqueued_at_ns").orderBy("seq")
    whole = of_message.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return messages.withColumns(
        {
            "before": F.lag("kind").over(of_message),
            "next_kind": F.lead("kind").over(of_message),
            "next_at": F.lead("at_ns").over(of_message),
            "next_day": F.lead("day").over(of_message),
            "next_delay": _delay(F.lead("until_ns").over(of_message), F.lead("at_ns").over(of_message)),
            "next_count": F.lead("count").over(of_message),
            "note": F.max(F.when(F.col("kind") == "enqueued", F.col("note")).otherwise("")).over(whole),
            "cost": F.greatest(F.max("cost").over(whole), F.lit(1)),
        }
    )


def _holds(steps: DataFrame) -> DataFrame:
    """For each message what became of its deliveries, in order."""
    leases = steps.where("kind = 'leased'").withColumn("hold", _ending(F.col("seq"), F.col("next_at") - F.col("at_ns")))
    return leases.groupBy(F.col("enqueued_at_ns").alias("held")).agg(F.sort_array(F.collect_list("hold")).alias("all"))


def _ending(seq: Column, ns: Column) -> Column:
    """How a delivery ended with the next entry of its message, if there is one."""
    ended = _hold(seq, ns, F.col("next_kind"), F.col("next_delay"), F.col("next_count"))
    return F.when(F.col("next_at").isNotNull(), ended).otherwise(_hold(seq, F.lit(-1), F.lit(""), F.lit(0), F.lit(0)))


def _with_later(rows: DataFrame, holds: DataFrame, *, itself: bool = False) -> DataFrame:
    """Behind the holds that rows have already those of deliveries after them, or of `itself` too if it is one."""
    joined = rows.join(holds, F.col("enqueued_at_ns") == F.col("held"), "left")
    first = F.col("seq") - 1 if itself else F.col("seq")
    later = F.coalesce(F.filter("all", lambda hold: hold["seq"] > first), _none())
    return joined.withColumn("holds", F.concat("holds", later)).select(*COLUMNS, "day", "holds")


def _as_carried(rows: DataFrame, holds: DataFrame, *, itself: bool) -> DataFrame:
    """Messages that are there when a part begins, from the entry with which that is told."""
    told = _with_later(rows.withColumn("at_ns", F.col("began")), holds, itself=itself)
    return told.withColumns({"kind": F.lit(CARRIED), "seq": F.lit(0).cast("bigint"), "target": F.lit("")})


def _hold(seq: Column, ns: Column, kind: Column, delay: Column, alone: Column) -> Column:
    parts = (seq.cast("bigint"), ns.cast("bigint"), kind, delay.cast("bigint"), alone.cast("bigint"))
    names = ("seq", "ns", "kind", "delay", "alone")
    return F.struct(*(part.alias(name) for part, name in zip(parts, names, strict=True)))


def _none() -> Column:
    return F.array().cast(HOLDS)


def _delay(until: Column, at: Column) -> Column:
    return F.greatest(until - at, F.lit(0))
