"""The rules of reconciliation on columns: the same lines and the same table as for one report, no copy of either."""

from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fila.reconcile.domain.classify import Rule, features, rules
from fila.reconcile.domain.models import METRICS, Status
from fila.reconcile.domain.settings import Alerts, Retries, Settings
from fila.reconcile.domain.settings import Trust as TrustSettings
from fila.reconcile.domain.trust import deltas

TOLD = tuple(f"told_{name}" for name in METRICS)
"""The columns of the platform's figures, null where it told none."""
DIFFERENCES = tuple(f"{name}_difference_bp" for name in METRICS)


class Columns:
    """`Arithmetic` on columns of 64-bit integers; an unknown value is null."""

    @staticmethod
    def greatest(*values: Any) -> Column:
        return F.greatest(*map(_column, values)) if len(values) > 1 else _column(values[0])

    @staticmethod
    def least(*values: Any) -> Column:
        return F.least(*map(_column, values)) if len(values) > 1 else _column(values[0])

    @staticmethod
    def quotient(dividend: Any, divisor: Any) -> Column:
        return F.call_function("div", _column(dividend), _column(divisor))  # / would be of doubles

    @staticmethod
    def known(value: Any, otherwise: int) -> Column:
        return F.coalesce(_column(value), _column(otherwise))

    @staticmethod
    def unknown(value: Any) -> Column:
        return _column(value).isNull().cast("bigint")


COLUMNS = Columns()


def classified(joined: DataFrame, settings: Settings) -> DataFrame:
    """Adds the verdict on each report: status, level, reason, confidence, differences, and its step of trust.

    Wants the report's `views`, `clicks`, `conversions`, `reported_at_ms`, and of its platform `told_views`,
    `told_clicks`, `told_conversions`, `observed_at_ms`, all null where there are no figures.
    """
    lead_ms = F.col("observed_at_ms") - F.col("reported_at_ms")
    found = features([F.col(name) for name in METRICS], [F.col(name) for name in TOLD], lead_ms, settings, COLUMNS)
    measured = joined.withColumns(
        {
            "missing_metrics": found.missing_metrics,
            "over_bp": found.over_bp,
            "difference_bp": found.difference_bp,
            "confidence_bp": found.confidence_bp,
            **dict(zip(DIFFERENCES, found.differences_bp, strict=True)),
        }
    )
    table = rules(settings)
    steps = deltas(settings)
    # Which rule holds is found once; all that it says is then looked up.
    number = F.col("rule")
    return (
        measured.withColumn("rule", _first(table))
        .withColumns(
            {
                "status": _said([F.lit(str(rule.status)) for rule in table], number),
                "level": _said([F.lit(str(rule.level)) for rule in table], number),
                "reason": _said([F.lit(str(rule.reason)) for rule in table], number),
                "step_bp": _said([_column(steps[rule.status]) for rule in table], number),
            }
        )
        .drop("rule")
    )


def score_sql(total_bp: str, trust: TrustSettings) -> str:
    """The trust that a sum of steps amounts to, within its bounds, as SQL: a MERGE takes nothing else."""
    return f"greatest({trust.lowest_bp}L, least({trust.highest_bp}L, {total_bp} + {trust.initial_bp}L))"


def next_attempt_ms(now_ms: int, retries: Retries) -> Column:
    """When to try a report again, null when never. Of `status`, `submitted_at_ms`, and the attempts so far."""
    missing, incomplete = (
        F.col("status") == str(Status.MISSING_PLATFORM_DATA),
        F.col("status") == str(Status.INCOMPLETE_PLATFORM_DATA),
    )
    at_ms = F.when(missing, F.col("attempt") * _column(retries.missing_after_ms)).when(
        incomplete, _column(retries.incomplete_after_ms)
    ) + _column(now_ms)
    more = F.when(missing, F.col("missing") <= retries.missing_retries).otherwise(
        F.col("incomplete") <= retries.incomplete_retries
    )
    return F.when(more & (at_ms <= F.col("submitted_at_ms") + _column(retries.within_ms)), at_ms)


def escalated(repeats: Column, alerts: Alerts) -> Column:
    """How grave the n-th high discrepancy of an affiliate is."""
    return (
        F.when(repeats >= alerts.critical_at, "critical")
        .when(repeats >= alerts.escalate_at, "high")
        .otherwise("medium")
    )


def _first(table: tuple[Rule, ...]) -> Column:
    """The number of the first rule that holds, counted from 1. The last one always does."""
    holds = [F.col(rule.feature) > rule.above for rule in table[:-1]]
    numbered = reversed(list(enumerate(holds, 1)))
    return reduce(lambda rest, each: F.when(each[1], each[0]).otherwise(rest), numbered, F.lit(len(table)))


def _said(values: list[Column], number: Column) -> Column:
    return F.element_at(F.array(*values), number)


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else F.lit(value).cast("bigint")
