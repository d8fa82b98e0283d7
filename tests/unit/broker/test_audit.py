"""The audit: in the write of the change, numbered without gaps, kept within its bounds."""

import hashlib
from typing import get_args

import pytest

from fila.auth.keys import new_key
from fila.auth.records import Assignment, LastUse, Principal, Role
from fila.auth.registry import Put, Remove
from fila.auth.rights import Grant
from fila.broker.audit import MAX_DROPS, REFUSED_SHARE
from fila.broker.audit_commands import BeginSweep, EndSweep, Origin, RecordRefusals
from fila.broker.audit_entries import MAX_VALUE
from fila.broker.commands import (
    AckClaims,
    ChangeAccess,
    Command,
    CommitTransaction,
    DropOldest,
    Enqueue,
    ExtendClaims,
    MakeClaim,
    Purge,
    ReturnGrants,
    SetConfig,
    Settle,
    StageEnqueue,
    UpdateQueue,
)
from fila.broker.operations import OPERATIONS
from fila.config import KIB, AuditConfig, JournalConfig
from fila.core.errors import BrokerError, StoreFailed
from fila.core.ids import NS_PER_MS
from fila.storage.audit import INTERRUPTED, AuditRecord
from fila.storage.base import Batch, Family
from tests.helpers.broker import Driver

BOSS = Origin("Test", "boss", "boss-abc", "10.0.0.1:9")

OF_MESSAGES = {
    Enqueue, Settle, ReturnGrants, MakeClaim, AckClaims, ExtendClaims, StageEnqueue, CommitTransaction,
    DropOldest,
}  # fmt: skip
TO_THE_AUDIT = {BeginSweep, EndSweep, RecordRefusals}


def configure(driver, key="k", value="v"):
    return driver.ask(lambda reply: SetConfig(key, value, reply, BOSS))


def refuse(driver, count=1, name="q"):
    records = [BOSS.record(driver.now, "queue", name, outcome="PERMISSION_DENIED")] * count
    driver.ask(lambda reply: RecordRefusals(records, reply))


def small(max_bytes):
    config = AuditConfig()
    object.__setattr__(config, "max_bytes", max_bytes)  # less than may be configured
    return config


def stored(driver, mark):
    rows = driver.store.dump()[Family.AUDIT].items()
    return sum(len(key) + len(value) for key, value in rows if key[:1] == mark and len(key) == 9)


def test_every_command_but_those_of_messages_is_told():
    untold = {kind for kind, operation in OPERATIONS.items() if operation.audit is None}
    assert untold == OF_MESSAGES | TO_THE_AUDIT
    assert set(OPERATIONS) == set(get_args(Command))


def test_whatever_is_told_has_a_tick_to_itself():
    """So that old values are those of the state, and there is one write for both."""
    assert all(operation.alone for operation in OPERATIONS.values() if operation.audit is not None)
    assert all(OPERATIONS[kind].alone for kind in TO_THE_AUDIT)


class TestTheWrite:
    def test_has_the_change_and_its_entry(self, driver):
        batches: list[Batch] = []
        driver.store.on_write = batches.append
        configure(driver)
        (batch,) = batches
        assert {family for family, *_ in batch.changes} >= {Family.STATE, Family.AUDIT}

    @pytest.mark.parametrize("enabled", [True, False])
    def test_is_made_whether_or_not_there_is_a_journal(self, enabled):
        driver = Driver(journal=JournalConfig(enabled=enabled))
        configure(driver)
        assert [record.action for record in driver.audit()] == ["Test"]

    def test_that_fails_leaves_neither(self, driver):
        before = driver.store.dump()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            configure(driver)
        driver.store.failing = False
        assert driver.store.dump() == before
        assert configure(driver) is None
        driver.restart()
        assert [record.action for record in driver.audit()] == ["Internal", "Test"]

    def test_of_a_refused_command_has_no_entry(self, driver):
        first = driver.state.audit.next_entry
        with pytest.raises(BrokerError):
            configure(driver, "")
        assert driver.state.audit.next_entry == first

    def test_is_told_once_it_is_durable(self, driver):
        told = []
        driver.state.audit.on_entry = lambda number, record: told.append((number, record.action))
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            configure(driver)
        assert told == []
        driver.store.failing = False
        configure(driver)
        assert told == [(2, "Test")]


