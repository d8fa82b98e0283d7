"""The rules on columns come to what the rules on one report come to, over every edge."""

import itertools

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fila.reconcile.domain.alerts import escalated as py_escalated
from fila.reconcile.domain.classify import INTEGERS, classify
from fila.reconcile.domain.models import ClaimedMetrics, Fetched, Observation, Post, Reason, Report, Status
from fila.reconcile.domain.retry import Past
from fila.reconcile.domain.retry import next_attempt_ms as py_next_attempt_ms
from fila.reconcile.domain.settings import BP, DEFAULTS, HOUR_MS, MAX_COUNT, Growth, Settings, Tiers, Trust
from fila.reconcile.domain.trust import deltas
from fila.reconcile.domain.trust import score_bp as py_score_bp

F = pytest.importorskip("pyspark.sql.functions")
columns = pytest.importorskip("fila.pipelines.reconcile.columns")

NOW_MS = 1_700_000_000_000
STRICT = Settings(
    tiers=Tiers(tolerance_bp=0, low_bp=0, medium_bp=1, overclaim_bp=1, overclaim_critical_bp=1, min_base=7),
    growth=Growth(per_hour_bp=1, max_hours=1),
)
STILL = Settings(growth=Growth(per_hour_bp=0, max_hours=0))
ROW = (
    "id bigint, views bigint, clicks bigint, conversions bigint, reported_at_ms bigint, "
    "told_views bigint, told_clicks bigint, told_conversions bigint, observed_at_ms bigint"
)


def python_verdict(row, rules):
    _, views, clicks, conversions, at, *told, observed = row
    seen = Observation(observed, *told) if observed is not None else None
    fetched = Fetched(seen) if seen else Fetched(failure=Reason.ABSENT)
    found = classify(Report("r", Post("p", "q", "a"), ClaimedMetrics(views, clicks, conversions), at), fetched, rules)
    step = deltas(rules)[found.status]
    return (
        *(str(found.status), str(found.level), str(found.reason)),
        *(found.confidence_bp, found.over_bp, found.difference_bp, *found.differences_bp, step),
    )


def column_verdicts(spark, rows, rules):
    names = ("status", "level", "reason", "confidence_bp", "over_bp", "difference_bp", *columns.DIFFERENCES, "step_bp")
    judged = columns.classified(spark.createDataFrame(rows, ROW), rules)
    return {row.id: tuple(row[name] for name in names) for row in judged.select("id", *names).collect()}


