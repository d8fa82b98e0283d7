"""Bringing a backup back: all of its files are copied, so the backup stays as it is and shares nothing with the store.

A folder that does not exist is filled under another name, and gets its own when all is there. One that exists and is
empty, such as the mount point of a disk, or one in a folder that we may not write to, is filled in place: the files are
copied to a folder in it (`RESTORE`), and moved up when all are there. As long as that folder is there, nothing opens
the store. What a restore leaves that is killed is removed when it begins again.
"""

from contextlib import suppress
from pathlib import Path

from fila.core.errors import StoreUnusable
from fila.storage.backup import (
    UNFINISHED,
    Backup,
    Progress,
    copy_file,
    drafted,
    files_of,
    not_empty,
    read_backup,
    sync_folder,
)
from fila.storage.folder import RESTORE
from fila.storage.format import check_format

_OF_THE_DISK = {"lost+found"}
"""What an empty file system has"""


def restore_backup(backup: Path, to: Path, progress: Progress = lambda _done, _all: None) -> Backup:
    """Copy a backup to a folder that does not exist or is empty. Nothing is shared: the backup stays as it is.

    Raises StoreUnusable, StoreBusy or OSError; then the folder is as it was.
    """
    told = read_backup(backup)
    check_format(backup, told.format)
    files = files_of(backup)
    to = to.resolve()
    if to.is_relative_to(backup.resolve()):
        raise StoreUnusable(f"{to} is inside {backup}: name a folder outside of it")
    if to.is_dir():
        _fill(to, files, progress)
    elif to.exists():
        raise not_empty(to)
    else:
        with drafted(to.with_name(f"{to.name}{UNFINISHED}")) as draft:
            _copy_all(files, draft, progress)
            draft.rename(to)
            sync_folder(to.parent)
    return told


def _fill(to: Path, files: list[Path], progress: Progress) -> None:
    """Bring the files to a folder that is there."""
    ours = [to / file.name for file in files]
    left = set(ours) if (to / RESTORE).exists() else set()
    _check_empty(to, left)
    with drafted(to / RESTORE) as draft:
        there = left
        try:
            _remove(left)
            _copy_all(files, draft, progress)
            _check_empty(to, set())  # still
            there = set(ours)
            for file in ours:
                (draft / file.name).rename(file)
            sync_folder(to)
            draft.rmdir()
        except BaseException:
            _remove(there)
            raise
    sync_folder(to)


def _check_empty(to: Path, besides: set[Path]) -> None:
    if any(file not in besides and file.name not in {RESTORE, *_OF_THE_DISK} for file in to.iterdir()):
        raise not_empty(to)


def _remove(files: set[Path]) -> None:
    for file in files:
        with suppress(FileNotFoundError):
            file.unlink()


def _copy_all(files: list[Path], draft: Path, progress: Progress) -> None:
    size, done = sum(file.stat().st_size for file in files), 0
    for file in files:
        done += copy_file(file, draft / file.name)
        progress(done, size)
    sync_folder(draft)
