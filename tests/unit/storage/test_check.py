"""A check of a store goes through all of it."""

import pytest

from fila.storage.base import Batch, Family
from fila.storage.check import Checker
from fila.storage.reader import StoreReader
from fila.storage.rocks import RocksStorage


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.DEFAULT])
def test_what_cannot_be_read_is_found_in_every_family(tmp_path, family):
    store = RocksStorage(tmp_path / "store")
    batch = Batch()
    batch.put(family, b"\xff\xff", b"\xff")
    store.write(batch)
    store.close()
    with StoreReader(tmp_path / "store") as reader:
        assert not Checker(reader).run().whole
