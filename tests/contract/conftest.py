"""Every store, so that one suite holds for all of them."""

from functools import partial

import pytest

from fila.storage.memory import MemoryStorage
from fila.storage.opening import STORES
from tests.support.faulty import FaultyStorage
from tests.support.stores import DURABLE, open_named

OPENED = {
    **{name: partial(open_named, name) for name in STORES},
    **{f"{name}-fsync": partial(open_named, name, durability="fsync") for name in DURABLE},
    "faulty": lambda path: FaultyStorage(MemoryStorage()),
}


@pytest.fixture(params=OPENED)
def store(request, tmp_path):
    """An empty store of each kind."""
    opened = OPENED[request.param](tmp_path / "store")
    yield opened
    opened.close()
