"""Reads the broker's figures and turns them into samples.

Rules of this file:
- Nothing here is called by the broker. It counts with plain integers; a look reads them.
- A look is taken in steps, each of which is short whatever the broker holds: between two of them messages go on. All
  figures of one queue that must agree with each other are read in one step.
- Series are few: `Bounds` says how many. The rest is told together, as `OTHER`. A queue keeps its name as long as it
  exists.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from importlib.metadata import version
from itertools import islice
from typing import NamedTuple

from fila.broker.engine import Load
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.metrics.metric import Metric, Samples
from fila.telemetry import catalog
from fila.telemetry.keys import OTHER, KeyTally
from fila.telemetry.others import OtherSeries
from fila.telemetry.scripts import ScriptTally
from fila.telemetry.throttles import ThrottleWatch
from fila.telemetry.waits import WaitTally

STEP = 1000
"""How many keys are looked at in one step,"""
QUEUES_STEP = 50
"""and how many queues without a name. Each with a name is a step of its own."""

NS_PER_S = 1_000_000_000


class Series(NamedTuple):
    """One figure of a queue: a metric, and what its labels behind the queue are."""

    metric: Metric
    labels: tuple[str, ...] = ()


@dataclass(slots=True)
class _Scan:
    """What a look at each of the keys of a queue finds."""

    active: int = 0
    """Keys with pending messages"""
    oldest: int | None = None
    candidates: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Tallies:
    """What is kept for a queue with series of its own."""

    keys: KeyTally
    scripts: ScriptTally = field(default_factory=ScriptTally)
    waits: WaitTally = field(default_factory=WaitTally)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many have series of their own; all others are summed."""

    queues: int
    keys: int
    """Fairness keys, of each queue"""
    throttles: int


class Watch:
    """Collects the samples of a broker. Lives on the broker's event loop."""

    def __init__(self, state: BrokerState, load: Callable[[], Load], clock: Callable[[], int], bounds: Bounds) -> None:
        self._state = state
        self._load = load
        self._clock = clock
        self._bounds = bounds
        self._named: dict[QueueState, _Tallies] = {}
        self._others: OtherSeries[QueueState, Series] = OtherSeries(lambda series: series.metric.adds_up)
        self._throttles = ThrottleWatch(state.throttles, bounds.throttles)
        self._version = version("fila")
        state.count_departed()

    def look(self) -> Samples:
        """All samples at once."""
        samples: Samples = {}
        for _ in self.steps(samples):
            pass
        return samples

    def steps(self, samples: Samples) -> Iterator[None]:
        """Fill `samples` step by step."""
        samples.update((metric, []) for metric in catalog.CATALOG)
        self._collect_broker(samples)
        queues = list(self._state.queues.values())
        self._name(queues)
        for number, queue in enumerate(queues):
            scan = _Scan()
            yield from _scan(queue, scan, self._bounds.keys)
            counts, levels = _measure(queue, scan, self._clock())
            if queue in self._named:
                _put(samples, queue.name, counts, levels)
                self._collect_keys(samples, queue, scan)
                self._named[queue].scripts.collect(samples, queue, self._clock())
                yield
            else:
                self._others.add(queue, counts, levels)
                if number % QUEUES_STEP == 0:
                    yield
        self._collect_others(samples)
        yield from self._throttles.steps(samples, self._clock())

    def _name(self, queues: list[QueueState]) -> None:
        """Give queues series of their own while there is room: the busiest first."""
        there = set(queues)
        self._named = {queue: tallies for queue, tallies in self._named.items() if queue in there}
        self._others.begin(there)
        nameless = (queue for queue in queues if queue not in self._named and queue.name != OTHER)
        now = self._clock()
        for queue in nlargest(self._bounds.queues - len(self._named), nameless, key=_busy):
            self._named[queue] = _Tallies(KeyTally(queue, self._bounds.keys, now))

    def _collect_broker(self, samples: Samples) -> None:
        load = self._load()
        samples[catalog.BUILD].append(((self._version,), 1))
        for metric, value in (
            (catalog.QUEUES, len(self._state.queues)),
            (catalog.COMMANDS, load.commands_waiting),
            (catalog.TICKS, load.ticks),
            (catalog.WRITE_FAILURES, load.write_failures),
            (catalog.WRITE_STALLS, load.write_stalls),
            (catalog.STORE_FULL, int(load.store_full)),
            (catalog.LUA_SPENT, self._state.scripts.budget.spent_ns / NS_PER_S),
            (catalog.LUA_EXHAUSTED, self._state.scripts.budget.exhausted),
            (catalog.LUA_WAITING, load.hooks_waiting),
            (catalog.LUA_MEMORY, self._state.scripts.reserved),
        ):
            samples[metric].append(((), value))
        if load.store_free_bytes is not None:
            samples[catalog.STORE_FREE].append(((), load.store_free_bytes))
        if (sizes := load.store_sizes) is not None:
            for metric, value in (
                (catalog.STORE_FILES, sizes.file_bytes),
                (catalog.STORE_BUFFER, sizes.buffer_bytes),
                (catalog.STORE_CACHE, sizes.cache_bytes),
                (catalog.COMPACTION_PENDING, sizes.compaction_bytes),
                (catalog.COMPACTIONS, sizes.compactions),
            ):
                samples[metric].append(((), value))

    def _collect_others(self, samples: Samples) -> None:
        counts, levels = self._others.counts, self._others.levels
        if counts:
            _put(samples, OTHER, counts, levels)
            samples[catalog.THROUGHPUT].append(((OTHER, OTHER), counts[Series(catalog.MESSAGES["delivered"])]))
            pending = levels.get(Series(catalog.DEPTH), 0) - levels.get(Series(catalog.DELAYED), 0)
            samples[catalog.PENDING].append(((OTHER, OTHER), pending))

    def _collect_keys(self, samples: Samples, queue: QueueState, scan: _Scan) -> None:
        now, tallies = self._clock(), self._named[queue]
        told = tallies.keys.figures(scan.candidates, now)
        tallies.waits.collect(samples, queue, list(told))
        for name, figures in told.items():
            labels = (queue.name, name)
            samples[catalog.THROUGHPUT].append((labels, figures.throughput))
            samples[catalog.PENDING].append((labels, figures.pending))
            if figures.oldest is not None:
                samples[catalog.KEY_OLDEST].append((labels, _age(figures.oldest, now)))
            if figures.share_ratio is not None:
                samples[catalog.SHARE].append((labels, figures.share_ratio))


