"""Backups: a copy of a store at one moment, made while the store is in use or not, by looking at its files alone.

RocksDB's own checkpoint flushes memory first, and its binding holds the interpreter meanwhile (196 ms for 40 MB). What
is here asks nothing of RocksDB, and every step lets other threads run:

1. Files with entries (.sst) never change, and logs only grow. All of them are linked into a folder beside them
   (`PINS`), so that none goes away, and the manifest, which says which of them belong to the store, is copied.
2. A file is only deleted after the manifest has grown. If the manifest is as long as before, and is the same file, what
   is linked is all that it speaks of. Otherwise both is done again; it takes a few milliseconds, and a manifest grows
   about once for 64 MB of messages.
3. What is linked goes to the backup. Files with entries are linked where that is possible, which takes no space and no
   time; on another disk they are copied, but for those that an earlier backup there has. Logs are copied: the store
   writes on in the newest one.

Every confirmed write is in a log or in a file before it is confirmed. So the backup holds all that was confirmed before
it began, and of what came later a beginning: never a later write without an earlier one.

A backup is a folder of a store. The file `FILA_BACKUP` in it says of which, and when; it is written last, so a folder
without it is no backup.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from fila.core.errors import StoreBusy, StoreCorrupt, StoreUnusable
from fila.storage.folder import BACKUP_FILE, LOG_FILE, PINS, drop_left_pins, drop_unheld, format_of, held
from fila.storage.format import FORMAT_FILE, write_durably

_TRIES: Final = 200
_BESIDE: Final = ("IDENTITY", "rocksdict-config.json", FORMAT_FILE)
_NOT_ITS: Final = {BACKUP_FILE, "LOCK"}
UNFINISHED: Final = ".unfinished"
"""Ends the name of a folder that is being filled, as long as it is."""

Progress = Callable[[int, int], None]
"""Is told how many bytes are done, of how many"""


@dataclass(frozen=True, slots=True)
class Backup:
    """What is known of a backup. Sizes are in bytes."""

    format: int
    began_at: int
    """In nanoseconds since the epoch: all that was confirmed before is in it."""
    files: int
    size: int
    copied: int
    """What was written for it: the rest is shared with the store or with an earlier backup."""


def make_backup(store: Path, to: Path, progress: Progress = lambda _done, _all: None) -> Backup:
    """Copy a store to a folder that does not exist or is empty. The store may be in use.

    Raises StoreUnusable, StoreBusy or OSError; then there is no backup, and the folder is as it was.
    """
    began_at = time.time_ns()
    number = format_of(store)
    to = to.resolve()
    _check_target(store, to)
    drop_left_pins(store)
    with drafted(to.with_name(f"{to.name}{UNFINISHED}")) as draft:
        manifest, copied = _gather(store, draft, to.parent, progress)
        _write_small(draft / manifest.name, manifest.content)
        _write_small(draft / "CURRENT", f"{manifest.name}\n".encode())
        logs = sorted(int(log.stem) for log in draft.glob("*.log"))
        _write_small(draft / LOG_FILE, f"{logs[-1] if logs else 0}\n".encode())
        for name in _BESIDE:
            if (store / name).exists():
                _write_small(draft / name, (store / name).read_bytes())
        if format_of(store) != number:  # it would speak for entries that are not in the logs as they were copied
            raise StoreBusy(f"the store in {store} was migrated meanwhile: try again")
        files = list(draft.iterdir())
        made = Backup(number, began_at, len(files), sum(file.stat().st_size for file in files), copied)
        write_durably(draft / BACKUP_FILE, json.dumps(asdict(made)) + "\n")
        draft.rename(to)  # where there may be an empty folder
        sync_folder(to.parent)
    return made


def read_backup(path: Path) -> Backup:
    """What a backup says of itself; a later version may say more. Raises StoreUnusable."""
    file = path / BACKUP_FILE
    if not file.exists():
        raise StoreUnusable(f"{path} is not a finished backup: {BACKUP_FILE} is missing")
    try:
        told = json.loads(file.read_text())
        return Backup(*[int(told[each.name]) for each in fields(Backup)])
    except (ValueError, TypeError, KeyError) as cause:
        raise StoreCorrupt(f"the backup in {path} is damaged: {BACKUP_FILE} cannot be read") from cause


def files_of(backup: Path) -> list[Path]:
    """The files of a finished backup that belong to its store. Raises StoreUnusable, also when some are missing."""
    told = read_backup(backup)
    files = [file for file in backup.iterdir() if file.name not in _NOT_ITS and not file.name.startswith("LOG")]
    size = sum(file.stat().st_size for file in files)
    if len(files) < told.files or size < told.size:
        raise StoreCorrupt(
            f"the backup in {backup} is damaged: it has {len(files)} files and {size} bytes, "
            f"it was made with {told.files} and {told.size}"
        )
    return files


def _check_target(store: Path, to: Path) -> None:
    if to.is_mount():
        raise StoreUnusable(f"{to} is where a disk is mounted: name a folder in it, and keep later backups beside that")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise not_empty(to)
    if to.is_relative_to(store.resolve()):
        raise StoreUnusable(f"{to} is inside {store}: name a folder outside of it")


def not_empty(to: Path) -> StoreUnusable:
    return StoreUnusable(f"{to} exists and is not empty: name a folder that does not exist")


@contextmanager
def drafted(draft: Path) -> Iterator[Path]:
    """A new folder that this process alone fills. What a killed one left there goes away, and so does this one when
    something fails. Raises StoreBusy.
    """
    drop_unheld(draft)
    try:
        draft.mkdir(mode=0o700, parents=True)
    except FileExistsError as cause:
        raise StoreBusy(
            f"another backup or restore is under way, since {draft} is there: if none is, remove that folder"
        ) from cause
    with held(draft):
        try:
            yield draft
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _gather(store: Path, draft: Path, others: Path, progress: Progress) -> tuple["_Manifest", int]:
    """Bring the files of the store to the draft. Returns what was said of them, and how many bytes were copied."""
    pins = Path(tempfile.mkdtemp(prefix=PINS, dir=store))
    try:
        with held(pins):
            manifest = _pin(store, pins)
            return manifest, _move_out(pins, draft, others, progress)
    finally:
        shutil.rmtree(pins, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Manifest:
    name: str
    content: bytes


def _pin(store: Path, pins: Path) -> _Manifest:
    """Link all files that belong to the store at one moment. Returns what it said of them then."""
    for attempt in range(_TRIES):
        for left in pins.iterdir():
            left.unlink()
        with suppress(
            FileNotFoundError
        ):  # went away while it was linked: it belongs to the store no more, or try again
            manifest = _read_manifest(store)
            for name in os.listdir(store):  # noqa: PTH208 - names are all that is needed
                if name.endswith((".sst", ".log")):
                    os.link(store / name, pins / name)
            if _read_manifest(store) == manifest:
                return manifest
        time.sleep(min(0.001 * attempt, 0.1))
    raise StoreBusy(f"the store in {store} changes too fast to be copied: try again")


def _read_manifest(store: Path) -> _Manifest:
    name = (store / "CURRENT").read_text().strip()
    return _Manifest(name, (store / name).read_bytes())


def _move_out(pins: Path, draft: Path, others: Path, progress: Progress) -> int:
    """Bring what is pinned to the backup. Returns how many bytes were copied."""
    sizes = {file: file.stat().st_size for file in sorted(pins.iterdir())}
    total, done, copied = sum(sizes.values()), 0, 0
    earlier = _earlier(others)
    for file, size in sizes.items():
        target = draft / file.name
        if file.suffix == ".log" or not _share(file, target, earlier):
            copied += copy_file(file, target)
        done += size
        progress(done, total)
    return copied


def _earlier(folder: Path) -> list[Path]:
    """Finished backups in the same folder, the newest first."""
    found = [(file.stat().st_mtime_ns, file.parent) for file in folder.glob(f"*/{BACKUP_FILE}")]
    return [path for _, path in sorted(found, reverse=True)]


def _share(file: Path, target: Path, earlier: Iterable[Path]) -> bool:
    """Link a file that never changes, from the store, or from a backup that has it. Its name, its size and when it was
    written tell it from any other: a copy keeps them.
    """
    try:
        os.link(file, target)
    except OSError:  # another disk, or one without links
        mark = _mark(file)
        for backup in earlier:
            with suppress(OSError):
                if _mark(backup / file.name) == mark:
                    os.link(backup / file.name, target)
                    return True
        return False
    return True


def _mark(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns


def copy_file(file: Path, target: Path) -> int:
    """Copy a file durably, as long as it is now. Returns its length."""
    with file.open("rb") as source, target.open("xb") as made:
        target.chmod(0o600)
        left = length = os.fstat(source.fileno()).st_size
        while left > 0:
            piece = source.read(min(left, 1 << 20))
            if not piece:
                raise StoreCorrupt(f"{file} is shorter than it was")
            made.write(piece)
            left -= len(piece)
        made.flush()
        os.fsync(made.fileno())
    shutil.copystat(file, target)
    return length


def _write_small(file: Path, content: bytes) -> None:
    with file.open("xb") as made:
        file.chmod(0o600)
        made.write(content)
        made.flush()
        os.fsync(made.fileno())


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
