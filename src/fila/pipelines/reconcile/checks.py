"""Checks of the data, made by every run and kept with their history in `ledger/checks`.

| check | value | fails when |
|---|---|---|
| `volume_reports`, `volume_metrics` | rows received | never |
| `refused_reports`, `refused_metrics` | refused rows, in basis points of all | above `max_refused_bp`, or all |
| `freshness_metrics` | age of the newest metrics of the run, in ms | above `max_age_ms`, if metrics were received |
| `nulls` | new reports without a required value | above 0 |
| `duplicates` | attempts that the run wrote twice | above 0 |
| `conservation` | reports in `gold/current_results` less those in each sum of `gold/totals` | not 0 |
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from fila.pipelines.lake.contract import CHECKS, CURRENT, METRICS, REPORTS, RESULTS, TABLES
from fila.pipelines.lake.lake import Lake, RunRows, day_of
from fila.pipelines.lake.ledger import Intent
from fila.pipelines.reconcile.steps import INPUTS, Counts
from fila.pipelines.reconcile.verdicts import DIMENSIONS
from fila.reconcile.domain.settings import BP, HOUR_MS

_REQUIRED = ("report_id", "affiliate_id", "platform", "post_id", "views", "clicks", "conversions", "reported_at_ms")


@dataclass(frozen=True, slots=True)
class Limits:
    """What makes a run a failed one, though it is written."""

    max_refused_bp: int = BP
    #: How old the newest metrics of a run may be.
    max_age_ms: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Check:
    """What was found, and whether that is within its limit."""

    name: str
    value: int
    limit: int | None
    passed: bool
    text: str


def judged(check: Check, limits: Limits) -> Check:
    """A check of an earlier run, held against these limits."""
    if check.name.startswith("refused_"):
        everything = check.value == BP
        passed = not everything and check.value <= limits.max_refused_bp
        return replace(check, limit=limits.max_refused_bp, passed=passed)
    if check.name == "freshness_metrics":
        fine = limits.max_age_ms is None or check.value <= limits.max_age_ms
        return replace(check, limit=limits.max_age_ms, passed=fine)
    return check


def run_checks(
    lake: Lake, new: RunRows, intent: Intent, rows: Mapping[str, Counts], totals: DataFrame, limits: Limits
) -> list[Check]:
    """Make the checks of a run, and keep them."""
    made = [*_volumes(rows, limits), *_contents(lake, new, intent, totals, limits)]
    schema = TABLES[CHECKS].schema
    values = [(None, intent.run, intent.as_of_ms, *(getattr(each, name) for name in Check.__slots__)) for each in made]
    frame = lake.spark.createDataFrame(values, schema).withColumn("day", day_of(intent.as_of_ms))
    lake.append(CHECKS, frame.coalesce(1), intent.run)
    return made


def _volumes(rows: Mapping[str, Counts], limits: Limits) -> list[Check]:
    made = []
    for name in INPUTS:
        counted = rows[name].summary
        received, refused = counted["received"], counted["refused"]
        made.append(Check(f"volume_{name}", received, None, True, f"{received:,} rows of {name} were received"))
        share = -(-refused * BP // received) if received else 0
        text = f"{refused:,} of {received:,} rows of {name} were refused"
        if refused and refused == received:
            text = f"all {received:,} rows of {name} were refused"
        made.append(judged(Check(f"refused_{name}", share, None, True, text), limits))
    return made


def _contents(lake: Lake, new: RunRows, intent: Intent, totals: DataFrame, limits: Limits) -> list[Check]:
    absent = F.lit(False)
    for name in _REQUIRED:
        absent = absent | F.col(name).isNull()
    sums = totals.groupBy("dimension").agg(F.sum("reports").alias("reports"))
    twice = new(RESULTS).groupBy("report_id", "attempt").count().where("count > 1")
    rows = _values(
        new(REPORTS).where(absent).select(F.lit("nulls").alias("what"), F.count("*").alias("value")),
        twice.select(F.lit("duplicates"), F.count("*")),
        new(METRICS).select(F.lit("newest"), F.max("observed_at_ms")),
        sums.select(F.concat(F.lit("sum by "), "dimension"), "reports"),
    )
    found = {row.what: row.value for row in rows}
    current = lake.read(CURRENT).count()  # from the log of the table alone
    apart = max(abs(found.get(f"sum by {name}", 0) - current) for name in DIMENSIONS)
    texts = {
        "nulls": (found["nulls"], "{:,} new reports lack a required value"),
        "duplicates": (found["duplicates"], "{:,} attempts are there twice"),
        "conservation": (apart, "reports and their sums differ by {:,}"),
    }
    made = [Check(name, value, 0, value == 0, text.format(value)) for name, (value, text) in texts.items()]
    if found["newest"] is not None:
        age = intent.as_of_ms - found["newest"]
        text = f"the newest metrics of the run are {age / HOUR_MS:.1f} hours old"
        made.append(judged(Check("freshness_metrics", age, None, True, text), limits))
    return made


def _values(*parts: DataFrame) -> list[Row]:
    """The rows of all of these, in one query."""
    return list(reduce(DataFrame.union, parts).collect())
