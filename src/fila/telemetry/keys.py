"""Deliveries by fairness key. The busiest keys have series of their own, all others are summed: series stay few.

Rules of this file:
- At most `top` keys have a name of their own. The rest is `OTHER`, and so is a key that is called that.
- Nothing counts twice and nothing goes down: what was once counted under `OTHER` stays there. A key that gets a name
  later counts from then on; one that loses it takes its count along and starts at 0 should it come back.
- While a queue never had more than `top` keys, every delivery is under its key's own name.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest

from fila.broker.queue import QueueState

OTHER = "other"

WINDOW_NS = 30 * 1_000_000_000
"""About how far back shares are looked at."""

CLEARLY = 2
"""How many times as busy a key must be to take another one's name away."""


@dataclass(slots=True)
class Named:
    """A key with a name of its own."""

    counted: int = 0
    """Deliveries of the past lives of the key: a key that empties is forgotten by its queue."""
    mark: int = 0
    """Of the deliveries of its present life, those that were counted under `OTHER`."""
    weight: int = 1
    busy: int = 0
    """What it does lately: halves with every look, grows with what it delivers and holds."""
    delivered: int = 0
    """As of the last look."""
    ready: int = 0
    """Messages that its share of deliveries is for; suspects wait apart."""


@dataclass(slots=True)
class KeyFigures:
    """The figures of one key."""

    throughput: int
    pending: int
    oldest: int | None = None
    """The sequence number of its oldest pending message."""
    share_ratio: float | None = None


@dataclass(slots=True)
class _Mark:
    at: int
    delivered: dict[str, int] = field(default_factory=dict)


class KeyTally:
    """Counts the deliveries of one queue by key."""

    def __init__(self, queue: QueueState, top: int, now: int) -> None:
        self._queue = queue
        self._top = top
        self._named: dict[str, Named] = {}
        self._lost = 0
        """Deliveries of keys that have lost their name."""
        self._all_named = True
        """Whether all keys that the queue knew at the last look have names: then all that a key without one has
        delivered is new."""
        self._marks: deque[_Mark] = deque([_Mark(now)])

    def figures(self, candidates: Iterable[str], now: int) -> dict[str, KeyFigures]:
        """Figures by key. `candidates` are keys that might be among the busiest."""
        departed = self._absorb()
        self._choose({**dict.fromkeys(candidates), **departed}, departed)
        told = self._collect()
        for name, ratio in self._ratios(now).items():
            told[name].share_ratio = ratio
        queue = self._queue
        rest = KeyFigures(
            queue.counters.delivered - self._lost - sum(named.throughput for named in told.values()),
            queue.pending - sum(named.pending for named in told.values()),
        )
        self._all_named = len(queue.keys) <= len(self._named) + 1 and all(
            name in self._named or name == OTHER for name in queue.keys
        )
        if rest.throughput or rest.pending or len(self._named) < len(queue.keys):
            told[OTHER] = rest
        return told

    def _absorb(self) -> dict[str, int]:
        """Take over what keys had delivered that their queue has forgotten. Returns it for those without a name."""
        departed = self._queue.departed
        if not departed:
            return {}
        self._queue.departed = {}
        for name in departed.keys() & self._named.keys():
            named = self._named[name]
            named.counted += departed.pop(name) - named.mark
            named.mark = 0
        return departed

    def _choose(self, candidates: dict[str, object], departed: dict[str, int]) -> None:
        keys = self._queue.keys
        for name, named in self._named.items():
            key = keys.get(name)
            delivered = named.counted + (key.delivered - named.mark if key else 0)
            named.busy = named.busy // 2 + delivered - named.delivered + (self._queue.pending_of(key) if key else 0)
            named.delivered = delivered
        busy = {
            name: departed.get(name, 0)
            + (keys[name].delivered + self._queue.pending_of(keys[name]) if name in keys else 0)
            for name in candidates
            if name not in self._named and name != OTHER
        }
        for name in nlargest(self._top, busy, key=busy.__getitem__):
            if len(self._named) >= self._top:
                least = min(self._named, key=lambda known: self._named[known].busy, default=None)
                if least is None or busy[name] <= CLEARLY * self._named[least].busy:
                    return
                self._lost += self._named.pop(least).delivered
            self._name(name, departed.get(name, 0), busy[name])

    def _name(self, name: str, departed: int, busy: int) -> None:
        key = self._queue.keys.get(name)
        if self._all_named:
            self._named[name] = Named(counted=departed, busy=busy)
        else:
            self._named[name] = Named(mark=key.delivered if key else 0, busy=busy)

    def _collect(self) -> dict[str, KeyFigures]:
        told: dict[str, KeyFigures] = {}
        queue = self._queue
        for name, named in self._named.items():
            key = queue.keys.get(name)
            if key is None:
                named.delivered, named.ready = named.counted, 0
                told[name] = KeyFigures(named.counted, 0)
                continue
            named.delivered, named.ready = named.counted + key.delivered - named.mark, key.ready
            named.weight = key.weight
            told[name] = KeyFigures(named.delivered, queue.pending_of(key), queue.oldest_of(key))
        return told

    def _ratios(self, now: int) -> dict[str, float]:
        """For keys with deliveries or ready messages in the window: the share they got, divided by their fair share."""
        marks = self._marks
        while len(marks) > 1 and now - marks[1].at >= WINDOW_NS:
            marks.popleft()
        before = marks[0].delivered
        if now - marks[-1].at >= WINDOW_NS // 2:
            marks.append(_Mark(now, {name: named.delivered for name, named in self._named.items()}))
        got = {name: named.delivered - min(before.get(name, 0), named.delivered) for name, named in self._named.items()}
        wanted = {name: count + self._named[name].ready for name, count in got.items()}
        due = fair_shares(sum(got.values()), wanted, {name: named.weight for name, named in self._named.items()})
        return {name: got[name] / due[name] for name in due if due[name] > 0}


def fair_shares(supply: int, wanted: dict[str, int], weights: dict[str, int]) -> dict[str, float]:
    """Who should get how much: in proportion to weights, but nobody more than wanted (weighted max-min fairness)."""
    shares: dict[str, float] = {}
    left, weight = float(supply), sum(weights[name] for name in wanted)
    for name in sorted(wanted, key=lambda name: wanted[name] / weights[name]):
        shares[name] = min(wanted[name], left * weights[name] / weight)
        left -= shares[name]
        weight -= weights[name]
    return shares
