"""RocksDB: what is refused, what survives damage, and what a full disk does. What every durable store does is in
`tests/contract/test_durable_storage.py`.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from fila.core.errors import StoreBusy, StoreCorrupt, StoreFailed, StoreFull, StoreTooNew, StoreUnusable
from fila.storage.base import Batch, Family
from fila.storage.format import FORMAT_FILE
from fila.storage.rocks import RocksStorage
from tests.support.disks import small_disk_at

MESSAGES = Family.MESSAGES
COUNT = 2_000


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


def run_python(code, *args):
    """Run code in a process of its own that ends without any cleaning up."""
    program = "import os, sys\nfrom pathlib import Path\n" + code + "\nos._exit(0)"
    return subprocess.run([sys.executable, "-c", program, *map(str, args)], check=True, timeout=60)


WRITE_AND_DIE = f"""
from tests.unit.storage.test_rocks import *
store = RocksStorage(Path(sys.argv[1]), durability=sys.argv[2])
for start in range(0, {COUNT}, 100):
    fill(store, range(start, start + 100))
    if start == {COUNT // 2}:
        store._families[MESSAGES].flush(wait=True)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A store whose process died: half of it in a file, half of it in the log only."""
    path = tmp_path_factory.mktemp("killed") / "store"
    run_python(WRITE_AND_DIE, path, "wal")
    return path


@pytest.fixture
def damaged(killed, tmp_path):
    """A copy that may be damaged."""
    return Path(shutil.copytree(killed, tmp_path / "store"))


def hashes(path):
    """The content of every file, but for RocksDB's own diary."""
    files = [file for file in path.iterdir() if not file.name.startswith("LOG")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def flip(path, pattern, at):
    """Change four bytes of the largest file that the pattern names, at a fraction of its length."""
    file = max(path.glob(pattern), key=lambda file: file.stat().st_size)
    content = bytearray(file.read_bytes())
    begin = int(at * (len(content) - 4))
    for offset in range(begin, begin + 4):
        content[offset] ^= 0x5A
    file.write_bytes(content)


# What survives


@pytest.mark.parametrize("durability", ["wal", "fsync"])
def test_everything_is_there_after_the_process_died(tmp_path, durability):
    """A write that returned survives a process that ends without closing."""
    run_python(WRITE_AND_DIE, tmp_path / "store", durability)
    store = RocksStorage(tmp_path / "store")
    check(store, range(COUNT))
    store.close()


def test_a_write_cut_short_by_a_crash_is_dropped_whole(damaged):
    """A torn record at the end of the log loses that batch, which was never answered, and nothing else."""
    log = max(damaged.glob("*.log"))
    os.truncate(log, log.stat().st_size - 10)
    store = RocksStorage(damaged)
    check(store, range(COUNT - 100))
    store.close()


def test_reading_does_not_go_through_what_was_deleted_beside_it(tmp_path, monkeypatch):
    """A few messages of each tenant, read together, stand at the edges of stretches that are long done."""
    made, make = [], RocksStorage._options

    def watched(self, write_buffer_bytes):
        made.append(make(self, write_buffer_bytes))
        made[-1].enable_statistics()
        return made[-1]

    monkeypatch.setattr(RocksStorage, "_options", watched)
    store = RocksStorage(tmp_path / "store")
    wanted = [number for edge in range(0, 5 * COUNT, COUNT) for number in range(edge, edge + 10)]
    fill(store, range(5 * COUNT))
    done = Batch()
    done.delete_many(MESSAGES, [key(number) for number in range(5 * COUNT) if number not in wanted])
    store.write(done)
    assert store.get_many(MESSAGES, [key(number) for number in wanted]) == [value(number) for number in wanted]
    skipped = re.search(r"^rocksdb.number.iter.skip COUNT : (\d+)", made[0].get_statistics(), re.MULTILINE)
    assert int(skipped[1]) < COUNT
    store.close()


# What is refused


def test_a_store_with_an_unknown_family_is_refused(tmp_path):
    """A family that a later version added is not lost by opening without it."""
    RocksStorage(tmp_path / "store").close()
    options = Options(raw_mode=True)
    families = {family.name.lower(): Options(raw_mode=True) for family in Family if family is not Family.DEFAULT}
    raw = Rdict(str(tmp_path / "store"), options, column_families=families)
    raw.create_column_family("later", Options(raw_mode=True))
    raw.close()
    with pytest.raises(StoreTooNew, match="later version"):
        RocksStorage(tmp_path / "store")


@pytest.mark.parametrize("text", ["", "one", "-1", "1.0", "\x00"])
def test_a_format_that_is_no_number_is_refused(damaged, text):
    """Damage to the format file is damage to the store."""
    (damaged / FORMAT_FILE).write_text(text)
    before = hashes(damaged)
    with pytest.raises(StoreCorrupt, match=FORMAT_FILE):
        RocksStorage(damaged)
    assert hashes(damaged) == before


def test_a_foreign_database_is_refused(tmp_path):
    """A directory with a database of something else is not taken over."""
    Rdict(str(tmp_path / "store")).close()
    before = hashes(tmp_path / "store")
    with pytest.raises(StoreCorrupt, match="not a store of fila-server"):
        RocksStorage(tmp_path / "store")
    assert hashes(tmp_path / "store") == before


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("pattern", ["MANIFEST-*", "*.log", "CURRENT"])
def test_a_damaged_store_is_refused_and_left_as_it_is(damaged, pattern, at):
    """Opening fails with a clear text and changes no file, so that somebody can look into it."""
    flip(damaged, pattern, at)
    before = hashes(damaged)
    with pytest.raises(StoreCorrupt, match="damaged and was left as it is"):
        RocksStorage(damaged)
    assert hashes(damaged) == before


@pytest.mark.parametrize("at", [0.0, 0.1, 0.5, 0.9])
def test_a_damaged_file_is_never_read_as_if_it_were_whole(damaged, at):
    """Reading it says so: no scan ends early, and no message is silently not there."""
    flip(damaged, "*.sst", at)
    before = hashes(damaged)
    with pytest.raises(StoreCorrupt, match="damaged"):
        store = RocksStorage(damaged)
        try:
            list(store.scan(MESSAGES))
        finally:
            store.close()
    files = {name: content for name, content in before.items() if name.endswith(".sst")}
    assert files.items() <= hashes(damaged).items()


@pytest.mark.parametrize("read", ["get", "get_many"])
def test_a_damaged_message_is_refused_when_it_is_read(damaged, read):
    """Damage that is met while running is an error of that read, never an absent message."""
    flip(damaged, "*.sst", 0.5)
    store = RocksStorage(damaged)
    refused = 0
    for number in range(COUNT):
        try:
            if read == "get":
                found = store.get(MESSAGES, key(number))
            else:
                (found,) = store.get_many(MESSAGES, [key(number)])
            assert found == value(number)
        except StoreCorrupt:
            refused += 1
    assert 0 < refused < COUNT
    store.close()


def test_a_lost_identity_is_refused(damaged):
    """Without it every id that was given out would be a stranger's."""
    store = RocksStorage(damaged)
    batch = Batch()
    batch.delete(Family.DEFAULT, b"node")
    store.write(batch)
    store.close()
    with pytest.raises(StoreCorrupt, match="identity"):
        RocksStorage(damaged)


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("/dev/null")], ids=["file", "device"])
def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path, make):
    """With the path in the text."""
    path = tmp_path / "store"
    make(path)
    with pytest.raises(StoreUnusable, match=str(path)):
        RocksStorage(path)


