"""The contract of the tables: their columns, what they are partitioned by, and the version of all of them.

A new version adds columns, with `since`. Tables of an older version are brought up to it when they are opened; columns
are never removed, renamed or given another type. Tables of a newer version are refused.
"""

from dataclasses import dataclass

from pyspark.sql import types as T

VERSION = 1
"""The version that this program writes."""

BRONZE = "bronze/received"
REPORTS, POSTS, METRICS = "silver/reports", "silver/posts", "silver/metrics"
RESULTS, CURRENT, TOTALS, ALERTS = "gold/results", "gold/current_results", "gold/totals", "gold/alerts"
FILES, CHECKS, RUNS = "ledger/files", "ledger/checks", "ledger/runs"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    #: The version of the contract that brought it.
    since: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table, by its path in the output folder."""

    name: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    #: In what order the rows of a file are, if they are looked up by these columns.
    order: tuple[str, ...] = ()

    @property
    def schema(self) -> T.StructType:
        types = {name: T.DataType.fromDDL(name) for name in {each.type for each in self.columns}}
        return T.StructType([T.StructField(each.name, types[each.type]) for each in self.columns])

    def added_since(self, version: int) -> list[Column]:
        return [each for each in self.columns if each.since > version]


def _columns(names: str, kind: str = "bigint") -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names.split())


_DAY = (*_columns("day", "date"), *_columns("run"))
"""The day (UTC) that a row is stored under, and the run that wrote it."""
_REPORT = (
    *_columns("report_id affiliate_id campaign_id platform post_id", "string"),
    *_columns("views clicks conversions reported_at_ms submitted_at_ms"),
)
_TOLD = _columns("told_views told_clicks told_conversions observed_at_ms")
_RESULT = (
    *_REPORT,
    *_TOLD,
    *_columns("status level reason", "string"),
    *_columns("confidence_bp over_bp difference_bp"),
    *_columns("views_difference_bp clicks_difference_bp conversions_difference_bp step_bp"),
    *_columns("attempt missing incomplete attempted_at_ms next_attempt_ms"),
)
SUMS = (
    *("reports", "matched", "discrepancy_low", "discrepancy_medium", "discrepancy_high", "affiliate_overclaimed"),
    *("missing_platform_data", "incomplete_platform_data"),
    *(f"{side}_{name}" for name in ("views", "clicks", "conversions") for side in ("claimed", "told")),
    "steps_bp",
)

TABLES = {
    table.name: table
    for table in (
        # What was received, as it was understood. `received` is the row itself, of those that were refused; `payload`
        # the message, of those from a queue.
        Table(
            BRONZE,
            (
                *_DAY,
                *_columns("input file message_id received problem", "string"),
                *_columns("payload", "binary"),
                *_REPORT,
                *_TOLD,
            ),
            ("input", "day"),
        ),
        # New valid reports, by the day of their receipt. `problem` is null, or why the report was refused after all.
        Table(REPORTS, (*_DAY, *_REPORT, *_columns("problem", "string")), ("day",)),
        # Whom each post belongs to.
        Table(
            POSTS,
            (*_columns("platform post_id affiliate_id", "string"), *_columns("run")),
            order=("platform", "post_id"),
        ),
        # New valid metrics, by the day of the run.
        Table(METRICS, (*_DAY, *_columns("platform post_id", "string"), *_TOLD), ("day",)),
        # Every attempt, by its day.
        Table(
            RESULTS,
            (*_DAY, *_RESULT, *_columns("previous_status", "string"), *_columns("previous_step_bp")),
            ("day",),
        ),
        # The last attempt of each report, by the day of its receipt. Rows that are final never change again.
        Table(CURRENT, (*_columns("final", "boolean"), *_DAY, *_RESULT), ("final", "day")),
        # Sums by affiliate, campaign and platform, and the trust of affiliates.
        Table(
            TOTALS,
            (*_columns("dimension name", "string"), *_columns(" ".join(SUMS)), *_columns("trust_bp run")),
            ("dimension",),
        ),
        Table(
            ALERTS,
            (
                *_DAY,
                *_columns("kind severity affiliate_id campaign_id platform post_id report_id status", "string"),
                *_columns("at_ms"),
            ),
            ("day",),
        ),
        Table(FILES, (*_columns("input path", "string"), *_columns("size modified_ms run"))),
        Table(
            CHECKS,
            (
                *_DAY,
                *_columns("as_of_ms"),
                *_columns("name", "string"),
                *_columns("value limit"),
                *_columns("passed", "boolean"),
                *_columns("text", "string"),
            ),
        ),
        # One row for each run that counts: as JSON its rules, the version of each table, and what it came to.
        Table(
            RUNS,
            (
                *_columns("run contract as_of_ms finished_at_ms"),
                *_columns("source rules versions batches summary", "string"),
            ),
        ),
    )
}
