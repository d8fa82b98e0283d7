"""What there is to know of a queue at one moment.

Looking must not hold up delivery, and a queue may have very many fairness keys: everything that goes over all of them
is done in strides, between which the caller lets others work. Figures of one answer may then be a few milliseconds
apart; each one is exact.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from typing import Any

from fila.broker.queue import Counters, QueueState, dead_letter_name
from fila.core.claims import Group
from fila.core.drr import PARKED
from fila.core.fair_key import FairKey
from fila.core.ledger import WaitSums
from fila.core.throttle import Throttle
from fila.lua.hooks import HookName, Hooks, HookStats
from fila.storage.records import QueueRecord

STRIDE = 5000
"""Fairness keys that are looked at in one go."""


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """The figures that tell at a glance how a queue is doing."""

    name: str
    depth: int
    in_flight: int
    delayed: int
    active_keys: int
    consumers: int
    dead_letter_queue: str
    paused: bool


@dataclass(frozen=True, slots=True)
class KeyStats:
    """One fairness key of a queue."""

    fairness_key: str
    weight: int
    pending: int
    delivered: int
    deficit: int
    share: float
    """Its part of all that the queue has delivered since the start."""
    entitlement: float
    """Its weight's part of the weights of all keys that have messages waiting; 0 when it has none."""
    oldest_at: int
    """When its oldest message that is ready was enqueued; 0 if there is none."""
    parked: bool
    """Whether throttles hold up all that it has."""
    waits: WaitSums | None


@dataclass(frozen=True, slots=True)
class ThrottleStats:
    """One throttle key that holds up messages of a queue, or has a limit and is used by it."""

    key: str
    limit: str
    """Empty when it has none any more."""
    tokens: float | None
    in_flight: int
    passed: int
    held_up: int
    parked_keys: int
    """Fairness keys of the queue that stand in its line."""


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """One consumer."""

    number: int
    in_flight: int
    max_in_flight: int
    credit: int


@dataclass(frozen=True, slots=True)
class GroupStats:
    """One group that reads in claims."""

    name: str
    epoch: int
    floor: int
    last: int
    open_claims: int
    held: int
    """Messages that its open claims hold"""
    expires_at: int
    """When the first of them expires; 0 if there is none"""


@dataclass(frozen=True, slots=True)
class HookFigures:
    """One hook of a queue."""

    hook: HookName
    stats: HookStats
    bypassed_until: int
    """0 when it is not."""


