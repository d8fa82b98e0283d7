"""What the pipeline decides is what the service decides: the same reports, figures and times, the same outcome."""

from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.reconcile.bulk import reconcile
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import DEFAULTS, HOUR_MS
from tests.helpers.spark_lake import Tables
from tests.helpers.spark_reports import NOW_MS, metric, report, write_parquet
from tests.helpers.spark_service import Service


class Both:
    """A pipeline and a service that are given the same."""

    def __init__(self, spark, service, folder):
        self._spark, self.service, self._folder = spark, service, folder
        self.runs, self.taken = [], {}

    def run(self, now_ms, reports=(), metrics=()):
        number = len(self.runs)
        for name, rows in (("reports", reports), ("metrics", metrics)):
            if rows:
                write_parquet(self._folder / name / f"{number}.parquet", list(rows))
        self.service.know(metrics)
        for row in sorted(reports, key=lambda row: (row["reported_at"], row["report_id"])):
            self.taken[row["report_id"]] = self.service.submit(row, now_ms)
        self.service.work(now_ms)
        paths = [str(self._folder / name) for name in ("reports", "metrics", "out")]
        self.runs.append(reconcile(self._spark, *paths, now_ms=now_ms))
        return self.runs[-1]

    @property
    def tables(self):
        return Tables(self._spark, self._folder / "out")


@pytest.fixture
def both(spark, tmp_path):
    with Service(tmp_path) as service:
        yield Both(spark, service, tmp_path)


def test_a_post_is_its_first_reporters(both):
    names = ("eve", "ada", "bob", "cyd", "dan")
    first = [report(f"{n}{who}", affiliate=who, post_id="p1") for n, who in enumerate(names)]
    first += [report("own", affiliate="zoe"), report("early", affiliate="fay", post_id="p1", reported_at=NOW_MS - 1)]
    one = both.run(NOW_MS, first, [metric(1), metric("own")])
    two = both.run(NOW_MS + 1, [report(f"again-{who}", affiliate=who, post_id="p1") for who in ("eve", "fay")])

    found = {row["report_id"]: True for row in both.tables.reports()}
    found |= {row["report_id"]: False for row in both.tables.post_taken()}
    assert found == both.taken
    assert sorted(name for name, taken in found.items() if taken) == ["ragain-fay", "rearly", "rown"]
    assert one.summary["rows"]["reports"] == {"received": 7, "refused": 5, "repeated": 0, "new": 2}
    assert two.summary["rows"]["reports"] == {"received": 2, "refused": 1, "repeated": 0, "new": 1}
    assert POST_TAKEN in Path(two.report).read_text()

    three = both.run(NOW_MS + 2, [report("again-eve", affiliate="eve", post_id="p1")])
    assert three.summary["rows"]["reports"] == {"received": 1, "refused": 0, "repeated": 1, "new": 0}


def test_attempts_alerts_and_the_end_of_waiting_are_those_of_the_service(both):
    """Also in runs that are given no new file: time passes in them too."""
    window = DEFAULTS.alerts.repeat_window_ms
    views = (700, 1000, 1600, 690, 1210, 750)  # figures are 1000: high, matched, fraud, high, fraud, high

    def reports(start, count, at_ms):
        return [
            report(n, views[n % len(views)], affiliate=f"a{n % 2}", reported_at=at_ms - n % 3)
            for n in range(start, start + count)
        ]

    def metrics(numbers, at_ms, **more):
        return [metric(n, observed_at=at_ms, **more) for n in numbers]

    both.run(NOW_MS, reports(0, 24, NOW_MS), metrics(range(14), NOW_MS) + metrics((14, 15), NOW_MS, clicks=None))
    hours = NOW_MS + 2 * HOUR_MS
    assert both.run(hours).changed
    later = NOW_MS + 5 * HOUR_MS
    both.run(later, reports(24, 6, later), metrics((16, 17, 24, 25, 26, 27), later))
    ended = both.run(NOW_MS + 30 * HOUR_MS)
    assert ended.changed
    assert both.tables.open() == []
    assert not both.run(NOW_MS + 31 * HOUR_MS).changed
    for n, at_ms in enumerate((later + window, later + window + 1)):  # the attempts of `later` count for the first one
        both.run(at_ms, reports(40 + 6 * n, 6, at_ms), metrics(range(40 + 6 * n, 46 + 6 * n), at_ms))

    raised = sorted((row["report_id"], row["kind"], row["severity"], row["at_ms"]) for row in both.tables.alerts())
    assert raised == both.service.alerts()
    assert {kind for _, kind, _, _ in raised} == {"fraud", "data_quality", "system_health"}
    assert {severity for _, kind, severity, _ in raised if kind == "data_quality"} == {"medium", "high", "critical"}
    found = defaultdict(list)
    for row in sorted(both.tables.results(), key=lambda row: row["attempt"]):
        found[row["report_id"]].append((row["status"], row["attempted_at_ms"], row["next_attempt_ms"]))
    assert found == {name: both.service.attempts(name) for name in both.taken}
