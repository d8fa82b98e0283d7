"""What every store does that keeps what is written: over a restart, beside a second server, on a full disk."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import time

import pytest

from fila.core.errors import StoreBusy, StoreFailed, StoreLocked, StoreLost, StoreTooNew, StoreUnusable
from fila.storage import format as store_format
from fila.storage import keys, migration
from fila.storage.base import Batch, Family
from fila.storage.format import FORMAT, FORMAT_FILE, Written, note_format, written_in
from tests.support.disks import small_disk_at
from tests.support.stores import DURABLE, open_named

MESSAGES = Family.MESSAGES
COUNT = 2_000


@pytest.fixture(autouse=True)
def umask():
    """As the server sets it."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(params=DURABLE)
def name(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


def key(number):
    return b"%08d" % number


def value(number):
    return hashlib.sha256(key(number)).digest() * 8


def fill(store, numbers):
    batch = Batch()
    for number in numbers:
        batch.put(MESSAGES, key(number), value(number))
    store.write(batch)


def check(store, numbers):
    assert list(store.scan(MESSAGES)) == [(key(number), value(number)) for number in numbers]


def hashes(path):
    """The content of every file, but for a diary of RocksDB's."""
    files = [file for file in path.iterdir() if not file.name.startswith("LOG")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def program(code, *args):
    """Code that runs in a process of its own, which ends without any cleaning up."""
    lines = ["import os, sys", "from pathlib import Path", "from tests.contract.test_durable_storage import *", code]
    return [sys.executable, "-c", "\n".join([*lines, "os._exit(0)"]), *map(str, args)]


# What survives


def test_everything_is_there_after_closing_and_opening(name, path):
    """All families, and the identity."""
    store = open_named(name, path)
    node = store.node
    batch = Batch()
    for family in Family:
        batch.put(family, b"k", family.name.encode())
    store.write(batch)
    store.close()
    again = open_named(name, path)
    assert again.node == node
    assert again.notices == []
    assert [again.get(family, b"k") for family in Family] == [family.name.encode() for family in Family]
    again.close()


@pytest.mark.parametrize("durability", ["wal", "fsync"])
def test_everything_is_there_after_the_process_died(name, path, durability):
    """A write that returned survives a process that ends without closing."""
    write_and_die = """
store = open_named(sys.argv[1], Path(sys.argv[2]), durability=sys.argv[3])
for start in range(0, COUNT, 100):
    fill(store, range(start, start + 100))
"""
    subprocess.run(program(write_and_die, name, path, durability), check=True, timeout=60)
    store = open_named(name, path)
    check(store, range(COUNT))
    store.close()


def test_two_stores_have_two_identities(name, tmp_path):
    """Ids of one store are not taken for ids of another."""
    one, other = open_named(name, tmp_path / "one"), open_named(name, tmp_path / "other")
    assert one.node != other.node
    one.close()
    other.close()


def test_closing_twice_is_no_error(name, path):
    """Whoever cleans up need not know whether somebody else did."""
    store = open_named(name, path)
    store.close()
    store.close()


# Who may open it


def test_a_store_in_use_is_refused(name, path):
    """A second opening fails, and the first goes on working."""
    store = open_named(name, path)
    with pytest.raises(StoreLocked, match="in use by another fila-server"):
        open_named(name, path)
    fill(store, range(10))
    check(store, range(10))
    store.close()


def test_a_store_in_use_by_another_process_is_refused(name, path):
    """The lock holds between processes, and ends with the process however it ends."""
    hold = """
store = open_named(sys.argv[1], Path(sys.argv[2]))
print("open", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(program(hold, name, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreLocked):
            open_named(name, path)
        holder.kill()
    open_named(name, path).close()


def modes(path):
    """Of the folder, and of what is in it."""
    return stat.S_IMODE(path.stat().st_mode), {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()}


def test_a_store_is_for_its_owner_alone(name, path):
    store = open_named(name, path)
    fill(store, range(10))
    assert modes(path) == (0o700, {0o600})
    store.close()
    assert modes(path) == (0o700, {0o600})


def test_a_store_that_others_could_read_is_closed_to_them_and_says_so(name, path):
    open_named(name, path).close()
    path.chmod(0o755)
    for file in path.iterdir():
        file.chmod(0o644)
    count = len(list(path.iterdir())) + 1
    store = open_named(name, path)
    assert modes(path) == (0o700, {0o600})
    assert [notice.files for notice in store.notices] == [count]
    store.close()


# Whose folder it is, and in which format


def test_the_folder_says_whose_it_is_and_in_which_format(name, path):
    open_named(name, path).close()
    assert written_in(path) == Written(FORMAT, name)


def test_a_folder_says_whose_it_is_before_there_is_anything_else_in_it(name, path, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(store_format, "write_durably", full)
    with pytest.raises(StoreUnusable, match="no space left"):
        open_named(name, path)
    assert list(path.iterdir()) == []


def test_a_newer_store_is_refused_and_left_as_it_is(name, path):
    """An older broker does not touch what it would misread."""
    open_named(name, path).close()
    note_format(path, name, FORMAT + 1)
    before = hashes(path)
    with pytest.raises(StoreTooNew, match=f"format {FORMAT + 1}, this broker knows up to {FORMAT}"):
        open_named(name, path)
    assert hashes(path) == before


def test_a_store_that_does_not_say_its_format_is_refused_and_left_as_it_is(name, path):
    open_named(name, path).close()
    (path / FORMAT_FILE).unlink()
    before = hashes(path)
    with pytest.raises(StoreUnusable, match=FORMAT_FILE):
        open_named(name, path)
    assert hashes(path) == before


def test_a_store_of_the_format_before_is_migrated_and_says_so(name, path, monkeypatch):
    """What is changed, and how, is the same for all stores; a store calls for it when it is opened."""
    old, entry = b"\x01of the format before", keys.producer_batch("p", 1)
    monkeypatch.setitem(migration.STEPS, FORMAT - 1, migration.Step(FORMAT, lambda value: b"\x02" + value[1:]))
    store = open_named(name, path)
    batch = Batch()
    batch.put(Family.DEDUP, entry, old)
    store.write(batch)
    store.close()
    note_format(path, name, FORMAT - 1)
    again = open_named(name, path)
    assert again.get(Family.DEDUP, entry) == b"\x02of the format before"
    assert written_in(path) == Written(FORMAT, name)
    again.close()


# What goes wrong


@pytest.mark.parametrize(
    "harm",
    [
        shutil.rmtree,
        lambda path: path.rename(path.with_name("elsewhere")),
        lambda path: (path / FORMAT_FILE).unlink(),
        lambda path: (path.rename(path.with_name("elsewhere")), shutil.copytree(path.with_name("elsewhere"), path)),
    ],
    ids=["removed", "renamed", "format removed", "replaced by a copy"],
)
def test_a_store_that_is_taken_away_is_noticed(name, path, harm):
    store = open_named(name, path)
    fill(store, range(10))
    store.check()
    harm(path)
    with pytest.raises(StoreLost, match="removed or replaced"):
        store.check()
    store.close()


def fill_up(store):
    """Write until a write fails. Returns how many messages there are then."""
    count, deadline = 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            fill(store, range(count, count + 500))
            count += 500
        except StoreBusy:
            time.sleep(0.001)
        except StoreFailed:
            return count
    pytest.fail("the disk never was full")


def test_nothing_is_visible_of_a_write_that_fails_and_later_ones_succeed(name, tmp_path):
    with small_disk_at(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(16 << 20))
        store = open_named(name, disk / "store")
        count = fill_up(store)
        check(store, range(count))
        ballast.unlink()
        fill(store, range(count, count + 500))
        check(store, range(count + 500))
        store.close()
        again = open_named(name, disk / "store")
        check(again, range(count + 500))
        again.close()
