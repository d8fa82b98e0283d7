"""Imports a folder of runs, the layout before the tables: `OUT/runs/000001/silver/reports` and so on, as Parquet.

The import is one run. It begins with an empty commit to bronze, as every run does, and may be stopped and begun again:
its rows come from the old folders, which are only read. They can be removed when it is done.
"""

import json
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fila.pipelines.errors import PipelineError
from fila.pipelines.files import Files
from fila.pipelines.lake.contract import (
    ALERTS,
    BRONZE,
    CURRENT,
    METRICS,
    POSTS,
    REPORTS,
    RESULTS,
    SUMS,
    TABLES,
    TOTALS,
)  # fmt: skip
from fila.pipelines.lake.lake import Lake, day_of
from fila.pipelines.lake.ledger import Intent, Ledger, ReadFiles, Run, stream_source
from fila.pipelines.progress import Say

_FORMAT = 1
_OLD_TOTALS = {"affiliate": "affiliates", "campaign": "campaigns", "platform": "platforms"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run has taken in, those before it included, and under which rules."""

    run: int
    as_of_ms: int
    rules: dict[str, Any]
    #: By input.
    inputs: dict[str, ReadFiles]
    summary: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Raises PipelineError for what is no manifest of ours."""
        try:
            values = json.loads(text)
            if values.pop("format") != _FORMAT:
                raise PipelineError(f"{where} was written by another version of fila")
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PipelineError(f"{where} is damaged: {error}") from error


class _Runs:
    """The runs of the old layout in a folder."""

    def __init__(self, files: Files, out: str) -> None:
        self._files, self._out = files, out

    def last(self) -> Manifest | None:
        """What the newest run says of itself."""
        numbers = [int(name) for name in self._files.folders(f"{self._out}/runs") if name.isdecimal()]
        if not numbers:
            return None
        where = f"{self.path(max(numbers))}/manifest.json"
        return Manifest.from_json(self._files.read(where), where)

    def path(self, run: int) -> str:
        return f"{self._out}/runs/{run:06d}"

    def having(self, what: str, last: int) -> list[str]:
        """Where a table is in each of the runs up to this one that has it."""
        paths = [f"{self.path(run)}/{what}" for run in range(1, last + 1)]
        return [path for path in paths if self._files.exists(path)]


def imported(lake: Lake, ledger: Ledger, now_ms: int, say: Say) -> Run | None:
    """The run that holds what an old folder held, if this is one."""
    runs = _Runs(lake.files, lake.out)
    manifest = runs.last()
    if manifest is None:
        return None
    say(f"importing {manifest.run} runs of the old layout")
    files = {name: {path: (size, at) for path, (size, at) in each.items()} for name, each in manifest.inputs.items()}
    source, batch = _stream_of(lake, manifest)
    intent = Intent(manifest.run, manifest.as_of_ms, source, batch, files)
    if next(lake.notes(BRONZE), None) is None:
        empty = lake.spark.createDataFrame([], TABLES[BRONZE].schema)
        ledger.begin(intent, empty)
    ledger.keep_files(intent)
    _Import(lake, runs, manifest).write()
    summary = {"imported": manifest.run, **manifest.summary}
    return ledger.finish(intent, None, manifest.rules, summary, now_ms)


def _stream_of(lake: Lake, manifest: Manifest) -> tuple[str, int | None]:
    """The stream that wrote the folder: batch b was run b + 1."""
    if not lake.files.exists(f"{lake.out}/checkpoint/metadata"):
        return "import", None
    return stream_source(lake.files, lake.out), manifest.run - 1


class _Import:
    def __init__(self, lake: Lake, runs: _Runs, manifest: Manifest) -> None:
        self._lake, self._runs, self._run = lake, runs, manifest.run
        self._as_of_ms = manifest.as_of_ms

    def write(self) -> None:
        accepted, taken = self._all("silver/reports"), self._all("silver/post_taken")
        known = [accepted.withColumn("problem", F.lit(None).cast("string"))]
        known += [taken.withColumn("problem", F.lit("post taken"))] if "report_id" in taken.columns else []
        reports = reduce(DataFrame.unionByName, known)
        self._append(REPORTS, reports.withColumn("day", day_of(F.col("submitted_at_ms"))))
        post = ["platform", "post_id"]
        self._append(POSTS, accepted.select(*post, "affiliate_id").dropDuplicates(post))
        self._append(METRICS, self._all("silver/metrics").withColumn("day", day_of(self._as_of_ms)))
        results = self._all("gold/results")
        none = {"previous_status": F.lit(None).cast("string"), "previous_step_bp": F.lit(None).cast("bigint")}
        self._append(RESULTS, results.withColumns({**none, "day": day_of(F.col("attempted_at_ms"))}))
        # Attempts are numbered without gaps, so attempt n replaces n - 1.
        replaced = results.where("attempt > 1").select("report_id", (F.col("attempt") - 1).alias("attempt"))
        current = results.join(replaced, ["report_id", "attempt"], "left_anti")
        final = {"final": F.col("next_attempt_ms").isNull(), "day": day_of(F.col("submitted_at_ms"))}
        self._append(CURRENT, current.withColumns(final))
        self._append(TOTALS, self._totals())
        self._append(ALERTS, self._all("gold/alerts").withColumn("day", day_of(F.col("at_ms"))))

    def _totals(self) -> DataFrame:
        last, frames = self._runs.path(self._run), []
        for dimension, name in _OLD_TOTALS.items():
            rows = self._lake.spark.read.parquet(f"{last}/gold/{name}")
            trust = F.col("trust_bp") if "trust_bp" in rows.columns else F.lit(None).cast("bigint").alias("trust_bp")
            key = (F.lit(dimension).alias("dimension"), F.col(rows.columns[0]).alias("name"))
            frames.append(rows.select(*key, *SUMS, trust))
        return reduce(DataFrame.unionByName, frames)

    def _all(self, what: str) -> DataFrame:
        """A table of all old runs."""
        paths = self._runs.having(what, self._run)
        if not paths:
            return self._lake.spark.createDataFrame([], "none string")
        return self._lake.spark.read.parquet(*paths)

    def _append(self, name: str, rows: DataFrame) -> None:
        if len(rows.columns) > 2:
            self._lake.append(name, rows.withColumn("run", F.lit(self._run).cast("bigint")), self._run)
