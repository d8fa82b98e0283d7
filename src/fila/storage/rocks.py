"""The durable store: RocksDB, embedded.

Tuned for a queue (measured on 2 cores, 1 KB messages): values are written once and soon deleted, so nothing is
compressed and a few large memtables let most messages die before they reach a file. Tombstones are what kills a queue
on an LSM tree: files that are full of them are compacted early, and nothing reads over a consumed range while running.

A write that fails (a full disk, say) leaves RocksDB refusing all further ones. So the next write after a failure opens
the store anew first; reads go on meanwhile.
"""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal

from rocksdict import (
    BlockBasedOptions,
    Cache,
    ChecksumType,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from fila.core.errors import StoreCorrupt, StoreFailed, StoreFull, StoreLocked, StoreTooNew, StoreUnusable
from fila.core.ids import NODE_BITS
from fila.storage.base import Batch, Family

FORMAT = 1
"""Raise it with every change of keys or records that an older broker would misread."""

_FORMAT_KEY = b"format"
_NODE_KEY = b"node"
_MIB = 1 << 20
_SMALL_BUFFER = 8 * _MIB


class RocksBatch:
    """A RocksDB WriteBatch that knows the families by name."""

    __slots__ = ("_handles", "raw")

    def __init__(self, handles: list[object]) -> None:
        self._handles = handles
        self.raw = WriteBatch(raw_mode=True)

    def __len__(self) -> int:
        return self.raw.len()

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.raw.put(key, value, self._handles[family])

    def delete(self, family: Family, key: bytes) -> None:
        self.raw.delete(key, self._handles[family])

    def delete_range(self, family: Family, start: bytes, end: bytes) -> None:
        self.raw.delete_range(start, end, self._handles[family])


class RocksStorage:
    """A directory that this process alone has open. `node` is the store's random identity, part of all message ids."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Literal["wal", "fsync"] = "wal",
        write_buffer_bytes: int = 64 * _MIB,
        block_cache_bytes: int = 32 * _MIB,
    ) -> None:
        self._path = path
        self._write_buffer_bytes = write_buffer_bytes
        self._cache = Cache(block_cache_bytes)
        self._write_options = WriteOptions()
        self._write_options.sync = durability == "fsync"
        self._failed = False
        self._open()
        try:
            self.node = self._identify()
        except BaseException:
            self.close()
            raise

    def batch(self) -> RocksBatch:
        return RocksBatch(self._handles)

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, RocksBatch)
        try:
            if self._failed:
                self._reopen()
            self._db.write(batch.raw, self._write_options)
        except Exception as cause:  # rocksdict raises plain Exception for everything
            self._failed = True
            if "space" in str(cause).lower():
                raise StoreFull("there is no room on the broker's disk; nothing was changed") from cause
            raise StoreFailed("the broker's store refused the write; nothing was changed") from cause

    def get(self, family: Family, key: bytes) -> bytes | None:
        value: bytes | None = self._families[family].get(key)
        return value

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self._families[family].get(list(keys))
        return values

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        options = ReadOptions()
        options.set_readahead_size(4 * _MIB)
        items: Iterator[tuple[bytes, bytes]] = self._families[family].items(from_key=start, read_opt=options)
        return items if end is None else takewhile(lambda item: item[0] < end, items)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # a store that is full or gone cannot be flushed, only let go
            self._db.flush_wal(sync=True)
        self._handles.clear()  # cleared in place: RocksDB lets go of the directory only when nobody holds a handle
        self._families.clear()
        self._db.close()

    def _open(self) -> None:
        options = self._options(_SMALL_BUFFER)
        families = {_name(f): self._options(self._buffer_of(f)) for f in Family if f is not Family.DEFAULT}
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._db = Rdict(str(self._path), options, column_families=families)
        except Exception as cause:  # rocksdict raises plain Exception for everything
            raise _unusable(self._path, str(cause)) from cause
        self._families = [self._db.get_column_family(_name(f)) for f in Family]
        self._handles: list[object] = [self._db.get_column_family_handle(_name(f)) for f in Family]

    def _reopen(self) -> None:
        self.close()
        self._open()
        self._failed = False

    def _identify(self) -> int:
        stored = self.get(Family.DEFAULT, _FORMAT_KEY)
        if stored is not None:
            version = int.from_bytes(stored, "big")
            if version > FORMAT:
                raise StoreTooNew(
                    f"the store in {self._path} has format {version}, this broker knows up to {FORMAT}: "
                    "use the version of fila-server that wrote it, or a later one"
                )
            return int.from_bytes(self.get(Family.DEFAULT, _NODE_KEY) or b"", "big")
        if next(self.scan(Family.MESSAGES), None) is not None:
            raise StoreCorrupt(f"the store in {self._path} holds messages but no format version")
        node = secrets.randbits(NODE_BITS)
        batch = self.batch()
        batch.put(Family.DEFAULT, _FORMAT_KEY, FORMAT.to_bytes(4, "big"))
        batch.put(Family.DEFAULT, _NODE_KEY, node.to_bytes(8, "big"))
        self.write(batch)
        return node

    def _buffer_of(self, family: Family) -> int:
        return self._write_buffer_bytes if family is Family.MESSAGES else _SMALL_BUFFER

    def _options(self, write_buffer_bytes: int) -> Options:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_write_buffer_size(write_buffer_bytes)
        options.set_max_total_wal_size(4 * self._write_buffer_bytes)
        options.set_compression_type(DBCompressionType.none())
        options.set_level_zero_file_num_compaction_trigger(8)
        options.set_max_background_jobs(2)
        options.set_allow_concurrent_memtable_write(False)  # one thread writes
        options.set_keep_log_file_num(4)
        # A file whose entries are half tombstones in any window of this size is compacted soon.
        options.add_compact_on_deletion_collector_factory(8192, 4096, 0.5)
        # A record cut short by a crash at the end of the log is dropped; any other damage is refused, not skipped.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_block_size(16 << 10)
        table.set_checksum_type(ChecksumType.xxh3())
        table.set_bloom_filter(10, block_based=False)
        options.set_block_based_table_factory(table)
        return options


def _name(family: Family) -> str:
    return family.name.lower()


def _unusable(path: Path, reason: str) -> StoreUnusable:
    lowered = reason.lower()
    if "lock" in lowered:
        return StoreLocked(f"the store in {path} is in use by another fila-server")
    if "corruption" in lowered or "checksum" in lowered:
        return StoreCorrupt(f"the store in {path} is damaged and was left as it is: {reason}")
    if "column famil" in lowered:
        return StoreTooNew(f"the store in {path} was written by a later version of fila-server: {reason}")
    return StoreUnusable(f"the store in {path} cannot be opened: {reason}")
