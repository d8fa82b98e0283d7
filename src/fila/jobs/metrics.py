"""Counters in this process, and their text for Prometheus. One hook among others: `hooks=[Counters()]`.

Names, units and meanings are in docs/jobs.md. Each metric has a second name, without unit or prefix.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fila.jobs.events import BreakerChanged, DepthSeen, Event, JobEnded, JobTaken, RedisSeen

#: Upper bounds in seconds: from a no-op to a job that talks to a slow platform.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0)

#: As numbers for a gauge.
BREAKER_STATES: Mapping[str, int] = {"closed": 0, "half_open": 1, "open": 2}

_FAILED = frozenset({"retried", "dead", "lost"})

Labels = tuple[tuple[str, str], ...]


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
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        depths = [((("queue", queue),), depth) for queue, depth in self.queue_depth.items()]
        totals = [((("queue", queue), ("outcome", outcome)), n) for (queue, outcome), n in self.jobs_total.items()]
        failures = [((("queue", queue), ("error", error)), n) for (queue, error), n in self.job_failures_total.items()]
        states = [((("platform", name),), BREAKER_STATES[state]) for name, state in self.breaker_state.items()]
        health = [] if self.redis_health is None else [((), int(self.redis_health))]
        yield from _samples("fila_jobs_total", "counter", totals)
        for name in ("fila_jobs_queue_depth", "queue_depth"):
            yield from _samples(name, "gauge", depths)
        for name in ("fila_jobs_dequeue_latency_seconds", "dequeue_latency_histogram"):
            yield from _histogram(name, self.dequeue_latency)
        for name in ("fila_jobs_processing_duration_seconds", "job_processing_duration"):
            yield from _histogram(name, self.job_processing_duration)
        for name in ("fila_jobs_failures_total", "job_failures_total"):
            yield from _samples(name, "counter", failures)
        for name in ("fila_jobs_breaker_state", "breaker_state_gauge"):
            yield from _samples(name, "gauge", states)
        for name in ("fila_jobs_redis_health", "redis_health"):
            yield from _samples(name, "gauge", health)


def _samples(name: str, kind: str, samples: Sequence[tuple[Labels, int]]) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(samples):
        yield _sample(name, labels, value)


def _histogram(name: str, histograms: Mapping[str, Histogram]) -> Iterator[str]:
    yield f"# TYPE {name} histogram"
    for queue, histogram in sorted(histograms.items()):
        below = 0
        for bound, count in zip((*map(repr, BUCKETS), "+Inf"), histogram.counts, strict=True):
            below += count
            yield _sample(f"{name}_bucket", (("queue", queue), ("le", bound)), below)
        yield _sample(f"{name}_sum", (("queue", queue),), histogram.total_seconds)
        yield _sample(f"{name}_count", (("queue", queue),), histogram.count)


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {value}" if labels else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
