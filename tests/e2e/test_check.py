"""`fila-server check` on stores of a real server: whole ones, and ones that were damaged in one place each."""

import pytest

from fila import Client
from fila.storage import audit, codec, keys
from fila.storage.base import Batch, Family
from fila.storage.rocks import RocksStorage
from fila.testing import ServerProcess
from tests.e2e.support import Inbox
from tests.e2e.test_backup import store_command


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with something in nearly every family, of a server that was killed."""
    path = tmp_path_factory.mktemp("whole")
    config = "[journal]\nenabled = true\n"
    with ServerProcess(path, config=config) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders", fairness_header="tenant", max_attempts=5)
        client.create_queue("claimed")
        for number in range(300):
            client.enqueue("orders", {"tenant": f"t{number % 5}"}, b"body", dedup_key=f"k{number}")
        client.enqueue("orders", {"tenant": "late"}, b"later", delay_ms=3_600_000)
        with Inbox(client, "orders", max_in_flight=20) as inbox:
            for number, message in enumerate(inbox.wait(20)):
                if number % 3 == 0:
                    message.ack()
                elif number % 3 == 1:
                    message.nack("failed")
            server.kill()
    return path / "data"


@pytest.fixture
def store(whole, tmp_path):
    """A copy of it, to be damaged."""
    store_command("backup", "--data-dir", whole, "--to", tmp_path / "b")
    store_command("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "data")
    return tmp_path / "data"


def change(path, make):
    opened = RocksStorage(path)
    batch = Batch()
    make(opened, batch)
    opened.write(batch)
    opened.close()


def first(store, family, start=b""):
    return next(store.scan(family, start))


def test_the_store_of_a_killed_server_is_whole(whole):
    told = store_command("check", "--data-dir", whole)
    assert "is whole" in told
    assert "3 queues" in told or "4 queues" in told
    assert "damage" not in told


def drop_queue(store, batch):
    batch.delete(Family.QUEUES, keys.name("orders"))


def cut_message(store, batch):
    key, _ = first(store, Family.MESSAGES)
    batch.put(Family.MESSAGES, key, b"\x09")


def break_key(store, batch):
    batch.put(Family.MESSAGES, keys.name("orders") + b"short", b"")


def twin(store, batch):
    key, value = first(store, Family.MESSAGES)
    (before, _), seq = keys.read_message(key)
    batch.put(Family.MESSAGES, keys.message((before, keys.name("other") + b"\x05"), seq), value)


def from_the_future(store, batch):
    key, value = first(store, Family.MESSAGES)
    parts, _ = keys.read_message(key)
    batch.put(Family.MESSAGES, keys.message(parts, 1 << 62), value)


def drop_lease(store, batch):
    key, _ = first(store, Family.LEASES)
    batch.delete(Family.LEASES, key)


def drop_expiry(store, batch):
    key, _ = first(store, Family.LEASE_EXPIRY)
    batch.delete(Family.LEASE_EXPIRY, key)


def delay_twice(store, batch):
    key, value = first(store, Family.SCHEDULED)
    due, queue, seq = keys.read_scheduled(key)
    batch.put(Family.SCHEDULED, keys.scheduled(due + 1, queue, seq), value)


def lost_attempt(store, batch):
    batch.put(Family.ATTEMPTS, keys.attempt("orders", 77, 1), first(store, Family.ATTEMPTS)[1])


def wrong_attempt(store, batch):
    key, value = first(store, Family.ATTEMPTS)
    batch.put(Family.ATTEMPTS, key, value[:5])


def stray_claim(store, batch):
    batch.put(Family.CLAIMS, keys.claim("orders", "group", 7), b"")


def wrong_dedup(store, batch):
    key, _ = first(store, Family.DEDUP, keys.KEY_MARK)
    batch.put(Family.DEDUP, key, b"\x07nonsense")


def journal_gap(store, batch):
    records = list(store.scan(Family.JOURNAL, keys.RECORD_MARK, keys.after(keys.RECORD_MARK)))
    for key, _ in records[5:9]:
        batch.delete(Family.JOURNAL, key)


def audit_gap(store, batch):
    batch.delete(Family.AUDIT, keys.audit(keys.AUDIT_CHANGE, 1))


def audit_ahead(store, batch):
    value = store.get(Family.AUDIT, keys.audit(keys.AUDIT_CHANGE, 1))
    audit.read_entry(value)
    batch.put(Family.AUDIT, keys.audit(keys.AUDIT_CHANGE, 9_999), value)


def audit_far_ahead(store, batch):
    """Nobody can count what is missing then one by one."""
    head = audit.read_head(store.get(Family.AUDIT, keys.AUDIT_HEAD))
    batch.put(Family.AUDIT, keys.AUDIT_HEAD, audit.head(head._replace(next=1 << 60)))


def wrong_setting(store, batch):
    batch.put(Family.STATE, keys.name("throttle.x"), codec.setting("nonsense"))


@pytest.mark.parametrize(
    "make, words",
    [
        (drop_queue, "message of a queue that does not exist"),
        (cut_message, "bad entry in MESSAGES"),
        (break_key, "bad entry in MESSAGES"),
        (twin, "two messages with one number"),
        (from_the_future, "message from the future"),
        (drop_lease, "end of a lease that does not exist"),
        (drop_expiry, "lease without its end"),
        (delay_twice, "message with two delays"),
        (lost_attempt, "attempt of a message that is gone"),
        (wrong_attempt, "bad entry in ATTEMPTS"),
        (stray_claim, "bad entry in CLAIMS"),
        (wrong_dedup, "bad entry in DEDUP"),
        (journal_gap, "journal with a gap"),
        (audit_gap, "entry of the audit is missing"),
        (audit_ahead, "entry of the audit from the future"),
        (audit_far_ahead, "entry of the audit is missing"),
        (wrong_setting, "the server would not start"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_damage_is_named(store, make, words):
    change(store, make)
    told = store_command("check", "--data-dir", store, code=1)
    assert f"damage: {words}" in told
    assert "is damaged. Restore a backup" in told


def test_a_damaged_block_is_found(store):
    change(store, lambda opened, _: [family.flush() for family in opened._families])
    file = max(store.glob("*.sst"), key=lambda each: each.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(content)
    assert "damaged" in store_command("check", "--data-dir", store, code=1)


def test_a_check_changes_nothing(store):
    before = {file.name: file.read_bytes() for file in store.iterdir() if not file.name.startswith("LO")}
    store_command("check", "--data-dir", store)
    assert {file.name: file.read_bytes() for file in store.iterdir() if not file.name.startswith("LO")} == before


def test_a_folder_without_a_store_is_refused(tmp_path):
    assert "there is no store" in store_command("check", "--data-dir", tmp_path, code=1)


def test_a_store_without_its_newest_log_which_a_start_refuses_is_not_whole(store):
    RocksStorage(store).close()  # begins a new one
    max(store.glob("*.log")).unlink()
    told = store_command("check", "--data-dir", store, code=1)
    assert "newest log" in told
