"""Room on the disk: when producers are refused, and what is kept back for everybody else.

Rules of this file:
- A full disk is no trap. Producers are refused while there is still room for what empties the store: leases, acks,
  nacks, purges, deletions, and the recovery after a crash (the low watermark, `min_free_bytes`).
- What is in RocksDB's memory counts as used: it will be written to files before its log can go.
- Producers are taken again only when there is a quarter of the watermark more, so that it does not go to and fro.
- Other programs can fill the disk all the same. For that a file of the store holds some room (`RESERVE_FILE`). It is
  removed when nothing else is left, so that the store can be emptied, and made anew when there is room for it.
"""

import os
from contextlib import suppress
from pathlib import Path

from fila.core.errors import StoreFull

_MIB = 1 << 20

RESERVE_FILE = "FILA_RESERVE"
MOST_RESERVE_BYTES = 32 * _MIB
"""A sixteenth of the file system, but not more than this."""

MOST_FREE_BYTES = 1 << 30
"""Unless it is set, the watermark is an eighth of the file system, but not more than this: about what RocksDB needs to
merge its youngest files."""

HEADROOM = 1 * _MIB
"""To open a store: its manifest, its options and a new log."""


def low_watermark(total_bytes: int, configured: int) -> int:
    """How much must be free for producers. `configured` is 0 for what fits the size of the file system."""
    return configured or min(MOST_FREE_BYTES, total_bytes // 8)


class Room:
    """The room that one store has."""

    def __init__(self, path: Path, min_free_bytes: int = 0) -> None:
        """0 means the watermark that fits the file system."""
        self._path = path
        self._reserve = path / RESERVE_FILE
        total = self._look()
        self.min_free_bytes = low_watermark(total, min_free_bytes)
        self._reserve_bytes = min(MOST_RESERVE_BYTES, total // 16)
        self.step_bytes = max(_MIB // 4, self.min_free_bytes // 16)
        """After so much was written it is time to look again."""
        self.full = False
        self.short = False
        """Whether what was deleted should be given back soon: there is less than four times the watermark"""
        self._wanted = self.min_free_bytes

    def look(self, unflushed_bytes: int) -> None:
        """See how much room there is, with so much in memory that has to be written to files."""
        self._look()
        if self.free_bytes < self._reserve_bytes // 2:
            self.give_reserve()
        wanted = self.min_free_bytes + unflushed_bytes
        self._wanted = wanted + self.min_free_bytes // 4
        self.full = self.free_bytes < (self._wanted if self.full else wanted)
        self.short = self.full or self.free_bytes < 4 * self.min_free_bytes + unflushed_bytes
        if not self.full and self.free_bytes >= wanted + 2 * self._reserve_bytes:
            self._take_reserve()

    def give_reserve(self) -> bool:
        """Let the store have what was held back. Returns whether there was anything."""
        given = False
        with suppress(OSError):
            self._reserve.unlink()
            given = self.full = True
        self._look()
        return given

    def refusal(self) -> StoreFull:
        """What producers are told."""
        return StoreFull(
            f"the store is full: {self.free_bytes} bytes are free, enqueueing works again at {self._wanted}; "
            "consume or purge messages to free space"
        )

    def _look(self) -> int:
        """Sees what is free. Returns the size of the file system."""
        found = os.statvfs(self._path)
        self.free_bytes = found.f_bavail * found.f_frsize
        return found.f_blocks * found.f_frsize

    def _take_reserve(self) -> None:
        if self._reserve.exists():
            return
        with suppress(OSError):  # somebody was faster: there is no room after all
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, max(1, self._reserve_bytes))
            except OSError:
                self._reserve.unlink()
                raise
            finally:
                os.close(descriptor)
