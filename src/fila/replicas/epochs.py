"""The epochs of one owner: how it begins one, and how it sees that another has.

A barrier stands above everything that was sent before it. Whoever reads up to its own knows what counts below, and that
nothing else below ever will.

Its epoch is the one after the last that counted when its owner began to try, however often it is sent. So of several
who wait for the same engine one begins an epoch, and none of the others' barriers counts after that.
"""

from collections.abc import Awaitable, Callable
from secrets import token_bytes

from fila.core.errors import SteppedDown
from fila.replicas.entry import NONCE_BYTES, Barrier, Kind, write_barrier
from fila.replicas.log import InDoubt, LogError, LogUnavailable, Refused
from fila.replicas.replica import Counted
from fila.replicas.tail import Seen, Tail


class Overtaken(LogError):
    """Another member owns the shard, or has taken it over at the same time."""


def _always() -> bool:
    return True


class Epochs:
    """Reads the log for an owner, and writes its barriers."""

    def __init__(self, tail: Tail, member: str, seen: Seen) -> None:
        """`seen` is told what counts until the first epoch begins."""
        self._tail = tail
        self._seen = seen
        self._barrier = Barrier(token_bytes(NONCE_BYTES), member)
        self._holder: Barrier | None = None
        """Who wrote the last barrier that was seen to count"""
        self._owning = False
        self.sought = (0, 0)
        """The tick in hand: epoch and number"""
        self.found = False
        """Whether it counts"""

    async def begin(self, wanted: Callable[[], bool] = _always) -> None:
        """Begin an epoch: an own barrier counts, and all below it is read. Waits for an engine that is away. Looks
        first, so that a member that slept deposes nobody. `wanted`: whether a barrier is to be sent, asked after each
        look. Raises SteppedDown, Overtaken, and as `Tail.follow`.
        """
        await self.catch_up()
        replica = self._tail.replica
        before = replica.mark.epoch
        barrier = write_barrier(replica.shard, before + 1, self._barrier)
        while replica.mark.epoch == before:
            if not wanted():
                raise Overtaken("another member owns the shard")
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
        if not self._owning:
            self._seen(counted)
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
