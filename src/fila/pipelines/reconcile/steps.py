"""The steps of a run after its input is in bronze, the same for files and queues.

Each step reads tables and commits one table. So a run that was stopped between two of them goes on where it was, in
whatever process. A step reads of history only what can still matter:
- ids of reports, back to the oldest report that could be accepted now (`max_age_ms`, `max_skew_ms`);
- metrics that were read within `max_age_ms`;
- alerts within their window, and reports that are open, which have a partition of their own;
- the owners of the posts that new reports name: they are kept for ever, in the order of the posts.
"""

from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fila.pipelines.lake.contract import ALERTS, BRONZE, CURRENT, METRICS, POSTS, REPORTS, RESULTS, SUMS, TOTALS
from fila.pipelines.lake.lake import Lake, RunRows, day_of, since_day
from fila.pipelines.lake.ledger import Intent
from fila.pipelines.progress import Say
from fila.pipelines.reconcile import ownership, tables, verdicts
from fila.pipelines.reconcile.tables import PROBLEM, SUBMITTED
from fila.reconcile.domain.alerts import window_start_ms
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import HOUR_MS, Settings

INPUTS = ("reports", "metrics")
REFUSED_REMEMBERED_MS = 7 * 24 * HOUR_MS
"""For how long a message that is no report is known by its id. The broker delivers it again after a lease."""


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


class Steps:
    """What a run under these rules does to the tables."""

    def __init__(self, lake: Lake, new: RunRows, intent: Intent, settings: Settings, say: Say) -> None:
        self._lake, self._new, self._intent, self._settings, self._say = lake, new, intent, settings, say
        self._run, self._now_ms = intent.run, intent.as_of_ms

    def write(self) -> None:
        """All steps, in order. An input that brought nothing has none."""
        if self._intent.files.get("metrics"):
            self._clean_metrics()
        if self._intent.files.get("reports") or self._intent.batch is not None:
            self._clean_reports()
        self._say("classifying")
        candidates = self._candidates()
        judged = verdicts.results(candidates, self._metrics(), self._now_ms, self._settings)
        self._append(RESULTS, judged.withColumn("day", day_of(self._now_ms)))
        self._say("adding up")
        results = self._new(RESULTS)
        self._merge_current(results)
        self._merge_totals(results)
        raised = verdicts.alerts(results, self._recent_alerts(), self._settings)
        self._append(ALERTS, raised.withColumn("day", day_of(F.col("at_ms"))))

    def _clean_metrics(self) -> None:
        self._say("cleaning metrics")
        rows = tables.valid(self._new(BRONZE), tables.metrics())
        self._append(METRICS, tables.unique(rows, tables.metrics()).withColumn("day", day_of(self._now_ms)))

    def _clean_reports(self) -> None:
        """Valid reports that no run had, one for each id; then the posts that have an owner now."""
        self._say("cleaning reports")
        received = tables.valid(self._new(BRONZE), tables.reports())
        fresh = self._unknown(tables.unique(received, tables.reports()), received)
        owners = self._owners(received)
        known = self._new.keep(ownership.with_known_owner(fresh, owners))
        problem = F.when(F.col("owner") != F.col("affiliate_id"), POST_TAKEN)
        reports = ownership.owned(known).withColumn(PROBLEM, problem)
        self._append(REPORTS, reports.withColumn("day", day_of(F.col(SUBMITTED))))
        post = ["platform", "post_id"]
        first = self._accepted().select(*post, "affiliate_id").dropDuplicates(post)
        self._append(POSTS, first.join(owners.select(*post), post, "left_anti"))

    def _owners(self, received: DataFrame) -> DataFrame:
        """Whose the posts were that new reports name."""
        posts = self._before(POSTS)
        return self._new.keep(ownership.of_posts(posts, received)) if self._lake.exists(POSTS) else posts

    def _unknown(self, reports: DataFrame, received: DataFrame) -> DataFrame:
        """Reports whose id no run knew."""
        oldest = received.agg(F.min(SUBMITTED)).collect()[0][0] if self._lake.exists(REPORTS) else None
        if oldest is None:
            return reports
        known = self._before(REPORTS).where(since_day(oldest - remembered_ms(self._settings)))
        return reports.join(known.select("report_id"), "report_id", "left_anti")

    def _candidates(self) -> DataFrame:
        """The reports that this run judges."""
        was_open = open_reports(self._lake).where(F.col("run") < self._run)
        news = verdicts.with_news(was_open, self._new(METRICS), self._now_ms)
        parts = [verdicts.fresh(self._accepted()), verdicts.due(was_open, self._now_ms), news]
        return reduce(DataFrame.unionByName, parts)

    def _metrics(self) -> DataFrame:
        """The latest metrics of each post that were read lately."""
        oldest = self._now_ms - self._settings.intake.max_age_ms
        rows = self._lake.read(METRICS).where(since_day(oldest) & (F.col("run") <= self._run))
        return tables.unique(rows.select(*tables.metrics().schema.names), tables.metrics())

    def _merge_current(self, results: DataFrame) -> None:
        """Replace open reports. What is final never changes, so those rows are not even looked at."""
        rows = results.withColumns({"final": F.col("next_attempt_ms").isNull(), "day": day_of(F.col(SUBMITTED))})
        columns = self._lake.read(CURRENT).columns
        on = "t.final = false AND t.report_id = s.report_id AND t.day = s.day"
        self._lake.merge(CURRENT, rows, self._run, on, {name: f"s.{name}" for name in columns})

    def _merge_totals(self, results: DataFrame) -> None:
        added = verdicts.totals(results).withColumn("run", F.lit(self._run).cast("bigint"))
        rows = added.withColumn("trust_bp", F.expr(verdicts.trust_sql("steps_bp", "dimension", self._settings)))
        updates = {name: f"t.{name} + s.{name}" for name in SUMS}
        updates["trust_bp"] = verdicts.trust_sql("(t.steps_bp + s.steps_bp)", "t.dimension", self._settings)
        on = "t.dimension = s.dimension AND t.name = s.name"
        self._lake.merge(TOTALS, rows, self._run, on, updates | {"run": "s.run"})

    def _recent_alerts(self) -> DataFrame:
        return self._before(ALERTS).where(since_day(window_start_ms(self._now_ms, self._settings.alerts)))

    def _accepted(self) -> DataFrame:
        return self._new(REPORTS).where(F.col(PROBLEM).isNull())

    def _before(self, name: str) -> DataFrame:
        return self._lake.read(name).where(F.col("run") < self._run)

    def _append(self, name: str, rows: DataFrame) -> None:
        self._lake.append(name, rows.withColumn("run", F.lit(self._run).cast("bigint")), self._run)


