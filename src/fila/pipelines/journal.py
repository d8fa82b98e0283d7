"""The journal as a table: from exported Parquet, from a broker, or from an archive."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fila.client import Client
from fila.pipelines.archive.entries import MISSING, Archive
from fila.pipelines.errors import BadInput
from fila.pipelines.files import Files


def read(spark: SparkSession, paths: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """The entries in files that `fila journal export` wrote, each once, in these columns. Raises BadInput."""
    rows = spark.read.parquet(*paths)
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise BadInput(
            f"{paths[0]}: missing {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}; "
            f"expected what `fila journal export` writes, found {', '.join(rows.columns)}"
        )
    for name, kind in columns.items():
        if (found := rows.schema[name].dataType.simpleString()) != kind:
            raise BadInput(f"{paths[0]}: column {name} has type {found}, expected {kind}")
    return rows.select(*columns).dropDuplicates(["seq"]) if len(paths) > 1 else rows.select(*columns)


def export(spark: SparkSession, addr: str, where: str, columns: Mapping[str, str]) -> None:
    """Write the journal of a broker, as it is now, to a folder: from the broker to the executors, which write it.

    Raises FilaError, or BadInput when there is none.
    """
    with Client(addr) as client, client.read_journal_batches(last=1) as batches:
        if not sum(map(len, batches)):
            raise BadInput(
                f"the journal of {addr} is empty: switch it on with enabled = true under [journal] of its file"
            )
    entries = spark.read.format("fila").options(addr=addr, journal="true", columns=",".join(columns)).load()
    entries.select(*columns).write.parquet(where)


def archived(spark: SparkSession, folder: str, columns: Mapping[str, str]) -> DataFrame:
    """The entries of an archive after the last gap. Raises BadInput where nothing was archived."""
    entries = Archive(spark, folder).read()
    gap = entries.where(F.col("kind") == MISSING).agg(F.max("seq")).collect()[0][0]
    return entries.where(F.col("kind") != MISSING).where(F.col("seq") > (gap or 0)).select(*columns)


def files(where: Files, pattern: str) -> list[str]:
    """The Parquet files of a path or pattern. Raises BadInput."""
    found = [file.path for file in where.find(pattern) if file.name.endswith(".parquet")]
    if not found:
        raise BadInput(f"no journal: there are no .parquet files at {pattern}")
    return found
