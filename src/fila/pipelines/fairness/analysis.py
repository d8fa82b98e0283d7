"""Fairness analytics: a journal in, tables and a page for people out.

windows        one row for each queue, key and window: got, owed, wanted, waits, retries, cost
keys           the same over the whole time
jain           the fairness of each queue and window, in one number
starvation     who was starved, from when to when, and by whom
conservation   the books of each queue
broken         messages whose history cannot be, and counts that do not add up; empty when all is well
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines import journal
from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.fairness import history, shares
from fila.pipelines.fairness import waits as waiting
from fila.pipelines.fairness.history import COLUMNS
from fila.pipelines.fairness.shares import Span
from fila.pipelines.files import Files
from fila.pipelines.pages import fairness as page
from fila.pipelines.progress import Say, described
from fila.pipelines.runs import Content, ReadFiles, Runs

Tables = dict[str, DataFrame]
Save = Callable[[DataFrame, str], DataFrame]
"""Writes a table under a name. Returns what is there now."""
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
    def write(folder: str) -> Content:
        if broker is not None:
            say(f"reading the journal of {broker}")
            journal.export(spark, broker, f"{folder}/journal", COLUMNS)
            paths = [f"{folder}/journal"]
        else:
            paths = journal.files(Files(spark), files or "")
        entries = journal.read(spark, paths, COLUMNS).persist()
        try:
            tables, found = _write(entries, folder, window_s, say)
        finally:
            entries.unpersist()
        rules = {"window_s": found["window_s"]}
        inputs: dict[str, ReadFiles] = {"journal": dict.fromkeys([broker] if broker else paths, (0, 0))}
        return Content(rules, inputs, found, lambda manifest: page.render(page.figures(tables, found), manifest))

    published, content = Runs(spark, out).add(now_ms, write, say)
    return Findings(published.folder, published.report, content.summary)


def _write(entries: DataFrame, folder: str, window_s: float | None, say: Say) -> tuple[Tables, dict[str, Any]]:
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
    story = Story(entries, span, whole.first, complete=whole.first_seq == 1)
    with story.followed(say) as followed:
        tables, counts = measure(followed, lambda frame, name: _save(frame, f"{folder}/{name}"), say)
    missing = int(whole.last_seq - whole.first_seq + 1 - whole.entries)
    return tables, summary(span, counts, whole.entries, missing)


@dataclass(frozen=True, slots=True)
class Story:
    """Entries to be analysed. Those before `since_seq` only tell where messages were when the analysis begins."""

    entries: DataFrame
    span: Span
    #: When the unbroken history begins: messages that were enqueued before may appear from nowhere.
    begun_ns: int
    #: Whether it begins with the first entry of the broker.
    complete: bool
    since_seq: int = 0

    @contextmanager
    def followed(self, say: Say) -> Iterator["Followed"]:
        """The steps, stays and waits of messages, kept until the analysis is done."""
        say("following messages")
        steps = history.steps(self.entries).persist()
        stays = history.stays(steps, self.entries, self.span.end_ns).persist()
        waits = waiting.waits(stays, steps, self.entries).persist()
        try:
            yield Followed(self, steps, stays, waits)
        finally:
            for each in (waits, stays, steps):
                each.unpersist()


@dataclass(frozen=True, slots=True)
class Followed:
    """A story with the ways of its messages."""

    story: Story
    steps: DataFrame
    stays: DataFrame
    waits: DataFrame

    @property
    def new_steps(self) -> DataFrame:
        """Without those from before the analysis begins."""
        return self.steps.where(F.col("seq") >= self.story.since_seq)

    @property
    def counted_waits(self) -> DataFrame:
        """Over several analyses each wait counts once: in the one in which it ends. One alone counts all."""
        return self.waits.where(F.col("to_ns") < self.story.span.end_ns) if self.story.since_seq else self.waits


def measure(followed: Followed, save: Save, say: Say) -> tuple[Tables, Counter[str]]:
    """Writes all tables with `save`. Returns them, and how many messages there were and what became of them."""
    span = followed.story.span
    say("sharing out")
    cells = shares.cells(shares.demand(followed.stays, span), shares.events(followed.new_steps, span), span)
    cells = save(cells, "windows")
    say("splitting waits")
    tables = {
        "windows": cells,
        "jain": save(shares.jain(cells), "jain"),
        "starvation": save(shares.starvation(cells, followed.waits, span), "starvation"),
        "keys": save(shares.keys(cells, followed.counted_waits), "keys"),
    }
    say("proving that nothing was lost")
    ends = history.ends(followed.stays, followed.steps)
    tables |= _prove(followed, ends, save)
    return tables, _counts(followed, ends, tables)


def summary(span: Span, counts: Counter[str], entries: int, missing: int) -> dict[str, Any]:
    """What an analysis came to, in numbers."""
    ended = {name: counts[name] for name in _ENDS}
    return {
        "entries": entries,
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


def _prove(followed: Followed, ends: DataFrame, save: Save) -> Tables:
    """Writes the books and whatever contradicts them."""
    story = followed.story
    # Of what was before, only the numbers of messages count, which are as if the broker had told them.
    told = story.entries.where((F.col("seq") >= story.since_seq) | (F.col("kind") == "counted"))
    books, mismatched = history.balance(told)
    there = ends.where(F.col("end").isin("dead", "pending")).groupBy("queue").agg(F.count("*").alias("seen"))
    books = books.join(there, "queue", "left").fillna(0, ["seen"])
    # Of a journal that begins later, messages that have not moved since are counted but not seen.
    unseen = F.col("seen") != F.col("holds") if story.complete else F.col("seen") > F.col("holds")
    books = save(books.withColumn("balanced", ~unseen), "conservation")
    none = F.lit("")
    broken = (
        history.broken(followed.steps, story.begun_ns)
        .where(F.col("seq") >= story.since_seq)
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
    return {"conservation": books, "broken": save(broken, "broken")}


def _counts(followed: Followed, ends: DataFrame, tables: Tables) -> Counter[str]:
    """How many messages there were, how many of them were enqueued, and ended how; how many rows tables have."""
    parts = [
        followed.steps.where("was is null").select(F.lit("messages").alias("what")),
        followed.new_steps.where("kind = 'enqueued'").select(F.lit("enqueued").alias("what")),
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