def test_a_path_with_misleading_words_does_not_mislead(tmp_path):
    """What failed is told from the reason, not from a path that happens to hold the word."""
    path = tmp_path / "lock no space left corruption"
    path.touch()
    with pytest.raises(StoreUnusable) as refused:
        RocksStorage(path)
    assert refused.type is StoreUnusable


# What a failed write does


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MiB."""
    with small_disk_at(tmp_path / "disk") as path:
        yield path


def fill_patiently(store, numbers):
    """A write that is only put off is tried again, as the engine does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            return fill(store, numbers)
        except StoreBusy:
            time.sleep(0.001)
    pytest.fail("the store is busy for ever")


def fill_up(store, count=0):
    """Write until nothing fits any more. Returns how many messages there are then."""
    while count < 1_000_000:
        try:
            fill_patiently(store, range(count, count + 500))
        except StoreFull:
            return count
        count += 500
    pytest.fail("the disk never was full")


@pytest.mark.parametrize("write_buffer_bytes", [1 << 20, 64 << 20], ids=["full while flushing", "full while logging"])
def test_a_full_disk_refuses_writes_and_nothing_else(small_disk, write_buffer_bytes):
    """Reads go on, nothing of a refused batch is visible, and the first write after room was made succeeds."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 << 20))
    store = RocksStorage(small_disk / "store", write_buffer_bytes=write_buffer_bytes)
    count = 0
    for _ in range(3):  # opening anew may make some room by itself
        count = fill_up(store, count)
        check(store, range(count))
        assert store.get_many(MESSAGES, [key(0), key(count)]) == [value(0), None]
    ballast.unlink()
    fill_patiently(store, range(count, count + 500))
    check(store, range(count + 500))
    store.close()
    again = RocksStorage(small_disk / "store")
    check(again, range(count + 500))
    again.close()


def test_a_batch_from_before_the_failure_can_be_written_after_it(small_disk):
    """Making the store work again does not spoil what was already planned."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 << 20))
    store = RocksStorage(small_disk / "store")
    planned = Batch()
    planned.put(MESSAGES, b"planned", b"before")
    count = fill_up(store)
    ballast.unlink()
    store.write(planned)
    assert store.get(MESSAGES, b"planned") == b"before"
    assert store.get(MESSAGES, key(count - 1)) == value(count - 1)
    store.close()


