"""What a crash leaves is enough to go on."""

import pytest

from fila.broker.queue import LARGE_BYTES
from fila.broker.recovery import CLOCK_KEY, recover
from fila.config import LimitsConfig
from fila.core.errors import StoreCorrupt
from fila.storage import codec, keys
from fila.storage.base import Batch, Family
from fila.storage.records import AttemptRecord, GrantRecord, LeaseEnd
from fila.storage.rocks import RocksStorage
from tests.helpers.broker import MS, NODE, Driver, incoming, messages_of
from tests.support.faulty import FaultyStorage


@pytest.fixture(params=["memory", "rocks"])
def driver(request, tmp_path):
    """A broker on each store."""
    if request.param == "memory":
        driver = Driver()
        restart = driver.restart
    else:
        driver = Driver(RocksStorage(tmp_path, write_buffer_bytes=1 << 20))

        def restart():
            driver.store.close()
            Driver.restart(driver, RocksStorage(tmp_path, write_buffer_bytes=1 << 20))

    driver.restart = restart
    driver.create("q", fairness_header="tenant", weight_header="weight")
    yield driver
    driver.store.close()


def put(driver, family, key, value):
    batch = Batch()
    batch.put(family, key, value)
    driver.store.write(batch)


def assert_same_after_restart(driver):
    before = {name: messages_of(queue) for name, queue in driver.state.queues.items()}
    attempts = {name: dict(queue.attempts) for name, queue in driver.state.queues.items()}
    rows = {family: data for family, data in driver.store.dump().items() if family is not Family.DEFAULT}
    driver.restart()
    assert {name: messages_of(queue) for name, queue in driver.state.queues.items()} == before
    assert {name: dict(queue.attempts) for name, queue in driver.state.queues.items()} == attempts
    assert {family: data for family, data in driver.store.dump().items() if family is not Family.DEFAULT} == rows


def test_an_empty_store_is_an_empty_broker(driver):
    driver.delete("q")
    driver.restart()
    assert driver.state.queues == {}


def test_waiting_messages_come_back_in_their_order(driver):
    for number in range(20):
        driver.send("q", headers={"tenant": "ab"[number % 2]}, priority=(5, 0, 9)[number % 3])
    assert_same_after_restart(driver)
    consumer = driver.join("q")
    driver.settle_down()
    places = messages_of(driver.queue("q"))
    for key in "ab":
        order = [(places[seq][2], seq) for seq in consumer.seqs if places[seq][1] == key]
        assert order == sorted(order)
        assert len(order) == 10


def test_delayed_messages_stay_delayed(driver):
    seq = driver.send("q", delay_ms=5000)
    assert_same_after_restart(driver)
    driver.advance(4999)
    assert driver.places() == {seq: "delayed"}
    driver.advance(1)
    assert driver.places() == {seq: "ready"}


def test_a_lease_outlives_the_broker_and_its_token_still_settles(driver):
    driver.send("q")
    consumer = driver.join("q")
    driver.settle_down()
    (got,) = consumer.take()
    assert_same_after_restart(driver)
    other = driver.join("q")
    driver.settle_down()
    assert other.got == []
    assert driver.ack("q", got.id, token="1") != []
    assert driver.ack("q", got.id, token=got.token) == []


def test_a_lease_ends_at_its_time_also_when_the_broker_was_down(driver):
    seq = driver.send("q")
    driver.join("q")
    driver.settle_down()
    driver.now += 40_000 * MS
    driver.restart()
    driver.tick()
    assert driver.places() == {seq: "ready"}
    assert driver.queue("q").attempts == {seq: 1}


def test_a_lease_that_was_extended_ends_at_its_new_time(driver):
    seqs = driver.enqueue(incoming("q"), incoming("q"))
    consumer = driver.join("q")
    driver.settle_down()
    token = consumer.got[1].token
    driver.extend("q", consumer.got[1].id, token=token, extend_ms=90_000)
    assert_same_after_restart(driver)
    driver.advance(30_000)
    assert driver.places() == {seqs[0]: "ready", seqs[1]: "leased"}
    assert driver.ack("q", driver.id(seqs[1]), token=token) == []


