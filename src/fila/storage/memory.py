"""The store that forgets: for tests, and for users' tests. Same contract as the durable one."""

import secrets
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from fila.core.ids import NODE_BITS
from fila.storage.base import Batch, Family, Notice


class MemoryStorage:
    """A dictionary and a sorted list of its keys for each family."""

    def __init__(self) -> None:
        self.node = secrets.randbits(NODE_BITS)
        self.notices: list[Notice] = []
        self._values: list[dict[bytes, bytes]] = [{} for _ in Family]
        self._keys: list[list[bytes]] = [[] for _ in Family]

    def check(self) -> None:
        """Nobody can take it away."""

    def write(self, batch: Batch) -> None:
        for family, key, value, end in batch.changes:
            if value is not None:
                self._put(family, key, value)
            elif end is None:
                self._delete(family, key)
            else:
                for doomed in self._range(family, key, end):
                    self._delete(family, doomed)

    def refusal(self) -> None:
        """There is always room."""

    def free_bytes(self) -> None:
        """Nobody knows."""

    def sizes(self) -> None:
        """There are no files."""

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self._values[family].get(key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        values = self._values[family]
        return [values.get(key) for key in keys]

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        values = self._values[family]
        return iter([(key, values[key]) for key in self._range(family, start, end)])

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        keys = self._keys[family]
        at = bisect_left(keys, start)
        return at < len(keys) and keys[at] < end

    def close(self) -> None:
        """Nothing to let go of."""

    def _put(self, family: Family, key: bytes, value: bytes) -> None:
        if key not in self._values[family]:
            insort(self._keys[family], key)
        self._values[family][key] = value

    def _delete(self, family: Family, key: bytes) -> None:
        if self._values[family].pop(key, None) is not None:
            keys = self._keys[family]
            del keys[bisect_left(keys, key)]

    def _range(self, family: Family, start: bytes, end: bytes | None) -> list[bytes]:
        keys = self._keys[family]
        return keys[bisect_left(keys, start) : len(keys) if end is None else bisect_left(keys, end)]
