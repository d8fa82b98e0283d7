"""Looks at the broker from outside and says what there is to tell.

Rules of this file:
- Nothing here is called by the broker. It counts with plain integers; a look reads them.
- A look is taken in steps, each of which is short whatever the broker holds: between two of them messages go on. All
  figures of one queue that must agree with each other are read in one step.
- Series are few: of at most `top_queues` queues, and of each the `top_keys` busiest fairness keys. The rest is told
  together, as `OTHER`. A queue keeps its name as long as it exists.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from importlib.metadata import version
from itertools import islice

from fila.broker.engine import Load
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.telemetry import catalog
from fila.telemetry.catalog import Metric
from fila.telemetry.keys import OTHER, KeyTally, oldest
from fila.telemetry.samples import Samples

STEP = 1000
"""How many keys or queues are looked at in one step."""

NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Scan:
    """What a look at each of the keys of a queue finds."""

    active: int = 0
    oldest: int | None = None
    candidates: list[str] = field(default_factory=list)


class _Rest:
    """The queues without a name of their own, as if they were one."""

    def __init__(self) -> None:
        self._seen: dict[QueueState, dict[Metric, int]] = {}
        self._counts: dict[Metric, int] = {}
        self._levels: dict[Metric, float] = {}

    def begin(self) -> None:
        self._levels = {}

    def add(self, queue: QueueState, counts: dict[Metric, int], levels: dict[Metric, float]) -> None:
        before = self._seen.get(queue, {})
        for metric, count in counts.items():
            self._counts[metric] = self._counts.get(metric, 0) + count - before.get(metric, 0)
        self._seen[queue] = counts
        for metric, level in levels.items():
            known = self._levels.get(metric, 0)
            self._levels[metric] = max(known, level) if metric is catalog.OLDEST else known + level

    def forget(self, queues: set[QueueState]) -> None:
        """Keep only what belongs to queues that exist. What they have counted stays counted."""
        self._seen = {queue: counts for queue, counts in self._seen.items() if queue in queues}

    def tell(self, samples: Samples) -> None:
        if not self._counts:
            return
        _put(samples, OTHER, self._counts, self._levels)
        samples[catalog.THROUGHPUT].append(((OTHER, OTHER), self._counts[catalog.MESSAGES["delivered"]]))
        pending = self._levels.get(catalog.DEPTH, 0) - self._levels.get(catalog.DELAYED, 0)
        samples[catalog.PENDING].append(((OTHER, OTHER), pending))


class Watch:
    """Tells how a broker is doing. Lives on the broker's event loop."""

    def __init__(
        self, state: BrokerState, load: Callable[[], Load], clock: Callable[[], int], *, top_queues: int, top_keys: int
    ) -> None:
        self._state = state
        self._load = load
        self._clock = clock
        self._top_queues = top_queues
        self._top_keys = top_keys
        self._named: dict[QueueState, KeyTally] = {}
        self._rest = _Rest()
        self._version = version("fila")
        state.count_departed()

    def look(self) -> Samples:
        """All there is to tell, in one go."""
        samples: Samples = {}
        for _ in self.steps(samples):
            pass
        return samples

    def steps(self, samples: Samples) -> Iterator[None]:
        """Fill `samples` step by step."""
        samples.update((metric, []) for metric in catalog.CATALOG)
        self._tell_broker(samples)
        queues = list(self._state.queues.values())
        self._name(queues)
        self._rest.begin()
        for number, queue in enumerate(queues):
            scan = _Scan()
            yield from _scan(queue, scan, self._top_keys)
            counts, levels = _measure(queue, scan, self._clock())
            if queue in self._named:
                _put(samples, queue.name, counts, levels)
                self._tell_keys(samples, queue, scan)
            else:
                self._rest.add(queue, counts, levels)
            if number % STEP == STEP - 1:
                yield
        self._rest.tell(samples)

    def _name(self, queues: list[QueueState]) -> None:
        """Give a name to queues while there are names: the busiest first."""
        there = set(queues)
        self._named = {queue: tally for queue, tally in self._named.items() if queue in there}
        self._rest.forget(there)
        nameless = (queue for queue in queues if queue not in self._named and queue.name != OTHER)
        now = self._clock()
        for queue in nlargest(self._top_queues - len(self._named), nameless, key=_busy):
            self._named[queue] = KeyTally(queue, self._top_keys, now)

    def _tell_broker(self, samples: Samples) -> None:
        load = self._load()
        samples[catalog.BUILD].append(((self._version,), 1))
        for metric, value in (
            (catalog.QUEUES, len(self._state.queues)),
            (catalog.COMMANDS, load.commands_waiting),
            (catalog.TICKS, load.ticks),
            (catalog.WRITE_FAILURES, load.write_failures),
        ):
            samples[metric].append(((), value))

    def _tell_keys(self, samples: Samples, queue: QueueState, scan: _Scan) -> None:
        now = self._clock()
        for name, figures in self._named[queue].figures(scan.candidates, now).items():
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
        active = [key for key in some if key.ready]
        found.active += len(active)
        first = min((oldest(key) for key in active), default=None)
        if first is not None:
            found.oldest = first if found.oldest is None else min(first, found.oldest)
        found.candidates += [key.name for key in nlargest(top, some, key=lambda key: key.delivered + key.ready)]
        if len(some) == STEP:
            yield


def _measure(queue: QueueState, scan: _Scan, now: int) -> tuple[dict[Metric, int], dict[Metric, float]]:
    """What a queue has counted, and how it stands."""
    counts = {metric: getattr(queue.counters, name) for name, metric in catalog.MESSAGES.items()}
    counts[catalog.ROUNDS] = queue.drr.round
    levels = {
        catalog.DEPTH: queue.depth,
        catalog.DELAYED: len(queue.schedule),
        catalog.LEASES: len(queue.leases),
        catalog.CONSUMERS: len(queue.consumers),
        catalog.CREDIT: sum(credit for _, credit in queue.consumers.with_credit()),
        catalog.ACTIVE_KEYS: scan.active,
        catalog.OLDEST: 0.0 if scan.oldest is None else _age(scan.oldest, now),
    }
    return counts, levels


def _put(samples: Samples, queue: str, counts: dict[Metric, int], levels: dict[Metric, float]) -> None:
    for metric, value in (*counts.items(), *levels.items()):
        samples[metric].append(((queue,), value))


def _busy(queue: QueueState) -> int:
    return queue.counters.enqueued + queue.held


def _age(seq: int, now: int) -> float:
    """How long ago a message was enqueued: its sequence number is the time. 0 if the clock was set back."""
    return max(0, now - seq) / NS_PER_S
