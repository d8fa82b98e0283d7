"""Fairness of an archived journal, piece by piece: each run analyses the windows that are new, from new entries alone.

    OUT/windows, keys, jain, starvation, conservation, broken    tables as those of a whole analysis, with `run`
    OUT/runs         what each run was of: entries, windows, and what it came to
    OUT/state        what the next run must know of earlier entries
    OUT/report.html  the page of the last run; those of earlier runs are in OUT/pages

Rules of this file:
- A run is of whole windows: up to the last one that ended before the newest archived entry.
- The state after a run are entries themselves: the last one of each message that is somewhere, those that tell of
  consumers since the oldest message that waits was ready, and how many messages each queue held. The next run puts
  them before the new entries, and all rules hold as if it had read everything.
- A run begins with the range of its entries in `runs`, and counts when it is there a second time, as done. One that
  was stopped on the way is repeated over the same range, which adds what is not there yet.
- History begins anew after entries that are missing: a run ends before them, and the next one knows no state.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fila.pipelines.archive.entries import DAY, MISSING, Archive
from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.fairness import analysis
from fila.pipelines.fairness.analysis import Findings, Followed, Story
from fila.pipelines.fairness.history import COLUMNS, READY
from fila.pipelines.fairness.shares import Span
from fila.pipelines.fairness.tables import DeltaTables
from fila.pipelines.files import Files
from fila.pipelines.pages import fairness as page
from fila.pipelines.progress import Say, described
from fila.pipelines.runs import Manifest

DEFAULT_WINDOW_S = 60.0
MOST_WINDOWS = 1440
"""Of one run: what is more is left to the next."""
_BEGUN, _DONE = 0, 1
_RUNS = "phase int, told string"
_STARVED = 10


@dataclass(frozen=True, slots=True)
class Range:
    """What a run is of: entries from `first_seq` to `last_seq`, windows from `first_ns` up to `end_ns`."""

    run: int
    first_seq: int
    last_seq: int
    first_ns: int
    end_ns: int
    window_ns: int
    #: When the history that the run is part of began, and whether it began with the broker's first entry.
    begun_ns: int
    complete: bool
    #: The run whose state it goes on from; 0: none.
    state: int
    #: How many entries are missing before it.
    missing: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has begun, or is done."""

    of: Range
    summary: dict[str, Any] | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        return cls(Range(**values["of"]), values["summary"])


@dataclass(frozen=True, slots=True)
class Advance:
    """What was analysed."""

    #: How many runs there were this time.
    runs: int
    #: What the last one came to, of this time or earlier; None if no window was ever analysed.
    found: Findings | None
    #: Whether every message is accounted for, in all runs of this time.
    conserved: bool
    #: Starved keys of the last run, with when and by whom.
    starved: list[Any]


def advance(
    spark: SparkSession,
    archive: str,
    out: str,
    *,
    now_ms: int,
    window_s: float | None = None,
    say: Say = lambda _: None,
) -> Advance:
    """Analyse all windows that are new. Raises PipelineError."""
    try:
        with described(spark, "fila fairness", say) as tell:
            work = _Increments(spark, archive, out, window_s)
            summaries = []
            while work.step(now_ms, tell):
                summaries.append(work.summary)
            summaries = summaries or [work.summary]
            return Advance(
                work.runs, work.findings(), all(each.get("conserved", True) for each in summaries), work.starved()
            )
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error