def edges():
    """Claims around every border of every tier, for figures that are absent, zero, small, large, older and newer."""
    borders = sorted({0, *(getattr(DEFAULTS.tiers, name) for name in ("tolerance_bp", "low_bp", "medium_bp")), 5_000})
    leads = (None, 0, 1, -1, HOUR_MS // 2, -HOUR_MS // 2, 24 * HOUR_MS, -24 * HOUR_MS, 25 * HOUR_MS, -25 * HOUR_MS)
    for told, border, off, sign, lead in itertools.product(
        (0, 1, 7, 10_000, MAX_COUNT // 2), borders, (-1, 0, 1), (1, -1), leads
    ):
        claim = min(MAX_COUNT, max(0, told + sign * (told * border // BP) + off))
        yield (claim, 0, 0), (None,) * 3 if lead is None else (told, 0, 0), lead
    for known in itertools.product((None, 0, 5), repeat=3):
        yield (5, 5, 5), known, 0
    yield (MAX_COUNT,) * 3, (0, 0, 0), 0
    yield (0, 0, 0), (MAX_COUNT,) * 3, -24 * HOUR_MS
    yield (0, 0, 0), (0, 0, 0), 0


def as_row(number, claim, told, lead):
    return (number, *claim, NOW_MS, *told, None if lead is None else NOW_MS + lead)


@pytest.mark.parametrize("rules", [DEFAULTS, STRICT, STILL], ids=["defaults", "strict", "no growth"])
def test_columns_and_python_agree_at_every_border(compiled, rules):
    rows = [as_row(number, *edge) for number, edge in enumerate(edges())]
    found = column_verdicts(compiled, rows, rules)
    for row in rows:
        assert found[row[0]] == python_verdict(row, rules), row
    if rules is DEFAULTS:
        assert {verdict[0] for verdict in found.values()} == {str(status) for status in Status}


counts = st.one_of(st.integers(0, 50), st.integers(0, MAX_COUNT))
told = st.one_of(st.none(), counts)
lead = st.integers(-30 * HOUR_MS, 30 * HOUR_MS)
cases = st.one_of(
    st.tuples(st.tuples(counts, counts, counts), st.tuples(told, told, told), lead),
    st.tuples(st.tuples(counts, counts, counts), st.just((None, None, None)), st.none()),
)


@given(st.lists(cases, min_size=50, max_size=400))
@settings(max_examples=5, phases=[Phase.explicit, Phase.generate])  # to shrink takes a query a step
def test_columns_and_python_agree_on_anything(spark, drawn):
    rows = [as_row(number, *case) for number, case in enumerate(drawn)]
    found = column_verdicts(spark, rows, DEFAULTS)
    assert [found[row[0]] for row in rows] == [python_verdict(row, DEFAULTS) for row in rows]


def test_operations_agree_one_by_one(spark):
    """Where the whole would differ, this says which operation does."""
    values = [(0, 1), (7, 3), (10**16 + 7, 3), (MAX_COUNT * BP, MAX_COUNT), (5, None), (None, 2)]
    a, b = F.col("a"), F.col("b")
    on = columns.COLUMNS
    shown = spark.createDataFrame(values, "a bigint, b bigint").select(
        *("a", "b"),
        on.known(a, 9).alias("known"),
        on.unknown(b).alias("unknown"),
        on.quotient(on.known(a, 9), on.known(b, 4)).alias("quotient"),
        on.greatest(on.known(a, 9), on.known(b, 4), 5).alias("greatest"),
        on.least(on.known(a, 9), on.known(b, 4), 5).alias("least"),
    )
    for row in shown.collect():
        first, second = INTEGERS.known(row.a, 9), INTEGERS.known(row.b, 4)
        assert row.known == first
        assert row.unknown == INTEGERS.unknown(row.b)
        assert row.quotient == INTEGERS.quotient(first, second)
        assert row.greatest == INTEGERS.greatest(first, second, 5)
        assert row.least == INTEGERS.least(first, second, 5)


def test_trust_retries_and_escalation_agree(spark):
    trust = Trust(lowest_bp=1_000, highest_bp=9_000)
    sums = [-(10**9), -4_001, -4_000, -3_999, 0, 3_999, 4_000, 4_001, 10**9]
    shown = spark.createDataFrame([(each,) for each in sums], "total bigint")
    for row in shown.select("total", F.expr(columns.score_sql("total", trust)).alias("score")).collect():
        assert row.score == py_score_bp(row.total, trust)

    alerts = DEFAULTS.alerts
    for row in spark.range(1, 8).select("id", columns.escalated(F.col("id"), alerts).alias("level")).collect():
        assert row.level == str(py_escalated(row.id, alerts))

    retries = DEFAULTS.retries
    edge = retries.within_ms - retries.missing_after_ms
    pasts = [
        (str(status), attempt, missing, incomplete, NOW_MS - age)
        for status in Status
        for attempt, missing, incomplete in ((1, 1, 0), (1, 0, 1), (2, 1, 1), (5, 5, 0), (6, 6, 0), (3, 1, 2))
        for age in (0, edge - 1, edge, edge + 1, retries.within_ms - retries.incomplete_after_ms + 1)
    ]
    frame = spark.createDataFrame(
        pasts, "status string, attempt bigint, missing bigint, incomplete bigint, submitted_at_ms bigint"
    ).withColumn("next", columns.next_attempt_ms(NOW_MS, retries))
    for row in frame.collect():
        past = Past(row.submitted_at_ms, row.attempt, row.missing, row.incomplete)
        assert row.next == py_next_attempt_ms(Status(row.status), past, NOW_MS, retries), row
