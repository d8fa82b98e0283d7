"""The data directory of a server with several workers.

| file | what it is |
|---|---|
| `FILA_WORKERS` | how many workers there are: queues are placed by it, so it stays as it is |
| `worker-0`, `worker-1`, ... | the stores of the workers |
| `sockets` | where workers reach each other; for the owner alone |
"""

import fcntl
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fila.core.errors import StoreCorrupt, StoreLocked, StoreUnusable
from fila.storage.format import write_durably

WORKERS_FILE: Final = "FILA_WORKERS"
_SOCKETS: Final = "sockets"
_MOST_DIGITS: Final = 3
_LOOK_S: Final = 0.05


def workers_of(path: Path) -> int | None:
    """How many workers have made a data directory; None: it is not that of several. Raises StoreUnusable."""
    try:
        text = (path / WORKERS_FILE).read_text(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as cause:
        raise StoreUnusable(f"{path} cannot be read: {cause.strerror}") from cause
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) > 1):
        raise StoreCorrupt(f"{path / WORKERS_FILE} does not contain a number of workers")
    return int(text)


def check_one(path: Path) -> None:
    """Raises StoreUnusable for a data directory of several workers, which is no store itself."""
    found = workers_of(path)
    if found is not None:
        raise StoreUnusable(
            f"{path} was made with {found} workers: start it with --workers {found}. The stores of the workers are the "
            f"folders {store_folder(path, 0)} to {store_folder(path, found - 1).name}"
        )


def claim(path: Path, workers: int) -> None:
    """Have a data directory be that of so many workers. Raises StoreUnusable for one that is not, or OSError."""
    found = workers_of(path)
    if found is None:
        if _holds_files(path):
            raise StoreUnusable(
                f"{path} holds the store of a server without workers: start it without --workers, or give --data-dir "
                "another folder. A store is not divided among workers (docs/workers.md says how to move)"
            )
        path.mkdir(parents=True, exist_ok=True)
        write_durably(path / WORKERS_FILE, f"{workers}\n")
    elif found != workers:
        raise StoreUnusable(
            f"{path} was made with {found} workers, not with {workers}: the number says where each queue is, and "
            f"cannot be changed. Start it with --workers {found}"
        )


@contextmanager
def lock(path: Path, patience_s: float) -> Iterator[None]:
    """Have a data directory to oneself while the context is open, and as long as a process lasts that is forked in it.

    Waits so long: the workers of a parent that was killed are about to end. Raises StoreLocked or OSError.
    """
    with (path / WORKERS_FILE).open("rb") as file:
        until = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as cause:
                if time.monotonic() > until:
                    raise StoreLocked(f"{path} is in use by another server") from cause
                time.sleep(_LOOK_S)
        yield


def store_of_rights(path: Path) -> Path:
    """Where the store is that keys are written to while no server runs: of worker 0, whom the others follow."""
    return path if workers_of(path) is None else store_folder(path, 0)


def store_folder(path: Path, worker: int) -> Path:
    return path / f"worker-{worker}"


def socket_folder(path: Path) -> Path:
    return path / _SOCKETS


def new_socket_folder(path: Path) -> Path:
    """An empty folder that nobody else may enter. Raises OSError."""
    folder = socket_folder(path)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def _holds_files(path: Path) -> bool:
    """Whether there is anything in a folder but what a file system or a shell puts there. Raises OSError."""
    try:
        return any(not found.name.startswith(".") and found.name != "lost+found" for found in path.iterdir())
    except FileNotFoundError:
        return False
