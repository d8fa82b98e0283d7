"""Samples of waiting times by cause. The broker accounts for one delivery in `fila.core.ledger.SAMPLE`.

The ledger forgets keys that were not served for long. What they had is kept here, so that no counter goes down.
"""

from fila.broker.queue import QueueState
from fila.core.ledger import PARTS, WaitSums
from fila.metrics.metric import Distribution, Samples
from fila.telemetry import catalog
from fila.telemetry.keys import OTHER

NS_PER_S = 1_000_000_000

_FIRST, _LAST = 6, 32
BOUNDS = tuple((1 << bit) / 1_000_000 for bit in range(_FIRST, _LAST + 1))
"""In seconds: powers of two from 64 us to about an hour."""


class WaitTally:
    """Counts the waits of one queue by key."""

    def __init__(self) -> None:
        self._sums: dict[str, WaitSums] = {}
        self._past: dict[str, dict[str, int]] = {}

    def collect(self, samples: Samples, queue: QueueState, names: list[str]) -> None:
        """Of the queue, and of the fairness keys `names`."""
        sums = queue.ledger.sums
        samples[catalog.WAIT].append(((queue.name,), spread(sums)))
        self._past = {name: past for name, past in self._past.items() if name in names}
        self._sums = {name: known for name, known in self._sums.items() if name in names}
        for name in names:
            if name != OTHER:
                for part, ns in self._parts(queue, name).items():
                    samples[catalog.KEY_WAIT].append(((queue.name, name, part), ns / NS_PER_S))

    def _parts(self, queue: QueueState, name: str) -> dict[str, int]:
        known, sums = self._sums.get(name), queue.ledger.of_key(name)
        if known is not None and sums is not known:
            past = self._past.get(name, {})
            self._past[name] = {part: past.get(part, 0) + known.parts[part] for part in PARTS}
            del self._sums[name]
        past = self._past.get(name, {})
        if sums is None:
            return past
        self._sums[name] = sums
        return {part: past.get(part, 0) + sums.parts[part] for part in PARTS}


def spread(sums: WaitSums) -> Distribution:
    """The ledger's histogram: a bit length of b means less than 2**b microseconds."""
    counts = [0] * (len(BOUNDS) + 1)
    for bit, count in sums.histogram.items():
        counts[min(max(bit - _FIRST, 0), len(BOUNDS))] += count
    return Distribution(BOUNDS, tuple(counts), sums.whole / NS_PER_S)
