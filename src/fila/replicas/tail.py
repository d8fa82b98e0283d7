"""Reading a log into a replica: as a standby for ever, or up to a position.

An engine that is away is waited for. A local store that is behind with its files is waited for as well, for a while.
Cancelling a read at any moment loses nothing: the next one goes on where the replica stands.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from fila.core.errors import StoreBusy
from fila.replicas.log import Entry, LogUnavailable, ReplicatedLog
from fila.replicas.replica import Counted, Lost, Replica

PAUSE = 0.1
"""Seconds between two tries at an engine that is away, or a store that is behind"""
STALL_TRIES = 100
"""At a store that is behind: ten seconds"""
LOW_S = 5.0
"""While the engine names an end before what was read: its leader has changed just now, and does not know better yet"""
SLICE_BYTES = 256 << 10
"""Of entries that are applied before others on the event loop have their turn"""

Seen = Callable[[Counted], None]
Wait = Callable[[], Awaitable[None]]


async def pause() -> None:
    """Between two tries."""
    await asyncio.sleep(PAUSE)


async def patiently(change: Callable[[], None], wait: Wait) -> None:
    """Change a store, and wait while it is behind with its files. Raises StoreFailed."""
    for _ in range(STALL_TRIES):
        with suppress(StoreBusy):
            change()
            return
        await wait()
    change()


def ignore(counted: Counted) -> None:
    """Nobody asks."""


class Tail:
    """Reads a log into a replica. One reading at a time; it keeps its reader open until `rest`."""

    def __init__(self, log: ReplicatedLog, replica: Replica, wait: Wait = pause) -> None:
        self.log = log
        self.replica = replica
        self.wait = wait
        self._reader: AsyncGenerator[list[Entry], None] | None = None
        self._next = -1
        """The position that the reader gives next"""
        self._pending: asyncio.Task[list[Entry] | None] | None = None

    async def follow(self, seen: Seen = ignore) -> None:
        """Until cancelled. `seen` is told what counts. Raises Lost, Unreadable, Truncated or StoreFailed."""
        while True:
            await self._read_some(seen)

    async def read_to(self, position: int, seen: Seen = ignore) -> None:
        """At least to a position, which stands in the log. Raises as `follow`."""
        while self.replica.position < position:
            await self._read_some(seen)

    async def catch_up(self, seen: Seen = ignore) -> None:
        """To what is the end now: everything that anybody was told before this was called. Raises as `follow`."""
        while True:
            try:
                end = await self._end()
            except LogUnavailable:
                await self.wait()
            else:
                return await self.read_to(end - 1, seen)

    async def rest(self) -> None:
        """Close the reader. The next read opens one anew."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.add_done_callback(_forget)
            pending.cancel()
            await asyncio.wait([pending])
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.aclose()

    async def take(self, entry: Entry) -> Counted | None:
        """Apply the rule, and wait while the store is behind."""
        counted: list[Counted | None] = []
        await self.store(lambda: counted.append(self.replica.take(entry)))
        return counted[0]

    async def store(self, change: Callable[[], None]) -> None:
        """Change the replica, and wait while its store is behind. Raises StoreFailed."""
        await patiently(change, self.wait)

    async def _read_some(self, seen: Seen) -> None:
        size = 0
        for entry in await self._chunk():
            counted = await self.take(entry)
            if counted is not None:
                seen(counted)
            size += len(entry.body)
            if size >= SLICE_BYTES:
                size = 0
                await asyncio.sleep(0)

    async def _chunk(self) -> list[Entry]:
        while True:
            try:
                if self._reader is None or self._next != self.replica.position + 1:
                    await self._open()
                entries = await self._wait_for_next()
            except LogUnavailable:
                await self.rest()
                await self.wait()
                continue
            if entries:
                self._next = entries[-1].position + 1
                return entries
            await self.rest()  # it ended: somebody closed the log

    async def _open(self) -> None:
        await self.rest()
        position = self.replica.position + 1
        await self._end()
        self._reader, self._next = self.log.read(position), position

    async def _end(self) -> int:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LOW_S
        while (end := await self.log.end()) <= self.replica.position and loop.time() < deadline:
            await self.wait()
        if end <= self.replica.position:
            raise Lost(f"the log ends at {end}, but this member has read position {self.replica.position}")
        return end

    async def _wait_for_next(self) -> list[Entry] | None:
        """What comes next. When this is cancelled, the reader goes on, and the next call has what it read."""
        assert self._reader is not None
        if self._pending is None:
            self._pending = asyncio.ensure_future(_next_of(self._reader))
        await asyncio.wait([self._pending])
        pending, self._pending = self._pending, None
        return pending.result()


async def _next_of(reader: AsyncGenerator[list[Entry], None]) -> list[Entry] | None:
    return await anext(reader, None)


def _forget(pending: asyncio.Task[list[Entry] | None]) -> None:
    """Nobody wants what it would have read."""
    if not pending.cancelled():
        pending.exception()
