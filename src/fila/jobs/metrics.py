"""Counters in this process, and their text for Prometheus. One hook among others: `hooks=[Counters()]`.

Add a metric:
1. a `Metric` here, listed in `CATALOG`;
2. an event in `fila.jobs.events` that carries the value, and an `emit` where it happens;
3. a `case` in `Counters.__call__` that counts it, and a line in `Counters.samples`;
4. a row in docs/jobs.md: a test compares.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fila.jobs.events import BreakerChanged, DepthSeen, Event, JobEnded, JobTaken, RedisSeen
from fila.metrics import prometheus
from fila.metrics.metric import Distribution, Metric, MetricType, Samples, Value

#: Upper bounds in seconds: from a no-op to a job that talks to a slow platform.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0)

#: As numbers for a gauge.
BREAKER_STATES: Mapping[str, int] = {"closed": 0, "half_open": 1, "open": 2}

_FAILED = frozenset({"retried", "dead", "lost"})

_QUEUE = ("queue",)

JOBS = Metric("fila.jobs", MetricType.COUNTER, ("queue", "outcome"), "Jobs that workers are through with", "{job}")
DEPTH = Metric("fila.jobs.queue_depth", MetricType.GAUGE, _QUEUE, "Jobs that wait", "{job}", "queue_depth")
LATENCY = Metric(
    "fila.jobs.dequeue_latency",
    MetricType.HISTOGRAM,
    _QUEUE,
    "From the time at which a job was ready to the time at which a worker took it",
    "s",
    "dequeue_latency_histogram",
)
DURATION = Metric(
    "fila.jobs.processing_duration",
    MetricType.HISTOGRAM,
    _QUEUE,
    "How long jobs took",
    "s",
    "job_processing_duration",
)
FAILURES = Metric(
    "fila.jobs.failures",
    MetricType.COUNTER,
    ("queue", "error"),
    "Attempts that failed, by class of error",
    "{attempt}",
    "job_failures_total",
)
BREAKER = Metric(
    "fila.jobs.breaker_state",
    MetricType.GAUGE,
    ("platform",),
    "State of a circuit breaker: 0 closed, 1 half open, 2 open",
    alias="breaker_state_gauge",
)
REDIS = Metric(
    "fila.jobs.redis_health", MetricType.GAUGE, (), "1 while Redis answers, 0 while it does not", alias="redis_health"
)

CATALOG: tuple[Metric, ...] = (JOBS, DEPTH, LATENCY, DURATION, FAILURES, BREAKER, REDIS)


@dataclass(slots=True)
class Histogram:
    """Durations, by bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total_seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def distribution(self) -> Distribution:
        return Distribution(BUCKETS, tuple(self.counts), self.total_seconds)


class Counters:
    """A hook that counts. Its fields may be read at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.queue_depth: dict[str, int] = {}
        self.dequeue_latency: dict[str, Histogram] = {}
        self.job_processing_duration: dict[str, Histogram] = {}
        #: By queue and outcome.
        self.jobs_total: Counter[tuple[str, str]] = Counter()
        #: By queue and class of error.
        self.job_failures_total: Counter[tuple[str, str]] = Counter()
        self.breaker_state: dict[str, str] = {}
        self.redis_health: bool | None = None

    def __call__(self, event: Event, /) -> None:
        with self._lock:
            match event:
                case DepthSeen(queue, depth):
                    self.queue_depth[queue] = depth
                case JobTaken(queue, seconds):
                    self.dequeue_latency.setdefault(queue, Histogram()).add(seconds)
                case JobEnded(queue, outcome, seconds, error):
                    self.jobs_total[queue, outcome] += 1
                    self.job_processing_duration.setdefault(queue, Histogram()).add(seconds)
                    if outcome in _FAILED:
                        self.job_failures_total[queue, error or "lost"] += 1
                case BreakerChanged(name, state):
                    self.breaker_state[name] = state
                case RedisSeen(healthy):
                    self.redis_health = healthy

    def prometheus(self) -> str:
        """The text that a Prometheus server scrapes."""
        with self._lock:
            samples = self.samples()
        return prometheus.render(samples).decode()

    def samples(self) -> Samples:
        """The values of each metric."""
        return {
            JOBS: sorted(self.jobs_total.items()),
            DEPTH: [((queue,), depth) for queue, depth in sorted(self.queue_depth.items())],
            LATENCY: _distributions(self.dequeue_latency),
            DURATION: _distributions(self.job_processing_duration),
            FAILURES: sorted(self.job_failures_total.items()),
            BREAKER: [((name,), BREAKER_STATES[state]) for name, state in sorted(self.breaker_state.items())],
            REDIS: [] if self.redis_health is None else [((), int(self.redis_health))],
        }


def _distributions(histograms: Mapping[str, Histogram]) -> list[tuple[tuple[str, ...], Value]]:
    return [((queue,), histogram.distribution) for queue, histogram in sorted(histograms.items())]
