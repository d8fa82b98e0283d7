"""A store that no server has open, to be looked at: nothing in it changes, not even a log.

RocksDB opens a store for reading beside a server as well, but then files go away under the reader. So its lock is taken
first, and held: no server starts meanwhile.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from rocksdict import AccessType, Options, Rdict, ReadOptions

from fila.core.errors import StoreCorrupt, StoreFailed, StoreLocked, StoreUnusable
from fila.storage.base import Family
from fila.storage.folder import format_of
from fila.storage.rocks import OPTIONS

LOCK_FILE = "LOCK"
_READ_AHEAD = 4 << 20
_NODE_KEY = b"node"


class StoreReader:
    """Families of a store, in order. A family that an older version did not have is empty. A context manager."""

    def __init__(self, path: Path) -> None:
        """Raises StoreUnusable: no store, in use, damaged beyond opening."""
        self.path = path
        self.format = format_of(path)
        self._lock = _take_lock(path)
        try:
            self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self) -> None:
        try:
            there = set(Rdict.list_cf(str(self.path), Options(raw_mode=True)))
            families = {name: Options(raw_mode=True) for name in there if name != "default"}
            access = AccessType.read_only(error_if_log_file_exist=False)
            # Without these options RocksDB would flush a log that it reads, and crashes where it must not write.
            options, _ = Options.load_latest(str(OPTIONS))
            self._db = Rdict(str(self.path), options, column_families=families, access_type=access)
            named = {family: family.name.lower() for family in Family}
            self._families = {f: self._db.get_column_family(name) for f, name in named.items() if name in there}
        except Exception as cause:  # rocksdict raises plain Exception for everything
            raise StoreCorrupt(f"the store in {self.path} is damaged and was left as it is: {cause}") from cause

    @property
    def node(self) -> int | None:
        """The identity of the store; None when it has lost it."""
        kept = self.get(Family.DEFAULT, _NODE_KEY)
        return None if kept is None else int.from_bytes(kept, "big")

    def get(self, family: Family, key: bytes) -> bytes | None:
        source = self._families.get(family)
        try:
            return None if source is None else cast("bytes | None", source.get(key))
        except Exception as cause:
            raise self._unreadable(family, cause) from cause

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys from `start` up to, not including, `end`, in order. Raises StoreCorrupt where a block is damaged."""
        source = self._families.get(family)
        if source is None:
            return
        options = ReadOptions()
        options.set_readahead_size(_READ_AHEAD)
        if end is not None:
            options.set_iterate_upper_bound(end)
        last = start
        try:
            for item in source.items(from_key=start, read_opt=options):
                last = cast("bytes", item[0])
                yield cast("tuple[bytes, bytes]", item)
            found = source.iter(options)  # an iterator that meets a damaged block just ends
            found.seek(last)
            if found.valid():
                found.next()
            found.status()
        except Exception as cause:
            raise self._unreadable(family, cause) from cause

    def live_files(self) -> set[str]:
        """The names of the files in which entries are; logs are not among them."""
        return {Path(file["name"]).name for file in self._db.live_files()}

    def estimate(self, family: Family) -> int:
        """About how many entries a family has."""
        source = self._families.get(family)
        return 0 if source is None else source.property_int_value("rocksdb.estimate-num-keys") or 0

    def close(self) -> None:
        self._families.clear()
        with suppress(Exception):
            self._db.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _unreadable(self, family: Family, cause: Exception) -> StoreUnusable | StoreFailed:
        if isinstance(cause, StoreUnusable):
            return cause
        return StoreCorrupt(f"the store in {self.path} is damaged: {family.name} cannot be read to its end: {cause}")


def _take_lock(path: Path) -> int:
    """RocksDB's own lock, which is one of fcntl. A backup has no such file, and gets one."""
    try:
        lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as cause:
        raise StoreUnusable(f"the store in {path} cannot be opened: {cause}") from cause
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as cause:
        os.close(lock)
        raise StoreLocked(f"the store in {path} is in use by a fila-server: stop it first") from cause
    return lock
