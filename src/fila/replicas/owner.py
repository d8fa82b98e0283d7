"""The owner of a shard: takes it over, and makes the batches of its broker durable through the log.

An append counts if and only if a reader would count it (`replica.py`). What stands right behind the last position
that was read counts without a look. What stands elsewhere is looked at. What has no answer is in doubt: a barrier of
the next epoch decides it, because nothing that comes later can count any more.

- A number is used for one content in each epoch. So a tick that was given up ends its epoch: the next one begins with a
  barrier.
- Who sees the barrier of another, in an epoch higher than its own, is deposed. It confirms nothing any more. It looks
  before it writes a barrier itself, so that a member that slept through a takeover does not depose its successor.
- A local write that fails after the append is never rolled back: what was appended counts everywhere else. The owner
  steps down.

No lease and no clock is needed for any of this.
"""

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_bytes

from fila.core.errors import SteppedDown, StoreBusy, StoreFailed
from fila.replicas.entry import (
    NONCE_BYTES,
    Barrier,
    Kind,
    TooLarge,
    write_barrier,
    write_release,
    write_tick,
)
from fila.replicas.log import Entry, InDoubt, LogError, LogUnavailable, Refused
from fila.replicas.replica import Counted, Lost
from fila.replicas.snapshots import Manifest, put_current
from fila.replicas.tail import Tail
from fila.storage.base import Batch

Done = Callable[[StoreFailed | None], None]


class Overtaken(LogError):
    """Another member has taken the shard over at the same time."""


class _NotCounted(Exception):
    """Nothing of a batch counts, nor ever will."""

    def __init__(self, error: StoreFailed) -> None:
        self.error = error


async def take_over(tail: Tail, member: str, on_end: Callable[[SteppedDown], None]) -> "Owner":
    """Own a shard. Returns when everything that any earlier owner was told is in the local store, and nothing that one
    sends from now on counts. Waits for an engine that is away. Nobody else may read with the tail from now on.

    `on_end` is told once if the owner steps down, but not when it is asked to. Raises Overtaken, and as `Tail.follow`.
    """
    owner = Owner(tail, member, on_end)
    await owner.begin_epoch()
    return owner


