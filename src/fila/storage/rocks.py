"""The durable store: RocksDB, embedded.

Tuned for a queue (measured on 2 cores, 1 KB messages): values are written once and soon deleted, so nothing is
compressed and a few large memtables let most messages die before they reach a file. Tombstones are what kills a queue
on an LSM tree: files that are full of them are compacted early, and nothing reads over a consumed range while running.

What RocksDB and its binding do when something breaks, and what is made of it here:

- After a failed write RocksDB refuses all further ones. The next write opens the store anew first. That may flush the
  log, so on a full disk it is only tried once there is room for it: `room` holds some back. Reads go on all the time.
- A write that comes during a write stall waits, and on a full disk it would wait for ever. So RocksDB is told not to
  wait: the write is refused as busy. When something has failed, the next try opens the store anew.
- An iterator that meets a damaged block just ends. So every scan asks at its end whether it really was the end.
- Opening a store changes it. So the format is in a file beside it, which is read before RocksDB opens anything
  (`folder`).
- A log that is missing or was cut is read as if it had never been, unless RocksDB is told to keep a list of them in its
  manifest. Opening writes what is in the logs to files, which needs as much room again, unless it is told not to. The
  binding has no method for either: RocksDB reads them from the file `rocksdb/OPTIONS-000001` beside this one. A record
  cut short by a crash at the end of the newest log is no damage.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Literal, cast

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    ChecksumType,
    ColumnFamily,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from fila.config import StorageConfig
from fila.core.errors import (
    BrokerError,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreLocked,
    StoreTooNew,
    StoreUnusable,
)
from fila.core.ids import NODE_BITS
from fila.storage.base import Batch, Family, Notice, StoreSizes
from fila.storage.folder import Folder
from fila.storage.format import FORMAT, ROCKSDB, note_format
from fila.storage.migration import Progress, migrate
from fila.storage.order import positions_in_order
from fila.storage.reclaim import L0_FILES, Reclaim
from fila.storage.room import HEADROOM, Room
from fila.storage.walk import WORTH_A_WALK, read_in_order

_NODE_KEY = b"node"
_DEFAULTS = StorageConfig()
_MIB = 1 << 20
_SMALL_BUFFER = 8 * _MIB
OPTIONS = Path(__file__).parent / "rocksdb"

_NO_ROOM = ("no space left on device", "disk quota exceeded")


class RocksStorage:
    """A directory that this process alone has open. `node` is the store's random identity, part of all message ids."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Literal["wal", "fsync"] = _DEFAULTS.durability,
        write_buffer_bytes: int = _DEFAULTS.write_buffer_bytes,
        block_cache_bytes: int = _DEFAULTS.block_cache_bytes,
        min_free_bytes: int = _DEFAULTS.min_free_bytes,
        on_migration: Progress = lambda *_: None,
    ) -> None:
        self._path = path
        self.folder = Folder(path)
        self._write_buffer_bytes = write_buffer_bytes
        self._cache = Cache(block_cache_bytes)
        self._write_options = WriteOptions()
        self._write_options.sync = durability == "fsync"
        self._write_options.no_slowdown = True
        self._failure: StoreFailed | None = None
        self._handles: list[ColumnFamily] = []
        self._families: list[Rdict] = []
        try:
            self.folder.prepare()
            self._room = Room(path, min_free_bytes)
        except OSError as cause:
            raise StoreUnusable(f"the store in {path} cannot be opened: {cause}") from cause
        self._unseen_bytes = 0
        self._reclaim = Reclaim(self._families)
        if not self._has_room():
            self._room.give_reserve()
        try:
            self._open(AccessType.read_write())
        except StoreUnusable as cause:
            if type(cause) is not StoreUnusable or not _is_full(str(cause)):
                raise
            self._remove_leftovers()
            self._room.give_reserve()
            self._open(AccessType.read_write())
        try:
            migrate(self, self.folder.format, FORMAT, self._note_format, on_migration)
            self.node = self._identify()
            self.folder.remember()
            self._look_for_room()
        except (StoreFailed, OSError) as cause:
            self.close()
            raise StoreUnusable(f"the store in {path} cannot be opened: {cause}") from cause
        except BaseException:
            self.close()
            raise

    @property
    def notices(self) -> list[Notice]:
        """About files that others could or can read."""
        found = {
            "others could read the store; now only its owner can": self.folder.tightened,
            "others can read the store: its files belong to another user": self.folder.still_open,
        }
        return [Notice(text, files) for text, files in found.items() if files]

    def write(self, batch: Batch) -> None:
        try:
            self._try(batch)
        except StoreFull:
            if not self._room.give_reserve():
                raise
            self._try(batch)
        if self._unseen_bytes >= self._room.step_bytes:
            self._look_for_room()

    def refusal(self) -> StoreFull | None:
        return self._room.refusal() if self._room.full else None

    def free_bytes(self) -> int:
        return self._room.free_bytes

    def sizes(self) -> StoreSizes | None:
        if not self._families:  # it could not be opened again after a failed write
            return None
        return StoreSizes(
            self._sum("total-sst-files-size"),
            self._sum("cur-size-all-mem-tables"),
            self._cache.get_usage(),
            self._sum("estimate-pending-compaction-bytes"),
            self._db.property_int_value("rocksdb.num-running-compactions") or 0,  # of all families
        )

    def _sum(self, name: str) -> int:
        """A figure of RocksDB that each family has of its own."""
        return sum(family.property_int_value(f"rocksdb.{name}") or 0 for family in self._families)

    def _try(self, batch: Batch) -> None:
        try:
            if self._failure is not None:
                self._recover(self._failure)
            self._write(batch)
        except Exception as cause:  # rocksdict raises plain Exception for everything
            if isinstance(cause, StoreFailed):
                raise
            self._failure = self._failed(str(cause))
            raise self._failure from cause

    def check(self) -> None:
        """To be called a few times a second. Raises StoreLost when somebody has taken the store away."""
        self.folder.check()
        self._look_for_room()
        if self._failure is not None:
            return
        try:
            if self._room.short:
                self._reclaim.run(self._room.free_bytes, urgent=self._room.full)
            else:
                self._reclaim.rest()
        except Exception as cause:  # noqa: BLE001  # as for a write: the next one opens the store anew
            self._failure = self._failed(str(cause))

    def get(self, family: Family, key: bytes) -> bytes | None:
        try:
            return cast("bytes | None", self._families[family].get(key))
        except Exception as cause:
            raise self._unreadable(cause) from cause

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            source = self._families[family]
            if len(keys) < WORTH_A_WALK:
                return cast("list[bytes | None]", source.get(list(keys)))
            positions = positions_in_order(keys)
            if positions is None:
                return read_in_order(source, keys)
            ordered = [keys[at] for at in positions]
            if not all(map(lt, ordered, islice(ordered, 1, None))):  # one is wanted twice
                once = sorted(set(keys))
                found = dict(zip(once, read_in_order(source, once), strict=True))
                return [found[key] for key in keys]
            values = read_in_order(source, ordered)
            wanted: list[bytes | None] = [None] * len(keys)
            for at, value in zip(positions, values, strict=True):
                wanted[at] = value
            return wanted
        except Exception as cause:
            raise self._unreadable(cause) from cause

    def scan(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        options = ReadOptions()
        options.set_readahead_size(4 * _MIB)
        # What is read once would take the place of what is read often.
        options.fill_cache(False)  # type: ignore[call-arg]  # its stub has no argument
        if end is not None:
            options.set_iterate_upper_bound(end)
        try:
            source = self._families[family]
            # Made here, not in the generator: a scan sees the store as it is when it is asked for.
            items = cast("Iterator[tuple[bytes, bytes]]", source.items(from_key=start, read_opt=options))
        except Exception as cause:
            raise self._unreadable(cause) from cause
        return self._to_the_end(items, source, options, start)

    def has_any(self, family: Family, start: bytes, end: bytes) -> bool:
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        try:
            found = self._families[family].iter(options)
            found.seek(start)
            if found.valid():
                return True
            found.status()  # raises if a damaged block was the end
        except Exception as cause:
            raise self._unreadable(cause) from cause
        return False

    def close(self) -> None:
        with suppress(Exception):  # a store that is full or gone cannot be flushed, only let go
            self._db.flush_wal(sync=True)
        self._let_go()

    def _to_the_end(
        self, items: Iterator[tuple[bytes, bytes]], source: Rdict, options: ReadOptions, start: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        last = start
        for item in items:
            last = item[0]
            yield item
        try:
            check = source.iter(options)
            check.seek(last)
            if check.valid():
                check.next()
            check.status()
        except Exception as cause:
            raise self._unreadable(cause) from cause

    def _let_go(self) -> None:
        # RocksDB lets go of the directory only when nobody holds a handle.
        self._handles.clear()
        self._families.clear()
        with suppress(Exception):  # reports the failure of an earlier write, after closing
            self._db.close()

    def _open(self, access: AccessType) -> None:
        options, _ = Options.load_latest(str(OPTIONS))
        self._set(options, _SMALL_BUFFER)
        families = {_name(f): self._options(f) for f in Family if f is not Family.DEFAULT}
        try:
            self._db = Rdict(str(self._path), options, column_families=families, access_type=access)
        except Exception as cause:
            raise _unusable(self._path, str(cause)) from cause
        self._reclaim.opened()
        self._families += [self._db.get_column_family(_name(f)) for f in Family]
        self._handles += [self._db.get_column_family_handle(_name(f)) for f in Family]

    def _remove_leftovers(self) -> None:
        """Remove the files that a crash, or a start without enough room, left half written. RocksDB does so itself, but
        only after it has opened the store, for which they leave no room.
        """
        self._open(AccessType.read_only(error_if_log_file_exist=False))
        known = {Path(file["name"]).name for file in self._db.live_files()}
        self._let_go()
        for file in self._path.glob("*.sst"):
            if file.name not in known:
                file.unlink()

    def _write(self, batch: Batch) -> None:
        raw = self._raw(batch)
        self._unseen_bytes += raw.size_in_bytes()
        try:
            self._db.write(raw, self._write_options)
        except Exception as cause:
            if "Write stall" not in str(cause):
                raise
            if self._db.property_int_value(
                "rocksdb.background-errors"
            ):  # it will not catch up before it is opened anew
                self._failure = self._failed(str(cause))
                if isinstance(self._failure, StoreFull):
                    raise self._failure from cause
            raise StoreBusy(
                "the broker's store is catching up on writes (write stall); nothing was changed, retry later"
            ) from cause

    def _raw(self, batch: Batch) -> WriteBatch:
        """The changes as RocksDB takes them. Made for each try: a failed write uses it up as well."""
        raw, handles = WriteBatch(raw_mode=True), self._handles
        for family, key, value, end in batch.changes:
            if value is not None:
                raw.put(key, value, handles[family])
            elif end is None:
                raw.delete(key, handles[family])
            else:
                raw.delete_range(key, end, handles[family])
                self._reclaim.range_deleted |= family is Family.MESSAGES
        return raw

    def _failed(self, reason: str) -> StoreFailed:
        if _is_full(reason) or not self._has_room():
            return StoreFull("the broker's disk is full; nothing was changed")
        return StoreFailed("the broker's store failed to write; nothing was changed")

    def _has_room(self) -> bool:
        """Whether the store can be opened: what is in the log and not in memory is then flushed to files."""
        log_bytes = sum(log.stat().st_size for log in self._path.glob("*.log"))
        self._look_for_room()
        return self._room.free_bytes > HEADROOM + max(0, log_bytes - self._write_buffer_bytes)

    def _look_for_room(self) -> None:
        self._unseen_bytes = 0
        with suppress(OSError):  # the store is gone: `check` will notice
            self._room.look(self._unflushed_bytes())

    def _unflushed_bytes(self) -> int:
        """What is in memory only to be written to files."""
        sizes = [family.property_int_value("rocksdb.cur-size-all-mem-tables") or 0 for family in self._families]
        return sum(max(0, size - _MIB) for size in sizes)  # which RocksDB takes for the first entry

    def _recover(self, failure: StoreFailed) -> None:
        """Make the store take writes again after one failed, or raise that failure."""
        if isinstance(failure, StoreFull) and not self._has_room():
            raise StoreFull(*failure.args) from failure
        self._let_go()
        try:
            self._open(AccessType.read_write())
        except BrokerError:
            self._open(AccessType.read_only(error_if_log_file_exist=False))
            raise
        self._failure = None

    def _note_format(self, number: int) -> None:
        self._db.flush_wal(sync=True)
        note_format(self._path, ROCKSDB, number)
        self.folder.format = number

    def _identify(self) -> int:
        stored = self.get(Family.DEFAULT, _NODE_KEY)
        if stored is not None:
            return int.from_bytes(stored, "big")
        if any(next(self.scan(family), None) is not None for family in Family):
            raise StoreCorrupt(f"the store in {self._path} has lost its identity")
        node = secrets.randbits(NODE_BITS)
        batch = Batch()
        batch.put(Family.DEFAULT, _NODE_KEY, node.to_bytes(8, "big"))
        self.write(batch)
        return node

    def _unreadable(self, cause: Exception) -> BrokerError:
        if str(cause).startswith("Corruption"):
            return StoreCorrupt(f"the store in {self._path} is damaged: {cause}")
        return StoreFailed(f"the store in {self._path} could not be read: {cause}")

    def _buffer_of(self, family: Family) -> int:
        return self._write_buffer_bytes if family is Family.MESSAGES else _SMALL_BUFFER

    def _options(self, family: Family) -> Options:
        options = Options(raw_mode=True)
        self._set(options, self._buffer_of(family), many=family is Family.MESSAGES)
        return options

    def _set(self, options: Options, write_buffer_bytes: int, *, many: bool = False) -> None:
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_write_buffer_size(write_buffer_bytes)
        options.set_max_total_wal_size(4 * self._write_buffer_bytes)
        options.set_compression_type(DBCompressionType.none())
        options.set_level_zero_file_num_compaction_trigger(L0_FILES)
        options.set_max_background_jobs(2)
        options.set_allow_concurrent_memtable_write(False)  # one thread writes
        options.set_keep_log_file_num(4)
        # A file whose entries are half tombstones in any window of this size is compacted soon.
        options.add_compact_on_deletion_collector_factory(8192, 4096, 0.5)
        # A record cut short at the end of a log is dropped; any other damage is refused, not skipped.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_block_size(16 << 10)  # what is delivered together stands together
        table.set_checksum_type(ChecksumType.xxh3())
        table.set_bloom_filter(10, block_based=False)
        # Where there may be tens of millions of keys, the cache bounds what their indexes and filters take in memory.
        table.set_cache_index_and_filter_blocks(many)
        table.set_pin_l0_filter_and_index_blocks_in_cache(many)
        options.set_block_based_table_factory(table)


def _is_full(reason: str) -> bool:
    return any(words in reason.lower() for words in _NO_ROOM)


def _name(family: Family) -> str:
    return family.name.lower()


def _unusable(path: Path, reason: str) -> StoreUnusable:
    if "While lock file" in reason or "lock hold by current process" in reason:
        return StoreLocked(f"the store in {path} is in use by another fila-server")
    if reason.startswith("Corruption"):
        return StoreCorrupt(f"the store in {path} is damaged and was left as it is: {reason}")
    if "Column families not opened" in reason:
        return StoreTooNew(f"the store in {path} was written by a later version of fila-server: {reason}")
    return StoreUnusable(f"the store in {path} cannot be opened: {reason}")
