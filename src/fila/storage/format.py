"""`FILA_FORMAT`, the file in the folder of a store that says how to read it, before anything in it is opened.

It holds the number of the format of all keys and records (`keys.py`, `codec.py`, `journal.py`, `audit.py`). They are
the same in every store, and so is the number: a store that is added later begins with the present one. Behind the
number stands the name of the store whose files they are, `6 lmdb`; a number alone is RocksDB's. What a store changes in
files of its own, it notes in files of its own.

A store that keeps a folder calls `claim_folder` before it makes or opens anything there, and `note_format` when a
migration has taken it to another format (`migration.py`). So a folder that another store has written, or a later
version, stays as it is.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from fila.core.errors import StoreCorrupt, StoreTooNew, StoreUnusable

FORMAT: Final = 6
"""Raise it with every change of keys or records that an older broker would misread."""

OLDEST_FORMAT: Final = 4
"""Older ones cannot be migrated: no release has written them. `migration.py` has a step for each from here on."""

FORMAT_FILE: Final = "FILA_FORMAT"
ROCKSDB: Final = "rocksdb"


class Written(NamedTuple):
    """What the file says."""

    number: int
    store: str


def claim_folder(path: Path, store: str, *, holds_data: bool) -> int:
    """The format of the store in a folder. A folder that says none is this store's from now on, with the present one.

    `holds_data`: whether there are files of this store in it already, of which then nobody knows what they are. Raises
    StoreUnusable for a folder of another store or of a format that this broker cannot read, or OSError.
    """
    found = format_in(path, store)
    if found is not None:
        check_format(path, found)
    elif holds_data:
        raise not_ours(path)
    else:
        note_format(path, store, FORMAT)
    return FORMAT if found is None else found


def format_in(path: Path, store: str) -> int | None:
    """The format of the store in a folder; None when none is said. Raises StoreUnusable, also for another store's."""
    written = written_in(path)
    if written is None:
        return None
    if written.store != store:
        raise StoreUnusable(f'{path} holds a store of "{written.store}", not of "{store}"')
    return written.number


def written_in(path: Path) -> Written | None:
    """What the file says; None when there is none. Raises StoreCorrupt when it says nothing, or OSError."""
    try:
        text = (path / FORMAT_FILE).read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    number, _, store = text.strip().partition(" ")
    if not (number.isascii() and number.isdigit()):
        raise StoreCorrupt(
            f"the store in {path} is damaged and was left as it is: {FORMAT_FILE} does not contain a number"
        )
    return Written(int(number), store or ROCKSDB)


def note_format(path: Path, store: str, number: int) -> None:
    """Durably. Raises OSError."""
    write_durably(path / FORMAT_FILE, f"{number}\n" if store == ROCKSDB else f"{number} {store}\n")


def check_format(path: Path, found: int) -> None:
    """Raises StoreUnusable for a format that this broker cannot read."""
    if found < OLDEST_FORMAT:
        raise StoreUnusable(
            f"the store in {path} has format {found}, too old to be migrated: this version of fila-server takes "
            f"{OLDEST_FORMAT} to {FORMAT}; drain it with the version that wrote it"
        )
    if found > FORMAT:
        raise StoreTooNew(
            f"the store in {path} has format {found}, this broker knows up to {FORMAT}: a later version of fila-server "
            "has written it, and an older one cannot read it; use that version or a later one, or restore a backup"
        )


def not_ours(path: Path) -> StoreCorrupt:
    return StoreCorrupt(f"{path} holds a database that is not a store of fila-server: {FORMAT_FILE} is missing")


def write_durably(file: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    draft = file.with_suffix(".new")
    with draft.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
