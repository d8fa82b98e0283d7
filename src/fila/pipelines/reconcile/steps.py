"""The steps of a run, which files and queues have in common: clean what was received, decide, count."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fila.pipelines.progress import Say
from fila.pipelines.reconcile import ownership, sources, tables, verdicts
from fila.pipelines.reconcile.layers import Layers
from fila.pipelines.reconcile.tables import PROBLEM, Table
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import Settings


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
    """What a run at a moment, under these rules, does to its tables."""

    def __init__(self, layers: Layers, now_ms: int, settings: Settings, say: Say) -> None:
        self._layers, self._now_ms, self._settings, self._say = layers, now_ms, settings, say

    def read_files(self, table: Table, shapes: Sequence[sources.Shape]) -> None:
        """Write bronze and silver of the files of an input, if there are any."""
        bronze: list[DataFrame] = []
        for number, shape in enumerate(shapes, 1):
            self._say(f"reading {table.name}: {len(shape.files)} {shape.format}")
            rows = shape.rows
            if table.received:
                rows = rows.withColumn(tables.RECEIVED, F.lit(self._now_ms).cast("bigint"))
            bronze.append(self.write_bronze(table, rows, f"{shape.format}-{number}"))
        if bronze:
            self.write_silver(table, bronze)

    def write_bronze(self, table: Table, received: DataFrame, shape: str) -> DataFrame:
        """Write rows as received, each with the reason if it is refused."""
        rows = tables.bronze(received, table, self._settings.intake)
        return self._layers.save(rows, f"bronze/{table.name}/{shape}")

    def write_silver(self, table: Table, bronze: Sequence[DataFrame]) -> None:
        """Write the valid rows, one for each identity; of reports those that no run before had."""
        self._say(f"cleaning {table.name}")
        rows = tables.unique(_union([tables.valid(each, table) for each in bronze]), table)
        if table.received:
            rows = self._accepted(rows)
        self._layers.save(rows.select(*table.schema.names), f"silver/{table.name}")

    def _accepted(self, reports: DataFrame) -> DataFrame:
        """New reports, without those of posts that are another affiliate's, which are written to `post_taken`."""
        earlier = [self._layers.earlier(f"silver/{name}") for name in ("reports", "post_taken")]
        for each in earlier:
            if each is not None:
                reports = reports.join(each.select("report_id"), "report_id", "left_anti")
        accepted, taken = ownership.split(reports, earlier[0])
        if taken is not None:
            self._layers.save(taken.select(*tables.reports().schema.names), "silver/post_taken")
        return accepted

    def decide(self) -> None:
        """Write gold: verdicts, open reports, sums and alerts."""
        layers, settings = self._layers, self._settings
        was_open = layers.previous("gold/open")
        self._say("classifying")
        judged = verdicts.results(self._candidates(was_open), self._metrics(), self._now_ms, settings)
        results = layers.save(judged, "gold/results")
        self._say("adding up")
        open_now, replaced = verdicts.still_open(results), None
        if was_open is not None:
            ids = results.where("attempt > 1").select("report_id")
            replaced = was_open.join(ids, "report_id", "left_semi")
            open_now = open_now.unionByName(was_open.join(ids, "report_id", "left_anti"))
        layers.save(open_now, "gold/open")
        changes = verdicts.changes(results, replaced)
        for name, by in verdicts.BY.items():
            sums = verdicts.added(layers.previous(f"gold/{name}"), verdicts.tally(changes, by), by)
            sums = verdicts.trusted(sums, settings) if name == "affiliates" else sums
            layers.save(sums, f"gold/{name}")
        alerts = verdicts.alerts(results, layers.earlier("gold/alerts"), settings)
        layers.save(alerts, "gold/alerts")

    def is_any_due(self) -> bool:
        """Whether the next attempt of an open report is due."""
        was_open = self._layers.previous("gold/open")
        return was_open is not None and not verdicts.due(was_open, self._now_ms).isEmpty()

    def _candidates(self, was_open: DataFrame | None) -> DataFrame:
        """The reports that this run judges."""
        reports, news = (self._layers.current(f"silver/{name}") for name in ("reports", "metrics"))
        found = [verdicts.fresh(reports)] if reports is not None else []
        if was_open is not None:
            found.append(verdicts.due(was_open, self._now_ms))
            if news is not None:
                found.append(verdicts.with_news(was_open, news, self._now_ms))
        return _union(found)

    def _metrics(self) -> DataFrame:
        """The metrics of all runs, one row for a post."""
        news, old = self._layers.current("silver/metrics"), self._layers.earlier("silver/metrics")
        if old is None:
            return self._layers.no_metrics() if news is None else news
        return tables.unique(old if news is None else old.unionByName(news), tables.metrics())

    def counts(self) -> dict[str, Counts]:
        """What became of the rows of each input."""
        parts: list[DataFrame] = []
        nothing = F.lit(None).cast("string")
        for name in ("reports", "metrics"):
            parts += [_counted(rows, name, "received", F.col(PROBLEM)) for rows in self._layers.problems(name)]
            silver = self._layers.current(f"silver/{name}")
            if silver is not None:
                parts.append(_counted(silver, name, "new", nothing))
        taken = self._layers.current("silver/post_taken")
        if taken is not None:
            parts.append(_counted(taken, "reports", "post_taken", F.lit(POST_TAKEN)))
        found = {name: Counts() for name in ("reports", "metrics")}
        rows = _union(parts).groupBy("input", "what", PROBLEM).count().collect() if parts else []
        for row in rows:
            counts = found[row.input]
            counts.received += row["count"] * (row.what == "received")
            counts.new += row["count"] * (row.what == "new")
            if row[PROBLEM] is not None:
                counts.refused[row[PROBLEM]] = row["count"]
        return found


def rules_text(settings: Settings) -> dict[str, Any]:
    """The rules as a manifest keeps them."""
    return asdict(settings)


def _counted(rows: DataFrame, name: str, what: str, problem: Any) -> DataFrame:
    return rows.select(F.lit(name).alias("input"), F.lit(what).alias("what"), problem.alias(PROBLEM))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
