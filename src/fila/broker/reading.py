"""Reading a queue without being one of its consumers: in claims that can be read again, or by just looking at it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import lru_cache

from fila.broker.audit_commands import INTERNAL, Origin
from fila.broker.calls import Calls, all_known, step_by_step
from fila.broker.claims import AckedClaims, ExtendedClaims, Making, check_group, find_claim
from fila.broker.commands import AckClaims, DropGroup, ExtendClaims, MakeClaim
from fila.broker.queue import QueueState
from fila.broker.records import Piece
from fila.broker.search import Query, Search
from fila.core.claims import Claim, ClaimState, Group
from fila.core.errors import ClaimLost, InvalidArgument, QueueNotFound, quoted
from fila.core.fair_key import FairKey
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane
from fila.storage import keys

MAX_WAIT_MS = 10_000
LOOK_EVERY_S = 0.01
"""How often a reader that waits looks whether there is something to claim."""
LOOK_LEAST_S = 0.16
"""And how often at least when there are messages, but none for it: finding that out may take long."""

LOOK_MESSAGES = 500
LOOK_EFFORT = 4_000
"""How many messages of a queue are read in one go, and how many looked at."""

MAX_PARTS = 10_000
REMEMBERED_LANES = 4096


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader asks for."""

    queue: str
    group: str
    after: int
    most: int = 0
    lease_ms: int = 0
    epoch: int = 0
    cap: int = 0
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class Floor:
    """Where a group stands, and what waits for it."""

    floor: int
    last: int
    epoch: int
    newest: int
    ready: int
    delayed: int


class Readers:
    """Claims and looks, as awaitable calls."""

    def __init__(self, broker: Calls) -> None:
        self._broker = broker
        self._state = broker.state

    async def claim(self, wanted: Wanted) -> Claim | None:
        """The claim after one; None when there is nothing to claim. Raises what `plan_claim` does."""
        if not 0 <= wanted.wait_ms <= MAX_WAIT_MS:
            raise InvalidArgument(f"wait_ms must be from 0 to {MAX_WAIT_MS}, not {wanted.wait_ms}")
        await all_known(self._broker, {wanted.queue})
        until = self._broker.now() + wanted.wait_ms * NS_PER_MS
        claim = await self._make(wanted)
        rest = LOOK_EVERY_S
        while claim is None and (left := until - self._broker.now()) > 0:
            await asyncio.sleep(min(rest, left / 1e9))
            if self._state.queue(wanted.queue).ready or not self._broker.ready:
                claim = await self._make(wanted)
                rest = min(2 * rest, LOOK_LEAST_S)
            else:
                rest = LOOK_EVERY_S
        return claim

    async def _make(self, wanted: Wanted) -> Claim | None:
        while True:
            making: Making = await self._broker.do(
                lambda reply: MakeClaim(
                    wanted.queue,
                    wanted.group,
                    wanted.after,
                    wanted.most,
                    reply,
                    wanted.lease_ms,
                    wanted.epoch,
                    wanted.cap,
                )
            )
            if making.done:
                return making.claim
            await asyncio.sleep(0)  # making a part has a tick to itself: let one come that delivers

    def describe(self, queue_name: str, group: str, number: int) -> Claim:
        """Raises QueueNotFound or ClaimLost."""
        return find_claim(self._state.queue(queue_name), group, number)

    def read(
        self, queue_name: str, group: str, number: int, low: int, high: int
    ) -> tuple[Claim, Iterator[tuple[Piece, int]]]:
        """A slice of a claim by position, a piece at a time, each with the position behind it. `high` of 0 means to
        the end.

        Raises QueueNotFound, InvalidArgument or ClaimLost; the last also on the way, when the claim has ended.
        """
        queue = self._state.queue(queue_name)
        claim = find_claim(queue, group, number)
        if not low <= (high or claim.size) <= claim.size:
            raise InvalidArgument(
                f"positions {low} to {high} are not in claim {number}, which has {claim.size} messages"
            )
        return claim, self._pieces(queue, claim, low, high or claim.size)

    def _pieces(self, queue: QueueState, claim: Claim, low: int, high: int) -> Iterator[tuple[Piece, int]]:
        if claim.state(self._broker.now()) is ClaimState.EXPIRED:
            return
        for part, messages in claim.slice(low, high):
            for piece in self._broker.records.read(queue, part.grant, messages) if part.grant is not None else ():
                yield piece, part.position(piece[-1][0]) + 1
                self._check(queue, claim)
        self._check(queue, claim)

    def _check(self, queue: QueueState, claim: Claim) -> None:
        """Whoever reads a claim reads all of a slice or is told."""
        if self._state.queues.get(queue.name) is not queue:
            raise QueueNotFound(queue.name)
        if claim.state(self._broker.now()) is not ClaimState.OPEN:
            raise ClaimLost(f"claim {claim.number} of group {quoted(claim.group.name)} ended while it was read")

    async def ack(self, queue: str, group: str, upto: int, epoch: int) -> AckedClaims:
        acked: AckedClaims = await self._broker.do(lambda reply: AckClaims(queue, group, upto, reply, epoch))
        return acked

    async def extend(self, queue: str, group: str, lease_ms: int, epoch: int) -> ExtendedClaims:
        extended: ExtendedClaims = await self._broker.do(
            lambda reply: ExtendClaims(queue, group, lease_ms, reply, epoch)
        )
        return extended

    async def drop(self, queue: str, group: str, origin: Origin = INTERNAL) -> None:
        await self._broker.do(lambda reply: DropGroup(queue, group, reply, origin))

    async def floor(self, queue_name: str, group_name: str) -> Floor:
        """Raises QueueNotFound, or InvalidArgument for a name that no group may have."""
        await all_known(self._broker, {queue_name})
        queue = self._state.queue(queue_name)
        check_group(group_name, self._state.limits)
        group = queue.groups.get(group_name) or Group(group_name)
        return Floor(group.floor, group.last, group.epoch, self._state.sequence.last, queue.ready, len(queue.schedule))

    async def look(self, queue_name: str, query: Query, part: int = 0, parts: int = 1) -> AsyncIterator[Piece]:
        """Messages of a queue, oldest first, a piece at a time: those of one of several parts. Lets others work in
        between. Raises QueueNotFound or InvalidArgument.
        """
        if not 0 <= part < parts <= MAX_PARTS:
            raise InvalidArgument(f"part must be from 0 up to parts, which must be from 1 to {MAX_PARTS}")
        await all_known(self._broker, {queue_name})
        queue = self._state.queue(queue_name)
        walk = Search(self._broker.store, queue, query)

        @lru_cache(REMEMBERED_LANES)
        def lane_of(key: str, priority: int) -> Lane:
            return Lane(FairKey(key), priority, keys.lane(queue_name, key, priority))

        while not walk.done:
            found = await step_by_step(walk.next(LOOK_MESSAGES, LOOK_EFFORT))
            locations = [match.location for match in found if match.location.seq % parts == part]
            wanted = [(lane_of(location.key, location.priority), location.seq, 0) for location in locations]
            for piece in self._broker.records.read_waiting(queue, wanted):
                yield piece
                await asyncio.sleep(0)
                if self._state.queues.get(queue_name) is not queue:
                    raise QueueNotFound(queue_name)
            await asyncio.sleep(0)
