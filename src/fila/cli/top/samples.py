"""Samples of a broker's figures. Rates are differences between two of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fila.client import Client, QueueInfo, QueueStats

KEY_SORTS = ("pending", "delivered", "weight", "oldest", "name")
"""Orders of the fairness keys of a queue, as the broker knows them."""

_ORDERS: dict[str, Callable[[QueueInfo], tuple[object, ...]]] = {
    "backlog": lambda queue: (-(queue.depth + queue.in_flight),),
    "in flight": lambda queue: (-queue.in_flight,),
    "delayed": lambda queue: (-queue.delayed,),
    "consumers": lambda queue: (-queue.consumers,),
    "name": lambda queue: (queue.name,),
}
QUEUE_ORDERS = tuple(_ORDERS)


@dataclass(slots=True)
class Sample:
    """The figures of a broker at one moment."""

    at: float
    queues: list[QueueInfo]
    """All of them, in the order in which they are shown"""
    stats: dict[str, QueueStats]
    """The figures of the queues that are shown."""


@dataclass(slots=True)
class Samples:
    """Two samples of a broker: the last one and the one before it."""

    client: Client
    queue: str | None
    keys: int
    """How many fairness keys of the queue are shown, or how many queues"""
    sort: str
    order: str = QUEUE_ORDERS[0]
    selected: str = ""
    """Of all queues, those are shown that stand on the same page as this one."""
    before: Sample | None = None
    last: Sample | None = None

    def take(self) -> Sample:
        """Take a sample and keep it."""
        return self.keep(self.look())

    def look(self) -> Sample:
        """Take a sample. Nothing here changes."""
        if self.queue is not None:
            stats = {self.queue: self.client.queue_stats(self.queue, self.keys, sort=self.sort)}
            return Sample(time.monotonic(), [stats[self.queue].summary], stats)
        queues = sorted(self.client.list_queues(), key=_ORDERS[self.order])
        place = next((index for index, queue in enumerate(queues) if queue.name == self.selected), 0)
        first = place // self.keys * self.keys
        shown = queues[first : first + self.keys]
        found = {one.name: self._stats(one.name) for one in shown}
        return Sample(time.monotonic(), queues, {name: stats for name, stats in found.items() if stats is not None})

    def _stats(self, name: str) -> QueueStats | None:
        """None for a queue that was deleted since it was listed."""
        from fila.client import QueueNotFoundError

        try:
            return self.client.queue_stats(name, 1)
        except QueueNotFoundError:
            return None

    def keep(self, found: Sample) -> Sample:
        """The last one becomes the one before."""
        self.before, self.last = self.last, found
        return found

    def rate(self, now: Sample, name: str, counter: str) -> float | None:
        """How often a second a counter of a queue grew between the samples; None before the second one."""
        if self.before is None or name not in self.before.stats or name not in now.stats:
            return None
        seconds = now.at - self.before.at
        earlier = getattr(self.before.stats[name].counters, counter)
        return max(0, getattr(now.stats[name].counters, counter) - earlier) / seconds if seconds > 0 else None

    def key_rates(self, now: Sample, name: str) -> dict[str, float]:
        """Deliveries a second of the keys that are in both samples."""
        if self.before is None or name not in self.before.stats:
            return {}
        seconds = max(now.at - self.before.at, 1e-9)
        earlier = {key.fairness_key: key.delivered for key in self.before.stats[name].keys}
        return {
            key.fairness_key: max(0, key.delivered - earlier[key.fairness_key]) / seconds
            for key in now.stats[name].keys
            if key.fairness_key in earlier
        }

    def key_shares(self, now: Sample, name: str) -> dict[str, float]:
        """The fraction of the queue's deliveries between the samples of each key that is in both."""
        total = self.rate(now, name, "delivered")
        return {key: rate / total for key, rate in self.key_rates(now, name).items()} if total else {}

    def json(self, now: Sample) -> dict[str, Any]:
        """The figures of one sample."""
        from fila.cli import views

        counters = ("enqueued", "delivered", "acked", "nacked", "dead_lettered")
        return {
            "at": datetime.now(UTC).isoformat(),
            "queues": [
                views.stats_json(stats)
                | {"per_second": {counter: self.rate(now, name, counter) for counter in counters}}
                for name, stats in now.stats.items()
            ],
        }
