"""A member's copy as the store of its broker: read here, and written through the log.

What a start would write by itself waits for the first tick of the epoch: a copy changes by what the log says, and by
nothing else. All members make the same ids: they go by the name of the cluster, not by that of a store.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from fila.broker.commit import Committer, Done
from fila.core.errors import StoreFailed, StoreFull
from fila.core.ids import NODE_BITS
from fila.storage.base import Batch, Change, Family, Notice, Storage, StoreSizes


def node_of(cluster: str) -> int:
    """What names a cluster in message ids."""
    return int.from_bytes(blake2b(cluster.encode(), digest_size=8).digest(), "big") >> 64 - NODE_BITS


class SharedStore:
    """The store of a broker that is kept in several places. Belongs to one epoch; the copy outlives it."""

    def __init__(self, copy: Storage, node: int) -> None:
        self.node = node
        self._copy = copy
        self.left: list[Change] = []
        """What is to be written with the next tick"""

    @property
    def notices(self) -> list[Notice]:
        return self._copy.notices

    def check(self) -> None:
        self._copy.check()

    def write(self, batch: Batch) -> None:
        """With the next tick."""
        self.left += batch.changes

    def refusal(self) -> StoreFull | None:
        return self._copy.refusal()

    def free_bytes(self) -> int | None:
        return self._copy.free_bytes()

    def sizes(self) -> StoreSizes | None:
        return self._copy.sizes()

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self._copy.get(family, key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._copy.get_many(family, keys)

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return self._copy.scan(family, start, end)

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        return self._copy.has_any(family, start, end)

    def close(self) -> None:
        """The copy stays open: its member goes on."""


class SharedCommitter:
    """Adds to a tick what was left for it."""

    def __init__(self, store: SharedStore, committer: Committer) -> None:
        self._store = store
        self._committer = committer

    def write(self, batch: Batch, done: Done) -> None:
        left = list(self._store.left)
        if not left:
            self._committer.write(batch, done)
            return
        whole = Batch()
        whole.changes = [*left, *batch.changes]

        def written(error: StoreFailed | None) -> None:
            if error is None:
                del self._store.left[: len(left)]  # what came meanwhile stays
            done(error)

        self._committer.write(whole, written)
