"""What the input tables hold, and how a row as received becomes a valid one, or is refused with a reason.

Input comes as text (CSV, JSON) or typed (Parquet). Both are read by the same table of fields:
- a name is text without surrounding blanks, of 1 to 128 characters;
- a count is a whole number from 0 to 10^12;
- a moment is milliseconds since 1970, a timestamp, or text of either kind (without a zone: UTC; never without a year).

Reports also have the time of their receipt. How old and how new they may be beside it is `domain.intake`.
"""

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fila.pipelines.errors import BadInput
from fila.pipelines.reconcile.columns import COLUMNS
from fila.reconcile.domain.intake import counted_at_ms, newest_ms, oldest_ms
from fila.reconcile.domain.models import MAX_NAME
from fila.reconcile.domain.settings import HOUR_MS, MAX_COUNT, Intake

PROBLEM = "problem"
"""Column of bronze: why the row was refused, null when it is valid."""
FILE = "fila_file"
"""The file that a row came from."""
MESSAGE, PAYLOAD = "fila_message_id", "fila_payload"
"""The message that a row came from."""
CORRUPT = "fila_unreadable"
"""The line that could not be read at all."""
RECEIVED = "fila_received_ms"
"""Of reports as received: when that was."""
LINE = "fila_line"
"""The line of a file of lines."""
SUBMITTED = "submitted_at_ms"
"""Column of silver, of reports: when they were received."""
_OURS = (FILE, CORRUPT, RECEIVED, LINE)
_MAX_MS = 253_402_300_799_999  # the end of the year 9999
_MIN_NUMBER_MS = 100_000_000_000  # in 1973; as seconds in the year 5138


class FieldType(Enum):
    NAME = "text"
    COUNT = "whole numbers"
    MOMENT = "timestamps, or milliseconds since 1970"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the input, and the one that it becomes."""

    name: str
    type: FieldType
    becomes: str
    #: Whether the column may be missing altogether.
    optional: bool = False
    #: Whether a row may have nothing here. What an absent name becomes is "", else null.
    nullable: bool = False
    lower: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """An input: its fields, what identifies a row, and which of two rows with one identity counts."""

    name: str
    fields: tuple[Field, ...]
    identity: tuple[str, ...]
    #: Greater is better, compared as a whole.
    better: tuple[Column, ...]
    #: Whether rows have the time of their receipt.
    received: bool = False
    #: Whether a file that cannot be used is left out, instead of stopping the run. Without some metrics reports stay
    #: open, and are judged when the file is mended. Reports that are left out would be missed by nobody.
    quarantines: bool = False

    @property
    def required(self) -> list[str]:
        return [field.name for field in self.fields if not field.optional]

    @property
    def schema(self) -> T.StructType:
        """The columns of valid rows."""
        types = {FieldType.NAME: T.StringType(), FieldType.COUNT: T.LongType(), FieldType.MOMENT: T.LongType()}
        names = [T.StructField(field.becomes, types[field.type]) for field in self.fields]
        return T.StructType(names + [T.StructField(SUBMITTED, T.LongType())] * self.received)


def _counts(prefix: str = "", *, nullable: bool = False) -> tuple[Field, ...]:
    return tuple(
        Field(name, FieldType.COUNT, prefix + name, nullable=nullable) for name in ("views", "clicks", "conversions")
    )


def reports() -> Table:
    """What affiliates claim. Of several rows with one id the earliest counts, as it does for the service."""
    return Table(
        "reports",
        (
            Field("report_id", FieldType.NAME, "report_id"),
            Field("affiliate_id", FieldType.NAME, "affiliate_id"),
            Field("campaign_id", FieldType.NAME, "campaign_id", optional=True, nullable=True),
            Field("platform", FieldType.NAME, "platform", lower=True),
            Field("post_id", FieldType.NAME, "post_id"),
            *_counts(),
            Field("reported_at", FieldType.MOMENT, "reported_at_ms"),
        ),
        ("report_id",),
        (
            -F.col("reported_at_ms"),
            *(-F.col(name) for name in ("views", "clicks", "conversions")),
            *(F.col(name) for name in ("affiliate_id", "campaign_id", "platform", "post_id")),
        ),
        received=True,
    )


def metrics() -> Table:
    """What platforms tell. Of several rows about one post the latest counts, then the one that tells more."""
    told = [F.col(name) for name in ("told_views", "told_clicks", "told_conversions")]
    return Table(
        "metrics",
        (
            Field("platform", FieldType.NAME, "platform", lower=True),
            Field("post_id", FieldType.NAME, "post_id"),
            *_counts("told_", nullable=True),
            Field("observed_at", FieldType.MOMENT, "observed_at_ms"),
        ),
        ("platform", "post_id"),
        (F.col("observed_at_ms"), -sum((each.isNull().cast("int") for each in told), F.lit(0)), *told),
        quarantines=True,
    )


def both() -> tuple[Table, Table]:
    return reports(), metrics()


def check_columns(table: Table, file: str, names: list[str]) -> None:
    """Raises BadInput where columns are missing."""
    missing = [name for name in table.required if name not in names]
    if missing:
        raise BadInput(
            f"{file}: missing {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)} "
            f"({table.name} need {', '.join(table.required)}; found {', '.join(names) or 'none'})"
        )


def check_types(table: Table, file: str, schema: T.StructType) -> None:
    """Raises BadInput where a column's type cannot be read as what it should be."""
    for field in table.fields:
        if field.name in schema.names and not isinstance(schema[field.name].dataType, _READABLE[field.type]):
            found = schema[field.name].dataType.simpleString()
            raise BadInput(f"{file}: column {field.name} has type {found}, expected {field.type.value}")


