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
from dataclasses import asdict, dataclass, field
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


@dataclass(slots=True)
class Counts:
    """What became of the rows of an input."""

    received: int = 0
    #: By reason.
    refused: dict[str, int] = field(default_factory=dict)
    new: int = 0

    @property
    def summary(self) -> dict[str, int]:
        refused = sum(self.refused.values())
        repeated = self.received - refused - self.new
        return {"received": self.received, "refused": refused, "repeated": repeated, "new": self.new}


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
            for table in both:
                self._take_in(table, shapes[table.name], staged, before)
            self._decide(staged, before)
            self._say("counting")
            rows = self._counted(staged)
            shown = page.figures(
                {name: self._read(f"gold/{name}", f"{staged}/gold/{name}") for name in gold.TABLES},
                self._previous(before, "affiliates"),
                self._settings,
            )
            manifest = Manifest(
                run=before.run + 1 if before else 1,
                as_of_ms=self._now_ms,
                rules=rules_text(self._settings),
                inputs={name: _merged(known.get(name, {}), files) for name, files in new.items()},
                summary={
                    "files": {name: len(files) for name, files in new.items()},
                    "rows": {name: counts.summary for name, counts in rows.items()},
                    **shown.summary,
                },
            )
            refused = {name: counts.refused for name, counts in rows.items()}
            self._files.write(f"{staged}/report.html", page.render(shown, refused, manifest))
            self._runs.publish(staged, manifest)
        self._say("published")
        return self._outcome(manifest, changed=True)

    def _outcome(self, manifest: Manifest, *, changed: bool) -> Outcome:
        folder, top = self._runs.path(manifest.run), f"{self._runs.out}/report.html"
        if changed or not self._files.exists(top):
            self._files.write(top, self._files.read(f"{folder}/report.html"))
        return Outcome(manifest.run, changed, folder, top, manifest.summary)

    def _take_in(self, table: Table, shapes: Sequence[sources.Shape], staged: str, before: Manifest | None) -> None:
        """Writes bronze and silver of one input, if there is anything new."""
        taken: list[DataFrame] = []
        for number, shape in enumerate(shapes, 1):
            self._say(f"reading {table.name}: {len(shape.files)} {shape.format}")
            where = f"{staged}/bronze/{table.name}/{shape.format}-{number}"
            taken.append(self._save(tables.bronze(sources.read(self._spark, table, shape), table), where))
        if taken:
            self._clean(table, taken, staged, before)

    def _clean(self, table: Table, bronze: Sequence[DataFrame], staged: str, before: Manifest | None) -> None:
        """Writes silver: the valid rows, one for each identity; of reports those that no run before had."""
        self._say(f"cleaning {table.name}")
        rows = tables.unique(_union([tables.valid(each, table) for each in bronze]), table)
        seen = self._all(before, "silver/reports") if table.name == "reports" else None
        if seen is not None:
            rows = rows.join(seen.select("report_id"), "report_id", "left_anti")
        self._save(rows.select(*table.schema.names), f"{staged}/silver/{table.name}")

    def _counted(self, staged: str) -> dict[str, "Counts"]:
        """What became of the rows of each input."""
        parts: list[DataFrame] = []
        for table in (tables.reports(), tables.metrics()):
            name = F.lit(table.name).alias("input")
            top = f"{staged}/bronze/{table.name}"
            for shape in self._files.folders(top):
                rows = self._spark.read.schema(f"{PROBLEM} string").parquet(f"{top}/{shape}")
                parts.append(rows.select(name, F.lit(False).alias("new"), PROBLEM))
            silver = self._staged(staged, f"silver/{table.name}")
            if silver is not None:
                parts.append(silver.select(name, F.lit(True).alias("new"), F.lit(None).cast("string").alias(PROBLEM)))
        found = {table.name: Counts() for table in (tables.reports(), tables.metrics())}
        for row in _union(parts).groupBy("input", "new", PROBLEM).count().collect():
            counts = found[row.input]
            if row.new:
                counts.new += row["count"]
                continue
            counts.received += row["count"]
            if row[PROBLEM] is not None:
                counts.refused[row[PROBLEM]] = row["count"]
        return found

    def _decide(self, staged: str, before: Manifest | None) -> None:
        """Writes gold."""
        settings = self._settings
        reports, news = (self._staged(staged, f"silver/{name}") for name in ("reports", "metrics"))
        known = self._metrics(before, news)
        was_open = self._previous(before, "open")
        candidates = [gold.fresh(reports)] if reports is not None else []
        if was_open is not None and news is not None:
            candidates.append(gold.reopened(was_open, news))
        self._say("classifying")
        results = self._save(gold.results(_union(candidates), known, settings), f"{staged}/gold/results")
        self._say("adding up")
        new_open = open_now = gold.still_open(results, self._now_ms, settings)
        taken_back = None
        if was_open is not None:
            ids = results.where("attempt > 1").select("report_id")
            taken_back = was_open.join(ids, "report_id", "left_semi")
            open_now = new_open.unionByName(was_open.join(ids, "report_id", "left_anti"))
        self._save(open_now, f"{staged}/gold/open")
        changes = gold.changes(results, taken_back)
        for name, by in gold.BY.items():
            sums = gold.added(self._previous(before, name), gold.tally(changes, by), by)
            sums = gold.trusted(sums, settings) if name == "affiliates" else sums
            self._save(sums.coalesce(1), f"{staged}/gold/{name}")
        earlier = self._all(before, "gold/alerts")
        self._save(gold.alerts(results, new_open, earlier, settings).coalesce(1), f"{staged}/gold/alerts")

    def _metrics(self, before: Manifest | None, news: DataFrame | None) -> DataFrame:
        """The figures of all runs, one row for a post."""
        old = self._all(before, "silver/metrics")
        if old is None:
            assert news is not None  # a first run has both inputs
            return news
        return tables.unique(old if news is None else old.unionByName(news), tables.metrics())

    def _save(self, rows: DataFrame, where: str) -> DataFrame:
        """Writes rows. Returns what is there now."""
        rows.write.parquet(where)
        return self._spark.read.schema(rows.schema).parquet(where)

    def _read(self, what: str, *paths: str) -> DataFrame:
        layer, _, name = what.partition("/")
        if layer == "gold":
            schema = gold.schema(name)
        else:
            schema = {"reports": tables.reports, "metrics": tables.metrics}[name]().schema
        return self._spark.read.schema(schema).parquet(*paths)

    def _staged(self, staged: str, what: str) -> DataFrame | None:
        """A table of this run, if it has one."""
        where = f"{staged}/{what}"
        return self._read(what, where) if self._files.exists(where) else None

    def _previous(self, before: Manifest | None, name: str) -> DataFrame | None:
        """A table of gold of the run before this one."""
        return None if before is None else self._read(f"gold/{name}", f"{self._runs.path(before.run)}/gold/{name}")

    def _all(self, before: Manifest | None, what: str) -> DataFrame | None:
        """A table of all runs before this one."""
        there = self._runs.having(what, before.run) if before is not None else []
        return self._read(what, *there) if there else None


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def rules_text(settings: Settings) -> dict[str, Any]:
    return asdict(settings)


def _merged(known: dict[str, tuple[int, int]], new: Sequence[FileInfo]) -> dict[str, tuple[int, int]]:
    return known | {file.path: (file.size, file.modified_ms) for file in new}
