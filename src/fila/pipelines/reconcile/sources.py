"""Input files: found, told apart by their shape, and read as they are.

Files of one input may differ: CSV beside Parquet, columns in another order or of another type, more columns than are
needed. So files of one shape are read together, and each shape by itself. What is read is whatever the file says;
whether that makes sense is decided by `tables`. A metrics file that cannot be used at all is quarantined: it is left
out, with a warning, and tried again by the next run.
"""

import csv
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.pipelines.errors import BadInput
from fila.pipelines.files import FileInfo, Files
from fila.pipelines.lake.ledger import ReadFiles
from fila.pipelines.reconcile import tables
from fila.pipelines.reconcile.tables import CORRUPT, FILE, LINE, Table

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
_log = logging.getLogger(__name__)
_LOOKED_AT = 50
"""How many lines of a JSON file are looked at for the columns that it has."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Files that can be read as one, and their rows as they are, with the file that each came from."""

    format: str
    files: tuple[FileInfo, ...]
    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Input:
    """The new files of an input."""

    shapes: list[Shape]
    #: Files that cannot be used, by path, and why. The next run tries them again.
    quarantined: dict[str, str]

    @property
    def files(self) -> ReadFiles:
        """The files that are read."""
        return {file.path: (file.size, file.modified_ms) for shape in self.shapes for file in shape.files}


def find(files: Files, table: Table, pattern: str) -> list[FileInfo]:
    """The files of an input. Raises BadInput when there are none; a folder of metrics may be empty."""
    found = files.find(pattern)
    if not found and not (table.quarantines and files.matches(pattern)):
        raise BadInput(f"no {table.name}: there are no files at {pattern}")
    return found


def new_input(spark: SparkSession, files: Files, table: Table, found: Iterable[FileInfo], known: ReadFiles) -> Input:
    """The files that no run before has read, by shape. Raises BadInput, unless the table quarantines."""
    reader = _Reader(spark, files, table)
    grouped: dict[tuple[str, ...], list[FileInfo]] = {}
    quarantined: dict[str, str] = {}
    for file in found:
        try:
            if is_new(file, known):
                grouped.setdefault(reader.shape_of(file), []).append(file)
        except BadInput as error:
            if not table.quarantines:
                raise
            quarantined[file.path] = str(error)
    shapes = []
    for shape, members in grouped.items():
        try:
            shapes.append(reader.read(shape, members))
        except BadInput as error:
            if not table.quarantines:
                raise
            quarantined |= {file.path: str(error) for file in members}
    for reason in quarantined.values():
        _log.warning("left out, until it is mended: %s", reason)
    return Input(shapes, quarantined)


def is_new(file: FileInfo, known: ReadFiles) -> bool:
    """Whether no run has read this file. Raises BadInput if it has changed since one has."""
    if file.path not in known:
        return True
    if tuple(known[file.path]) != (file.size, file.modified_ms):
        raise BadInput(
            f"{file.path} has changed since it was read, so its old rows are part of the results: "
            "give new rows in a new file, or begin anew with another --out"
        )
    return False


class _Reader:
    """Tells files apart by their shape, and reads those of one shape."""

    def __init__(self, spark: SparkSession, files: Files, table: Table) -> None:
        self._spark, self._files, self._table = spark, files, table

    def shape_of(self, file: FileInfo) -> tuple[str, ...]:
        """The format, and what files must have in common to be read as one. Raises BadInput."""
        form = _format(file)
        try:
            if form == "parquet":
                schema = _parquet_schema(self._files, file)
                tables.check_columns(self._table, file.path, [name for name, _ in schema])
                return (form, *(f"{name}:{kind}" for name, kind in schema))
            if form == "csv":
                header = next(csv.reader(self._files.lines(file, 1)), [])
                names = [name.strip() for name in header]
                tables.check_columns(self._table, file.path, names)
                _check_distinct(file, names)
                return (form, *names)
            keys = _json_keys(self._files.lines(file, _LOOKED_AT))
        except OSError as error:
            raise BadInput(f"{file.path} cannot be read: {error}") from error
        tables.check_columns(self._table, file.path, keys)
        return (form,)

    def read(self, shape: tuple[str, ...], files: Sequence[FileInfo]) -> Shape:
        """The rows of files of this shape. Raises BadInput for columns of a type that cannot be used."""
        form, *columns = shape
        paths = [file.path for file in files]
        match form:
            case "parquet":
                rows = self._spark.read.parquet(*paths)
                tables.check_types(self._table, paths[0], rows.schema)
            case "csv":
                rows = _csv(self._spark, columns, paths)
            case _:
                rows = _json(self._spark, self._table, paths)
        return Shape(form, tuple(files), rows.withColumn(FILE, F.col("_metadata.file_path")))


def _csv(spark: SparkSession, columns: Sequence[str], paths: Sequence[str]) -> DataFrame:
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*columns, CORRUPT)])
    reader = spark.read.schema(schema).options(header=True, enforceSchema=True, mode="PERMISSIVE")
    return reader.option("columnNameOfCorruptRecord", CORRUPT).csv(list(paths))


def _json(spark: SparkSession, table: Table, paths: Sequence[str]) -> DataFrame:
    """Lines of JSON: what they say, and the line itself."""
    names = [field.name for field in table.fields]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, CORRUPT)])
    parsed = F.from_json("value", schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    lines = spark.read.text(list(paths)).where(F.trim("value") != "")
    return lines.select(F.col("value").alias(LINE), "_metadata", parsed.alias("said")).select(
        LINE, "_metadata", "said.*"
    )


def _format(file: FileInfo) -> str:
    for ending, form in _FORMATS.items():
        if file.name.lower().endswith(ending):
            return form
    raise BadInput(f"{file.path}: its format is unknown; names end in one of {', '.join(_FORMATS)}")


def _parquet_schema(files: Files, file: FileInfo) -> list[tuple[str, str]]:
    """Names and types, from the footer: to run a Spark job for each file takes far longer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with files.open(file) as stream:
            return [(field.name, str(field.type)) for field in pq.read_schema(stream)]
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