@dataclass(frozen=True, slots=True)
class CapacityStats:
    """What a queue holds, and what it may hold; 0 for no limit."""

    messages: int
    bytes: int
    staged_messages: int
    staged_bytes: int
    max_depth: int
    max_bytes: int
    owner: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue in detail."""

    summary: QueueSummary
    record: QueueRecord
    round: int
    counters: Counters
    deliveries_per_second: float
    runnable: int
    """Messages that nothing but their turn and the consumers hold up."""
    oldest_at: int
    """When the oldest message that is ready was enqueued; 0 if there is none."""
    consumers: list[ConsumerStats]
    groups: list[GroupStats]
    throttles: list[ThrottleStats]
    keys: list[KeyStats]
    total_keys: int
    """How many keys there are, of which `keys` is a page."""
    forgotten: int
    """Deliveries of keys that are no longer remembered."""
    waits: WaitSums
    hooks: list[HookFigures]
    capacity: CapacityStats


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """Which fairness keys to tell of, in which order."""

    sort: str = "pending"
    limit: int = 20
    offset: int = 0
    prefix: str = ""


SORTS: dict[str, Callable[[FairKey, int], Any]] = {
    "pending": lambda key, delivered: (key.ready, delivered),
    "delivered": lambda key, delivered: (delivered, key.ready),
    "weight": lambda key, _: (key.weight, key.ready),
    "oldest": lambda key, _: -key.oldest if key.ready else -(1 << 64),
}
"""Largest first. By "name", which is not among them, the smallest first."""


def summarize(queue: QueueState) -> QueueSummary:
    return QueueSummary(
        name=queue.name,
        depth=queue.depth,
        in_flight=len(queue.leases),
        delayed=len(queue.schedule),
        active_keys=queue.active_keys,
        consumers=len(queue.consumers),
        dead_letter_queue="" if queue.record.source else dead_letter_name(queue.name),
        paused=queue.record.paused,
    )


@dataclass(slots=True)
class _Totals:
    """Of all fairness keys."""

    weight: int = 0
    """Of those that have messages waiting"""
    delivered: int = 0
    runnable: int = 0
    oldest: int = 0
    throttles: dict[Throttle, None] = field(default_factory=dict)

    def add(self, queue: QueueState, key: FairKey, delivered: int) -> None:
        self.delivered += delivered
        self.runnable += queue.pending_of(key)
        oldest = queue.oldest_of(key)
        if oldest is not None:
            self.weight += key.weight
            self.oldest = min(self.oldest or oldest, oldest)
        if key.special.throttled:
            for lane in key.lanes.values():
                self.throttles.update(dict.fromkeys(lane.throttles))
                if lane.gate is not None:
                    self.runnable -= len(lane)


def look(queue: QueueState, order: KeyOrder, now: int) -> Iterator[QueueStats | None]:
    """A queue in detail, at the end. Yields None where the caller may let others work."""
    totals, page = _Totals(), _Page(order)
    for step, key in enumerate(list(queue.keys.values()), 1):
        delivered = key.delivered + queue.drained.delivered(key.name)
        totals.add(queue, key, delivered)
        page.add(key, delivered)
        if not step % STRIDE:
            yield None
    for name, (delivered, weight) in queue.drained.all().items():
        if name not in queue.keys:
            gone = FairKey(name, weight)
            totals.add(queue, gone, delivered)
            page.add(gone, delivered)
    keys = [_key_stats(key, delivered, totals, queue) for key, delivered in page.chosen()]
    yield QueueStats(
        summary=summarize(queue),
        record=queue.record,
        round=queue.drr.round,
        counters=replace(queue.counters),
        deliveries_per_second=queue.pace.per_second(now),
        runnable=totals.runnable,
        oldest_at=totals.oldest,
        consumers=[
            ConsumerStats(one.number, one.in_flight, one.max_in_flight, max(0, one.credit))
            for one in queue.consumers.all()
        ],
        groups=[_group_stats(group, now) for _, group in sorted(queue.groups.items())],
        throttles=_throttle_stats(queue, totals, now),
        keys=keys,
        total_keys=page.total,
        forgotten=max(0, queue.counters.delivered - totals.delivered),
        waits=deepcopy(queue.ledger.sums),
        hooks=_hook_figures(queue.hooks, now),
        capacity=_capacity(queue),
    )


def _capacity(queue: QueueState) -> CapacityStats:
    held, limits = queue.capacity, queue.capacity.limits
    return CapacityStats(
        messages=held.messages,
        bytes=held.bytes,
        staged_messages=held.staged,
        staged_bytes=held.staged_bytes,
        max_depth=limits.max_depth if limits is not None else 0,
        max_bytes=limits.max_bytes if limits is not None else 0,
        owner=queue.record.owner,
    )


def _hook_figures(hooks: Hooks | None, now: int) -> list[HookFigures]:
    if hooks is None:
        return []
    told: list[tuple[HookName, bool, HookStats]] = [
        ("on_enqueue", hooks.has_on_enqueue, hooks.enqueue_stats),
        ("on_failure", hooks.has_on_failure, hooks.failure_stats),
    ]
    return [HookFigures(name, deepcopy(stats), hooks.bypassed_until(name, now)) for name, there, stats in told if there]


class _Page:
    """The keys that are asked for, found without putting all in order."""

    def __init__(self, order: KeyOrder) -> None:
        self._order = order
        self._size = order.offset + order.limit
        self._rank = SORTS.get(order.sort)
        self._best: list[tuple[Any, int, FairKey, int]] = []
        self._names: list[tuple[FairKey, int]] = []
        self.total = 0

    def add(self, key: FairKey, delivered: int) -> None:
        if not key.name.startswith(self._order.prefix):
            return
        self.total += 1
        if self._rank is None:
            self._names.append((key, delivered))
            return
        entry = (self._rank(key, delivered), -self.total, key, delivered)
        if len(self._best) < self._size:
            heappush(self._best, entry)
        elif self._size:
            heappushpop(self._best, entry)

    def chosen(self) -> list[tuple[FairKey, int]]:
        """The keys, each with what it has delivered."""
        if self._rank is None:
            ordered = sorted(self._names, key=lambda entry: entry[0].name)
        else:
            ordered = [entry[2:] for entry in sorted(self._best, key=lambda entry: entry[:2], reverse=True)]
        return ordered[self._order.offset : self._size]


def _key_stats(key: FairKey, delivered: int, totals: _Totals, queue: QueueState) -> KeyStats:
    everything, pending = queue.counters.delivered, queue.pending_of(key)
    return KeyStats(
        fairness_key=key.name,
        weight=key.weight,
        pending=pending,
        delivered=delivered,
        deficit=key.deficit,
        share=delivered / everything if everything else 0.0,
        entitlement=key.weight / totals.weight if pending and totals.weight else 0.0,
        oldest_at=queue.oldest_of(key) or 0,
        parked=key.ring == PARKED,
        waits=deepcopy(queue.ledger.of_key(key.name)),
    )


def _group_stats(group: Group, now: int) -> GroupStats:
    claims = group.open(now)
    return GroupStats(
        name=group.name,
        epoch=group.epoch,
        floor=group.floor,
        last=group.last,
        open_claims=len(claims),
        held=sum(claim.held for claim in claims),
        expires_at=min((claim.expires_at for claim in claims), default=0),
    )


def _throttle_stats(queue: QueueState, totals: _Totals, now: int) -> list[ThrottleStats]:
    standing = {line.throttle: len(line.keys) for line in queue.drr.lines.all()}
    return [
        ThrottleStats(
            key=throttle.name,
            limit=str(throttle.limit) if throttle.limit is not None else "",
            parked_keys=standing.get(throttle, 0),
            **throttle.figures(now)._asdict(),
        )
        for throttle in sorted(totals.throttles, key=lambda throttle: (-standing.get(throttle, 0), throttle.name))
        if throttle.limit is not None or throttle in standing
    ]
