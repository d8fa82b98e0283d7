"""Who holds which message, and until when.

Messages are leased in *grants*: all that one consumer is handed in one go. A grant is one record on disk however many
messages it covers, which makes leasing as cheap as the wire batch it travels in. A message leaves its grant when it is
settled, returned or extended; extending moves it to a new grant under the same token.

Rules of this file:
- a message is in at most one grant;
- the token is what clients know as `lease_id`: it never changes while the lease lasts, and no later lease has it;
- settling with a token of another lease finds nothing;
- the grants of a claim share its token and its end, and end together;
- a message whose lease ends, however it ends, is no longer in flight for its throttles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from fila.core.lane import Lane, Taken

if TYPE_CHECKING:
    from fila.core.claims import Claim

MANY_DEAD = 64
"""So many entries of ended grants are always tolerated before the order of expiry is built anew."""


@dataclass(slots=True, eq=False)
class Grant:
    """Messages that one consumer holds until one point in time."""

    number: int
    """Its key on disk; a later grant has a larger number."""
    token: int
    consumer: int
    """The number of the consumer's stream; 0 when that ended with an earlier run of the broker."""
    expires_at: int
    members: dict[int, Taken] = field(default_factory=dict)
    """By sequence number."""
    listed: int = 0
    """How many members its record on disk names; those that have left are among them."""
    claim: "Claim | None" = None
    """The claim that it is a part of, if no consumer holds it."""


class Leases:
    """All grants of one queue. Owns the way from a message to its grant, and the order in which grants expire."""

    __slots__ = ("_by_consumer", "_by_seq", "_dead", "_expiry")

    def __init__(self) -> None:
        self._by_seq: dict[int, Grant] = {}
        self._by_consumer: dict[int, dict[int, Grant]] = {}
        self._expiry: list[tuple[int, int, Grant]] = []
        self._dead = 0
        """How many entries of `_expiry` are of grants that hold nothing any more."""

    def __len__(self) -> int:
        return len(self._by_seq)

    def __contains__(self, seq: int) -> bool:
        return seq in self._by_seq

    def find(self, seq: int, token: int | None = None) -> Grant | None:
        """The grant that holds a message; with a token, only if the lease has it."""
        grant = self._by_seq.get(seq)
        return grant if grant is not None and (token is None or grant.token == token) else None

    def find_all(self, seqs: Sequence[int], token: int | None = None) -> Grant | None:
        """The grant that holds all of these messages, each named once; None when there is no such."""
        grants = set(map(self._by_seq.get, seqs))
        grant = grants.pop() if len(grants) == 1 else None
        if grant is None or len(set(seqs)) < len(seqs):
            return None
        return grant if token is None or grant.token == token else None

    def add(self, grant: Grant) -> None:
        """Hand out a grant. A message that another grant holds moves over."""
        by_seq = self._by_seq
        grant.listed = len(grant.members)
        for seq in grant.members:
            held = by_seq.get(seq)
            if held is not None:
                self._drop(held, seq)
            by_seq[seq] = grant
        self._by_consumer.setdefault(grant.consumer, {})[grant.number] = grant
        heappush(self._expiry, (grant.expires_at, grant.number, grant))

    def move_end(self, grants: list[Grant], expires_at: int) -> None:
        """Let grants end at another time, with all that they hold."""
        for grant in grants:
            grant.expires_at = expires_at
        self._expiry = [(grant.expires_at, grant.number, grant) for grant in self.grants()]
        heapify(self._expiry)
        self._dead = 0

    def release(self, seq: int) -> tuple[Grant, Taken]:
        """End the lease of one message."""
        grant = self._by_seq.pop(seq)
        message = grant.members[seq]
        self._drop(grant, seq)
        message[0].release()
        return grant, message

    def release_many(self, seqs: list[int]) -> list[tuple[int, list[Taken]]]:
        """End the leases of many messages: for each consumer, what it no longer holds."""
        grants = list(map(self._by_seq.pop, seqs))
        together: dict[Grant, list[int]] = dict.fromkeys(grants, seqs)
        if len(together) > 1:
            together = {grant: [] for grant in together}
            for grant, seq in zip(grants, seqs, strict=True):
                together[grant].append(seq)
        released: list[tuple[int, list[Taken]]] = []
        for grant, members in together.items():
            messages = list(map(grant.members.pop, members))
            for lane, _, _ in messages:
                if type(lane) is not Lane:  # it has throttles
                    lane.release()
            self._forget_if_empty(grant)
            released.append((grant.consumer, messages))
        return released

    def lanes(self, seqs: list[int]) -> list[Lane]:
        """Where messages that are leased belong."""
        by_seq = self._by_seq
        return [by_seq[seq].members[seq][0] for seq in seqs]

    def next_expiry(self) -> int | None:
        """When the next grant ends, if there is any."""
        heap = self._expiry
        while heap and not heap[0][2].members:
            heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else None

    def expired(self, now: int, limit: int) -> list[Grant]:
        """Grants whose time is over, earliest first, until they hold `limit` messages. Changes nothing."""
        if not self._expiry or self._expiry[0][0] > now:
            return []
        found: list[Grant] = []
        for grant in self._in_order_of_expiry():
            if grant.expires_at > now or limit <= 0:
                break
            found.append(grant)
            limit -= len(grant.members)
        return found

    def grants(self) -> list[Grant]:
        """All grants that hold messages."""
        return [grant for grants in self._by_consumer.values() for grant in grants.values()]

    def outdated(self) -> list[Grant]:
        """The grants whose records name messages that they no longer hold."""
        return [grant for grant in self.grants() if grant.listed > len(grant.members)]

    def of_consumer(self, consumer: int) -> list[Grant]:
        """The grants of one consumer that hold messages."""
        return list(self._by_consumer.get(consumer, {}).values())

    def _drop(self, grant: Grant, seq: int) -> None:
        del grant.members[seq]
        self._forget_if_empty(grant)

    def _forget_if_empty(self, grant: Grant) -> None:
        if not grant.members:
            grants = self._by_consumer[grant.consumer]
            del grants[grant.number]
            if not grants:
                del self._by_consumer[grant.consumer]
            self._dead += 1
            if self._dead > max(MANY_DEAD, len(self._expiry) // 2):
                self._expiry = [entry for entry in self._expiry if entry[2].members]
                heapify(self._expiry)
                self._dead = 0

    def _in_order_of_expiry(self) -> Iterator[Grant]:
        # A walk over the heap that reads only as much of it as it yields.
        heap = self._expiry
        frontier = [(heap[0], 0)] if heap else []
        while frontier:
            (_, _, grant), index = heappop(frontier)
            if grant.members:
                yield grant
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child], child))
