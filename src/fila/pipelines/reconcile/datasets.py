"""What a run has read and written, as datasets of OpenLineage (`fila.pipelines.lineage`)."""

from collections.abc import Iterable, Mapping
from typing import Any

from fila.pipelines.lake.contract import TABLES
from fila.pipelines.lake.lake import Lake
from fila.pipelines.lake.ledger import Run
from fila.pipelines.lineage import Dataset, place
from fila.pipelines.reconcile.checks import Check
from fila.pipelines.reconcile.pipeline import Done


def job(name: str, lake: Lake) -> str:
    """The job that adds to these tables."""
    return f"{name}:{place(lake.files.qualified(lake.out))[1]}"


def read(lake: Lake, paths: Mapping[str, str], done: Done | None) -> list[Dataset]:
    """The inputs in files, by name, and what a run has read of each. `None`: nothing was new."""
    return [_read(name, *place(lake.files.qualified(path)), done) for name, path in paths.items()]


def queue(addr: str, name: str, done: Done | None) -> Dataset:
    """The queue that a stream reads its reports from."""
    return _read("reports", f"fila://{addr}", name, done)


def written(lake: Lake, before: Mapping[str, int], run: Run) -> list[Dataset]:
    """The tables that have changed since they had these versions."""
    made = []
    for name, version in run.versions.items():
        since = before.get(name, -1)
        if version > since:
            facets: dict[str, dict[str, Any]] = {
                "schema": {"fields": [{"name": each.name, "type": each.type} for each in TABLES[name].columns]},
                "storage": {"storageLayer": "delta", "fileFormat": "parquet"},
                "version": {"datasetVersion": str(version)},
            }
            rows = {"outputStatistics": {"rowCount": lake.rows_written(name, since, version)}}
            made.append(Dataset(*place(lake.files.qualified(lake.path(name))), facets, rows))
    return made


def _read(name: str, namespace: str, dataset: str, done: Done | None) -> Dataset:
    statistics = {"rowCount": 0, "fileCount": 0, "size": 0}
    if done is None:
        return Dataset(namespace, dataset, {}, {"inputStatistics": statistics})
    files = done.files.get(name)
    statistics["rowCount"] = done.run.summary["rows"][name]["received"]
    if files is None:
        statistics = {"rowCount": statistics["rowCount"]}
    else:
        statistics |= {"fileCount": len(files), "size": sum(size for size, _ in files.values())}
    assertions: dict[str, Any] = {"assertions": list(_assertions(name, done.checks))}
    return Dataset(namespace, dataset, {}, {"inputStatistics": statistics, "dataQualityAssertions": assertions})


def _assertions(name: str, checks: Iterable[Check]) -> Iterable[dict[str, object]]:
    """The checks of a run that are about this input. Those of tables are about the reports that came to them."""
    for check in checks:
        if check.name.endswith("_metrics") == (name == "metrics"):
            told = {"assertion": check.name, "success": check.passed, "description": check.text}
            expected = {} if check.limit is None else {"expected": f"at most {check.limit}"}
            yield {**told, **expected, "actual": str(check.value)}
