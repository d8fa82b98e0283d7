"""The folder of a store: who may read it, and whether it is still the one that was opened."""

import os

import pytest

from fila.core.errors import StoreCorrupt, StoreLost
from fila.storage.base import Family
from fila.storage.folder import LOG_FILE
from fila.storage.rocks import RocksStorage
from tests.unit.storage.test_rocks import check, fill, run_python

SMALL = 64 << 10

WRITE_MUCH_AND_DIE = """
import time
from tests.unit.storage.test_folder import *
store = RocksStorage(Path(sys.argv[1]), write_buffer_bytes=256 << 10)
for start in range(0, 3_000, 10):
    fill(store, range(start, start + 10))
    store.check()
    if start in (1_000, 2_000):  # so that there are several logs, and the manifest knows of the older ones
        store._families[Family.STATE].put(b"s", b"t")
        store._families[Family.STATE].flush(wait=True)
while any(db.property_int_value("rocksdb.num-immutable-mem-table") for db in store._families):
    time.sleep(0.01)  # a log that ended a moment ago is noted when its messages are written to a file
"""


@pytest.fixture
def crashed(tmp_path):
    """A store of 3,000 messages whose process was killed, in several logs."""
    run_python(WRITE_MUCH_AND_DIE, tmp_path / "store")
    path = tmp_path / "store"
    assert len(logs(path)) >= 3
    return path


def logs(path):
    return sorted(path.glob("*.log"))


def test_a_store_with_all_of_its_logs_is_whole(crashed):
    store = RocksStorage(crashed)
    check(store, range(3_000))
    store.close()


@pytest.mark.parametrize("number", [0, 1, -2, -1], ids=["oldest", "second", "last but one", "newest"])
def test_a_log_that_is_missing_is_noticed(crashed, number):
    logs(crashed)[number].unlink()
    with pytest.raises(StoreCorrupt, match="damaged"):
        RocksStorage(crashed)


@pytest.mark.parametrize("number", [0, 1, -2], ids=["oldest", "second", "last but one"])
@pytest.mark.parametrize("cut", [1, 1_000, 1 << 30], ids=["by a byte", "by a thousand", "to nothing"])
def test_a_log_that_was_cut_is_noticed_unless_it_is_the_newest(crashed, number, cut):
    log = logs(crashed)[number]
    os.truncate(log, max(0, log.stat().st_size - cut))
    with pytest.raises(StoreCorrupt, match="damaged"):
        RocksStorage(crashed)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: (path / "LOCK").unlink(),
        lambda path: logs(path)[-1].unlink(),
    ],
    ids=["lock removed", "log removed"],
)
def test_a_store_that_is_taken_away_is_noticed(tmp_path, harm):
    path = tmp_path / "store"
    store = RocksStorage(path)
    fill(store, range(10))
    store.check()
    harm(path)
    with pytest.raises(StoreLost, match="removed or replaced"):
        store.check()
    store.close()


def test_a_store_is_known_again_after_its_logs_have_changed(tmp_path):
    store = RocksStorage(tmp_path / "store", write_buffer_bytes=SMALL)
    for number in range(20):
        fill(store, range(number * 100, number * 100 + 100))
        store._families[Family.MESSAGES].flush(wait=True)
        store.check()
    assert (tmp_path / "store" / LOG_FILE).read_text() == f"{int(logs(tmp_path / 'store')[-1].stem)}\n"
    store.close()


@pytest.mark.parametrize("text", ["", "many", "\0\0\0"])
def test_a_note_of_the_newest_log_that_cannot_be_read_says_nothing(tmp_path, text):
    RocksStorage(tmp_path / "store").close()
    (tmp_path / "store" / LOG_FILE).write_text(text)
    RocksStorage(tmp_path / "store").close()
