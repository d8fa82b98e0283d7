"""The seam between the broker and its store: families of ordered keys, read at any time, written in atomic batches.

To add a store: a class with the methods of `Storage`, and a row in `STORES` of `opening.py`. The suites in
`tests/contract` are the contract, one of them for what is kept on disk; a server runs on anything that passes them. A
key has up to 800 bytes, with the limits that are the default.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from fila.core.errors import StoreFull


class Family(IntEnum):
    """A key space of its own, each with an order of its own."""

    DEFAULT = 0
    """About the store itself: identity, clock mark."""
    MESSAGES = 1
    LEASES = 2
    LEASE_EXPIRY = 3
    QUEUES = 4
    STATE = 5
    """Runtime configuration."""
    SCHEDULED = 6
    DEDUP = 7
    ATTEMPTS = 8
    """Failed attempts. Apart from the message, so that a retry never rewrites a payload."""
    JOURNAL = 9
    CLAIMS = 10
    STAGED = 11
    """Which messages nobody sees before their transaction is committed."""
    AUDIT = 12
    """Who changed what."""


Change = tuple[Family, bytes, bytes | None, bytes | None]
"""Family, key, value to put, end of the range to delete: a put, a deletion, or the deletion of a range."""


class Batch:
    """Changes that will be made together or not at all. Later ones win."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def __len__(self) -> int:
        return len(self.changes)

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.changes.append((family, key, value, None))

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Keys and values."""
        self.changes += [(family, key, value, None) for key, value in entries]

    def delete(self, family: Family, key: bytes) -> None:
        self.changes.append((family, key, None, None))

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None:
        self.changes += [(family, key, None, None) for key in keys]

    def delete_range(self, family: Family, start: bytes, end: bytes) -> None:
        """Delete from `start` up to, not including, `end`."""
        if start < end:
            self.changes.append((family, start, None, end))


class Notice(NamedTuple):
    """What an operator should know of a store that was opened."""

    text: str
    files: int
    """How many it is about"""


class StoreSizes(NamedTuple):
    """What a store holds, and what it still has to tidy up."""

    file_bytes: int
    """In its files, with what is deleted there and not compacted away yet; without the log"""
    buffer_bytes: int
    """Written, and in memory until it is in a file"""
    cache_bytes: int
    """Blocks of files, cached in memory"""
    compaction_bytes: int
    """What compaction has to rewrite, as an estimate"""
    compactions: int
    """Those that run now"""


class Storage(Protocol):
    """An ordered, durable key-value store. One owner, one thread."""

    @property
    def node(self) -> int:
        """Names this store in message ids: a random number of `NODE_BITS` bits, the same at every start."""

    @property
    def notices(self) -> list[Notice]:
        """What was found, and mended, when it was opened."""

    def check(self) -> None:
        """To be called a few times a second. Raises StoreLost when somebody has taken the store away."""

    def write(self, batch: Batch) -> None:
        """Make a batch durable. Never waits for a write stall: raises StoreBusy when the same batch may be written
        soon. Raises StoreFailed when it cannot be written; then nothing of it is visible.
        """

    def refusal(self) -> StoreFull | None:
        """What producers are told while there is too little room for them. Consumers are served all the same."""

    def free_bytes(self) -> int | None:
        """The room that there is, where that is known."""

    def sizes(self) -> StoreSizes | None:
        """Figures for operators, where the store has files. Cheap, and reads nothing from a disk."""

    def get(self, family: Family, key: bytes) -> bytes | None: ...

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of keys in any order. Those that stand near each other cost least."""

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys from `start` up to, not including, `end`, in order, with their values: all that was there when it was
        asked for, whatever is written meanwhile.
        """

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        """Whether there is a key from `start` up to, not including, `end`. Reads no value, and costs little when the
        range is small, whatever was deleted around it.
        """

    def close(self) -> None:
        """Make everything durable and let go of the store."""
