"""The stores of the product, opened as a server opens them: a store that is added to the table is tested as all are."""

from pathlib import Path
from typing import Any

from fila.config import StorageConfig
from fila.storage.base import Storage
from fila.storage.opening import STORES, open_store

DURABLE = [name for name in STORES if StorageConfig(store=name).survives]
"""Those that keep what is written"""


def open_named(name: str, path: Path, **settings: Any) -> Storage:
    chosen: Any = name
    return open_store(StorageConfig(store=chosen, data_dir=str(path), **settings))
