"""What happened in a run, and what follows from it.

The ledger only collects: which enqueues the broker acknowledged, which deliveries consumers received, which acks the
broker confirmed, each with its time. Every figure and every claim of the demonstration is computed from these three
lists, so a claim can be checked against them by hand.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose messages they are, and how large a share is due."""

    name: str
    weight: int
    backlog: int = 0
    """How many messages wait before the first is delivered. 0: a quiet tenant, which sends one now and then."""

    @property
    def quiet(self) -> bool:
        """Whether the tenant never has more than one message waiting."""
        return self.backlog == 0


@dataclass(frozen=True, slots=True)
class Enqueued:
    """An enqueue that the broker acknowledged."""

    id: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as it reached a consumer. `taken_at` is when the broker took it from its producer."""

    id: str
    tenant: str
    taken_at: float
    at: float
    attempt: int = 0
    """How often the broker had handed it out before."""


@dataclass(frozen=True, slots=True)
class Share:
    """One tenant's part of the deliveries while every tenant with a backlog still had one."""

    tenant: Tenant
    delivered: int
    entitled: float
    got: float
    under_fifo: float


@dataclass(frozen=True, slots=True)
class Waits:
    """From the broker's taking a message to its first delivery: other deliveries in between, and seconds."""

    tenant: Tenant
    deliveries: Sequence[int]
    seconds: Sequence[float]
    fifo_deliveries: Sequence[int]
    fifo_seconds: Sequence[float]

    def typical(self) -> tuple[float, float, float, float]:
        """The medians, in the order of the fields."""
        return median(self.deliveries), median(self.seconds), median(self.fifo_deliveries), median(self.fifo_seconds)


@dataclass(slots=True)
class Ledger:
    """Three lists, appended to while the run goes on."""

    tenants: Sequence[Tenant]
    enqueued: list[Enqueued] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    acked: dict[str, float] = field(default_factory=dict)
    """When the broker confirmed the first ack of a message."""
    received: set[str] = field(default_factory=set)
    """The ids of `delivered`."""

    def receive(self, deliveries: Iterable[Delivered]) -> None:
        """A consumer got these."""
        for each in deliveries:
            self.delivered.append(each)
            self.received.add(each.id)

    def confirm(self, ids: Iterable[str], at: float) -> None:
        """The broker confirmed these acks."""
        for message_id in ids:
            self.acked.setdefault(message_id, at)

    def first_deliveries(self) -> list[Delivered]:
        """The first delivery of each message, in the order in which they happened."""
        first: dict[str, Delivered] = {}
        for delivery in sorted(self.delivered, key=lambda each: each.at):
            first.setdefault(delivery.id, delivery)
        return list(first.values())

    def lost(self) -> set[str]:
        """Acknowledged enqueues that no consumer received."""
        return {each.id for each in self.enqueued} - self.received

    def came_back(self) -> list[Delivered]:
        """Deliveries of messages whose ack had been confirmed before."""
        return [each for each in self.delivered if each.at > self.acked.get(each.id, float("inf"))]

    def redelivered(self) -> int:
        """Deliveries beyond the first of a message: those whose ack the broker had not confirmed."""
        return len(self.delivered) - len(self.received)

    def shares(self) -> list[Share]:
        """Shares of the tenants that have a backlog, until the first of them runs out of it."""
        backlogged = [tenant for tenant in self.tenants if not tenant.quiet]
        window = self._contended(backlogged)
        got = Counter(window)
        fifo = Counter(self._enqueue_order(backlogged)[: len(window)])
        total_weight = sum(tenant.weight for tenant in backlogged)
        return [
            Share(
                tenant,
                got[tenant.name],
                tenant.weight / total_weight,
                got[tenant.name] / max(1, len(window)),
                fifo[tenant.name] / max(1, len(window)),
            )
            for tenant in backlogged
        ]

    def waits(self) -> list[Waits]:
        """What each tenant waited, and what it would have waited in one line for all.

        First in, first out is computed on the same run: the same messages in the order of their enqueueing, handed out
        at the moments at which messages were handed out.

        A message that the broker had handed out before it was killed, and that never arrived, has had its turn already:
        what it waits for after that is the end of its lease. It is left out.
        """
        first = self.first_deliveries()
        moments = [each.at for each in first]
        fifo_turns = {each.id: turn for turn, each in enumerate(sorted(first, key=lambda each: each.id))}
        rows: dict[str, list[tuple[float, ...]]] = {tenant.name: [] for tenant in self.tenants}
        for turn, each in enumerate(first):
            if each.attempt:
                continue
            gone = bisect_left(moments, each.taken_at)
            fifo_turn = max(gone, fifo_turns[each.id])
            row = (turn - gone, each.at - each.taken_at, fifo_turn - gone, moments[fifo_turn] - each.taken_at)
            rows[each.tenant].append(tuple(max(0, value) for value in row))
        return [Waits(tenant, *zip(*rows[tenant.name], strict=True)) for tenant in self.tenants if rows[tenant.name]]

    def _contended(self, backlogged: Sequence[Tenant]) -> list[str]:
        left = {tenant.name: tenant.backlog for tenant in backlogged}
        window = []
        for each in self.first_deliveries():
            if each.tenant in left:
                window.append(each.tenant)
                left[each.tenant] -= 1
                if not left[each.tenant]:
                    break
        return window

    def _enqueue_order(self, tenants: Sequence[Tenant]) -> list[str]:
        names = {tenant.name for tenant in tenants}
        ordered = sorted(self.enqueued, key=lambda each: each.id)
        return [each.tenant for each in ordered if each.tenant in names]
