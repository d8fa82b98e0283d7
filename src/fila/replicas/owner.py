"""The owner of a shard: takes it over, and makes the batches of its broker durable through the log.

An append counts if and only if a reader would count it (`replica.py`). What stands right behind the last position
that was read counts without a look. What stands elsewhere is looked at. What has no answer is in doubt: a barrier of
the next epoch decides it, because nothing that comes later can count any more.

- A number is used for one content in each epoch. So a tick that was given up ends its epoch: the next one begins with a
  barrier. One that counts after all ends the owner, whatever the engine had said: the broker does not have it.
- Who sees the barrier of another, in an epoch higher than its own, is deposed. It confirms nothing any more. It looks
  before it writes a barrier itself, so that a member that slept through a takeover does not depose its successor.
- A local write that fails after the append is never rolled back: what was appended counts everywhere else. The owner
  steps down.

No lease and no clock is needed for any of this.
"""

import asyncio
from collections.abc import Callable

from fila.broker.commit import Done
from fila.core.errors import SteppedDown, StoreBusy, StoreFailed
from fila.replicas.entry import TooLarge, write_release, write_tick
from fila.replicas.epochs import Epochs
from fila.replicas.log import Entry, InDoubt, LogUnavailable, Refused
from fila.replicas.replica import Lost
from fila.replicas.snapshots import Manifest, put_current
from fila.replicas.tail import Seen, Tail, ignore
from fila.storage.base import Batch


class _NotCounted(Exception):
    """Nothing of a batch counts, nor ever will."""

    def __init__(self, error: StoreFailed) -> None:
        self.error = error


async def take_over(
    tail: Tail,
    member: str,
    on_end: Callable[[SteppedDown], None],
    *,
    seen: Seen = ignore,
    wanted: Callable[[], bool] = lambda: True,
) -> "Owner":
    """Own a shard. Returns when everything that any earlier owner was told is in the local store, and nothing that one
    sends from now on counts. Waits for an engine that is away. Nobody else may read with the tail from now on.

    `on_end` is told once if the owner steps down, but not when it is asked to. `seen` is told what counts meanwhile.
    After that `wanted` says whether this member is to take over still: somebody else may have, while it waited.
    Raises Overtaken, and as `Tail.follow`.
    """
    epochs = Epochs(tail, member, seen)
    await epochs.begin(wanted)
    await tail.rest()
    return Owner(tail, epochs, on_end)