class Owner:
    """Owns a shard until it steps down. Makes batches durable, one at a time: a `Committer`."""

    def __init__(self, tail: Tail, member: str, on_end: Callable[[SteppedDown], None]) -> None:
        self.replica = tail.replica
        self.ended: SteppedDown | None = None
        self._log = tail.log
        self._tail = tail
        self._barrier = Barrier(token_bytes(NONCE_BYTES), member)
        self._on_end = on_end
        self._holder: Barrier | None = None
        """Who wrote the last barrier that was seen to count"""
        self._tried = 0
        """The highest epoch of an own barrier that was sent"""
        self._owning = False
        self._spent = True
        """Whether the next number may have been sent in this epoch"""
        self._sought = (0, 0)
        """The tick in hand: epoch and number"""
        self._found = False
        """Whether it counts"""
        self._writing: asyncio.Task[None] | None = None
        self._done: Done | None = None
        self._turn = asyncio.Lock()

    # What a broker asks for

    def write(self, batch: Batch, done: Done) -> None:
        """Make a batch durable. Calls `done` with None when it counts and is in the local store, with SteppedDown when
        the broker has to end, or with another StoreFailed when nothing of it counts, nor ever will.
        """
        if self._writing is not None:
            raise RuntimeError("a batch is being written: one at a time")
        if self.ended is not None:
            done(self.ended)
            return
        self._done = done
        self._writing = asyncio.ensure_future(self._write(batch))

    async def look(self) -> None:
        """Read what others have appended. An owner that has nothing to write learns by this that it was deposed."""
        async with self._turn:
            if self.ended is None:
                try:
                    await self._read(self._tail.catch_up(self._see))
                    await self._tail.rest()
                except Exception as cause:  # noqa: BLE001  # whatever it is, it cannot go on
                    self._step_down(cause)

    async def release(self, successor: str) -> None:
        """Give the shard up after the batch in hand, and name who should take it over. Nothing more is written,
        whatever becomes of this. Raises LogError when the successor may not hear of it.
        """
        if self._writing is not None:
            await asyncio.wait([self._writing])
        async with self._turn:
            if self.ended is not None:
                return
            self.ended = SteppedDown(f"the shard was released to {successor}; ask there")
            mark = self.replica.mark
            release = write_release(self.replica.shard, mark.epoch, mark.tick, successor)
            await self._log.append(release, self.replica.position)

    async def accept(self, manifest: Manifest) -> None:
        """Have a snapshot count: what stands before it is needed no more (`snapshots.trim`). Nothing happens if a later
        one counts already. Raises StoreFailed when it does not count.
        """
        async with self._turn:
            if self.ended is not None:
                raise self.ended
            batch = Batch()
            if not put_current(batch, self.replica.store, manifest):
                return
            try:
                await self._commit(batch)
            except _NotCounted as refused:
                raise refused.error from refused
            except (Exception, asyncio.CancelledError) as cause:
                self._step_down(cause)
                raise

    async def close(self) -> None:
        """Step down without a word. A batch in hand is answered so."""
        self.ended = self.ended or SteppedDown("this member has given the shard up; ask again")
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
            self._answer(self.ended)  # which it has not done if it had not begun
        await self._tail.rest()

    # Epochs

    async def begin_epoch(self) -> None:
        """Begin an epoch: an own barrier stands above everything that was sent so far, and what is below it is read.

        Looks first, so that nobody is deposed by a member that slept.
        """
        await self._read(self._tail.catch_up(self._see))
        before = self.replica.mark.epoch
        while self.replica.mark.epoch == before:
            self._tried = max(self._tried, before) + 1
            barrier = write_barrier(self.replica.shard, self._tried, self._barrier)
            try:
                position = await self._log.append(barrier, self.replica.position)
            except (InDoubt, Refused, LogUnavailable):
                await self._tail.wait()
                await self._read(self._tail.catch_up(self._see))
            else:
                await self._read(self._tail.read_to(position, self._see))
        await self._tail.rest()
        if self._holder != self._barrier:
            raise Overtaken(f"{_name_of(self._holder)} has taken the shard over at the same time")
        self._owning, self._spent = True, False

    async def _read(self, reading: Awaitable[None]) -> None:
        await reading
        if self._owning and self._holder != self._barrier:
            raise SteppedDown(f"{_name_of(self._holder)} has taken the shard over; ask there")

    def _see(self, counted: Counted) -> None:
        head = counted.head
        if head.kind is Kind.BARRIER and not self._is_deposed:
            self._holder = counted.barrier
        elif head.kind is Kind.TICK and (head.epoch, head.tick) == self._sought:
            self._found = True

    @property
    def _is_deposed(self) -> bool:
        """Stays so, even when an own barrier counts later: what the other wrote in between is not in this broker."""
        return self._owning and self._holder != self._barrier

    # A batch

    async def _write(self, batch: Batch) -> None:
        error: StoreFailed | None = None
        try:
            async with self._turn:
                if self.ended is None:
                    await self._commit(batch)
        except _NotCounted as refused:
            error = refused.error
        except (Exception, asyncio.CancelledError) as cause:  # noqa: BLE001  # whatever it is, it cannot go on
            self._step_down(cause)
        self._answer(self.ended or error)

    def _answer(self, error: StoreFailed | None) -> None:
        done, self._done, self._writing = self._done, None, None
        if done is not None:
            done(error)

    def _step_down(self, cause: BaseException) -> None:
        if self.ended is not None:
            return
        self.ended = cause if isinstance(cause, SteppedDown) else SteppedDown(f"this member cannot go on: {cause}")
        if self.ended is not cause:
            self.ended.__cause__ = cause
        self._on_end(self.ended)

    async def _commit(self, batch: Batch) -> None:
        if self._spent:
            await self.begin_epoch()
        mark = self.replica.mark
        self._sought, self._found = (mark.epoch, mark.tick + 1), False
        try:
            entries = write_tick(self.replica.shard, *self._sought, batch.changes, self._log.max_entry_bytes)
        except TooLarge as error:
            raise _NotCounted(StoreFailed(f"{error}; nothing was changed")) from error
        self._spent = True
        for entry in entries:
            await self._append(entry, batch if len(entries) == 1 else None)
        if not self._found:
            raise Lost(f"tick {self._sought} was acknowledged, and does not count")
        self._spent = False
        await self._tail.rest()

    async def _append(self, entry: bytes, whole: Batch | None) -> None:
        """Append one part. `whole`: the batch, if it is the only one. Raises _NotCounted."""
        while not self._found:
            after = self.replica.position
            try:
                position = await self._log.append(entry, after)
            except Refused:
                await self._tail.wait()
                await self._read(self._tail.catch_up(self._see))
            except LogUnavailable as cause:
                raise _NotCounted(_away()) from cause
            except InDoubt as cause:
                await self.begin_epoch()
                if not self._found:
                    raise _NotCounted(_away()) from cause
            else:
                await self._appended(Entry(position, entry), after, whole)
                return

    async def _appended(self, entry: Entry, after: int, whole: Batch | None) -> None:
        if entry.position <= after:
            raise Lost(f"position {entry.position} was read before, and now another entry was appended there")
        if entry.position > after + 1:
            await self._read(self._tail.read_to(entry.position, self._see))
        elif whole is None:
            counted = await self._tail.take(entry)
            if counted is not None:
                self._see(counted)
        else:
            epoch, changes = self._sought[0], whole.changes
            await self._tail.store(lambda: self.replica.take_own(entry.position, epoch, changes))
            self._found = True


def _away() -> StoreBusy:
    return StoreBusy("the broker's log did not answer; nothing was changed, retry later")


def _name_of(barrier: Barrier | None) -> str:
    return "another member" if barrier is None else barrier.member