def _scan(queue: QueueState, found: _Scan, top: int) -> Iterator[None]:
    """Look at every key of a queue, `STEP` at a time."""
    keys = iter(list(queue.keys.values()))
    while some := list(islice(keys, STEP)):
        oldest = [seq for key in some if (seq := queue.oldest_of(key)) is not None]
        found.active += len(oldest)
        if oldest:
            found.oldest = min(oldest) if found.oldest is None else min(found.oldest, *oldest)
        found.candidates += [
            key.name for key in nlargest(top, some, key=lambda key: key.delivered + queue.pending_of(key))
        ]
        if len(some) == STEP:
            yield


def _measure(queue: QueueState, scan: _Scan, now: int) -> tuple[dict[Series, float], dict[Series, float]]:
    """The counters and the gauges of a queue."""
    counts: dict[Series, float] = {
        Series(metric): getattr(queue.counters, name) for name, metric in catalog.MESSAGES.items()
    }
    counts[Series(catalog.ROUNDS)] = queue.drr.round
    counts[Series(catalog.TURNS)] = queue.drr.turns
    for part, ns in queue.ledger.sums.parts.items():
        counts[Series(catalog.WAIT_PARTS, (part,))] = ns / NS_PER_S
    levels: dict[Series, float] = {
        Series(catalog.DEPTH): queue.depth,
        Series(catalog.DELAYED): len(queue.schedule),
        Series(catalog.SUSPECTS): len(queue.suspects),
        Series(catalog.LEASES): len(queue.leases),
        Series(catalog.CONSUMERS): len(queue.consumers),
        Series(catalog.CREDIT): sum(credit for _, credit in queue.consumers.with_credit()),
        Series(catalog.PAUSED): int(queue.record.paused),
        Series(catalog.ACTIVE_KEYS): scan.active,
        Series(catalog.PARKED_KEYS): queue.drr.parked,
        Series(catalog.OLDEST): 0.0 if scan.oldest is None else _age(scan.oldest, now),
    }
    if queue.capacity.used is not None:
        levels[Series(catalog.USED)] = queue.capacity.used
    return counts, levels


def _put(samples: Samples, queue: str, counts: dict[Series, float], levels: dict[Series, float]) -> None:
    for series, value in (*counts.items(), *levels.items()):
        samples[series.metric].append(((queue, *series.labels), value))


def _busy(queue: QueueState) -> int:
    return queue.counters.enqueued + queue.size


def _age(seq: int, now: int) -> float:
    """How long ago a message was enqueued: its sequence number is the time. 0 if the clock was set back."""
    return max(0, now - seq) / NS_PER_S
