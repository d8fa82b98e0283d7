"""Counters, and what Prometheus reads of them."""

import re
import urllib.error
import urllib.request

import pytest

from fila.jobs import (
    App,
    Backpressure,
    BreakerSettings,
    CircuitBreaker,
    CircuitOpen,
    Counters,
    LocalStore,
    MetricsServer,
    backpressure,
)
from fila.jobs.events import BreakerChanged, DepthSeen, JobEnded, JobTaken, RedisSeen


def test_prometheus_reads_every_metric_of_the_roadmap():
    counters = Counters()
    for event in (
        DepthSeen("q", 3),
        JobTaken("q", 0.02),
        JobTaken("q", 1000.0),
        JobEnded("q", "done", 0.2),
        JobEnded("q", "retried", 0.2, "ValueError"),
        JobEnded("q", "deferred", 0.1, "CircuitOpen"),
        BreakerChanged('pl"at\nform', "open"),
        RedisSeen(healthy=False),
    ):
        counters(event)
    text = counters.prometheus()
    assert 'fila_jobs_queue_depth{queue="q"} 3' in text
    assert 'fila_jobs_dequeue_latency_seconds_bucket{queue="q",le="0.01"} 0' in text
    assert 'fila_jobs_dequeue_latency_seconds_bucket{queue="q",le="0.05"} 1' in text
    assert 'fila_jobs_dequeue_latency_seconds_bucket{queue="q",le="+Inf"} 2' in text
    assert 'fila_jobs_processing_duration_seconds_count{queue="q"} 3' in text
    assert 'fila_jobs_failures_total{queue="q",error="ValueError"} 1' in text
    assert "CircuitOpen" not in text, "an open breaker is not the job's failure"
    assert 'fila_jobs_breaker_state{platform="pl\\"at\\nform"} 2' in text
    assert "fila_jobs_redis_health 0" in text
    for name in ("queue_depth", "dequeue_latency_histogram", "job_processing_duration", "job_failures_total"):
        assert f"# TYPE {name} " in text
        assert f"\n{name}" in text.replace(f"# TYPE {name}", "")
    assert 'breaker_state_gauge{platform="pl\\"at\\nform"} 2' in text
    assert "\nredis_health 0" in text
    line = re.compile(
        r'# TYPE \w+ (gauge|counter|histogram)|\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? [\d.]+'
    )
    assert all(line.fullmatch(each) for each in text.splitlines())


def test_a_breaker_has_a_state_before_anything_went_wrong():
    counters = Counters()
    CircuitBreaker("platform", hooks=[counters])
    assert 'fila_jobs_breaker_state{platform="platform"} 0' in counters.prometheus()


def test_a_breaker_of_an_app_is_seen_by_whoever_watches_later():
    """As `fila worker --metrics` does, when the module with the breaker is imported already."""
    app = App("memory://")
    quiet, failing = app.breaker("quiet"), app.breaker("failing", BreakerSettings(failure_threshold=1))
    failing.acquire().failure()
    counters = Counters()
    app.watch(counters)
    assert counters.breaker_state == {"quiet": "closed", "failing": "open"}
    for _ in range(5):
        quiet.acquire().failure()
    assert counters.breaker_state["quiet"] == "open"


def test_a_breaker_that_another_process_opened_is_seen_by_whoever_asks():
    store = LocalStore(BreakerSettings(failure_threshold=1))
    counters = Counters()
    ours, theirs = CircuitBreaker("x", store=store, hooks=[counters]), CircuitBreaker("x", store=store)
    theirs.acquire().failure()
    with pytest.raises(CircuitOpen):
        ours.acquire()
    assert counters.breaker_state == {"x": "open"}


def test_counters_are_served_and_nothing_else():
    counters = Counters()
    counters(DepthSeen("q", 3))
    with MetricsServer(counters) as server:
        base = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{base}/metrics", timeout=20) as answer:
            assert answer.read().decode() == counters.prometheus()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{base}/etc/passwd", timeout=20)


def test_backpressure_asks_for_a_wait_that_fits_the_backlog():
    assert backpressure(9, 10) is None
    assert backpressure(10, 10) == Backpressure(10, 10, 1.0)
    assert backpressure(30, 10, drained_per_second=2).retry_after_seconds == 10.5
    assert backpressure(10**9, 10, drained_per_second=2).retry_after_seconds == 60
