"""Bulk reconciliation: files of reports and of metrics in, verdicts, trust, sums, alerts and a page for people out.

Each run writes, for what is new since the run before:

    bronze/reports, bronze/metrics    rows as received, by shape of file; `fila_problem` says why a row was refused
    silver/reports, silver/metrics    valid rows, normalised, one for each report and post
    silver/post_taken                 reports of posts that are another affiliate's, if there are any
    gold/results                      the verdict on each report that was judged
    gold/alerts                       what a person should hear of

and, as of now, over all runs:

    gold/affiliates, campaigns, platforms    sums; affiliates with their trust
    gold/open                                reports that are tried again, and when
"""

from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fila.pipelines.errors import BadInput, PipelineError
from fila.pipelines.files import Files
from fila.pipelines.pages import reconcile as page
from fila.pipelines.progress import Say, described
from fila.pipelines.reconcile import sources, tables, verdicts
from fila.pipelines.reconcile.layers import Layers
from fila.pipelines.reconcile.sources import Input
from fila.pipelines.reconcile.steps import Steps, rules_text
from fila.pipelines.runs import Manifest, Runs
from fila.reconcile.domain.settings import DEFAULTS, Settings

Inputs = dict[str, Input]


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
    #: Metrics files that could not be used, with the reason. The next run tries them again.
    quarantined: dict[str, str]

    @property
    def failure(self) -> str | None:
        """What makes the run a failed one, though it was written: all rows of an input were refused."""
        for name, rows in self.summary["rows"].items() if self.changed else ():
            if rows["received"] and rows["refused"] == rows["received"]:
                return f"all {rows['received']:,} rows of {name} were refused: {self.report} says why"
        return None


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
    """Read what is new at `reports` and `metrics`, and write a run to `out`. Raises PipelineError."""
    try:
        with described(spark, "fila reconcile", say) as tell:
            return _Bulk(spark, out, now_ms, settings, tell).run({"reports": reports, "metrics": metrics})
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error


class _Bulk:
    def __init__(self, spark: SparkSession, out: str, now_ms: int, settings: Settings, say: Say) -> None:
        self._spark, self._files = spark, Files(spark)
        self._runs = Runs(self._files, out)
        self._now_ms, self._settings, self._say = now_ms, settings, say

    def run(self, paths: dict[str, str]) -> Outcome:
        before = self._runs.last()
        if before is not None and before.rules != rules_text(self._settings):
            raise BadInput(
                f"{self._runs.out} was made under other rules, and results of both would be mixed: use another --out"
            )
        inputs = {table.name: self._input(table, paths[table.name], before) for table in tables.both()}
        new = any(each.shapes for each in inputs.values())
        if before is not None and not new and not self._steps(before, "").is_any_due():
            self._say("nothing new")
            return self._outcome(before, inputs, changed=False)
        run = before.run + 1 if before else 1
        with self._runs.stage(run) as staged:
            manifest = self._write(run, inputs, before, staged)
            self._runs.publish(staged, manifest)
        self._say("published")
        return self._outcome(manifest, inputs, changed=True)

    def _input(self, table: tables.Table, pattern: str, before: Manifest | None) -> Input:
        self._say(f"looking for {table.name}")
        found = sources.find(self._files, table, pattern)
        return sources.new_input(self._spark, self._files, table, found, before)

    def _steps(self, before: Manifest | None, staged: str) -> Steps:
        return Steps(self._layers(before, staged), self._now_ms, self._settings, self._say)

    def _layers(self, before: Manifest | None, staged: str) -> Layers:
        return Layers(self._spark, self._files, self._runs, before, staged)

    def _write(self, run: int, inputs: Inputs, before: Manifest | None, staged: str) -> Manifest:
        """Write everything but the manifest."""
        steps = self._steps(before, staged)
        for table in tables.both():
            steps.read_files(table, inputs[table.name].shapes)
        steps.decide()
        self._say("counting")
        rows, shown = steps.counts(), self._figures(before, staged)
        summary = {
            "files": {name: len(each.files) for name, each in inputs.items()},
            "quarantined": sum(len(each.quarantined) for each in inputs.values()),
            "rows": {name: counts.summary for name, counts in rows.items()},
            **shown.summary,
        }
        taken = {name: each.known for name, each in inputs.items()}
        manifest = Manifest(run, self._now_ms, rules_text(self._settings), taken, summary)
        refused = {name: counts.refused for name, counts in rows.items()}
        text = page.render(shown, refused, _quarantined(inputs), manifest)
        self._files.write(f"{staged}/report.html", text)
        return manifest

    def _figures(self, before: Manifest | None, staged: str) -> page.Figures:
        layers = self._layers(before, staged)
        gold: dict[str, DataFrame] = {}
        for name in verdicts.TABLES:
            written = layers.current(f"gold/{name}")
            assert written is not None  # every run has all of them
            gold[name] = written
        return page.figures(gold, layers.previous("gold/affiliates"), self._settings)

    def _outcome(self, manifest: Manifest, inputs: Inputs, *, changed: bool) -> Outcome:
        folder, top = self._runs.path(manifest.run), f"{self._runs.out}/report.html"
        if changed or not self._files.exists(top):
            self._files.write(top, self._files.read(f"{folder}/report.html"))
        return Outcome(manifest.run, changed, folder, top, manifest.summary, _quarantined(inputs))


def _quarantined(inputs: Inputs) -> dict[str, str]:
    return {path: reason for each in inputs.values() for path, reason in each.quarantined.items()}