def test_a_lease_that_was_shortened_ends_at_its_new_time(driver):
    seq = driver.send("q")
    driver.join("q")
    driver.settle_down()
    driver.extend("q", driver.id(seq), extend_ms=10)
    assert_same_after_restart(driver)
    driver.advance(10)
    assert driver.places() == {seq: "ready"}


def test_a_message_that_came_back_is_not_held_by_the_lease_that_still_lists_it(driver):
    """A lease's record is written once; that one of its messages was given back shows in the attempts."""
    seqs = driver.enqueue(incoming("q"), incoming("q"), incoming("q"))
    driver.join("q")
    driver.settle_down()
    driver.queue("q").consumers.remove(1)
    driver.nack("q", driver.id(seqs[0]))
    driver.nack("q", driver.id(seqs[1]), delay_ms=60_000)
    assert_same_after_restart(driver)
    assert driver.places() == {seqs[0]: "ready", seqs[1]: "delayed", seqs[2]: "leased"}


def test_a_message_that_was_leased_again_is_held_by_the_later_lease(driver):
    seqs = driver.enqueue(incoming("q"), incoming("q"))
    consumer = driver.join("q")
    driver.settle_down()
    driver.nack("q", driver.id(seqs[0]))
    driver.settle_down()
    last = consumer.got[-1]
    assert last.seq == seqs[0]
    assert_same_after_restart(driver)
    assert driver.ack("q", last.id, token=consumer.got[0].token) != []
    assert driver.ack("q", last.id, token=last.token) == []


def test_attempts_go_on_counting(driver):
    seq = driver.send("q")
    for count in range(1, 5):
        driver.join("q")
        driver.settle_down()
        driver.nack("q", driver.id(seq))
        driver.restart()
        assert driver.queue("q").attempts == {seq: count}


def test_nothing_acknowledged_comes_back(driver):
    seqs = driver.enqueue(*[incoming("q")] * 10)
    driver.join("q")
    driver.settle_down()
    driver.ack("q", *map(driver.id, seqs[:9]))
    driver.restart()
    assert driver.places() == {seqs[9]: "leased"}


def test_dedup_keys_and_producers_are_remembered(driver):
    first = driver.send("q", dedup_key="k")
    batch = driver.enqueue(incoming("q"), producer="p", sequence=3)
    driver.restart()
    assert driver.send("q", dedup_key="k") == first
    assert driver.enqueue(incoming("q"), producer="p", sequence=3) == batch
    driver.now += 60_000 * MS
    assert driver.send("q", dedup_key="k") != first


def test_a_key_has_the_weight_of_its_newest_message(driver):
    for weight, priority in (("3", 5), ("8", 0), ("2", 9)):
        driver.send("q", headers={"tenant": "a", "weight": weight}, priority=priority)
    driver.restart()
    assert driver.queue("q").keys["a"].weight == 2


def test_delivery_begins_without_being_asked(driver):
    driver.send("q")
    driver.restart()
    consumer = driver.join("q")
    driver.settle_down()
    assert len(consumer.got) == 1


def test_large_messages_are_known_again(driver):
    """They are read one at a time, so which they are must not be lost."""
    driver.send("q", b"small")
    large = driver.send("q", bytes(LARGE_BYTES))
    driver.restart()
    assert driver.queue("q").large == {large}


def test_queue_settings_are_kept(driver):
    driver.create("r", visibility_timeout_ms=77, quantum=3, dedup_window_ms=5, fairness_header="h", weight_header="w")
    before = driver.queue("r").record
    driver.restart()
    assert driver.queue("r").record == before


class TestStaleRecords:
    def test_a_lease_that_holds_nothing_is_removed(self, driver):
        record = codec.grant(GrantRecord(5, driver.now + MS, [123], {}))
        put(driver, Family.LEASES, keys.grant("q", 5), record)
        put(driver, Family.LEASE_EXPIRY, keys.grant_expiry(driver.now + MS, "q", 5), b"")
        driver.restart()
        assert driver.store.dump()[Family.LEASES] == {}
        assert driver.store.dump()[Family.LEASE_EXPIRY] == {}

    def test_a_delay_of_no_message_is_removed(self, driver):
        put(driver, Family.SCHEDULED, keys.scheduled(driver.now, "q", 5), codec.scheduled())
        driver.restart()
        assert driver.store.dump()[Family.SCHEDULED] == {}

    def test_what_is_alive_is_not_rewritten(self, driver):
        driver.send("q")
        driver.send("q", delay_ms=1000)
        driver.join("q")
        driver.settle_down()
        writes = driver.store.writes
        driver.restart()
        assert driver.store.writes == writes


