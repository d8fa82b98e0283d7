"""The folder of a store, before RocksDB is asked and beside it: whose it is, which format it has, whether it is there.

Rules of this file:
- Only the owner can read a store: the folder is 0700, its files are 0600. What is more open is tightened at the start.
- A store says which format it has in a file of its own (`format.py`), so that one of another version is refused before
  RocksDB opens, and so changes, it.
- A store that is moved, removed or replaced under a running server is noticed (`check`): RocksDB would go on writing to
  files that nobody finds again.
- The newest log is named in a file. RocksDB notices by itself when an older one is missing or was cut; a newest one
  that is missing looks to it like a store to which nothing more was written.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fila.core.errors import StoreBusy, StoreCorrupt, StoreLost, StoreUnusable
from fila.storage.format import FORMAT, FORMAT_FILE, ROCKSDB, claim_folder, format_in, not_ours

LOG_FILE = "FILA_LOG"
"""Holds the number of the newest log, as far as it was noticed."""

PINS = "backup.pins."
"""What the folders in a store begin with in which files are held while a backup of them is made."""

BACKUP_FILE = "FILA_BACKUP"
"""Says of a folder that it is a finished backup, as it was made."""

RESTORE = "restore.unfinished"
"""A folder in the folder of a store that is there as long as a restore is not finished."""

_LOCK_FILE = "LOCK"
_DATABASE = "CURRENT"
"""There is one in every database of RocksDB."""
_OTHERS = 0o077


class Folder:
    """Where a store is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tightened = 0
        """How many files (or the folder) others could read or write until now"""
        self.still_open = 0
        """How many files others still can read or write, because we do not own them"""
        self.format = FORMAT
        """Of the store, as it was found"""
        self._identity: tuple[tuple[int, int], ...] = ()
        self._newest_log = 0

    def prepare(self) -> None:
        """Make sure that this broker may open the store, or begin a new one. Raises StoreUnusable or OSError."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        drop_left_pins(self.path)
        self._tighten()
        check_restored(self.path)
        self.format = claim_folder(self.path, ROCKSDB, holds_data=(self.path / _DATABASE).exists())
        check_log(self.path)
        (self.path / BACKUP_FILE).unlink(missing_ok=True)  # from now on it is a store like others

    def remember(self) -> None:
        """Know the store again, now that it is open."""
        self._identity = self._look()
        self._note_log()

    def check(self) -> None:
        """Raises StoreLost when this is no longer the store that was opened."""
        try:
            there = self._look() == self._identity
            self._note_log()
        except FileNotFoundError:
            there = False
        if not there:
            raise StoreLost(
                f"the store in {self.path} was removed or replaced while the server was running; "
                "restore it from a backup"
            )

    def _look(self) -> tuple[tuple[int, int], ...]:
        found = [os.stat(self.path / name) for name in (".", FORMAT_FILE, _LOCK_FILE)]  # noqa: PTH116 - four times a second
        return tuple((each.st_dev, each.st_ino) for each in found)

    def _note_log(self) -> None:
        """Raises FileNotFoundError when the newest log that was seen is gone."""
        newest = _newest_log(self.path)
        if newest < self._newest_log:
            raise FileNotFoundError(self.path / f"{self._newest_log:06}.log")
        if newest > self._newest_log:
            self._newest_log = newest
            with suppress(OSError):  # a full disk: the older number is true as well
                draft = self.path / f"{LOG_FILE}.new"
                draft.write_text(f"{newest}\n")
                draft.replace(self.path / LOG_FILE)

    def _tighten(self) -> None:
        """Keep others from reading and writing."""
        for file in (self.path, *self.path.iterdir()):
            with suppress(FileNotFoundError):  # a backup that ends just now takes what it held along
                mode = file.stat().st_mode
                if mode & _OTHERS:
                    self._close_to_others(file, mode)

    def _close_to_others(self, file: Path, mode: int) -> None:
        try:
            file.chmod(mode & ~_OTHERS & 0o7777)
            self.tightened += 1
        except PermissionError:
            self.still_open += 1


def _newest_log(path: Path) -> int:
    names = os.listdir(path)  # noqa: PTH208 - four times a second
    return max([int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdigit()], default=0)


def check_log(path: Path) -> None:
    """Raises StoreCorrupt when the newest log that was noticed is missing."""
    file = path / LOG_FILE
    text = file.read_text(errors="replace").strip() if file.exists() else ""
    # A loss of power may leave less than what was written; then it says nothing.
    if text.isascii() and text.isdigit() and _newest_log(path) < int(text):
        raise StoreCorrupt(
            f"the store in {path} is damaged and was left as it is: its newest log, {int(text):06}.log, "
            "is missing, and the last writes with it"
        )


def check_restored(path: Path) -> None:
    """Raises StoreUnusable when a restore to the folder is under way, or was killed."""
    if (path / RESTORE).exists():
        raise StoreUnusable(f"a restore to {path} is not finished: let it end, or begin it again")


def drop_left_pins(path: Path) -> None:
    """Let go of what a backup that was killed holds: its files would never be freed."""
    for left in path.glob(f"{PINS}*"):
        drop_unheld(left)


def drop_unheld(left: Path) -> None:
    """Remove a folder that a backup or a restore left when it was killed. One under way has it locked (`held`)."""
    with suppress(OSError):
        lock = os.open(left, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(lock)


@contextmanager
def held(made: Path) -> Iterator[None]:
    """Keep others from removing a folder that was just made. Raises StoreBusy when somebody did before."""
    lock = os.open(made, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks, such as some of a network
            fcntl.flock(lock, fcntl.LOCK_SH)
        if not made.exists() or not os.path.samestat(os.fstat(lock), made.stat()):
            raise StoreBusy(f"{made} went away: another backup or restore has begun at the same moment, try again")
        yield
    finally:
        os.close(lock)


def format_of(path: Path) -> int:
    """The format of the store that is in a folder. Raises StoreUnusable when there is none."""
    check_restored(path)
    found = format_in(path, ROCKSDB)
    if not (path / _DATABASE).exists():
        raise StoreUnusable(f"there is no store in {path}")
    if found is None:
        raise not_ours(path)
    return found
