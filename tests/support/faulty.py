"""A store that fails when it is told to, around any other store.

    FaultyStorage(inner, fail_on=3)      the third write fails, all others work
    FaultyStorage(inner, fail_after=3)   three writes work, all later ones fail until `heal()`

A write that fails is not applied. Reads always work.
"""

from collections.abc import Callable, Iterator, Sequence

from fila.core.errors import StoreFailed, StoreFull
from fila.storage.base import Batch, Family, Notice, Storage, StoreSizes


def _failure() -> StoreFailed:
    return StoreFailed("the store was told to refuse this write")


class FaultyStorage:
    """Counts the writes that are tried in `writes`, those refused in `refused`."""

    def __init__(
        self,
        inner: Storage,
        *,
        fail_on: int | None = None,
        fail_after: int | None = None,
        error: Callable[[], StoreFailed] = _failure,
    ) -> None:
        self.inner = inner
        self.writes = 0
        self.refused = 0
        self._fail_on = fail_on
        self._fail_after = fail_after
        self._error = error

    def heal(self) -> None:
        """Let every further write through."""
        self._fail_on = self._fail_after = None

    def break_now(self) -> None:
        """Refuse every further write until `heal`."""
        self._fail_after = self.writes

    @property
    def node(self) -> int:
        return self.inner.node

    @property
    def notices(self) -> list[Notice]:
        return self.inner.notices

    def check(self) -> None:
        self.inner.check()

    def write(self, batch: Batch) -> None:
        self.writes += 1
        after = self._fail_after
        if self.writes == self._fail_on or (after is not None and self.writes > after):
            self.refused += 1
            raise self._error()
        self.inner.write(batch)

    def refusal(self) -> StoreFull | None:
        return self.inner.refusal()

    def free_bytes(self) -> int | None:
        return self.inner.free_bytes()

    def sizes(self) -> StoreSizes | None:
        return self.inner.sizes()

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self.inner.get(family, key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.inner.get_many(family, keys)

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return self.inner.scan(family, start, end)

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        return self.inner.has_any(family, start, end)

    def close(self) -> None:
        self.inner.close()
