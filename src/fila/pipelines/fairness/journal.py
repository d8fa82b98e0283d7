"""The journal as a table: from exported Parquet, or from a broker."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from fila.client import Client
from fila.pipelines.errors import BadInput
from fila.pipelines.fairness.history import COLUMNS
from fila.pipelines.files import Files

_ROWS_AT_ONCE = 200_000


def read(spark: SparkSession, paths: list[str]) -> DataFrame:
    """The entries in files that `fila journal export` wrote, each once. Raises BadInput."""
    rows = spark.read.parquet(*paths)
    missing = [name for name in COLUMNS if name not in rows.columns]
    if missing:
        raise BadInput(
            f"{paths[0]}: missing {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}; "
            f"expected what `fila journal export` writes, found {', '.join(rows.columns)}"
        )
    for name, kind in COLUMNS.items():
        if (found := rows.schema[name].dataType.simpleString()) != kind:
            raise BadInput(f"{paths[0]}: column {name} has type {found}, expected {kind}")
    return rows.select(*COLUMNS).dropDuplicates(["seq"]) if len(paths) > 1 else rows.select(*COLUMNS)


def export(spark: SparkSession, addr: str, where: str, advance: Callable[[int], None] = lambda _: None) -> None:
    """Write the journal of a broker, as it is now, to a folder. Raises FilaError, or BadInput when there is none."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.int64() if kind == "bigint" else pa.string()) for name, kind in COLUMNS.items()])
    gathered: dict[str, list[object]] = {name: [] for name in COLUMNS}
    written = 0

    def write() -> None:
        spark.createDataFrame(pa.table(gathered, schema=schema)).write.mode("append").parquet(where)
        for column in gathered.values():
            column.clear()

    with Client(addr) as client, client.read_journal_batches(1) as batches:
        for batch in batches:
            for name, column in gathered.items():
                column.extend(batch.columns[name])
            written += len(batch)
            advance(written)
            if len(gathered["seq"]) >= _ROWS_AT_ONCE:
                write()
    if gathered["seq"]:
        write()
    if not written:
        raise BadInput(f"the journal of {addr} is empty: switch it on with enabled = true under [journal] of its file")


def files(where: Files, pattern: str) -> list[str]:
    """The Parquet files of a path or pattern. Raises BadInput."""
    found = [file.path for file in where.find(pattern) if file.name.endswith(".parquet")]
    if not found:
        raise BadInput(f"no journal: there are no .parquet files at {pattern}")
    return found
