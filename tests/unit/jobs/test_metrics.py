"""Counters, and what Prometheus reads of them."""

import re
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

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
from fila.jobs.metrics import CATALOG
from fila.metrics import http


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
        assert f"\n{name}" in text
    assert 'breaker_state_gauge{platform="pl\\"at\\nform"} 2' in text
    assert "\nredis_health 0" in text
    line = re.compile(
        r"# HELP \w+ .+|# TYPE \w+ (gauge|counter|histogram)|"
        r'\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? [\d.]+'
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


def test_a_scraper_that_sends_no_request_or_reads_no_response_holds_nobody_up(monkeypatch):
    """The bounds of the broker's port hold for that of jobs too."""
    monkeypatch.setattr(http, "CONNECTIONS", 2)
    with MetricsServer(Counters()) as server, ExitStack() as stack:
        for sent in (b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n", b"x" * 100_000):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            peer.sendall(sent)
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=20) as answer:
            assert answer.status == 200


def test_a_server_that_was_stopped_gives_back_its_port():
    server = MetricsServer(Counters())
    server.stop()
    with MetricsServer(Counters(), port=server.port) as again:
        assert again.port == server.port
    with pytest.raises(OSError), MetricsServer(Counters()) as first:
        MetricsServer(Counters(), port=first.port)


def test_every_metric_has_its_row_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
    for metric in CATALOG:
        alias = f"`{metric.alias}`" if metric.alias else ""
        assert f"| `{metric.prometheus_name}` | {alias}".rstrip() in page


def test_backpressure_asks_for_a_wait_that_fits_the_backlog():
    assert backpressure(9, 10) is None
    assert backpressure(10, 10) == Backpressure(10, 10, 1.0)
    assert backpressure(30, 10, drained_per_second=2).retry_after_seconds == 10.5
    assert backpressure(10**9, 10, drained_per_second=2).retry_after_seconds == 60
