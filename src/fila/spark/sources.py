"""Input files: found, told apart by their shape, and read as they are.

Files of one input may differ: CSV beside Parquet, columns in another order or of another type, more columns than are
needed. So files of one shape are read together, and each shape by itself. What is read is whatever the file says;
whether that makes sense is decided by `tables`.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.spark import tables
from fila.spark.errors import BadInput
from fila.spark.files import FileInfo, Files
from fila.spark.tables import CORRUPT, FILE, Table

_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json.gz": "json",
    ".jsonl.gz": "json",
}
_LOOKED_AT = 50
"""How many lines of a JSON file are looked at for the columns that it has."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Files that can be read as one."""

    format: str
    columns: tuple[str, ...]
    files: tuple[FileInfo, ...]


def find(files: Files, table: Table, pattern: str) -> list[FileInfo]:
    """The files of an input. Raises BadInput when there are none, or some of an unknown format."""
    found = files.find(pattern)
    if not found:
        raise BadInput(f"no {table.name}: there are no files at {pattern}")
    for file in found:
        _format(file)
    return found


def shapes(spark: SparkSession, files: Files, table: Table, found: Iterable[FileInfo]) -> list[Shape]:
    """The files by shape. Raises BadInput for a file that lacks columns, or has them of a type that means nothing."""
    grouped: dict[tuple[str, ...], list[FileInfo]] = {}
    for file in found:
        grouped.setdefault(_shape(spark, files, table, file), []).append(file)
    result = []
    for (form, *columns), members in grouped.items():
        names = tuple(column.partition(":")[0] for column in columns) if form == "parquet" else tuple(columns)
        result.append(Shape(form, names, tuple(members)))
    return result


def read(spark: SparkSession, table: Table, shape: Shape) -> DataFrame:
    """The rows as they are, with the file that each came from."""
    paths = [file.path for file in shape.files]
    match shape.format:
        case "parquet":
            rows = spark.read.parquet(*paths)
            tables.check_types(table, shape.files[0].path, rows.schema)
        case "csv":
            schema = T.StructType([T.StructField(name, T.StringType()) for name in (*shape.columns, CORRUPT)])
            rows = (
                spark.read.schema(schema)
                .options(header=True, enforceSchema=True, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
                .csv(paths)
            )
        case _:
            rows = _json(spark, table, paths)
    return rows.withColumn(FILE, F.col("_metadata.file_path"))


def _json(spark: SparkSession, table: Table, paths: Sequence[str]) -> DataFrame:
    """Lines of JSON: what they say, and the line itself in `received`."""
    names = [field.name for field in table.fields]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, CORRUPT)])
    parsed = F.from_json("value", schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    lines = spark.read.text(list(paths)).where(F.trim("value") != "")
    return lines.select(F.col("value").alias("received"), "_metadata", parsed.alias("said")).select(
        "received", "_metadata", "said.*"
    )


def _format(file: FileInfo) -> str:
    for ending, form in _FORMATS.items():
        if file.name.lower().endswith(ending):
            return form
    raise BadInput(f"{file.path}: its format is unknown; names end in one of {', '.join(_FORMATS)}")


def _shape(spark: SparkSession, files: Files, table: Table, file: FileInfo) -> tuple[str, ...]:
    form = _format(file)
    try:
        if form == "parquet":
            schema = _parquet_schema(spark, file)
            tables.check_columns(table, file.path, [name for name, _ in schema])
            return (form, *(f"{name}:{kind}" for name, kind in schema))
        if form == "csv":
            header = next(csv.reader(files.lines(file, 1)), [])
            names = [name.strip() for name in header]
            tables.check_columns(table, file.path, names)
            _check_distinct(file, names)
            return (form, *names)
        keys = _json_keys(files.lines(file, _LOOKED_AT))
    except OSError as error:
        raise BadInput(f"{file.path} cannot be read: {error}") from error
    tables.check_columns(table, file.path, keys)
    return (form,)


def _parquet_schema(spark: SparkSession, file: FileInfo) -> list[tuple[str, str]]:
    """Names and types. A footer is read here where that is possible: to plan a query for each file takes far longer."""
    if file.local is None:
        return [(field.name, field.dataType.simpleString()) for field in spark.read.parquet(file.path).schema]
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [(field.name, str(field.type)) for field in pq.read_schema(file.local)]
    except pa.ArrowInvalid as error:
        raise BadInput(f"{file.path} is not a Parquet file") from error


def _json_keys(lines: Iterable[str]) -> list[str]:
    keys: dict[str, None] = {}
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            keys |= dict.fromkeys(value)
    return list(keys)


def _check_distinct(file: FileInfo, names: list[str]) -> None:
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise BadInput(f"{file.path}: column {name} is there twice")
