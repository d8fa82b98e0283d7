"""Samples of throttle keys. They belong to no queue, so they have a bound of their own."""

from collections.abc import Iterator, Mapping
from heapq import nlargest
from itertools import islice

from fila.core.lines import Line
from fila.core.throttle import Throttle, ThrottleManager
from fila.metrics.metric import Samples
from fila.telemetry import catalog
from fila.telemetry.keys import OTHER
from fila.telemetry.others import OtherSeries

STEP = 1000
"""How many are looked at in one step."""


class ThrottleWatch:
    """Collects the samples of throttles that have a limit. One keeps its name as long as it has its limit."""

    def __init__(self, throttles: ThrottleManager, top: int) -> None:
        self._throttles = throttles
        self._top = top
        self._named: set[Throttle] = set()
        self._others: OtherSeries[Throttle, str] = OtherSeries()

    def steps(self, samples: Samples, now: int) -> Iterator[None]:
        """Add to `samples` step by step."""
        throttles = self._throttles.limited()
        there = set(throttles)
        self._named &= there
        self._others.begin(there)
        nameless = (throttle for throttle in throttles if throttle not in self._named and throttle.name != OTHER)
        self._named.update(nlargest(self._top - len(self._named), nameless, key=_busy))
        remaining = iter(throttles)
        while some := list(islice(remaining, STEP)):
            for throttle in some:
                self._collect(samples, throttle, now)
            yield
        if self._others.counts:
            _put(samples, OTHER, self._others.counts, self._others.levels)

    def _collect(self, samples: Samples, throttle: Throttle, now: int) -> None:
        counts = {"hit": throttle.held_up, "pass": throttle.passed}
        waiting = sum(len(line.keys) for line in throttle.waiting if isinstance(line, Line))
        levels = {"in_flight": float(throttle.in_flight), "waiting": float(waiting)}
        if throttle not in self._named:
            self._others.add(throttle, counts, levels)
            return
        _put(samples, throttle.name, counts, levels)
        if throttle.bucket is not None:
            samples[catalog.TOKENS].append(((throttle.name,), throttle.bucket.tokens(now)))


def _put(samples: Samples, name: str, counts: Mapping[str, float], levels: dict[str, float]) -> None:
    for result, count in counts.items():
        samples[catalog.DECISIONS].append(((name, result), count))
    samples[catalog.THROTTLE_IN_FLIGHT].append(((name,), levels.get("in_flight", 0)))
    samples[catalog.WAITING_KEYS].append(((name,), levels.get("waiting", 0)))


def _busy(throttle: Throttle) -> int:
    return throttle.held_up + throttle.passed
