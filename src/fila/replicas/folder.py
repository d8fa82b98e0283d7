"""The data directory of a member of a cluster. The file `FILA_CLUSTER` in it names the cluster."""

from pathlib import Path
from typing import Final

from fila.core.errors import StoreUnusable
from fila.storage.format import write_durably

CLUSTER_FILE: Final = "FILA_CLUSTER"


def cluster_of(path: Path) -> str | None:
    """Of which cluster a data directory is; None: of none. Raises StoreUnusable."""
    try:
        return (path / CLUSTER_FILE).read_text(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as cause:
        raise StoreUnusable(f"{path} cannot be read: {cause.strerror}") from cause


def claim(path: Path, cluster: str) -> None:
    """Have a data directory be that of a cluster. Raises StoreUnusable for one that is not, or OSError."""
    found = cluster_of(path)
    if found is None:
        there = path.iterdir() if path.exists() else ()
        if any(not each.name.startswith(".") and each.name != "lost+found" for each in there):
            raise StoreUnusable(
                f"{path} holds the store of a server without a cluster: start it without [cluster], or give --data-dir "
                "another folder. What is in a store does not come into a log by itself"
            )
        path.mkdir(parents=True, exist_ok=True)
        write_durably(path / CLUSTER_FILE, f"{cluster}\n")
    elif found != cluster:
        raise StoreUnusable(f"{path} belongs to the cluster {found!r}, not to {cluster!r}")


def check_none(path: Path) -> None:
    """Raises StoreUnusable for a data directory of a cluster: what is written to it must be in the log."""
    found = cluster_of(path)
    if found is not None:
        raise StoreUnusable(f"{path} belongs to the cluster {found!r}: start it with the section [cluster]")
