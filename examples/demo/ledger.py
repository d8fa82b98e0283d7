"""What happened in a run, and what follows from it.

The ledger only collects. From the programs around the broker: which enqueues were acknowledged, which deliveries
consumers received, which acks were confirmed. From the broker's journal: in which order it took messages, handed them
out and let them go. Every figure and every claim of the demonstration is computed from these, so a claim can be
checked against them by hand.

Order and waits are the journal's. A process that waits for a core learns late of what was decided long ago, so what
reaches consumers when says more about the machine than about the broker.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from fila import JournalEntry

_NS = 1e-9


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
    """A message as it reached a consumer."""

    id: str
    tenant: str


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
    """From the broker's taking a message to its handing it out first: other deliveries in between, and seconds."""

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
    """What clients were told while the run went on, and what the broker wrote down."""

    tenants: Sequence[Tenant]
    enqueued: list[Enqueued] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    acked: set[str] = field(default_factory=set)
    """Messages whose ack the broker confirmed."""
    received: set[str] = field(default_factory=set)
    """The ids of `delivered`."""
    journal: list[JournalEntry] = field(default_factory=list)
    """In the order in which it happened."""

    def receive(self, deliveries: Iterable[Delivered]) -> None:
        """A consumer got these."""
        for each in deliveries:
            self.delivered.append(each)
            self.received.add(each.id)

    def first_turns(self) -> list[JournalEntry]:
        """Where the broker handed each message out for the first time, in its order."""
        first: dict[str, JournalEntry] = {}
        for entry in self.journal:
            if entry.kind == "leased":
                first.setdefault(entry.message_id, entry)
        return list(first.values())

    def lost(self) -> set[str]:
        """Acknowledged enqueues that no consumer received."""
        return {each.id for each in self.enqueued} - self.received

    def came_back(self) -> set[str]:
        """Messages whose ack was confirmed, and that the broker handed out after it, or never let go."""
        gone: set[str] = set()
        back: set[str] = set()
        for entry in self.journal:
            if entry.kind == "acked":
                gone.add(entry.message_id)
            elif entry.kind == "leased" and entry.message_id in gone:
                back.add(entry.message_id)
        return self.acked & back | self.acked - gone

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
        """
        taken = {entry.message_id: entry for entry in self.journal if entry.kind == "enqueued"}
        first = self.first_turns()
        turns = [entry.seq for entry in first]
        by_age = sorted(first, key=lambda entry: taken[entry.message_id].seq)
        fifo_turns = {entry.message_id: turn for turn, entry in enumerate(by_age)}
        rows: dict[str, list[tuple[float, ...]]] = {tenant.name: [] for tenant in self.tenants}
        for turn, entry in enumerate(first):
            enqueued = taken[entry.message_id]
            gone = bisect_left(turns, enqueued.seq)
            fifo_turn = max(gone, fifo_turns[entry.message_id])
            seconds = _NS * (entry.at_ns - enqueued.at_ns)
            fifo_seconds = _NS * (first[fifo_turn].at_ns - enqueued.at_ns)
            rows[entry.fairness_key].append((turn - gone, seconds, fifo_turn - gone, fifo_seconds))
        return [Waits(tenant, *zip(*rows[tenant.name], strict=True)) for tenant in self.tenants if rows[tenant.name]]

    def _contended(self, backlogged: Sequence[Tenant]) -> list[str]:
        left = {tenant.name: tenant.backlog for tenant in backlogged}
        window = []
        for entry in self.first_turns():
            if entry.fairness_key in left:
                window.append(entry.fairness_key)
                left[entry.fairness_key] -= 1
                if not left[entry.fairness_key]:
                    break
        return window

    def _enqueue_order(self, tenants: Sequence[Tenant]) -> list[str]:
        names = {tenant.name for tenant in tenants}
        ordered = sorted(self.enqueued, key=lambda each: each.id)
        return [each.tenant for each in ordered if each.tenant in names]