class TestACorruptStore:
    @pytest.mark.parametrize(
        "family, key, value",
        [
            (Family.MESSAGES, keys.message(keys.lane("q", "default", 5), 1), b""),
            (Family.MESSAGES, keys.message(keys.lane("q", "default", 5), 1), b"\x01\x00\x02"),
            (Family.MESSAGES, keys.message(keys.lane("q", "default", 5), 1), b"\x09\x00\x0b\0\0\0\x01\0\0\0\x01"),
            (Family.MESSAGES, b"\x00", codec.message_head(1, 1)),
            (Family.MESSAGES, keys.message(keys.lane("r", "default", 5), 1), codec.message_head(1, 1)),
            (Family.QUEUES, keys.name("r"), b"\x01{"),
            (Family.QUEUES, keys.name("r"), b""),
            (Family.QUEUES, keys.name("r"), b"\x02{}"),
            (Family.LEASES, keys.name("q"), codec.grant(GrantRecord(5, 5, [1], {}))),
            (Family.LEASES, keys.grant("q", 5), b"\x01"),
            (Family.LEASES, keys.grant("q", 5), codec.grant(GrantRecord(5, 5, [1], {}))[:-1]),
            (Family.SCHEDULED, b"\x00", b"\x01"),
            (Family.ATTEMPTS, keys.attempt("q", 5, 1), b"\x01"),
            (Family.ATTEMPTS, b"no end", codec.attempt(AttemptRecord(1, LeaseEnd.NACKED, ""))),
            (Family.ATTEMPTS, keys.attempt("q", 5, 0), b"\x01{}"),
            (Family.STATE, b"no end", codec.setting("")),
            (Family.STATE, keys.name("x") + b"more", codec.setting("")),
            (Family.STATE, keys.name("x"), b"\x01\xff"),
            (Family.DEDUP, b"k", codec.dedup(1, 1)),
            (Family.DEDUP, keys.dedup("q", "k"), b""),
            (Family.DEDUP, keys.producer_batch("p", 1), b"\x01"),
            (Family.DEDUP, b"p\xff\x00\x01", codec.produced(1, 2, 0, [])),
        ],
    )
    def test_is_refused_and_left_as_it_is(self, driver, family, key, value):
        driver.send("q")
        put(driver, family, key, value)
        before = driver.store.dump()
        with pytest.raises(StoreCorrupt):
            recover(driver.store, NODE, LimitsConfig())
        assert driver.store.dump() == before

    def test_a_clock_that_cannot_be_is_no_reason_to_crash(self, driver):
        put(driver, Family.DEFAULT, CLOCK_KEY, b"")
        driver.restart()
        driver.send("q")


def test_acked_messages_leave_nothing_to_read(driver):
    """Restart time depends on what is there, not on what was: nothing is left behind by messages that are gone."""
    driver.join("q", 1000)
    for _ in range(20):
        seqs = driver.enqueue(*[incoming("q")] * 100)
        driver.settle_down()
        driver.ack("q", *map(driver.id, seqs))
    rows = driver.store.dump()
    assert all(
        not rows[family]
        for family in Family
        if family not in {Family.DEFAULT, Family.QUEUES, Family.JOURNAL, Family.AUDIT}
    )


def test_a_store_that_takes_no_write_can_still_be_recovered(driver):
    """What refers to nothing any more stays until there is room; it keeps no broker from starting."""
    seq = driver.send("q")
    stale = keys.scheduled(driver.now + MS, "q", seq + 1)
    put(driver, Family.SCHEDULED, stale, codec.scheduled())
    state = recover(FaultyStorage(driver.store, fail_after=0), NODE, LimitsConfig())
    assert state.queues["q"].depth == 1
    assert driver.store.get(Family.SCHEDULED, stale) is not None
    recover(driver.store, NODE, LimitsConfig())
    assert driver.store.get(Family.SCHEDULED, stale) is None