def judged(received: DataFrame, table: Table, limits: Intake) -> DataFrame:
    """Rows as received, with what their fields mean, and `PROBLEM` where they are refused.

    Those of reports have `RECEIVED`. Of a refused row of a file, column `received` is all that it said.
    """
    problems = [F.when(F.col(CORRUPT).isNotNull(), "the line cannot be read")] if CORRUPT in received.columns else []
    problems += [_problem(received, field) for field in table.fields if field.name in received.columns]
    if table.received:
        [reported_at] = [field for field in table.fields if field.becomes == "reported_at_ms"]
        problems.append(_untimely(reported_at.name, _value(received, reported_at), limits))
    found = received.withColumn("fila_problem", F.coalesce(*problems))
    refused = F.col("fila_problem").isNotNull()
    normal = {field.becomes: _normal(found, field) for field in table.fields}
    if table.received:
        normal["reported_at_ms"] = counted_at_ms(normal["reported_at_ms"], F.col(RECEIVED), COLUMNS)
        normal[SUBMITTED] = F.col(RECEIVED)
    return found.select(
        F.lit(table.name).alias("input"),
        F.col("fila_problem").alias(PROBLEM),
        F.when(refused, _said_whole(found)).alias("received"),
        _or_null(found, FILE, "string").alias("file"),
        _or_null(found, MESSAGE, "string").alias("message_id"),
        _or_null(found, PAYLOAD, "binary").alias("payload"),
        *(column.alias(name) for name, column in normal.items()),
    )