class TestWhatIsTold:
    def test_settings_are_told_before_and_after(self, driver):
        driver.ask(lambda reply: UpdateQueue("q", {"quantum": 9, "paused": True}, reply, BOSS))
        (record,) = driver.audit(2)
        assert (record.principal, record.key_id, record.peer) == ("boss", "boss-abc", "10.0.0.1:9")
        assert record.changes == {"quantum": ("4", "9"), "paused": ("false", "true")}

    def test_a_script_is_told_by_its_digest(self, driver):
        script = "function on_enqueue(m) return {} end -- secret"
        driver.ask(lambda reply: UpdateQueue("q", {"script": script}, reply))
        (record,) = driver.audit(2)
        digest = hashlib.sha256(script.encode()).hexdigest()
        assert record.changes == {"script": ("", f"sha256:{digest}, {len(script)} bytes")}

    def test_a_value_of_the_configuration_is_told_by_a_digest_with_a_key(self, driver):
        for value in ("hunter2", "hunter3", "hunter2"):
            configure(driver, "k", value)
        driver.restart()
        configure(driver, "other", "hunter2")
        changes = [record.changes["value"] for record in driver.audit(2)]
        first, second = changes[0][1], changes[1][1]
        assert changes == [(None, first), (first, second), (second, first), (None, first)]
        assert hashlib.sha256(b"hunter2").hexdigest()[:16] not in first
        assert Driver().state.audit.digest("hunter2") != first

    def test_a_throttle_is_told_as_it_is(self, driver):
        configure(driver, "throttle.a:b", "rate=5")
        (record,) = driver.audit(2)
        assert (record.kind, record.resource, record.changes) == ("throttle", "a:b", {"limit": (None, "rate=5")})

    def test_rights_are_told_without_secrets(self, driver):
        key, token = new_key("boss", 1)
        role = Role("tuner", (Grant.parse("manage=**"),))
        principal = Principal("boss", (Assignment("admin"), Assignment("tuner", "a.*")), 1, {"open_calls": 3})
        changes = [Put(role), Put(principal), Put(key), Put(LastUse(key.id, 1))]
        driver.ask(lambda reply: ChangeAccess(changes, reply, BOSS))
        assert [(record.kind, record.resource, record.changes) for record in driver.audit(2)] == [
            ("role", "tuner", {"grants": (None, "manage=queue:**")}),
            ("principal", "boss", {"roles": (None, "admin, tuner:a.*"), "limits": (None, "open_calls=3")}),
            ("key", key.id, {"principal": (None, "boss"), "expires_at": (None, "never")}),
        ]
        rows = b"".join(driver.store.dump()[Family.AUDIT].values())
        assert not [each for each in (token[-64:], key.hash, key.salt) if each.encode() in rows]

    def test_the_keys_of_a_deleted_principal_stand_in_its_entry(self, driver):
        kept, _ = new_key("root", 1)
        keys = [new_key("shop", 1)[0] for _ in range(3)]
        made = [Put(Principal(name, (Assignment("admin"),), 1)) for name in ("root", "shop")]
        driver.ask(lambda reply: ChangeAccess([*made, Put(kept), *map(Put, keys)], reply))
        first = driver.state.audit.next_entry
        gone = [Remove(type(key), key.id) for key in keys]
        driver.ask(lambda reply: ChangeAccess([*gone, Remove(Principal, "shop")], reply))
        (record,) = driver.audit(first)
        assert record.changes == {"roles": ("admin", None), "keys": (", ".join(key.id for key in keys), None)}

    def test_the_use_of_keys_is_no_change(self, driver):
        driver.ask(lambda reply: ChangeAccess([Put(LastUse("k", 5))], reply))
        assert driver.audit(2) == []

    def test_a_long_value_is_cut(self, driver):
        headers = tuple(f"header-{number}" for number in range(500))
        driver.ask(lambda reply: UpdateQueue("q", {"throttle_headers": headers}, reply))
        (record,) = driver.audit(2)
        assert len(record.changes["throttle_headers"][1]) < MAX_VALUE + 50


