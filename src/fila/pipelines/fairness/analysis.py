"""Fairness analytics: a journal in, tables and a page for people out.

windows        one row for each queue, key and window: got, owed, wanted, waits, retries, cost
keys           the same over the whole time
jain           the fairness of each queue and window, in one number
starvation     who was starved, from when to when, and by whom
conservation   the books of each queue
broken         messages whose history cannot be, and counts that do not add up; empty when all is well
"""

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.fairness import history, journal, shares
from fila.pipelines.fairness import waits as waiting
from fila.pipelines.fairness.shares import Span
from fila.pipelines.files import Files
from fila.pipelines.pages import fairness as page
from fila.pipelines.progress import Say, described
from fila.pipelines.runs import Manifest, Runs

Tables = dict[str, DataFrame]
_ENDS = ("acked", "dropped", "deleted", "dead", "pending")
"""What becomes of messages."""
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
        with described(spark, "fila fairness", say) as tell:
            return _analyse(spark, out, now_ms, files, broker, window_s, tell)
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
    before = runs.last()
    run = before.run + 1 if before else 1
    with runs.stage(run) as staged:
        if broker is not None:
            say(f"reading the journal of {broker}")
            journal.export(spark, broker, f"{staged}/journal")
            paths = [f"{staged}/journal"]
        else:
            paths = journal.files(store, files or "")
        entries = journal.read(spark, paths).persist()
        try:
            tables, summary = _write(entries, staged, window_s, say)
        finally:
            entries.unpersist()
        manifest = Manifest(
            run=run,
            as_of_ms=now_ms,
            rules={"window_s": summary["window_s"]},
            inputs={"journal": {broker or path: (0, 0) for path in ([broker] if broker else paths)}},
            summary=summary,
        )
        say("drawing")
        store.write(f"{staged}/report.html", page.render(page.figures(tables, summary), manifest))
        folder = runs.publish(staged, manifest)
    report = f"{runs.out}/report.html"
    store.write(report, store.read(f"{folder}/report.html"))
    say("published")
    return Findings(folder, report, summary)


def _write(entries: DataFrame, staged: str, window_s: float | None, say: Say) -> tuple[Tables, dict[str, Any]]:
    """Writes all tables. Returns them, and what they come to."""
    whole = entries.agg(
        F.count("*").alias("entries"),
        F.min("at_ns").alias("first"),
        F.max("at_ns").alias("last"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
    ).first()
    if whole is None or not whole.entries:
        raise BadInput("the journal is empty")
    span = Span(whole.first, whole["last"] + 1, _window_ns(whole["last"] + 1 - whole.first, window_s))
    say("following messages")
    steps = history.steps(entries).persist()
    stays = history.stays(steps, entries, span.end_ns).persist()
    waits = waiting.waits(stays, steps, entries).persist()
    try:
        say("sharing out")
        cells = shares.cells(shares.demand(stays, span), shares.events(steps, span), span)
        cells = _save(cells, f"{staged}/windows")
        say("splitting waits")
        tables = {
            "windows": cells,
            "jain": _save(shares.jain(cells), f"{staged}/jain"),
            "starvation": _save(shares.starvation(cells, waits, span), f"{staged}/starvation"),
            "keys": _save(shares.keys(cells, waits), f"{staged}/keys"),
        }
        say("proving that nothing was lost")
        tables |= _prove(entries, steps, history.ends(stays, steps), staged, span, complete=whole.first_seq == 1)
        counts = _counts(steps, history.ends(stays, steps), tables)
    finally:
        for each in (waits, stays, steps):
            each.unpersist()
    ended = {name: counts[name] for name in _ENDS}
    missing = int(whole.last_seq - whole.first_seq + 1 - whole.entries)
    return tables, {
        "entries": whole.entries,
        "first_ns": span.first_ns,
        "end_ns": span.end_ns,
        "window_s": span.window_ns / 1e9,
        "enqueued": counts["enqueued"],
        "carried": counts["messages"] - counts["enqueued"],
        **ended,
        "broken": counts["broken"],
        "missing_entries": missing,
        "conserved": counts["broken"] == 0 and missing == 0 and counts["messages"] == sum(ended.values()),
        "starved": counts["starvation"],
    }


def _prove(entries: DataFrame, steps: DataFrame, ends: DataFrame, staged: str, span: Span, *, complete: bool) -> Tables:
    """Writes the books and whatever contradicts them."""
    books, mismatched = history.balance(entries)
    there = ends.where(F.col("end").isin("dead", "pending")).groupBy("queue").agg(F.count("*").alias("seen"))
    books = books.join(there, "queue", "left").fillna(0, ["seen"])
    # Of a journal that begins later, messages that have not moved since are counted but not seen.
    unseen = F.col("seen") != F.col("holds") if complete else F.col("seen") > F.col("holds")
    books = _save(books.withColumn("balanced", ~unseen), f"{staged}/conservation")
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
    return {"conservation": books, "broken": _save(broken, f"{staged}/broken")}


def _counts(steps: DataFrame, ends: DataFrame, tables: Tables) -> Counter[str]:
    """How many messages there were, how many of them were enqueued, and ended how; how many rows tables have."""
    parts = [
        steps.where("was is null").select(F.lit("messages").alias("what")),
        steps.where("kind = 'enqueued'").select(F.lit("enqueued").alias("what")),
        ends.select(F.col("end").alias("what")),
        *(tables[name].select(F.lit(name).alias("what")) for name in ("starvation", "broken")),
    ]
    found = reduce(DataFrame.unionByName, parts).groupBy("what").count().collect()
    return Counter({row.what: row["count"] for row in found})


def _window_ns(length_ns: int, window_s: float | None) -> int:
    if window_s is None:
        window_s = next((nice for nice in _NICE_S if length_ns / 1e9 / nice <= _WINDOWS), _NICE_S[-1])
    elif length_ns / 1e9 / window_s > _MOST_WINDOWS:
        raise BadInput(
            f"windows of {window_s:g} s cut the journal into more than {_MOST_WINDOWS:,}: choose longer ones"
        )
    return max(1, round(window_s * 1e9))


def _save(frame: DataFrame, where: str) -> DataFrame:
    """Writes a table. Returns what is there now."""
    frame.write.parquet(where)
    return frame.sparkSession.read.schema(frame.schema).parquet(where)
