"""Giving room back: what was acked, purged or deleted still takes room on the disk until RocksDB rewrites its files.

RocksDB does that in its own time, when its memory or its levels are full. A store that is short of room has no time: it
is told to write its memory to files, so that logs can go, and to merge files, so that what was deleted goes. Both are
done by RocksDB's own threads. Both need room first, for what is still alive: they are begun only when it fits. Until
then RocksDB does not merge at all: files that it could not write to the end would fill the disk, and stop it.
"""

import re
import time
from collections.abc import Sequence

from rocksdict import Rdict

from fila.storage.base import Family

PAUSE_S, URGENT_PAUSE_S = 10.0, 1.0
"""From one flush to the next, and when producers are refused until there is room."""
L0_FILES = 8
"""How many files RocksDB gathers in level 0 before it merges them"""
L0_FILES_SHORT = 1
"""The same while the disk is short of room"""

_MERGES = {
    how: {"disable_auto_compactions": off, "level0_file_num_compaction_trigger": str(files)}
    for how, off, files in (
        ("usual", "false", L0_FILES),
        ("short", "false", L0_FILES_SHORT),
        ("never", "true", L0_FILES),
    )
}
MOST_MERGED_BYTES = 768 << 20
"""What RocksDB merges at a time in a large store, about: its youngest level and the part of the next that it meets."""
MANY_L0_FILES = 16
"""From about here on a flush would wait until files are merged."""

_COUNTED = re.compile(r"# (entries|deletions|range deletions)=(\d+)")


class Reclaim:
    """Makes RocksDB give back room."""

    def __init__(self, families: Sequence[Rdict]) -> None:
        """A list that changes when the store is opened anew."""
        self._families = families
        self.range_deleted = False
        """Whether a range of messages was deleted since the last flush"""
        self._flushed_at = 0.0
        self._merges = "usual"

    def opened(self) -> None:
        """A store that was opened anew merges as usual."""
        self._merges = "usual"

    def run(self, free_bytes: int, *, urgent: bool) -> None:
        """Called again and again while the store is short of room."""
        now = time.monotonic()
        pause_s = URGENT_PAUSE_S if urgent else PAUSE_S
        if now >= self._flushed_at + pause_s and self._flush_fits(free_bytes):
            self._flushed_at = now
            self.range_deleted = False
            for family in self._families:
                if family.property_int_value("rocksdb.num-entries-active-mem-table"):
                    family.flush(wait=False)
        self._merge("short" if self._merge_fits(free_bytes) else "never")

    def rest(self) -> None:
        """There is room again."""
        self._merge("usual")

    def _merge(self, how: str) -> None:
        if how != self._merges:
            self._merges = how
            self._families[Family.MESSAGES].set_options(_MERGES[how])

    def _flush_fits(self, free_bytes: int) -> bool:
        """Whether something was deleted, and the rest fits on the disk. What was deleted in memory is not written."""
        messages = self._families[Family.MESSAGES]
        deleted, live_bytes = 0, 0.0
        if any(family.property_int_value("rocksdb.num-immutable-mem-table") for family in self._families):
            return False  # one is under way
        files = int(messages.property_value("rocksdb.num-files-at-level0") or 0)
        if files >= MANY_L0_FILES and self._merges != "never":
            return False
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
        # What a deleted range held is not known.
        deletions = counts.get("deletions", 0)
        share = 0.0 if counts.get("range deletions") else _live_share(counts.get("entries", 0), deletions)
        size = messages.property_int_value("rocksdb.total-sst-files-size") or 0
        return min(size * share, MOST_MERGED_BYTES) < free_bytes


def _live_share(entries: int, deletions: int) -> float:
    """How much of what was put is still there, if each deletion was of one of them."""
    puts = entries - deletions
    return max(0, puts - deletions) / puts if puts > 0 else 0.0
