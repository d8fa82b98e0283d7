"""The tables of reconciliation, bronze, silver and gold: of the run under way, and of the runs before it."""

from pyspark.sql import DataFrame, SparkSession

from fila.pipelines.files import Files
from fila.pipelines.reconcile import tables, verdicts
from fila.pipelines.runs import Manifest, Runs


class Layers:
    """Tables are named by their path in a run, such as `gold/results`."""

    def __init__(self, spark: SparkSession, files: Files, runs: Runs, before: Manifest | None, staged: str) -> None:
        self._spark, self._files, self._runs = spark, files, runs
        self._before, self._staged = before, staged

    def save(self, rows: DataFrame, what: str) -> DataFrame:
        """Write a table of this run. Returns what is there now."""
        rows.write.parquet(self._path(what))
        return self._spark.read.schema(rows.schema).parquet(self._path(what))

    def current(self, what: str) -> DataFrame | None:
        """A table of this run, if it has one."""
        return self._read(what, self._path(what)) if self._files.exists(self._path(what)) else None

    def previous(self, what: str) -> DataFrame | None:
        """A table of the run before this one."""
        return None if self._before is None else self._read(what, f"{self._runs.path(self._before.run)}/{what}")

    def earlier(self, what: str) -> DataFrame | None:
        """A table of all runs before this one."""
        paths = self._runs.having(what, self._before.run) if self._before is not None else []
        return self._read(what, *paths) if paths else None

    def problems(self, name: str) -> list[DataFrame]:
        """Of the rows that this run received, by shape of file: why each was refused, null if it was not."""
        schema, top = f"{tables.PROBLEM} string", self._path(f"bronze/{name}")
        return [self._spark.read.schema(schema).parquet(f"{top}/{shape}") for shape in self._files.folders(top)]

    def no_metrics(self) -> DataFrame:
        return self._spark.createDataFrame([], tables.metrics().schema)

    def _path(self, what: str) -> str:
        return f"{self._staged}/{what}"

    def _read(self, what: str, *paths: str) -> DataFrame:
        layer, _, name = what.partition("/")
        if layer == "gold":
            schema = verdicts.schema(name)
        else:
            schema = (tables.metrics() if name == "metrics" else tables.reports()).schema
        return self._spark.read.schema(schema).parquet(*paths)
