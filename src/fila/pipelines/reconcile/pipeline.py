"""A run on the tables, from what was received to what counts: shared by files and queues."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.pipelines.errors import BadInput, RunTaken
from fila.pipelines.lake import legacy
from fila.pipelines.lake.contract import ALERTS, BRONZE, RESULTS, TABLES, TOTALS
from fila.pipelines.lake.lake import Lake, RunRows, checked_path, day_of
from fila.pipelines.lake.ledger import Intent, Ledger, ReadFiles, Run
from fila.pipelines.pages import reconcile as page
from fila.pipelines.progress import Say
from fila.pipelines.reconcile import checks, sources, steps, tables, verdicts
from fila.pipelines.reconcile.checks import Check, Limits
from fila.pipelines.reconcile.sources import Input
from fila.reconcile.domain.settings import Settings

_SMALL_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Done:
    """A run that counts, and what it was found to be."""

    run: Run
    checks: list[Check]
    #: The files that were read, by input.
    files: dict[str, ReadFiles]


class Pipeline:
    """The tables of a folder, and how a run is added to them under these rules."""

    def __init__(self, spark: SparkSession, out: str, settings: Settings, limits: Limits, say: Say) -> None:
        self.lake = Lake(spark, checked_path(out))
        self.ledger = Ledger(self.lake)
        self._settings, self._limits, self._say = settings, limits, say
        #: The versions of the tables before anything was done, also before what was begun was finished.
        self.versions_before: dict[str, int] = {}

    def open(self, clock_ms: Callable[[], int]) -> Run | None:
        """Finish what was begun. Returns the last run. Raises BadInput for tables under other rules."""
        last = self.ledger.last()
        self.versions_before = last.versions if last else {}
        if last is None:
            last = legacy.imported(self.lake, self.ledger, clock_ms(), self._say)
        if last is not None:
            self.ledger.upgrade(last)
            if last.rules != steps.rules_text(self._settings):
                raise BadInput(
                    f"{self.lake.out} was made under other rules, and results of both would be mixed: use another --out"
                )
        begun = self.ledger.begun(last)
        if begun is not None:
            self._say(f"finishing run {begun.run}, which was stopped on the way")
            last = self._finish(begun, last, clock_ms).run
        return last

    def input(self, table: tables.Table, pattern: str, *, must_exist: bool = True) -> Input:
        """The new files of an input."""
        self._say(f"looking for {table.name}")
        files = self.lake.files
        found = sources.find(files, table, pattern) if must_exist else files.find(pattern)
        known = self.ledger.read_files(table.name, found)
        return sources.new_input(self.lake.spark, files, table, found, known)

    def received(self, table: tables.Table, found: Input, as_of_ms: int) -> list[DataFrame]:
        """What the new files of an input say, judged."""
        frames = []
        for shape in found.shapes:
            rows = shape.rows
            if table.received:
                rows = rows.withColumn(tables.RECEIVED, F.lit(as_of_ms).cast("bigint"))
            frames.append(tables.judged(rows, table, self._settings.intake))
        return frames

    def judged(self, rows: DataFrame, table: tables.Table) -> DataFrame:
        return tables.judged(rows, table, self._settings.intake)

    def is_any_due(self, now_ms: int) -> bool:
        return not verdicts.due(steps.open_reports(self.lake), now_ms).isEmpty()

    def run(self, intent: Intent, frames: list[DataFrame], before: Run | None, clock_ms: Callable[[], int]) -> Done:
        """Take in what was received, and do all that follows from it. Raises RunTaken."""
        self._say("taking in")
        if not self.ledger.begin(intent, self._bronze(frames, intent)):
            raise RunTaken(f"another run into {self.lake.out} was faster: run again")
        return self._finish(intent, before, clock_ms)

    def _bronze(self, frames: list[DataFrame], intent: Intent) -> DataFrame:
        schema = TABLES[BRONZE].schema
        empty = self.lake.spark.createDataFrame([], schema).drop("day", "run")
        rows = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames) if frames else empty
        for each in schema:
            if each.name not in rows.columns:
                rows = rows.withColumn(each.name, F.lit(None).cast(each.dataType))
        return rows.withColumns({"day": day_of(intent.as_of_ms), "run": F.lit(intent.run).cast("bigint")})

    def _finish(self, intent: Intent, before: Run | None, clock_ms: Callable[[], int]) -> Done:
        self.ledger.keep_files(intent)
        with RunRows(self.lake, intent.run, small=_is_small(intent)) as new:
            steps.Steps(self.lake, new, intent, self._settings, self._say).write()
            self._say("checking")
            rows = steps.counts(self.lake, new, intent)
            totals = new.keep(self.lake.read(TOTALS))
            made = checks.run_checks(self.lake, new, intent, rows, totals, self._limits)
            summary: dict[str, Any] = {
                "files": {name: len(intent.files.get(name, {})) for name in steps.INPUTS},
                "quarantined": intent.quarantined,
                "rows": {name: each.summary for name, each in rows.items()},
                "refused": {name: each.refused for name, each in rows.items()},
                "days": before.summary.get("days", []) if before else [],
            }
            if intent.batch is None:
                shown = self._figures(new, before, totals)
                summary |= shown.summary
                summary["days"] = page.trend(summary["days"], intent.as_of_ms, shown.statuses)
                text = page.render(shown, summary["refused"], intent.quarantined, summary["days"], intent)
                self.lake.files.write(f"{self.lake.out}/pages/{intent.run:06d}.html", text)
        run = self.ledger.finish(intent, before, steps.rules_text(self._settings), summary, clock_ms())
        if intent.batch is None:
            self.lake.files.write(f"{self.lake.out}/report.html", text)
        self._say("published")
        return Done(run, made, intent.files)

    def _figures(self, new: RunRows, before: Run | None, totals: DataFrame) -> page.Figures:
        lake = self.lake
        previous = lake.read(TOTALS, before.versions[TOTALS]) if before and TOTALS in before.versions else None
        gold = page.Gold(totals, new(RESULTS), new(ALERTS), steps.open_reports(lake))
        return page.figures(gold, previous, self._settings)


def _is_small(intent: Intent) -> bool:
    """Whether memory holds the rows of a run. A batch of a stream is bounded by its number of messages."""
    return sum(size for files in intent.files.values() for size, _ in files.values()) <= _SMALL_BYTES