class _Increments:
    """The runs of one folder."""

    def __init__(self, spark: SparkSession, archive: str, out: str, window_s: float | None) -> None:
        self._spark, self._archive = spark, Archive(spark, archive)
        self._tables = DeltaTables(spark, out)
        self._last = self._newest(_DONE)
        self.runs = 0
        self._window_ns = round((window_s or DEFAULT_WINDOW_S) * 1e9)
        if self._last is not None:
            if window_s is not None and self._window_ns != self._last.of.window_ns:
                length = f"{self._last.of.window_ns / 1e9:g} s"
                raise BadInput(f"{out} has windows of {length}: leave --window out, or use another --out")
            self._window_ns = self._last.of.window_ns

    def step(self, now_ms: int, say: Say) -> bool:
        """Make the next run, or finish the one that was stopped. False when there is no new window."""
        begun = self._newest(_BEGUN)
        number = self._last.of.run + 1 if self._last else 1
        if begun is None or begun.of.run < number:
            planned = self._plan(number)
            if planned is None:
                return False
            self._write(Run(planned, None), _BEGUN)
            begun = self._newest(_BEGUN)  # which another driver may have written
            assert begun is not None
        say(f"analysing entries {begun.of.first_seq:,} to {begun.of.last_seq:,}")
        found = self._analyse(begun.of, now_ms, say)
        self._write(Run(begun.of, found), _DONE)
        self._last = self._newest(_DONE)
        self._tables.forget("state", number)
        self.runs += 1
        return True

    @property
    def summary(self) -> dict[str, Any]:
        """What the last run came to."""
        return (self._last.summary if self._last else None) or {}

    def findings(self) -> Findings | None:
        """The same, with where it is."""
        if not self.summary:
            return None
        return Findings(self._tables.out, f"{self._tables.out}/report.html", self.summary)

    def starved(self) -> list[Any]:
        """The first of the keys that were starved in the last run."""
        if self._last is None:
            return []
        return self._tables.of_run("starvation", self._last.of.run).orderBy("from_ns").limit(_STARVED).collect()

    def _newest(self, phase: int) -> Run | None:
        if not self._tables.exists("runs"):
            return None
        rows = self._tables.read("runs").where(F.col("phase") == phase).orderBy(F.desc("run")).limit(1).collect()
        return Run.from_json(rows[0].told) if rows else None

    def _write(self, run: Run, phase: int) -> None:
        told = [(phase, json.dumps({"of": asdict(run.of), "summary": run.summary}))]
        rows = self._spark.createDataFrame(told, _RUNS).coalesce(1)
        self._tables.append("runs", rows, run.of.run, 2 * run.of.run + phase)

    def _entries(self, first_seq: int, since_ns: int) -> DataFrame:
        """Archived entries from a number on, none of which is older than this. Spark reads no files of earlier days."""
        day = F.to_date(F.timestamp_micros(F.lit(since_ns // 1000).cast("bigint")))
        return self._archive.read().where(F.col(DAY) >= day).where(F.col("seq") >= first_seq)

    def _plan(self, number: int) -> Range | None:
        last = self._last.of if self._last else None
        # After a gap, entries may be of the window in which the last run ended.
        first_seq, since_ns = (last.last_seq + 1, last.end_ns - last.window_ns) if last else (1, 0)
        fresh = self._entries(first_seq, since_ns)
        missing = F.col("kind") == MISSING
        gaps = fresh.where(missing).orderBy("seq").limit(2).select("seq", "count", "at_ns").collect()
        skipped = 0
        if gaps and gaps[0].seq == first_seq:
            skipped, first_seq = gaps[0]["count"], gaps[0].seq + gaps[0]["count"]
            gaps = gaps[1:]
        limit = gaps[0].seq if gaps else (1 << 63) - 1
        some = fresh.where(~missing & (F.col("seq") >= first_seq) & (F.col("seq") < limit))
        there = some.agg(F.min("seq").alias("seq"), F.min("at_ns").alias("low"), F.max("at_ns").alias("high")).first()
        if there is None or there.seq is None:
            return None
        known = last is not None and not skipped
        window = self._window_ns
        first_ns = last.end_ns if known and last else there.low // window * window
        # Before entries that are missing, what there is of a window is all that there will be.
        end_ns = (there.high // window + 1) * window if gaps else there.high // window * window
        end_ns = min(end_ns, first_ns + MOST_WINDOWS * window)
        newest = some.where(F.col("at_ns") < end_ns).agg(F.max("seq")).collect()[0][0]
        if end_ns <= first_ns:
            return None
        return Range(
            run=number,
            first_seq=first_seq,
            last_seq=newest if newest is not None else first_seq - 1,
            first_ns=first_ns,
            end_ns=end_ns,
            window_ns=window,
            begun_ns=last.begun_ns if known and last else there.low,
            complete=last.complete if known and last else there.seq == 1,
            state=last.run if known and last else 0,
            missing=skipped,
        )

    def _analyse(self, of: Range, now_ms: int, say: Say) -> dict[str, Any]:
        entries = self._entries(of.first_seq, of.first_ns).where(F.col("seq") <= of.last_seq).select(*COLUMNS)
        if of.state:
            entries = self._tables.of_run("state", of.state).unionByName(entries)
        entries = entries.persist()
        span = Span(of.first_ns, of.end_ns, of.window_ns)
        story = Story(entries, span, of.begun_ns, complete=of.complete, since_seq=of.first_seq)
        try:
            with story.followed(say) as followed:
                tables, counts = analysis.measure(followed, lambda rows, name: self._save(rows, name, of.run), say)
                say("keeping the state")
                self._save(_state(followed, tables["conservation"], of.last_seq), "state", of.run)
        finally:
            entries.unpersist()
        found = analysis.summary(span, counts, of.last_seq - of.first_seq + 1, of.missing)
        say("drawing")
        self._draw(of, tables, found, now_ms)
        return found

    def _save(self, rows: DataFrame, name: str, run: int) -> DataFrame:
        self._tables.append(name, rows, run)
        return self._tables.of_run(name, run)

    def _draw(self, of: Range, tables: Mapping[str, DataFrame], found: dict[str, Any], now_ms: int) -> None:
        rules = {"window_s": of.window_ns / 1e9}
        manifest = Manifest(of.run, now_ms, rules, {"archive": {self._archive.path: (0, 0)}}, found)
        text = page.render(page.figures(dict(tables), found), manifest)
        files = Files(self._spark)
        for name in (f"pages/{of.run:06d}.html", "report.html"):
            files.write(self._tables.path(name), text)


def _state(followed: Followed, books: DataFrame, last_seq: int) -> DataFrame:
    """What the next run must know: entries, as if the journal began with them."""
    story = followed.story
    end_ns = story.span.end_ns
    there = followed.stays.where(F.col("last") & ~F.col("deleted"))
    entries = story.entries
    carried = entries.where("message_id != ''").join(there.select(F.col("from_seq").alias("seq")), "seq", "left_semi")
    waiting = there.where(F.col("state") == READY)
    oldest = waiting.groupBy("queue").agg(F.min("from_ns").alias("oldest_ns"))
    oldest_of_all = waiting.agg(F.coalesce(F.min("from_ns"), F.lit(end_ns)).alias("oldest_ns"))
    consumers = entries.where("kind = 'consumers'").join(oldest, "queue", "left")
    started = entries.where("kind = 'started'").crossJoin(oldest_of_all)
    parts = [
        carried.select(*COLUMNS),
        _still_told(consumers, end_ns),
        _still_told(started, end_ns),
        _held(books, entries, last_seq, end_ns),
    ]
    return reduce(DataFrame.unionByName, parts)


def _still_told(changes: DataFrame, end_ns: int) -> DataFrame:
    """Changes of what holds from them on, of which something holds after the oldest message that waits was ready."""
    until = F.coalesce(F.lead("at_ns").over(Window.partitionBy("queue").orderBy("seq")), F.lit(end_ns))
    kept = changes.withColumn("until", until).where(F.col("until") >= F.coalesce("oldest_ns", F.lit(end_ns)))
    return kept.select(*COLUMNS)


def _held(books: DataFrame, entries: DataFrame, last_seq: int, end_ns: int) -> DataFrame:
    """How many messages each queue holds, as the broker itself tells it now and then."""
    ends = entries.where(F.col("kind").isin("created", "deleted", "counted", "enqueued"))
    gone = ends.groupBy("queue").agg(F.max_by("kind", "seq").alias("kind")).where("kind = 'deleted'")
    values = {name: F.lit("") if kind == "string" else F.lit(0).cast("bigint") for name, kind in COLUMNS.items()}
    told = {
        "seq": F.lit(last_seq).cast("bigint"),
        "at_ns": F.lit(end_ns - 1).cast("bigint"),
        "kind": F.lit("counted"),
        "queue": F.col("queue"),
        "count": F.col("holds"),
    }
    held = books.join(gone.select("queue"), "queue", "left_anti")
    return held.select(*(value.alias(name) for name, value in {**values, **told}.items()))