def _or_null(rows: DataFrame, name: str, kind: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast(kind)


def _said_whole(rows: DataFrame) -> Column:
    """All that a row of a file says, as text; null for a message, which is kept as it is."""
    if PAYLOAD in rows.columns:
        return F.lit(None).cast("string")
    if LINE in rows.columns:
        return F.col(LINE)
    return F.to_json(F.struct(*(name for name in rows.columns if name not in (*_OURS, "fila_problem"))))


def valid(bronze: DataFrame, table: Table) -> DataFrame:
    """The valid rows of an input in bronze. The same post or report may still be there twice."""
    rows = bronze.where((F.col("input") == table.name) & F.col(PROBLEM).isNull())
    return rows.select(*table.schema.names)


def unique(rows: DataFrame, table: Table) -> DataFrame:
    """One row for each identity, the better one.

    Nearly all rows are unique as they come. So identities are counted by hash, which moves 8 bytes a row, and only
    those that are shared are sorted out.
    """
    hashed = F.xxhash64(*table.identity)
    shared = rows.groupBy(hashed.alias("h")).count().where("count > 1").select("h").limit(_MANY + 1).collect()
    if not shared:
        return rows
    if len(shared) > _MANY:
        return best(rows, table)
    few = F.broadcast(rows.sparkSession.createDataFrame([(row.h,) for row in shared], "h bigint"))
    marked = rows.withColumn("h", hashed)
    alone, twice = marked.join(few, "h", "left_anti"), marked.join(few, "h", "left_semi")
    return alone.drop("h").unionByName(best(twice.drop("h"), table))


def best(rows: DataFrame, table: Table) -> DataFrame:
    """One row for each identity, the better one, by sorting."""
    whole = F.struct(F.struct(*table.better).alias("rank"), F.struct("*").alias("row"))
    return rows.groupBy(*table.identity).agg(F.max(whole).alias("best")).select("best.row.*")


_MANY = 200_000
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_READABLE: dict[FieldType, tuple[type[T.DataType], ...]] = {
    FieldType.NAME: (T.StringType, *_WHOLE),
    FieldType.COUNT: (T.StringType, *_WHOLE, T.DecimalType, T.FloatType, T.DoubleType),
    FieldType.MOMENT: (T.StringType, *_WHOLE, T.TimestampType, T.TimestampNTZType, T.DateType),
}


def _problem(rows: DataFrame, field: Field) -> Column:
    """Null, or what is wrong with this field."""
    given, value = _given(rows, field), _value(rows, field)
    if field.type is FieldType.NAME:
        wrong, text = F.length(value) > MAX_NAME, f"{field.name} has more than {MAX_NAME} characters"
    elif field.type is FieldType.COUNT:
        wrong = F.coalesce((value < 0) | (value > MAX_COUNT), F.lit(True))
        text = f"{field.name} is not a whole number from 0 to {MAX_COUNT}"
    else:
        wrong = F.coalesce((value < 0) | (value > _MAX_MS), F.lit(True))
        text = f"{field.name} is not a moment"
        seconds = f"{field.name} is too small for milliseconds since 1970: it may be in seconds"
        return F.when(given.isNull(), f"{field.name} is empty").when(wrong, text).when(_is_small(rows, field), seconds)
    absent = F.lit(None) if field.nullable else F.lit(f"{field.name} is empty")
    return F.when(given.isNull(), absent).when(wrong, text)


def _is_small(rows: DataFrame, field: Field) -> Column:
    """Whether a moment is a number, and one too small."""
    data_type = rows.schema[field.name].dataType
    if not isinstance(data_type, (T.StringType, *_WHOLE)):
        return F.lit(False)
    return _given(rows, field).try_cast("bigint") < _MIN_NUMBER_MS


def _untimely(name: str, reported_at_ms: Column, limits: Intake) -> Column:
    """Null, or why a report is too old or too new beside its receipt."""
    received = F.col(RECEIVED)
    old = f"{name} is more than {limits.max_age_ms / HOUR_MS:g} hours old"
    return F.when(reported_at_ms > newest_ms(received, limits), f"{name} is in the future").when(
        reported_at_ms < oldest_ms(received, limits), old
    )


def _normal(rows: DataFrame, field: Field) -> Column:
    if field.name not in rows.columns:
        return F.lit("")
    value = _value(rows, field)
    if field.type is FieldType.NAME and field.nullable:
        value = F.coalesce(value, F.lit(""))
    return value


def _given(rows: DataFrame, field: Field) -> Column:
    """What is there; null when that is nothing but blanks."""
    column = F.col(field.name)
    return F.nullif(F.trim(column), F.lit("")) if _is_text(rows, field) else column


def _value(rows: DataFrame, field: Field) -> Column:
    """What it means; null when it means nothing."""
    given = _given(rows, field)
    data_type = rows.schema[field.name].dataType
    if field.type is FieldType.NAME:
        text = given.cast("string")
        return F.lower(text) if field.lower else text
    if field.type is FieldType.COUNT:
        if isinstance(data_type, T.DecimalType | T.FloatType | T.DoubleType):
            return F.when(given % 1 == 0, given.try_cast("bigint"))
        return given.try_cast("bigint")
    if isinstance(data_type, T.StringType):
        # Spark takes a time without a date for that time today.
        dated = F.when(given.rlike(r"^\s*\d{4}"), given)
        return F.coalesce(given.try_cast("bigint"), F.unix_millis(dated.try_cast("timestamp")))
    if isinstance(data_type, _WHOLE):
        return given.cast("bigint")
    return F.unix_millis(given.cast("timestamp"))


def _is_text(rows: DataFrame, field: Field) -> bool:
    return isinstance(rows.schema[field.name].dataType, T.StringType)
