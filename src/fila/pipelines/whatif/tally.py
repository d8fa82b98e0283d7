"""What a replay comes to: for each queue, fairness key and window what it got, wanted and waited.

Taken from what the ticks of a replay list, before it changes memory. Of a message that waits a number is kept, of a
fairness key only while one of its messages waits or the window lasts: rows of a window are handed out when it is over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple

from fila.broker.arrival import Arrival
from fila.broker.burial import Burials
from fila.broker.delivery import Delivery
from fila.broker.overflow import Dropped
from fila.broker.promotion import Promotion
from fila.broker.queues import Deletion
from fila.broker.removal import Redriven, Removal
from fila.broker.returns import Returns
from fila.broker.tick import Tick
from fila.core.lane import Lane

STEPS = 16
"""Waits are counted in classes, so many for each doubling: each is known to 5 %."""


class Row(NamedTuple):
    """One fairness key of a queue in one window."""

    queue: str
    key: str
    window: int
    weight: int
    wanted_ns: int
    """For how long a message of it was ready"""
    leased: int
    cost: int
    """Of what was delivered"""
    wait_ns: int
    """All waits of what was delivered"""
    longest_ns: int
    backlog: int
    """How many messages were ready when the window ended"""
    classes: list[int]
    counts: list[int]
    """How many deliveries had a wait of each class"""


@dataclass(slots=True)
class _Cell:
    """A fairness key in the present window."""

    weight: int = 1
    ready: int = 0
    since: int = 0
    """When it began to want service, or the window began"""
    wanted_ns: int = 0
    leased: int = 0
    cost: int = 0
    wait_ns: int = 0
    longest_ns: int = 0
    classes: dict[int, int] = field(default_factory=dict)


class Tally:
    """Of one replay."""

    def __init__(self, first_ns: int, window_ns: int) -> None:
        self._first = first_ns
        self._length = window_ns
        self._window = 0
        self._cells: dict[tuple[str, str], _Cell] = {}
        self._since: dict[int, int] = {}
        """Since when messages are ready"""

    @property
    def waiting(self) -> int:
        return len(self._since)

    def advance(self, now: int) -> Iterator[Row]:
        """Time passes. The rows of windows that are over."""
        window = max(0, now - self._first) // self._length
        while self._window < window:
            end = self._first + (self._window + 1) * self._length
            yield from self._close(end)
            if self._cells:
                self._window += 1
            else:
                self._window = window

    def finish(self, now: int) -> Iterator[Row]:
        """The end of the journal."""
        yield from self.advance(now)
        yield from self._close(now)

    def observe(self, tick: Tick) -> None:
        """What a tick is about to do. Times are those of ticks."""
        now = tick.now
        for arrival in tick.all(Arrival):
            for lane, seq in zip(arrival.lanes, arrival.seqs, strict=True):
                weight = arrival.weights.get(lane.key, lane.key.weight)
                self.ready(arrival.queue.name, lane, seq, now, weight)
        for promotion in tick.all(Promotion):
            for _, seq, lane, _ in promotion.delayed:
                self.ready(promotion.queue.name, lane, seq, now)
        for returns in tick.all(Returns):
            for back in returns.messages:
                if not back.due:
                    self.ready(back.queue.name, back.queue.leases.lanes([back.seq])[0], back.seq, now)
        for burials in tick.all(Burials):
            for dead in burials.letters:
                self.ready(dead.dead_letters.name, dead.lane, dead.seq, now)
        for removal in tick.all(Removal):
            for found in removal.locations:
                self._leave(removal.queue.name, found.key, found.seq, now)
            if isinstance(removal, Redriven):
                for lane, seq, _, _ in removal.arrived:
                    self.ready(removal.source.name, lane, seq, now)
            elif isinstance(removal, Dropped) and removal.target is not None:
                for lane, seq, *_ in removal.moved:
                    self.ready(removal.target.name, lane, seq, now)
        for delivery in tick.all(Delivery):
            self.leased(delivery.queue.name, delivery.selection.messages, now)
        for deletion in tick.all(Deletion):
            self._delete(deletion, now)

    def ready(self, queue: str, lane: Lane, seq: int, now: int, weight: int | None = None) -> None:
        if seq in self._since:
            return
        self._since[seq] = now
        cell = self._cells.setdefault((queue, lane.key.name), _Cell())
        cell.weight = lane.key.weight if weight is None else weight
        if not cell.ready:
            cell.since = now
        cell.ready += 1

    def leased(self, queue: str, messages: Sequence[tuple[Lane, int, int]], now: int) -> None:
        for lane, seq, cost in messages:
            since = self._leave(queue, lane.key.name, seq, now)
            wait = max(0, now - since) if since is not None else 0
            cell = self._cells.setdefault((queue, lane.key.name), _Cell(lane.key.weight))
            cell.leased += 1
            cell.cost += cost
            cell.wait_ns += wait
            cell.longest_ns = max(cell.longest_ns, wait)
            at = class_of(wait)
            cell.classes[at] = cell.classes.get(at, 0) + 1

    def _leave(self, queue: str, key: str, seq: int, now: int) -> int | None:
        """A message is ready no longer. Returns since when it was."""
        since = self._since.pop(seq, None)
        cell = self._cells.get((queue, key))
        if since is not None and cell is not None:
            cell.ready -= 1
            if not cell.ready:
                cell.wanted_ns += now - cell.since
        return since

    def _delete(self, deletion: Deletion, now: int) -> None:
        queue = deletion.queue
        for key in queue.keys.values():
            for lane in key.lanes.values():
                for seq in lane.waiting():
                    self._leave(queue.name, key.name, seq, now)
        for seq, lane, _ in queue.suspects.all():
            self._leave(queue.name, lane.key.name, seq, now)

    def _close(self, end: int) -> Iterator[Row]:
        for (queue, key), cell in list(self._cells.items()):
            if cell.ready:
                cell.wanted_ns += max(0, end - cell.since)
            if cell.wanted_ns or cell.leased:
                classes = sorted(cell.classes)
                counts = [cell.classes[at] for at in classes]
                told = (cell.weight, cell.wanted_ns, cell.leased, cell.cost, cell.wait_ns, cell.longest_ns, cell.ready)
                yield Row(queue, key, self._window, *told, classes, counts)
            if cell.ready:
                self._cells[queue, key] = _Cell(cell.weight, cell.ready, max(end, cell.since))
            else:
                del self._cells[queue, key]


def class_of(wait_ns: int) -> int:
    """The class of a wait."""
    return 0 if wait_ns < 1000 else int(log2(wait_ns / 1000) * STEPS) + 1


def wait_of(class_: int) -> int:
    """The middle of a class, in nanoseconds."""
    return 0 if class_ <= 0 else round(1000 * 2 ** ((class_ - 0.5) / STEPS))
