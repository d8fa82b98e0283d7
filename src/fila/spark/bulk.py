"""Bulk reconciliation: files of reports and of metrics in, verdicts, trust, sums, alerts and a page for people out.

Each run writes, for what is new since the run before:

    bronze/reports, bronze/metrics    rows as received, by shape of file; `fila_problem` says why a row was refused
    silver/reports, silver/metrics    valid rows, normalised, one for each report and post
    gold/results                      the verdict on each report that was looked at
    gold/alerts                       what a person should hear of

and, as of now, over all runs:

    gold/affiliates, campaigns, platforms    sums; affiliates with their trust
    gold/open                                reports that wait for figures, and when they are due again
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.reconcile.domain.settings import DEFAULTS, Settings
from fila.spark import gold, sources, tables
from fila.spark.errors import BadInput, PipelineError
from fila.spark.files import FileInfo, Files
from fila.spark.pages import reconcile as page
from fila.spark.runs import Manifest, Runs, new_files
from fila.spark.tables import PROBLEM, Table

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    run: int
    #: False when there was nothing new.
    changed: bool
    #: The folder of the run, and the page for people.
    folder: str
    report: str
    summary: dict[str, Any]


def reconcile(
    spark: SparkSession,
    reports: str,
    metrics: str,
    out: str,
    *,
    now_ms: int,
    settings: Settings = DEFAULTS,
    say: Say = lambda _: None,
) -> Outcome:
    """Take in what is new at `reports` and `metrics`, and write a run to `out`. Raises PipelineError."""
    try:
        return Run(spark, out, now_ms, settings, say).run({"reports": reports, "metrics": metrics})
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error


class Run:
    def __init__(self, spark: SparkSession, out: str, now_ms: int, settings: Settings, say: Say) -> None:
        self._spark = spark
        self._files = Files(spark)
        self._runs = Runs(self._files, out)
        self._now_ms = now_ms
        self._settings = settings
        self._say = say

    def run(self, inputs: dict[str, str]) -> Outcome:
        before = self._runs.last()
        if before is not None and before.rules != rules_text(self._settings):
            raise BadInput(
                f"{self._runs.out} was made under other rules, and results of both would be mixed: use another --out"
            )
        both = (tables.reports(), tables.metrics())
        found = {table.name: sources.find(self._files, table, inputs[table.name]) for table in both}
        known = before.inputs if before else {}
        new = {name: new_files(files, known.get(name, {})) for name, files in found.items()}
        if before is not None and not any(new.values()):
            self._say("nothing new")
            return self._outcome(before, changed=False)
        shapes = {table.name: sources.shapes(self._spark, self._files, table, new[table.name]) for table in both}
        with self._runs.stage() as staged:
            counts = {table.name: self._take_in(table, shapes[table.name], staged, before) for table in both}
            self._decide(staged, before)
            manifest = Manifest(
                run=before.run + 1 if before else 1,
                as_of_ms=self._now_ms,
                rules=rules_text(self._settings),
                inputs={name: _merged(known.get(name, {}), files) for name, files in new.items()},
            )
            shown = page.figures(self._spark, staged, self._previous(before, "gold/affiliates"), self._settings)
            summary = {
                "files": {name: len(files) for name, files in new.items()},
                "rows": counts,
                **shown.summary,
            }
            manifest = replace(manifest, summary=summary)
            self._files.write(f"{staged}/report.html", page.render(shown, manifest))
            self._runs.publish(staged, manifest)
        self._say("published")
        return self._outcome(manifest, changed=True)

    def _outcome(self, manifest: Manifest, *, changed: bool) -> Outcome:
        folder, top = self._runs.path(manifest.run), f"{self._runs.out}/report.html"
        if changed or not self._files.exists(top):
            self._files.write(top, self._files.read(f"{folder}/report.html"))
        return Outcome(manifest.run, changed, folder, top, manifest.summary)

    def _take_in(
        self, table: Table, shapes: Sequence[sources.Shape], staged: str, before: Manifest | None
    ) -> dict[str, int]:
        """Writes bronze and silver of one input. Returns what became of its rows."""
        taken: list[DataFrame] = []
        for number, shape in enumerate(shapes, 1):
            self._say(f"reading {table.name}: {len(shape.files)} {shape.format}")
            where = f"{staged}/bronze/{table.name}/{shape.format}-{number}"
            tables.bronze(sources.read(self._spark, table, shape), table).write.parquet(where)
            taken.append(self._spark.read.parquet(where))
        if not taken:
            return {"received": 0, "refused": 0, "repeated": 0, "new": 0}
        received = sum(each.count() for each in taken)
        refused = sum(each.where(F.col(PROBLEM).isNotNull()).count() for each in taken)
        rows = tables.unique(_union([tables.valid(each, table) for each in taken]), table)
        if before is not None and table.name == "reports":
            ids = self._all(before, "silver/reports")
            rows = rows if ids is None else rows.join(ids.select("report_id"), "report_id", "left_anti")
        self._say(f"cleaning {table.name}")
        where = f"{staged}/silver/{table.name}"
        rows.write.parquet(where)
        new = self._spark.read.parquet(where).count()
        return {"received": received, "refused": refused, "repeated": received - refused - new, "new": new}

    def _decide(self, staged: str, before: Manifest | None) -> None:
        """Writes gold."""
        spark, settings = self._spark, self._settings
        reports, news = (self._staged(staged, f"silver/{name}") for name in ("reports", "metrics"))
        known = self._metrics(before, news)
        was_open = self._previous(before, "gold/open")
        candidates = [gold.fresh(reports)] if reports is not None else []
        back = None
        if was_open is not None and news is not None:
            back = gold.reopened(was_open, news)
            candidates.append(back)
        if not candidates:
            candidates = [gold.fresh(self._all(before, "silver/reports").limit(0))]  # type: ignore[union-attr] # a run has reports
        self._say("classifying")
        gold.results(_union(candidates), known, settings).write.parquet(f"{staged}/gold/results")
        results = spark.read.parquet(f"{staged}/gold/results")
        self._say("adding up")
        open_now = gold.still_open(results, self._now_ms, settings)
        taken_back = None
        if was_open is not None:
            ids = results.where("attempt > 1").select("report_id")
            taken_back = was_open.join(ids, "report_id", "left_semi")
            open_now = open_now.unionByName(was_open.join(ids, "report_id", "left_anti"))
        open_now.write.parquet(f"{staged}/gold/open")
        changes = gold.changes(results, taken_back)
        for name, by in gold.BY.items():
            sums = gold.added(self._previous(before, f"gold/{name}"), gold.tally(changes, by), by)
            sums = gold.trusted(sums, settings) if name == "affiliates" else sums
            sums.coalesce(1).write.parquet(f"{staged}/gold/{name}")
        earlier = self._all(before, "gold/alerts")
        new_open = gold.still_open(results, self._now_ms, settings)
        gold.alerts(results, new_open, earlier, settings).coalesce(1).write.parquet(f"{staged}/gold/alerts")

    def _metrics(self, before: Manifest | None, news: DataFrame | None) -> DataFrame:
        """The figures of all runs, one row for a post."""
        old = self._all(before, "silver/metrics")
        if old is None:
            assert news is not None  # a first run has both inputs
            return news
        return tables.best(old if news is None else old.unionByName(news), tables.metrics())

    def _staged(self, staged: str, what: str) -> DataFrame | None:
        where = f"{staged}/{what}"
        return self._spark.read.parquet(where) if self._files.exists(where) else None

    def _previous(self, before: Manifest | None, what: str) -> DataFrame | None:
        """A table of the run before this one."""
        return None if before is None else self._spark.read.parquet(f"{self._runs.path(before.run)}/{what}")

    def _all(self, before: Manifest | None, what: str) -> DataFrame | None:
        """A table of all runs before this one."""
        if before is None:
            return None
        paths = [f"{self._runs.path(run)}/{what}" for run in range(1, before.run + 1)]
        there = [path for path in paths if self._files.exists(path)]
        return self._spark.read.parquet(*there) if there else None


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def rules_text(settings: Settings) -> dict[str, Any]:
    return asdict(settings)


def _merged(known: dict[str, tuple[int, int]], new: Sequence[FileInfo]) -> dict[str, tuple[int, int]]:
    return known | {file.path: (file.size, file.modified_ms) for file in new}
