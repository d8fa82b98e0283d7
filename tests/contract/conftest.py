"""Every store, so that one suite holds for all of them."""

import pytest

from fila.storage.memory import MemoryStorage
from fila.storage.rocks import RocksStorage
from tests.support.faulty import FaultyStorage

STORES = {
    "memory": lambda path: MemoryStorage(),
    "faulty": lambda path: FaultyStorage(MemoryStorage()),
    "rocks": RocksStorage,
    "rocks-fsync": lambda path: RocksStorage(path, durability="fsync"),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """An empty store of each kind."""
    opened = STORES[request.param](tmp_path / "store")
    yield opened
    opened.close()
