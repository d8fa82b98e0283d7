"""Bulk reconciliation: files of reports and of metrics in; verdicts, trust, sums, alerts and a page for people out.

The tables are described in `lake.contract`, the steps of a run in `steps`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fila.pipelines.errors import PipelineError
from fila.pipelines.lake.ledger import Intent, Run
from fila.pipelines.lineage import NO_LINEAGE, Lineage
from fila.pipelines.progress import Say, described
from fila.pipelines.reconcile import datasets, tables
from fila.pipelines.reconcile.checks import NO_LIMITS, Check, Limits
from fila.pipelines.reconcile.pipeline import Done, Pipeline
from fila.reconcile.domain.settings import DEFAULTS, Settings


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    run: int
    #: False when there was nothing new.
    changed: bool
    #: The folder of the tables, and the page for people.
    folder: str
    report: str
    summary: dict[str, Any]
    #: Metrics files that could not be used, with the reason. The next run tries them again.
    quarantined: dict[str, str]
    checks: list[Check]

    @property
    def failure(self) -> str | None:
        """What makes the run a failed one, though it was written."""
        return failure_of(self.checks, self.report)


def failure_of(checks: Iterable[Check], report: str) -> str | None:
    """What the checks that failed say."""
    failed = [check.text for check in checks if not check.passed]
    return f"{'; '.join(failed)}: see {report}" if failed else None


def reconcile(
    spark: SparkSession,
    reports: str,
    metrics: str,
    out: str,
    *,
    now_ms: int,
    settings: Settings = DEFAULTS,
    limits: Limits = NO_LIMITS,
    say: Say = lambda _: None,
    lineage: Lineage = NO_LINEAGE,
    day: tuple[int, int] | None = None,
) -> Outcome:
    """Read what is new at `reports` and `metrics`, and add a run to the tables in `out`. Raises PipelineError.

    `day` is the time that the run is for, as `lineage` tells it.
    """
    paths = {"reports": reports, "metrics": metrics}
    try:
        with described(spark, "fila reconcile", say) as tell:
            pipeline = Pipeline(spark, out, settings, limits, tell)
            with lineage.run(datasets.job("reconcile", pipeline.lake), day) as told:
                last, quarantined, done = _run(pipeline, paths, lambda: now_ms, tell)
                if lineage.is_on:
                    told.inputs = datasets.read(pipeline.lake, paths, done)
                    told.outputs = datasets.written(pipeline.lake, pipeline.versions_before, last)
            return _outcome(pipeline, last, quarantined, done.checks if done else [], changed=done is not None)
    except PySparkException as error:
        raise PipelineError(f"Spark stopped: {str(error).strip().splitlines()[0]}") from error


def _run(
    pipeline: Pipeline, paths: dict[str, str], clock_ms: Callable[[], int], say: Say
) -> tuple[Run, dict[str, str], Done | None]:
    """The last run, the files that were left out, and what this one did, if anything was new."""
    both = {table.name: table for table in tables.both()}
    last = pipeline.open(clock_ms)
    inputs = {name: pipeline.input(table, paths[name]) for name, table in both.items()}
    quarantined = {path: reason for each in inputs.values() for path, reason in each.quarantined.items()}
    now_ms = max(clock_ms(), last.as_of_ms if last else 0)
    if last is not None and not any(each.shapes for each in inputs.values()) and not pipeline.is_any_due(now_ms):
        say("nothing new")
        return last, quarantined, None
    files = {name: each.files for name, each in inputs.items()}
    intent = Intent(last.run + 1 if last else 1, now_ms, "bulk", None, files, quarantined)
    frames = [frame for name, table in both.items() for frame in pipeline.received(table, inputs[name], now_ms)]
    done = pipeline.run(intent, frames, last, clock_ms)
    return done.run, quarantined, done


def _outcome(
    pipeline: Pipeline, run: Run, quarantined: dict[str, str], checks: list[Check], *, changed: bool
) -> Outcome:
    out = pipeline.lake.out
    return Outcome(run.run, changed, out, f"{out}/report.html", run.summary, quarantined, checks)
