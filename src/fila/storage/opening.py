"""Opening the store that the configuration names."""

from pathlib import Path

from fila.config import StorageConfig
from fila.storage.base import Storage
from fila.storage.rocks import RocksStorage


def open_store(config: StorageConfig) -> Storage:
    """Raises StoreUnusable."""
    return RocksStorage(
        Path(config.data_dir),
        durability=config.durability,
        write_buffer_bytes=config.write_buffer_bytes,
        block_cache_bytes=config.block_cache_bytes,
        min_free_bytes=config.min_free_bytes,
    )
