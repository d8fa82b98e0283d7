"""The epochs of one owner: how it begins one, and how it sees that another has.

A barrier stands above everything that was sent before it. Whoever reads up to its own knows what counts below, and that
nothing else below ever will.
"""

from collections.abc import Awaitable
from secrets import token_bytes

from fila.core.errors import SteppedDown
from fila.replicas.entry import NONCE_BYTES, Barrier, Kind, write_barrier
from fila.replicas.log import InDoubt, LogError, LogUnavailable, Refused
from fila.replicas.replica import Counted
from fila.replicas.tail import Tail


class Overtaken(LogError):
    """Another member has taken the shard over at the same time."""


class Epochs:
    """Reads the log for an owner, and writes its barriers."""

    def __init__(self, tail: Tail, member: str) -> None:
        self._tail = tail
        self._barrier = Barrier(token_bytes(NONCE_BYTES), member)
        self._holder: Barrier | None = None
        """Who wrote the last barrier that was seen to count"""
        self._tried = 0
        """The highest epoch of an own barrier that was sent"""
        self._owning = False
        self.sought = (0, 0)
        """The tick in hand: epoch and number"""
        self.found = False
        """Whether it counts"""

    async def begin(self) -> None:
        """Begin an epoch: an own barrier counts, and all below it is read. Waits for an engine that is away. Looks
        first, so that a member that slept deposes nobody. Raises SteppedDown, Overtaken, and as `Tail.follow`.
        """
        await self.catch_up()
        replica = self._tail.replica
        before = replica.mark.epoch
        while replica.mark.epoch == before:
            self._tried = max(self._tried, before) + 1
            barrier = write_barrier(replica.shard, self._tried, self._barrier)
            try:
                position = await self._tail.log.append(barrier, replica.position)
            except (InDoubt, Refused, LogUnavailable):
                await self._tail.wait()
                await self.catch_up()
            else:
                await self.read_to(position)
        if self._holder != self._barrier:
            raise Overtaken(f"{self._name} has taken the shard over at the same time")
        self._owning = True

    async def catch_up(self) -> None:
        """Read what others have appended. Raises SteppedDown, and as `Tail.follow`."""
        await self._check(self._tail.catch_up(self.see))

    async def read_to(self, position: int) -> None:
        """Read at least to a position. Raises SteppedDown, and as `Tail.follow`."""
        await self._check(self._tail.read_to(position, self.see))

    async def _check(self, reading: Awaitable[None]) -> None:
        await reading
        if self._is_deposed:
            raise SteppedDown(f"{self._name} has taken the shard over; ask there")

    def see(self, counted: Counted) -> None:
        """Note what counts."""
        head = counted.head
        if head.kind is Kind.BARRIER and not self._is_deposed:
            self._holder = counted.barrier
        elif head.kind is Kind.TICK and (head.epoch, head.tick) == self.sought:
            self.found = True

    @property
    def _is_deposed(self) -> bool:
        """Stays so, even when an own barrier counts later: what the other wrote in between is not in this broker."""
        return self._owning and self._holder != self._barrier

    @property
    def _name(self) -> str:
        return "another member" if self._holder is None else self._holder.member
