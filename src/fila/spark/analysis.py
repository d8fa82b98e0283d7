"""Fairness analytics: a journal in, tables and a page for people out.

windows        one row for each queue, key and window: got, owed, wanted, waits, retries, cost
keys           the same over the whole time
jain           the fairness of each queue and window, in one number
starvation     who was starved, from when to when, and by whom
conservation   the books of each queue
broken         messages whose history cannot be, and counts that do not add up; empty when all is well
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.spark import fairness, history, journal
from fila.spark.errors import BadInput, PipelineError
from fila.spark.fairness import Span
from fila.spark.files import Files
from fila.spark.pages import fairness as page
from fila.spark.runs import Manifest, Runs

Say = Callable[[str], None]
_WINDOWS = 60
_NICE_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
_MOST_WINDOWS = 5_000


@dataclass(frozen=True, slots=True)
class Findings:
    """What the analysis came to."""

    folder: str
    report: str
    summary: dict[str, Any]


def analyse(
    spark: SparkSession,
    out: str,
    *,
    now_ms: int,
    files: str | None = None,
    broker: str | None = None,
    window_s: float | None = None,
    say: Say = lambda _: None,
) -> Findings:
    """Analyse exported files, or the journal of a broker as it is now. Raises PipelineError, and FilaError."""
    try:
        return _analyse(spark, out, now_ms, files, broker, window_s, say)
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error


def _analyse(
    spark: SparkSession,
    out: str,
    now_ms: int,
    files: str | None,
    broker: str | None,
    window_s: float | None,
    say: Say,
) -> Findings:
    store = Files(spark)
    runs = Runs(store, out)
    with runs.stage() as staged:
        if broker is not None:
            say(f"reading the journal of {broker}")
            journal.export(spark, broker, f"{staged}/journal")
            paths = [f"{staged}/journal"]
        else:
            paths = journal.files(store, files or "")
        entries = journal.read(spark, paths).persist()
        try:
            summary = _write(spark, entries, staged, window_s, say)
        finally:
            entries.unpersist()
        before = runs.last()
        manifest = Manifest(
            run=before.run + 1 if before else 1,
            as_of_ms=now_ms,
            rules={"window_s": summary["window_s"]},
            inputs={"journal": {broker or path: (0, 0) for path in ([broker] if broker else paths)}},
            summary=summary,
        )
        say("drawing")
        shown = page.figures(spark, staged, summary)
        store.write(f"{staged}/report.html", page.render(shown, manifest))
        folder = runs.publish(staged, manifest)
    report = f"{runs.out}/report.html"
    store.write(report, store.read(f"{folder}/report.html"))
    say("published")
    return Findings(folder, report, summary)


def _write(spark: SparkSession, entries: DataFrame, staged: str, window_s: float | None, say: Say) -> dict[str, Any]:
    whole = entries.agg(
        F.count("*").alias("entries"),
        F.min("at_ns").alias("first"),
        F.max("at_ns").alias("last"),
        F.min("seq").alias("seq"),
    ).first()
    if whole is None or not whole.entries:
        raise BadInput("the journal is empty")
    span = Span(whole.first, whole["last"] + 1, _window_ns(whole["last"] + 1 - whole.first, window_s))
    say("following messages")
    steps = history.steps(entries).persist()
    stays = history.stays(steps, entries, span.end_ns).persist()
    try:
        waits = fairness.waits(stays, steps, entries)
        found = fairness.cells(fairness.demand(stays, span), fairness.events(steps, span), span)
        say("sharing out")
        _save(found, f"{staged}/windows")
        cells = spark.read.parquet(f"{staged}/windows")
        _save(fairness.jain(cells), f"{staged}/jain")
        _save(fairness.starvation(cells, span), f"{staged}/starvation")
        say("splitting waits")
        _save(fairness.keys(cells, waits), f"{staged}/keys")
        say("proving that nothing was lost")
        return _prove(spark, entries, steps, stays, staged, span, complete=whole.seq == 1) | {"entries": whole.entries}
    finally:
        stays.unpersist()
        steps.unpersist()


def _prove(
    spark: SparkSession,
    entries: DataFrame,
    steps: DataFrame,
    stays: DataFrame,
    staged: str,
    span: Span,
    *,
    complete: bool,
) -> dict[str, Any]:
    """Writes the books and whatever contradicts them. Returns the summary."""
    books, mismatched = history.balance(entries)
    ends = history.ends(stays, steps).groupBy("queue").pivot("end", ["acked", "dropped", "deleted", "dead", "pending"])
    told = ends.count().fillna(0)
    there = told.select("queue", (F.col("dead") + F.col("pending")).alias("seen"))
    books = books.join(there, "queue", "left").fillna(0, ["seen"])
    # Of a journal that begins later, messages that have not moved since are counted but not seen.
    unseen = F.col("seen") != F.col("holds") if complete else F.col("seen") > F.col("holds")
    _save(books.withColumn("balanced", ~unseen), f"{staged}/conservation")
    books = spark.read.parquet(f"{staged}/conservation")
    none = F.lit("")
    broken = (
        history.broken(steps, span.first_ns)
        .select("message_id", "queue", "key", "seq", "problem")
        .unionByName(
            mismatched.select(
                none.alias("message_id"),
                "queue",
                none.alias("key"),
                "seq",
                F.format_string("the broker counted %d messages, its history says %d", "counted", "expected").alias(
                    "problem"
                ),
            )
        )
        .unionByName(
            books.where("not balanced").select(
                none.alias("message_id"),
                "queue",
                none.alias("key"),
                F.lit(0).cast("bigint").alias("seq"),
                F.format_string("%d messages are there, %d should be", "seen", "holds").alias("problem"),
            )
        )
    )
    _save(broken, f"{staged}/broken")
    total = told.agg(*(F.sum(name).alias(name) for name in ("acked", "dropped", "deleted", "dead", "pending"))).first()
    messages = steps.agg(
        F.count_distinct("message_id").alias("all"), F.sum((F.col("kind") == "enqueued").cast("bigint")).alias("new")
    ).first()
    missing = journal.gaps(entries)
    starved = spark.read.parquet(f"{staged}/starvation").count()
    assert total is not None  # aggregates have one row
    assert messages is not None
    ended = {name: int(total[name] or 0) for name in total.asDict()}
    breaks = spark.read.parquet(f"{staged}/broken").count()
    return {
        "first_ns": span.first_ns,
        "end_ns": span.end_ns,
        "window_s": span.window_ns / 1e9,
        "enqueued": int(messages.new or 0),
        "carried": int(messages["all"] - (messages.new or 0)),
        **ended,
        "broken": breaks,
        "missing_entries": missing,
        "conserved": breaks == 0 and missing == 0 and messages["all"] == sum(ended.values()),
        "starved": starved,
    }


def _window_ns(length_ns: int, window_s: float | None) -> int:
    if window_s is None:
        window_s = next((nice for nice in _NICE_S if length_ns / 1e9 / nice <= _WINDOWS), _NICE_S[-1])
    elif length_ns / 1e9 / window_s > _MOST_WINDOWS:
        raise BadInput(
            f"windows of {window_s:g} s cut the journal into more than {_MOST_WINDOWS:,}: choose longer ones"
        )
    return max(1, round(window_s * 1e9))


def _save(frame: DataFrame, where: str) -> None:
    frame.coalesce(2).write.parquet(where)
