"""What-if: a journal in; out come tables and a page of what happened, what the model makes of it, and what would be.

windows        one row for each variant, queue, key and window: service, demand, waits
keys           the same over the whole time, with the share and the 95th percentile of the waits
queues         one row for each variant and queue, with Jain's index
reproduction   one row for each part: how far the scheduler chose again what it chose
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas import functions
from pyspark.util import PythonEvalType

from fila.pipelines import journal
from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.fairness import shares
from fila.pipelines.files import Files
from fila.pipelines.pages import whatif as page
from fila.pipelines.progress import Say, described
from fila.pipelines.runs import Content, Runs
from fila.pipelines.whatif import parts, replay
from fila.pipelines.whatif.changes import Changes
from fila.pipelines.whatif.entries import COLUMNS, DAY_NS
from fila.pipelines.whatif.tally import STEPS

_WINDOWS = 60
_MOST_WINDOWS = 5_000
_SUMS = ("wanted_ns", "leased", "cost", "wait_ns", "backlog")


@dataclass(frozen=True, slots=True)
class Findings:
    """What the replay came to."""

    folder: str
    report: str
    summary: dict[str, Any]

    @property
    def failure(self) -> str | None:
        """Why the replay cannot be trusted, if it cannot."""
        found = self.summary["reproduction"]
        if not (found["different"] or found["unknown"]):
            return None
        wrong = f"{found['different']:,} deliveries were chosen otherwise, {found['unknown']:,} entries cannot be"
        return f"the replay of what happened does not agree with the journal: {wrong}; see the end of the page"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the journal is; one of them is given."""

    files: str | None = None
    broker: str | None = None
    archive: str | None = None

    @property
    def name(self) -> str:
        return self.files or self.broker or self.archive or ""

    def read(self, spark: SparkSession, folder: str) -> DataFrame:
        """The entries, those of a broker as it is now. Raises BadInput, and FilaError."""
        if self.archive is not None:
            return journal.archived(spark, self.archive, COLUMNS)
        if self.broker is not None:
            journal.export(spark, self.broker, f"{folder}/journal", COLUMNS)
            return journal.read(spark, [f"{folder}/journal"], COLUMNS)
        return journal.read(spark, journal.files(Files(spark), self.files or ""), COLUMNS)


@dataclass(frozen=True, slots=True)
class Options:
    """What is replayed and how."""

    changes: Changes
    window_s: float | None = None
    by_day: bool = True


def whatif(
    spark: SparkSession,
    out: str,
    options: Options,
    *,
    now_ms: int,
    source: Source,
    say: Say = lambda _: None,
) -> Findings:
    """Replay a journal. Raises PipelineError, and FilaError."""
    try:
        with described(spark, "fila whatif", say) as tell:
            return _whatif(spark, out, options, now_ms, source, tell)
    except PySparkException as error:
        raise _refusal(error) from error


def _refusal(error: PySparkException) -> PipelineError:
    """What a replay refuses is an error of Python in a task: its last line says it."""
    lines = [line.strip() for line in str(error).splitlines()]
    refused = [line.partition("BadInput: ")[2] for line in lines if "errors.BadInput: " in line]
    if refused:
        return BadInput(refused[0])
    return PipelineError(f"Spark stopped: {next((line for line in lines if line), 'no reason given')}")


def _whatif(spark: SparkSession, out: str, options: Options, now_ms: int, source: Source, say: Say) -> Findings:
    def write(folder: str) -> Content:
        say(f"reading {source.name}")
        entries = source.read(spark, folder).persist()
        try:
            tables, summary = _write(entries, folder, options, say)
        finally:
            entries.unpersist()
        rules = {"changes": options.changes.told(), "window_s": summary["window_s"]}
        inputs = {"journal": {source.name: (0, 0)}}
        return Content(rules, inputs, summary, lambda manifest: page.render(page.figures(tables, summary), manifest))

    published, content = Runs(spark, out).add(now_ms, write, say)
    return Findings(published.folder, published.report, content.summary)


