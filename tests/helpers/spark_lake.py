"""The tables of a reconciliation, for tests: what a run added to them, and what they hold."""

from fila.pipelines.lake.contract import ALERTS, BRONZE, CURRENT, METRICS, REPORTS, RESULTS, TOTALS
from fila.pipelines.lake.lake import Lake

OURS = ("day", "run", "final", "problem", "dimension")
"""Columns that say where a row is stored."""


class Tables:
    """The tables in a folder."""

    def __init__(self, spark, out):
        self._lake = Lake(spark, str(out))

    def results(self, run=None):
        return self._rows(RESULTS, run)

    def alerts(self, run=None):
        return self._rows(ALERTS, run)

    def reports(self, run=None):
        return [row for row in self._rows(REPORTS, run, keep=("problem",)) if row["problem"] is None]

    def post_taken(self, run=None):
        return [row for row in self._rows(REPORTS, run, keep=("problem",)) if row["problem"] is not None]

    def metrics(self, run=None):
        return self._rows(METRICS, run)

    def received(self, name, run=None):
        return [row for row in self._rows(BRONZE, run, keep=("problem",)) if row["input"] == name]

    def current(self):
        return self._rows(CURRENT)

    def open(self):
        return [row for row in self._rows(CURRENT, keep=("final",)) if not row["final"]]

    def totals(self, dimension):
        rows = self._rows(TOTALS, keep=("dimension",))
        return {row["name"]: row for row in rows if row["dimension"] == dimension}

    def _rows(self, name, run=None, keep=()):
        frame = self._lake.read(name) if run is None else self._lake.of_run(name, run)
        dropped = [column for column in OURS if column not in keep]
        return [row.asDict() for row in frame.drop(*dropped).collect()]