def open_reports(lake: Lake) -> DataFrame:
    """Reports that are tried again."""
    return lake.read(CURRENT).where(~F.col("final"))


def remembered_ms(settings: Settings) -> int:
    """For how long an id is remembered: until no report with the same time could be accepted."""
    return settings.intake.max_age_ms + settings.intake.max_skew_ms


def refused_before(lake: Lake, run: int, as_of_ms: int) -> DataFrame:
    """Messages that a run before this one refused, back to when a message could come again."""
    rows = lake.read(BRONZE).where((F.col("input") == "reports") & since_day(as_of_ms - REFUSED_REMEMBERED_MS))
    return rows.where((F.col("run") < run) & F.col(PROBLEM).isNotNull()).select("message_id")


def counts(lake: Lake, new: RunRows, intent: Intent) -> dict[str, Counts]:
    """What became of the rows of each input of a run. A message that was refused before counts as repeated."""
    nothing = F.lit(None).cast("string")
    received = new(BRONZE)
    if intent.batch is not None:
        again = refused_before(lake, intent.run, intent.as_of_ms).distinct()
        again = again.select("message_id", F.lit("again").alias("again"))
        received = received.join(again, "message_id", "left").withColumn(
            PROBLEM, F.when(F.col("again").isNull(), F.col(PROBLEM))
        )
    bronze = received.select("input", F.lit("received").alias("what"), PROBLEM)
    reports = new(REPORTS).select(F.lit("reports"), F.lit("new"), PROBLEM)
    metrics = new(METRICS).select(F.lit("metrics"), F.lit("new"), nothing)
    found = {name: Counts() for name in INPUTS}
    for row in bronze.union(reports).union(metrics).groupBy("input", "what", PROBLEM).count().collect():
        became = found[row.input]
        became.received += row["count"] * (row.what == "received")
        became.new += row["count"] * (row.what == "new" and row[PROBLEM] is None)
        if row[PROBLEM] is not None:
            became.refused[row[PROBLEM]] = became.refused.get(row[PROBLEM], 0) + row["count"]
    return found


def rules_text(settings: Settings) -> dict[str, Any]:
    """The rules as the ledger keeps them."""
    return asdict(settings)
