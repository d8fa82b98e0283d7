"""Which stores there are, and opening the one that the configuration names.

Add a store: a row in `STORES`, and its name in `StoreName` of the configuration; a test compares the two. A store that
keeps a folder claims it (`format.py`). So no store has to know the others: a folder that another one has written is
refused here, before anything is opened. The suites of `tests/contract` run over every row.

What a store needs is imported when it is opened: a server does without the packages of the others.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fila.config import StorageConfig
from fila.core.errors import StoreUnusable
from fila.storage.base import Notice, Storage
from fila.storage.format import ROCKSDB, written_in
from fila.storage.migration import Progress


def _open_rocksdb(config: StorageConfig, on_migration: Progress) -> Storage:
    from fila.storage.rocks import RocksStorage

    return RocksStorage(
        Path(config.data_dir),
        durability=config.durability,
        write_buffer_bytes=config.write_buffer_bytes,
        block_cache_bytes=config.block_cache_bytes,
        min_free_bytes=config.min_free_bytes,
        on_migration=on_migration,
    )


def _open_memory(_config: StorageConfig, _on_migration: Progress) -> Storage:
    from fila.storage.memory import MemoryStorage

    store = MemoryStorage()
    store.notices.append(Notice("messages are kept in memory only and are gone when the server stops", 0))
    return store


STORES: Final[dict[str, Callable[[StorageConfig, Progress], Storage]]] = {
    ROCKSDB: _open_rocksdb,
    "memory": _open_memory,
}
"""By the name that the setting `storage.store` has for it."""


def open_store(config: StorageConfig, on_migration: Progress = lambda *_: None) -> Storage:
    """Raises StoreUnusable."""
    found = store_in(Path(config.data_dir))
    if found not in {None, config.store}:
        raise StoreUnusable(
            f'{config.data_dir} holds a store of "{found}", and storage.store is "{config.store}": set it to '
            f'"{found}", or storage.data_dir to another folder'
        )
    return STORES[config.store](config, on_migration)


def open_found(path: Path) -> Storage:
    """Open the store that a folder holds, or a new one; what is written survives a power loss. Raises StoreUnusable."""
    found = store_in(path)
    store: Any = found if found in STORES else ROCKSDB
    return open_store(StorageConfig(store=store, data_dir=str(path), durability="fsync"))


def store_in(path: Path) -> str | None:
    """The name of the store that has written a folder; None when none has. Raises StoreUnusable."""
    try:
        written = written_in(path)
    except OSError as cause:
        raise StoreUnusable(f"the store in {path} cannot be opened: {cause}") from cause
    return None if written is None else written.store