class TestASweep:
    def begin(self, driver, count=5):
        for _ in range(count):
            driver.send("q")
        return driver.ask(lambda reply: BeginSweep(BOSS, "q", {"count": (None, "3")}, reply))

    def purge(self, driver, sweep, count):
        places = driver.find("q")[:count]
        driver.ask(lambda reply: Purge("q", places, reply, sweep))

    def test_has_an_entry_when_it_begins_and_one_when_it_ends(self, driver):
        sweep = self.begin(driver)
        self.purge(driver, sweep, 2)
        self.purge(driver, sweep, 1)
        driver.ask(lambda reply: EndSweep(sweep, reply))
        begin, end = driver.audit(2)
        assert (begin.stage, begin.changes) == ("begin", {"count": (None, "3")})
        assert (end.stage, end.count, end.began, end.outcome, end.changes) == ("end", 3, sweep, "ok", {})
        assert driver.state.audit.sweeps == {}

    def test_ends_once(self, driver):
        sweep = self.begin(driver)
        for _ in range(2):
            driver.ask(lambda reply: EndSweep(sweep, reply))
        assert len(driver.audit(2)) == 2

    def test_that_was_interrupted_has_the_exact_count(self, driver):
        """What it had moved is in the same write as the moving."""
        sweep = self.begin(driver)
        self.purge(driver, sweep, 2)
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            self.purge(driver, sweep, 2)
        driver.store.failing = False
        driver.restart()
        driver.ask(lambda reply: EndSweep(sweep, reply, INTERRUPTED))
        assert (driver.audit()[-1].outcome, driver.audit()[-1].count) == ("interrupted", 2)
        assert driver.queue("q").size == 3
        driver.restart()
        assert driver.state.audit.sweeps == {}


class TestBounds:
    def test_changes_are_kept_within_their_bytes(self):
        driver = Driver(audit=small(64 * KIB))
        for number in range(600):
            configure(driver, f"key-{number}")
            assert stored(driver, b"c") == driver.state.audit.changes.bytes <= 64 * KIB
        records = driver.audit()
        assert [record.resource for record in records] == [f"key-{number}" for number in range(600)][-len(records) :]
        assert len(records) > 200
        assert driver.state.audit.first_entry == 601 - len(records)

    def test_refusals_push_out_no_change(self):
        driver = Driver(audit=small(64 * KIB))
        configure(driver)
        for _ in range(50):
            refuse(driver, 20, "a-queue-with-a-long-name" * 8)
        assert stored(driver, b"r") == driver.state.audit.refusals.bytes <= 64 * KIB // REFUSED_SHARE
        assert driver.audit()[0].action == "Test"
        assert driver.audit()[0].outcome == "ok"

    def test_old_entries_go_when_something_is_written(self):
        driver = Driver(audit=AuditConfig(max_age_ms=1_000))
        configure(driver, "old")
        driver.advance(600)
        configure(driver, "newer")
        driver.now += 600 * NS_PER_MS
        configure(driver, "newest")
        assert [record.resource for record in driver.audit()] == ["newer", "newest"]

    def test_a_smaller_bound_is_reached_little_by_little(self, monkeypatch):
        monkeypatch.setattr("fila.broker.audit.MAX_DROPS", 50)
        assert MAX_DROPS > 50
        driver = Driver(audit=small(256 * KIB))
        for number in range(900):
            configure(driver, f"key-{number}")
        driver.auditing = small(64 * KIB)
        driver.restart()
        for _ in range(30):
            configure(driver, "k")
        assert stored(driver, b"c") == driver.state.audit.changes.bytes <= 64 * KIB

    def test_a_restart_goes_on_where_it_was(self, driver):
        configure(driver)
        refuse(driver)
        before = driver.state.audit
        driver.restart()
        after = driver.state.audit
        assert (after.next_entry, after.changes, after.refusals) == (before.next_entry, before.changes, before.refusals)

    def test_an_entry_that_cannot_be_read_keeps_no_change_from_being_made(self, driver):
        configure(driver)
        batch = Batch()
        batch.put(Family.AUDIT, b"c" + bytes(7) + b"\x01", b"damage")
        driver.store.write(batch)
        configure(driver, "k", "again")
        assert driver.state.config["k"] == "again"


def test_changes_and_refusals_are_read_in_their_order(driver):
    for number in range(4):
        configure(driver, f"k{number}")
        refuse(driver)
    kinds = [record.outcome for record in driver.audit(2)]
    assert kinds == ["ok", "PERMISSION_DENIED"] * 4
    refused = [number for number, _ in driver.state.audit.read(driver.store, 1, 99, refused=True)]
    assert refused == [3, 5, 7, 9]
    part = [number for number, _ in driver.state.audit.read(driver.store, 4, 7)]
    assert part == [4, 5, 6]


def test_an_entry_has_all_its_fields_after_a_restart(driver):
    record = AuditRecord(driver.now, "A", "queue", "q", "p", "k", "1.2.3.4", outcome="NOT_FOUND", times=7)
    driver.ask(lambda reply: RecordRefusals([record], reply))
    driver.restart()
    assert driver.audit(2) == [record]