def _write(
    entries: DataFrame, folder: str, options: Options, say: Say
) -> tuple[Mapping[str, DataFrame], dict[str, Any]]:
    whole = entries.agg(
        F.count("*").alias("entries"),
        F.min("at_ns").alias("first"),
        F.max("at_ns").alias("last"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
    ).first()
    if whole is None or not whole.entries:
        raise BadInput("the journal is empty")
    if whole.last_seq - whole.first_seq + 1 != whole.entries:
        missing = whole.last_seq - whole.first_seq + 1 - whole.entries
        raise BadInput(f"{missing:,} entries of the journal are missing: a replay needs all of them, of all queues")
    _check_days(entries)
    span, window_ns = parts.Span(whole.first, whole["last"]), _window_ns(whole["last"] + 1 - whole.first, options)
    plan = replay.Plan(options.changes, span.first_ns, span.last_ns, window_ns, options.by_day, whole.first_seq == 1)
    say("finding what can be replayed apart")
    groups = parts.groups(entries)
    unknown = options.changes.queues - groups.keys()
    if unknown:
        raise BadInput(f"the journal has no queue {min(unknown)}")
    chosen = {groups[name] for name in options.changes.queues}
    groups = {name: number for name, number in groups.items() if not chosen or number in chosen}
    say("replaying")
    cut = parts.cut(entries, groups, span, by_day=options.by_day)
    count = len(set(groups.values())) * (len(span.days) if options.by_day else 1)
    tasks = max(1, min(2 * count, 16 * entries.sparkSession.sparkContext.defaultParallelism))
    ordered = cut.repartition(tasks, "part").sortWithinPartitions("part", "place", "seq", "enqueued_at_ns")
    rows = _save(_map_in_arrow(ordered, partial(replay.in_arrow, plan), replay.SCHEMA), f"{folder}/replayed")
    say("comparing")
    tables = _tables(rows, shares.Span(span.first_ns, span.last_ns + 1, window_ns))
    tables = {name: _save(frame, f"{folder}/{name}") for name, frame in tables.items()}
    return tables, {
        "changes": options.changes.told(),
        "entries": whole.entries,
        "first_ns": span.first_ns,
        "end_ns": span.last_ns + 1,
        "window_s": window_ns / 1e9,
        "parts": count,
        "reproduction": _reproduction(tables["reproduction"]),
        "queues": _queues(tables["queues"]),
    }


def _check_days(entries: DataFrame) -> None:
    """Raises BadInput where days do not follow each other. Inside a day the replay notices itself."""
    day = F.call_function("div", F.col("at_ns"), F.lit(DAY_NS).cast("bigint")).alias("day")
    found = entries.groupBy(day).agg(F.min("seq").alias("first"), F.max("seq").alias("last")).orderBy("day").collect()
    for before, after in pairwise(found):
        if before.last > after.first:
            raise BadInput(
                f"the broker's clock went back by a day or more after entry {after.first}, as it may when a broker is "
                "started: what came before cannot be replayed together with what came after"
            )


def _map_in_arrow(rows: DataFrame, function: Callable[[Any], Any], schema: str) -> DataFrame:
    """As `rows.mapInArrow` does it, which asks for pandas although it never uses it."""
    made_of: Any = functions  # what it has is no part of the types of PySpark
    in_arrow = made_of.vectorized_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = in_arrow(*(rows[name] for name in rows.columns))
    made = rows._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001
    return DataFrame(made, rows.sparkSession)


def _tables(rows: DataFrame, span: shares.Span) -> dict[str, DataFrame]:
    cells = rows.where("verdict is null")
    by_key = ["variant", "queue", "key"]
    windows = cells.groupBy(*by_key, "window").agg(
        F.max("weight").alias("weight"),
        *(F.sum(name).alias(name) for name in _SUMS),
        F.max("longest_ns").alias("longest_ns"),
    )
    last = (span.end_ns - 1 - span.first_ns) // span.window_ns
    keys = _whole(windows, by_key, last).join(_p95(cells, by_key), by_key, "left")
    cost = F.sum("cost").over(Window.partitionBy("variant", "queue"))
    by_queue = ["variant", "queue"]
    jain = reduce(DataFrame.unionByName, (_jain(windows, variant, span) for variant in replay.VARIANTS))
    queues = (
        _whole(windows, by_queue, last)
        .join(_p95(cells, by_queue), by_queue, "left")
        .join(jain.groupBy(*by_queue).agg(F.avg("jain").alias("jain")), by_queue, "left")
    )
    return {
        "windows": windows,
        "jain": jain,
        "keys": keys.withColumn("share", F.try_divide("cost", cost)),
        "queues": queues,
        "reproduction": rows.where("verdict is not null").select("part", "verdict"),
    }


def _whole(windows: DataFrame, by: list[str], last: int) -> DataFrame:
    """Over the whole time. The backlog is that of the end: the last window's."""
    at_the_end = F.when(F.col("window") == last, F.col("backlog")).otherwise(0)
    return (
        windows.withColumn("backlog", at_the_end)
        .groupBy(*by)
        .agg(
            *(F.sum(name).alias(name) for name in _SUMS),
            F.max("longest_ns").alias("longest_ns"),
            F.max("weight").alias("weight"),
        )
        .withColumn("mean_wait_ns", F.try_divide("wait_ns", "leased"))
    )


def _p95(cells: DataFrame, by: list[str]) -> DataFrame:
    """The 95th percentile of waits, from their classes: the middle of the class that it is in."""
    each = cells.select(*by, F.explode(F.arrays_zip("classes", "counts")).alias("of"))
    counted = each.groupBy(*by, F.col("of.classes").alias("class")).agg(F.sum("of.counts").alias("count"))
    upward = Window.partitionBy(*by).orderBy("class")
    whole = upward.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    reached = counted.withColumns({"so_far": F.sum("count").over(upward), "all": F.sum("count").over(whole)})
    found = reached.where("so_far >= 0.95 * all").groupBy(*by).agg(F.min("class").alias("class"))
    middle = F.lit(1000) * F.pow(F.lit(2.0), (F.col("class") - 0.5) / STEPS)
    return found.withColumn("p95_wait_ns", F.when(F.col("class") <= 0, 0).otherwise(middle)).drop("class")


def _jain(windows: DataFrame, variant: str, span: shares.Span) -> DataFrame:
    """By the definitions of the fairness analysis: service against what was owed."""
    mine = windows.where(F.col("variant") == variant)
    demand = mine.where("wanted_ns > 0").select("queue", "key", "window", "wanted_ns", "weight")
    nothing = {name: F.lit(0).cast("bigint") for name in ("enqueued", "acked", "retries", "dead", "retry_cost")}
    events = mine.withColumns(nothing).withColumn("seen_weight", F.col("weight"))
    names = ("queue", "key", "window", "enqueued", "leased", "acked", "retries", "dead", "cost", "retry_cost")
    events = events.select(*names, "seen_weight")
    return shares.jain(shares.cells(demand, events, span)).withColumn("variant", F.lit(variant))


def _reproduction(rows: DataFrame) -> dict[str, Any]:
    """All verdicts together."""
    shape = "alike bigint, different bigint, skipped bigint, unknown bigint, first array<string>"
    told = rows.select("part", F.from_json("verdict", shape).alias("told")).select("part", "told.*")
    names = ("alike", "different", "skipped", "unknown")
    sums = told.agg(*(F.sum(name).alias(name) for name in names)).first()
    first = [row.first for row in told.where("size(first) > 0").orderBy("part").limit(5).select("first").collect()]
    counted = {name: (getattr(sums, name) if sums is not None else 0) or 0 for name in names}
    return counted | {"first": [text for texts in first for text in texts][:10]}


def _queues(rows: DataFrame) -> list[dict[str, Any]]:
    """For people: those with most deliveries."""
    names = ("leased", "cost", "backlog", "mean_wait_ns", "p95_wait_ns", "longest_ns", "jain")
    most = rows.groupBy("queue").agg(F.max("cost").alias("most")).orderBy(F.desc("most"), "queue").limit(20)
    found: dict[str, dict[str, Any]] = {row.queue: {"queue": row.queue} for row in most.collect()}
    for row in rows.where(F.col("queue").isin(*found)).collect():
        found[row.queue][row.variant] = {name: row[name] for name in names}
    return list(found.values())


def _window_ns(length_ns: int, options: Options) -> int:
    if options.window_s is None:
        return max(1, -(-length_ns // _WINDOWS))
    if length_ns / 1e9 / options.window_s > _MOST_WINDOWS:
        raise BadInput(
            f"windows of {options.window_s:g} s cut the journal into more than {_MOST_WINDOWS:,}: choose longer ones"
        )
    return max(1, round(options.window_s * 1e9))


def _save(frame: DataFrame, where: str) -> DataFrame:
    """Writes a table. Returns what is there now."""
    frame.write.parquet(where)
    return frame.sparkSession.read.schema(frame.schema).parquet(where)
