"""The seam between a replicated broker and the engine that keeps its log: Kafka, NATS, PostgreSQL, or memory in tests.

A log is one totally ordered, durable sequence of entries. Positions are consecutive whole numbers. Safety rests on the
rule by which readers count entries (`replica.py`), and on nothing else that an engine offers: an entry may stand twice,
may come late, and may come from one who is no longer the owner.

To add an engine: a class with the methods of `ReplicatedLog`, and a row in the table of `opening.py`. The suite in
`tests/contract/test_log.py` is the contract.
"""

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol


class LogError(Exception):
    """The log did not do what it was asked."""


class InDoubt(LogError):
    """There is no answer to an append. The entry may stand, may come to stand later, or never."""


class Refused(LogError):
    """The engine has appended nothing, because another entry stands where this one was to stand."""


class TooLong(LogError):
    """The entry is longer than the engine takes. Nothing was appended."""


class LogUnavailable(LogError):
    """The log cannot be reached or read at the moment. Nothing was appended."""


class Truncated(LogError):
    """What was to be read is no longer kept."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the log begins at {first}: what stood before has been cut off")
        self.first = first
        """The first position that can be read"""


class Unfit(LogError):
    """The engine is set up so that it could lose what it has acknowledged. The text says what to change."""


class Entry(NamedTuple):
    """What stands in a log."""

    position: int
    body: bytes


class ReplicatedLog(Protocol):
    """One log. Used by one member, on its event loop; other members append to the same log."""

    max_entry_bytes: int
    """Longer entries are refused as TooLong"""

    async def append(self, body: bytes, after: int) -> int:
        """Add an entry at the end. Returns its position when a majority keeps it.

        `after`: the last position that the caller has read, or -1. An engine that can refuse an entry which would not
        stand right behind it does so with `Refused`; others let it stand where it may. Raises InDoubt, Refused,
        TooLong or LogUnavailable. A cancelled append is in doubt.
        """
        ...

    async def end(self) -> int:
        """The position behind the last entry that is durable: what this member was told stands before it, and what
        others were told too, as far as the engine's leader knows. One that has been deposed and does not know it yet
        may name a lower end; whoever must have everything appends a barrier and reads up to it. Raises LogUnavailable.
        """
        ...

    def read(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """Durable entries from a position on, some at a time, without end: waits for those to come. Goes on by itself
        when an engine's node fails. Raises Truncated, or LogUnavailable when it cannot go on. Closing the generator
        lets go of what it has open.
        """
        ...

    async def first(self) -> int:
        """The first position that is kept. Raises LogUnavailable."""
        ...

    async def truncate(self, before: int) -> None:
        """Entries before a position are needed no more. The engine may keep some of them. Raises LogUnavailable."""
        ...

    async def close(self) -> None:
        """Let go of all connections. Readers end."""
        ...