class Owner:
    """Owns a shard until it steps down. Makes batches durable, one at a time: a `Committer`."""

    def __init__(self, tail: Tail, epochs: Epochs, on_end: Callable[[SteppedDown], None]) -> None:
        self.ended: SteppedDown | None = None
        self._replica = tail.replica
        self._log = tail.log
        self._tail = tail
        self._epochs = epochs
        self._on_end = on_end
        self._spent = False
        """Whether the next number may have been sent in this epoch"""
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
                    await self._epochs.catch_up()
                    self._check_given_up()
                    await self._tail.rest()
                except Exception as cause:  # noqa: BLE001  # whatever it is, it cannot go on
                    self._step_down(cause)

    async def beat(self) -> None:
        """Write a tick without changes: who cannot hear of this member otherwise sees that it owns the shard."""
        async with self._turn:
            if self.ended is None:
                await self._try(Batch())

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
            mark = self._replica.mark
            release = write_release(self._replica.shard, mark.epoch, mark.tick, successor)
            await self._log.append(release, self._replica.position)

    async def accept(self, manifest: Manifest) -> None:
        """Have a snapshot count: what stands before it is needed no more (`snapshots.trim`). Nothing happens if a later
        one counts already. Raises StoreFailed when it does not count.
        """
        async with self._turn:
            if self.ended is not None:
                raise self.ended
            batch = Batch()
            if not put_current(batch, self._replica.store, manifest):
                return
            error = await self._try(batch)
        if error is not None:
            raise error

    async def close(self) -> None:
        """Step down without a word. A batch in hand is answered so. Whoever waits for `look` or `accept` is cancelled
        first: from now on somebody else may read with the tail.
        """
        self.ended = self.ended or _ended_by(None)
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
            self._answer(self.ended)  # which it has not done if it had not begun
        await self._tail.rest()

    # A batch

    async def _write(self, batch: Batch) -> None:
        try:
            async with self._turn:
                error = self.ended or await self._try(batch)
        except asyncio.CancelledError:
            error = self._step_down(None)
        self._answer(self.ended or error)

    async def _try(self, batch: Batch) -> StoreFailed | None:
        """Returns the answer."""
        try:
            await self._commit(batch)
        except _NotCounted as refused:
            return refused.error
        except Exception as cause:  # noqa: BLE001  # whatever it is, it cannot go on
            return self._step_down(cause)
        return None

    def _answer(self, error: StoreFailed | None) -> None:
        done, self._done, self._writing = self._done, None, None
        if done is not None:
            done(error)

    def _step_down(self, cause: Exception | None) -> SteppedDown:
        if self.ended is None:
            self.ended = cause if isinstance(cause, SteppedDown) else _ended_by(cause)
            self._on_end(self.ended)
        return self.ended

    async def _commit(self, batch: Batch) -> None:
        if self._spent:
            await self._epochs.begin()
            self._check_given_up()
            self._spent = False
        mark, epochs = self._replica.mark, self._epochs
        epochs.sought, epochs.found = (mark.epoch, mark.tick + 1), False
        try:
            entries = write_tick(self._replica.shard, *epochs.sought, batch.changes, self._log.max_entry_bytes)
        except TooLarge as error:
            raise _NotCounted(StoreFailed(f"{error}; nothing was changed")) from error
        self._spent = True
        for entry in entries:
            await self._append(entry, batch if len(entries) == 1 else None)
        if not epochs.found:
            raise Lost(f"tick {epochs.sought} was acknowledged, and does not count")
        self._spent = False
        await self._tail.rest()

    def _check_given_up(self) -> None:
        """Raises SteppedDown if the tick that was given up counts."""
        if self._spent and self._epochs.found:
            raise SteppedDown("a batch that was refused here counts: the log's engine was wrong about it; ask again")

    async def _append(self, entry: bytes, whole: Batch | None) -> None:
        """Append one part. `whole`: the batch, if it is the only one. Raises _NotCounted."""
        while not self._epochs.found:
            after = self._replica.position
            try:
                position = await self._log.append(entry, after)
            except Refused:
                await self._tail.wait()
                await self._epochs.catch_up()
            except LogUnavailable as cause:
                raise _NotCounted(_away()) from cause
            except InDoubt as cause:
                await self._epochs.begin()
                if not self._epochs.found:
                    self._spent = False
                    raise _NotCounted(_away()) from cause
            else:
                await self._appended(Entry(position, entry), after, whole)
                return

    async def _appended(self, entry: Entry, after: int, whole: Batch | None) -> None:
        if entry.position <= after:
            raise Lost(f"position {entry.position} was read before, and now another entry was appended there")
        if entry.position > after + 1:
            await self._epochs.read_to(entry.position)
        elif whole is None:
            counted = await self._tail.take(entry)
            if counted is not None:
                self._epochs.see(counted)
        else:
            epoch, changes, size = self._epochs.sought[0], whole.changes, len(entry.body)
            await self._tail.store(lambda: self._replica.take_own(entry.position, epoch, changes, size))
            self._epochs.found = True


def _away() -> StoreBusy:
    return StoreBusy("the broker's log did not answer; nothing was changed, retry later")


def _ended_by(cause: Exception | None) -> SteppedDown:
    why = "this member has given the shard up; ask again" if cause is None else f"this member cannot go on: {cause}"
    ended = SteppedDown(why)
    ended.__cause__ = cause
    return ended
