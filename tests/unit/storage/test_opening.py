"""One table of stores, one setting that chooses from it, and no store opens a folder of another."""

from typing import get_args, get_type_hints

import pytest

from fila.config import StorageConfig, load
from fila.core.errors import StoreUnusable
from fila.settings import SettingsError
from fila.storage.backup import make_backup
from fila.storage.format import FORMAT, FORMAT_FILE, claim_folder
from fila.storage.memory import MemoryStorage
from fila.storage.opening import STORES, open_found, open_store, store_in
from fila.storage.reader import StoreReader
from fila.storage.rocks import RocksStorage


def config(path, store="rocksdb"):
    return StorageConfig(store=store, data_dir=str(path))


def test_the_setting_offers_exactly_the_stores_that_there_are():
    assert get_args(get_type_hints(StorageConfig)["store"]) == tuple(STORES)


def test_an_unknown_store_is_refused_with_those_that_there_are():
    with pytest.raises(SettingsError) as refused:
        load(None, {"FILA_STORAGE__STORE": "imagined"})
    assert 'expected one of "memory", "rocksdb"' in str(refused.value)


@pytest.mark.parametrize("name, kind", [("rocksdb", RocksStorage), ("memory", MemoryStorage)])
def test_the_setting_chooses_the_store(tmp_path, name, kind):
    store = open_store(config(tmp_path / "store", name))
    assert type(store) is kind
    store.close()


def test_a_store_that_keeps_nothing_says_so():
    [notice] = open_store(StorageConfig(store="memory")).notices
    assert "gone when the server stops" in notice.text


def test_a_folder_of_rocksdb_is_no_folder_of_another_store(tmp_path):
    open_store(config(tmp_path)).close()
    assert store_in(tmp_path) == "rocksdb"
    with pytest.raises(StoreUnusable, match=r'holds a store of "rocksdb", and storage\.store is "memory"'):
        open_store(config(tmp_path, "memory"))


def test_a_folder_of_another_store_is_no_folder_of_rocksdb_and_stays_as_it_is(tmp_path):
    (tmp_path / FORMAT_FILE).write_text(f"{FORMAT} imagined\n")
    assert store_in(tmp_path) == "imagined"
    for open_it in (lambda: open_store(config(tmp_path)), lambda: open_found(tmp_path)):
        with pytest.raises(StoreUnusable, match='holds a store of "imagined"'):
            open_it()
    for look in (StoreReader, lambda path: make_backup(path, tmp_path / "backup")):
        with pytest.raises(StoreUnusable, match='holds a store of "imagined", not of "rocksdb"'):
            look(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [FORMAT_FILE]


def test_another_store_is_one_row(tmp_path, monkeypatch):
    """What a newcomer adds: an opener, under its name. The folder then says whose it is."""

    def open_imagined(config, _on_migration):
        claim_folder(tmp_path, "imagined", holds_data=False)
        return MemoryStorage()

    monkeypatch.setitem(STORES, "imagined", open_imagined)
    # The setting has no such word yet, so it is put in behind its check.
    chosen = config(tmp_path)
    object.__setattr__(chosen, "store", "imagined")
    for _ in range(2):
        assert type(open_store(chosen)) is MemoryStorage
    with pytest.raises(StoreUnusable, match='set it to "imagined"'):
        open_store(config(tmp_path))


def test_the_first_key_goes_to_the_store_that_is_there(tmp_path):
    assert store_in(tmp_path / "none") is None
    store = open_found(tmp_path / "none")
    assert type(store) is RocksStorage
    store.close()
