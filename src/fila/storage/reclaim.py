"""Giving room back: what was acked, purged or deleted still takes room on the disk until RocksDB rewrites its files.

RocksDB does that in its own time, when its memory or its levels are full. A store that is short of room has no time: it
is told to write its memory to files, so that logs can go, and to merge files, so that what was deleted goes. Both are
done by RocksDB's own threads. Both need room first, for what is still alive: they are begun only when it fits.
"""

import re
import time
from collections.abc import Sequence

from rocksdict import Rdict

from fila.storage.base import Family

PAUSE_S = 1.0
"""From one flush to the next."""
L0_FILES = 8
"""How many files RocksDB gathers before it merges them,"""
L0_FILES_SHORT = 1
"""and how many when it is short of room."""

_TRIGGER = "level0_file_num_compaction_trigger"
_COUNTED = re.compile(r"# (entries|deletions|range deletions)=(\d+)")


class Reclaim:
    """Makes RocksDB give back room."""

    def __init__(self, families: Sequence[Rdict]) -> None:
        """A list that changes when the store is opened anew."""
        self._families = families
        self.range_deleted = False
        """Whether a range of messages was deleted since the last flush"""
        self._next_flush = 0.0
        self._merging = False

    def opened(self) -> None:
        """A store that was opened anew merges in its own time."""
        self._merging = False

    def run(self, free_bytes: int) -> None:
        """Called again and again while the store is short of room."""
        now = time.monotonic()
        if now >= self._next_flush and self._flush_fits(free_bytes):
            self._next_flush = now + PAUSE_S
            self.range_deleted = False
            for family in self._families:
                if family.property_int_value("rocksdb.num-entries-active-mem-table"):
                    family.flush(wait=False)
        if not self._merging and self._merge_fits(free_bytes):
            self._merge(L0_FILES_SHORT)
            self._merging = True

    def rest(self) -> None:
        """There is room again."""
        if self._merging:
            self._merge(L0_FILES)
            self._merging = False

    def _merge(self, files: int) -> None:
        self._families[Family.MESSAGES].set_options({_TRIGGER: str(files)})

    def _flush_fits(self, free_bytes: int) -> bool:
        """Whether something was deleted, and the rest fits on the disk. What was deleted in memory is not written."""
        messages = self._families[Family.MESSAGES]
        deleted, live_bytes = 0, 0.0
        for family in self._families:
            deletes = family.property_int_value("rocksdb.num-deletes-active-mem-table") or 0
            entries = family.property_int_value("rocksdb.num-entries-active-mem-table") or 0
            size = family.property_int_value("rocksdb.cur-size-active-mem-table") or 0
            live_bytes += size * _live_share(entries, deletes)
            deleted += deletes if family is messages else 0
        # What a deleted range held is not known.
        return self.range_deleted or (deleted > 0 and live_bytes < free_bytes)

    def _merge_fits(self, free_bytes: int) -> bool:
        messages = self._families[Family.MESSAGES]
        text = messages.property_value("rocksdb.aggregated-table-properties") or ""
        counts = {name: int(number) for name, number in _COUNTED.findall(text)}
        deletions = counts.get("deletions", 0)
        if not deletions:
            return False
        share = 0.0 if counts.get("range deletions") else _live_share(counts.get("entries", 0), deletions)
        size = messages.property_int_value("rocksdb.total-sst-files-size") or 0
        return size * share < free_bytes


def _live_share(entries: int, deletions: int) -> float:
    """How much of what was put is still there, if each deletion was of one of them."""
    puts = entries - deletions
    return max(0, puts - deletions) / puts if puts > 0 else 0.0