def test_a_new_store_on_a_full_disk_is_refused(small_disk):
    """There is no store without its identity; the next try begins anew."""
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))
    with pytest.raises(StoreUnusable, match=str(small_disk)):
        RocksStorage(small_disk / "store")
    ballast.unlink()
    store = RocksStorage(small_disk / "store")
    fill(store, range(10))
    check(store, range(10))
    store.close()


def test_files_that_a_crash_left_half_written_do_not_keep_a_store_from_opening(small_disk):
    """They may fill the disk, and RocksDB removes them only after it has opened the store."""
    path = small_disk / "store"
    store = RocksStorage(path)
    fill(store, range(500))
    store._families[MESSAGES].flush(wait=True)
    fill(store, range(500, 1_000))
    store.close()
    (path / "FILA_RESERVE").unlink(missing_ok=True)
    kept = {file.name for file in path.glob("*.sst")}
    leftover = path / "000999.sst"
    with suppress(OSError), leftover.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))
    again = RocksStorage(path)
    check(again, range(1_000))
    assert not leftover.exists()
    assert kept <= {file.name for file in path.glob("*.sst")}
    fill(again, range(1_000, 1_100))
    again.close()


def test_a_full_disk_can_be_closed(small_disk):
    """Stopping a broker that has no room is no error, and loses nothing that was taken."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 << 20))
    store = RocksStorage(small_disk / "store")
    count = fill_up(store)
    store.close()
    ballast.unlink()
    again = RocksStorage(small_disk / "store")
    check(again, range(count))
    again.close()


class Stalled:
    """RocksDB that is behind with its files for some writes."""

    def __init__(self, db, stalls, errors=0):
        self._db = db
        self.stalls = stalls
        self.errors = errors
        self.writes = 0

    def write(self, batch, options):
        assert options.no_slowdown
        self.writes += 1
        if self.writes <= self.stalls:
            raise Exception("Result incomplete: Write stall")  # noqa: TRY002 - as rocksdict does
        self._db.write(batch, options)

    def property_int_value(self, name):
        assert self._db.property_int_value(name) is not None
        return self.errors

    def __getattr__(self, name):
        return getattr(self._db, name)


@pytest.fixture
def store(tmp_path):
    opened = RocksStorage(tmp_path / "store")
    yield opened
    opened.close()


def test_a_write_is_refused_as_busy_while_files_are_written(store):
    """Nobody sleeps: RocksDB being behind is no failure, and the same write succeeds when it has caught up."""
    store._db = stalled = Stalled(store._db, stalls=3)
    for tried in range(1, 4):
        with pytest.raises(StoreBusy):
            fill(store, range(10))
        assert stalled.writes == tried
        check(store, [])
    fill(store, range(10))
    check(store, range(10))


def test_a_write_does_not_wait_for_files_that_cannot_be_written(store):
    """Otherwise a full disk would stop the whole broker, reads included."""
    store._db = stalled = Stalled(store._db, stalls=1, errors=1)
    with pytest.raises(StoreBusy):
        fill(store, range(10))
    assert stalled.writes == 1
    check(store, [])
    fill(store, range(10))
    assert store._db is not stalled
    check(store, range(10))


LIMITED = """
import resource
from tests.unit.storage.test_rocks import *
store = RocksStorage(Path(sys.argv[1]))
fill(store, range(100))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, hard))
taken = 100
failures = 0
for _ in range(40):
    try:
        fill(store, range(taken, taken + 10))
        taken += 10
    except StoreFailed as failure:
        assert not isinstance(failure, StoreFull)
        failures += 1
        check(store, range(taken))
assert failures > 10
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fill(store, range(taken, taken + 10))
check(store, range(taken + 10))
store.close()
store = RocksStorage(Path(sys.argv[1]))
check(store, range(taken + 10))
"""


def test_a_store_that_cannot_be_opened_anew_is_still_read(tmp_path):
    """Writes that fail for another reason than room: reads go on, and writes once the reason is gone.

    The reason here is a limit on the size of files, which any process may set for itself.
    """
    run_python(LIMITED, tmp_path / "store")


def test_closing_twice_is_no_error(tmp_path):
    """Whoever cleans up need not know whether somebody else did."""
    store = RocksStorage(tmp_path / "store")
    store.close()
    store.close()
    with suppress(StoreFailed):
        store.get(MESSAGES, b"k")


def test_a_write_that_comes_while_rocksdb_is_behind_is_only_put_off(tmp_path):
    """With buffers far smaller than what is written, RocksDB asks for patience all the time; no write fails for it."""
    store = RocksStorage(tmp_path, write_buffer_bytes=64 << 10)
    stalls = 0
    for number in range(400):
        batch = Batch()
        batch.put(Family.MESSAGES, number.to_bytes(8, "big"), bytes(100_000))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                store.write(batch)
                break
            except StoreBusy:
                stalls += 1
                time.sleep(0.001)
    assert stalls > 0
    assert sum(1 for _ in store.scan(Family.MESSAGES)) == 400
    store.close()
