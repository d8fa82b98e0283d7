"""Row by row what an oracle says that shares no code with the rules: bulk, stream and workers, at every border."""

import itertools
import json
import random
from collections import Counter
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.reconcile.bulk import reconcile
from fila.pipelines.reconcile.stream import Batch
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS
from tests.helpers.spark_lake import Tables
from tests.helpers.spark_oracle import verdict
from tests.helpers.spark_reports import NOW_MS, metric, report, write_parquet
from tests.helpers.spark_service import Service

BORDERS_BP = (0, 500, 1_000, 2_000, 5_000)
LEADS_MS = (0, 1, -1, HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS, 24 * HOUR_MS + 1, -24 * HOUR_MS - 1)
MOST = 10**12


def rows(count, seed=7):
    """Reports and the figures of their posts: every border with one to each side, then anything."""
    drawn = random.Random(seed)
    cases = [
        ((min(MOST, max(0, told + sign * (told * border // 10_000) + off)), 100, 10), (told, 100, 10), lead)
        for told, border, off, sign, lead in itertools.product(
            (0, 1, 19, 10_000, MOST // 2), BORDERS_BP, (-1, 0, 1), (1, -1), LEADS_MS
        )
    ]
    cases += [((5, 5, 5), known, 0) for known in itertools.product((None, 0, 5), repeat=3)]
    while len(cases) < count:
        told = [drawn.choice((None, *[drawn.randrange(10 ** drawn.randrange(1, 13))] * 9)) for _ in range(3)]
        claim = tuple(min(MOST, int((value or 7) * drawn.uniform(0.4, 1.9))) for value in told)
        cases.append((claim, tuple(told), drawn.choice((*LEADS_MS, drawn.randrange(-30 * HOUR_MS, 30 * HOUR_MS)))))
    reports, figures = [], {}
    for number, (claim, told, lead) in enumerate(cases[:count]):
        claimed = dict(zip(("views", "clicks", "conversions"), claim, strict=True))
        # The claim is up to two days old, so that figures may be later and earlier.
        made = report(number, affiliate=f"a{number % 97}", reported_at=NOW_MS - 48 * HOUR_MS, **claimed)
        reports.append(made)
        if number % 50:
            known = dict(zip(("views", "clicks", "conversions"), told, strict=True))
            figures[made["post_id"]] = metric(number, observed_at=made["reported_at"] + lead, **known)
    return reports, figures


def said(reports, figures):
    """What the oracle says of each report, and the sum of the trust steps of each affiliate."""
    expected = {row["report_id"]: verdict(row, figures.get(row["post_id"])) for row in reports}
    assert {status for status, _, _ in expected.values()} >= {
        *("MATCHED", "DISCREPANCY_LOW", "DISCREPANCY_MEDIUM", "DISCREPANCY_HIGH"),
        *("AFFILIATE_OVERCLAIMED", "MISSING_PLATFORM_DATA", "INCOMPLETE_PLATFORM_DATA"),
    }
    steps = Counter()
    for row in reports:
        steps[row["affiliate_id"]] += expected[row["report_id"]][2]
    return expected, steps


def check(tables, reports, figures):
    expected, steps = said(reports, figures)
    found = {row["report_id"]: (row["status"], row["level"], row["step_bp"]) for row in tables.current()}
    assert found == expected
    trust = {name: max(0, min(10_000, 5_000 + total)) for name, total in steps.items()}
    assert {name: row["trust_bp"] for name, row in tables.totals("affiliate").items()} == trust


COUNTS = [2_000, pytest.param(200_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]


@pytest.mark.parametrize("count", COUNTS)
def test_bulk_and_stream_say_what_the_oracle_says(spark, tmp_path, count):
    reports, figures = rows(count)
    write_parquet(tmp_path / "reports" / "a.parquet", reports)
    write_parquet(tmp_path / "metrics" / "a.parquet", list(figures.values()))
    reconcile(spark, f"{tmp_path}/reports", f"{tmp_path}/metrics", f"{tmp_path}/bulk", now_ms=NOW_MS)
    check(Tables(spark, tmp_path / "bulk"), reports, figures)

    at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    messages = [(row["report_id"], json.dumps(row).encode(), at) for row in reports]
    frame = spark.createDataFrame(messages, "message_id string, payload binary, enqueued_at timestamp")
    batch = Batch(spark, f"{tmp_path}/streamed", lambda: NOW_MS, DEFAULTS, lambda _: None)
    batch.take(frame, 0, f"{tmp_path}/metrics", "s")
    check(Tables(spark, tmp_path / "streamed"), reports, figures)


@pytest.mark.parametrize("count", COUNTS)
def test_workers_of_the_service_say_what_the_oracle_says(tmp_path, count):
    reports, figures = rows(count)
    expected, steps = said(reports, figures)
    with Service(tmp_path) as service:
        service.know(figures.values())
        for start in range(0, count, 1_000):
            service.submit_all(reports[start : start + 1_000], NOW_MS)
        service.work(NOW_MS)
        assert service.verdicts() == {name: (status, level) for name, (status, level, _) in expected.items()}
        assert service.steps() == steps
