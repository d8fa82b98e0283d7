"""The log that forgets: for tests. Same contract as those of engines, and it lies in every way the contract allows.

`MemoryEngine` is what stands; any number of members open a `MemoryLog` on it. `fates` says what becomes of each append,
so that a test decides it. What has come late waits in `late` until `land` lets it stand: at any later position.

An append has two steps, as on a network: it comes to stand, then its answer arrives. `turn` is awaited before each, and
before a reader is given anything. An append that is cancelled before it stands is late.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from enum import Enum, auto

from fila.replicas.log import Entry, InDoubt, LogUnavailable, Refused, TooLong, Truncated

MAX_ENTRY_BYTES = 1 << 20
READ_AT_ONCE = 64


class Fate(Enum):
    """What becomes of an append."""

    STANDS = auto()
    """Stands, and is answered"""
    UNANSWERED = auto()
    """Stands, and there is no answer"""
    LOST = auto()
    """Never stands, and there is no answer"""
    LATE = auto()
    """Stands when it is landed, and there is no answer"""
    TWICE_FIRST = auto()
    """Stands twice, and is answered with the first position"""
    TWICE_LAST = auto()
    """Stands twice, and is answered with the last position"""
    AGAIN_LATE = auto()
    """Stands, is answered, and stands again when it is landed"""
    REFUSED = auto()
    """Something stands in its place"""
    UNAVAILABLE = auto()
    """The engine cannot be reached"""
    DENIED = auto()
    """Stands, and the engine says that it cannot be reached. The contract does not allow that"""


_UNANSWERED = {Fate.UNANSWERED, Fate.LOST, Fate.LATE}
_STANDS = set(Fate) - {Fate.LOST, Fate.LATE, Fate.REFUSED, Fate.UNAVAILABLE}
_TWICE = {Fate.TWICE_FIRST, Fate.TWICE_LAST}
_LATE = {Fate.LATE, Fate.AGAIN_LATE}


async def _next_turn() -> None:
    await asyncio.sleep(0)


def honest(body: bytes) -> Fate:  # noqa: ARG001  # a fate may depend on what is appended
    """Every append stands and is answered."""
    return Fate.STANDS


class MemoryEngine:
    """What all members share."""

    def __init__(self, *, max_entry_bytes: int = MAX_ENTRY_BYTES, strict: bool = False) -> None:
        """`strict`: refuses an entry that would not stand right behind what its member has read."""
        self.max_entry_bytes = max_entry_bytes
        self.strict = strict
        self.read_at_once = READ_AT_ONCE
        """Entries that a reader is given"""
        self.bodies: list[bytes] = []
        """From the first position that is kept"""
        self.first = 0
        self.late: list[bytes] = []
        """What has not come to stand yet"""
        self.available = True
        self._waiting: dict[asyncio.Future[None], None] = {}
        """Readers, in a fixed order"""

    @property
    def end(self) -> int:
        return self.first + len(self.bodies)

    def open(
        self, fates: Callable[[bytes], Fate] = honest, turn: Callable[[], Awaitable[None]] = _next_turn
    ) -> "MemoryLog":
        """The log, for one member."""
        return MemoryLog(self, fates, turn)

    def stand(self, body: bytes) -> int:
        """Put an entry at the end. Returns its position."""
        self.bodies.append(body)
        self.wake()
        return self.end - 1

    def land(self, index: int = 0) -> int:
        """Let one of those that are late stand. Returns its position."""
        return self.stand(self.late.pop(index))

    def fail(self) -> None:
        """Cannot be reached until `heal`. Readers end."""
        self.available = False
        self.wake()

    def heal(self) -> None:
        self.available = True

    def truncate(self, before: int) -> None:
        cut = min(before, self.end) - self.first
        if cut > 0:
            del self.bodies[:cut]
            self.first += cut
            self.wake()

    def lose(self, position: int, count: int = 1) -> None:
        """Break the contract: forget entries that were acknowledged. What stands behind them moves up."""
        at = position - self.first
        del self.bodies[at : at + count]

    def wake(self) -> None:
        """Let readers look again."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Until something has changed."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        try:
            await future
        finally:
            self._waiting.pop(future, None)


class MemoryLog:
    """A `ReplicatedLog` on an engine in memory."""

    def __init__(
        self, engine: MemoryEngine, fates: Callable[[bytes], Fate], turn: Callable[[], Awaitable[None]]
    ) -> None:
        self.engine = engine
        self.max_entry_bytes = engine.max_entry_bytes
        self._fates = fates
        self._turn = turn
        self._closed = False

    async def append(self, body: bytes, after: int) -> int:
        self._check()
        if len(body) > self.max_entry_bytes:
            raise TooLong(f"the entry has {len(body)} bytes, {self.max_entry_bytes} are allowed")
        fate = self._fates(body)
        try:
            await self._turn()
        except asyncio.CancelledError:
            self.engine.late.append(body)
            raise
        if fate is Fate.UNAVAILABLE or not self.engine.available:
            raise LogUnavailable("the log in memory was told to be away")
        if fate is Fate.REFUSED or (self.engine.strict and after != self.engine.end - 1):
            raise Refused(f"position {after + 1} is taken")
        position = self._place(body, fate)
        await self._turn()
        if fate is Fate.DENIED:
            raise LogUnavailable("the log in memory was told to deny what stands")
        if fate in _UNANSWERED:
            raise InDoubt("the log in memory was told not to answer")
        return position

    def _place(self, body: bytes, fate: Fate) -> int:
        position = -1
        for _ in range((fate in _STANDS) + (fate in _TWICE)):
            position = self.engine.stand(body)
        if fate in _LATE:
            self.engine.late.append(body)
        return position - (fate is Fate.TWICE_FIRST)

    async def end(self) -> int:
        self._check()
        await self._turn()
        self._check()
        return self.engine.end

    async def read(self, start: int) -> AsyncGenerator[list[Entry], None]:
        engine, position = self.engine, start
        while True:
            await self._turn()
            if self._closed:
                return
            self._check()
            if position < engine.first:
                raise Truncated(engine.first)
            at = position - engine.first
            found = engine.bodies[at : at + engine.read_at_once]
            if found:
                yield [Entry(position + number, body) for number, body in enumerate(found)]
                position += len(found)
            else:
                await engine.wait()

    async def first(self) -> int:
        self._check()
        await self._turn()
        self._check()
        return self.engine.first

    async def truncate(self, before: int) -> None:
        self._check()
        await self._turn()
        self._check()
        self.engine.truncate(before)

    async def close(self) -> None:
        self._closed = True
        self.engine.wake()

    def _check(self) -> None:
        if self._closed:
            raise LogUnavailable("the log is closed")
        if not self.engine.available:
            raise LogUnavailable("the log in memory was told to be away")
