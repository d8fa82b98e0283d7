"""What becomes of a message that failed: tried again, at once or later, or dead."""

import pytest

from fila.broker.attempts import HISTORY, death_of
from fila.broker.commands import Nack, Settle, UpdateQueue
from fila.core.errors import InvalidArgument, NotNow, Overloaded, StoreFailed
from fila.storage.base import Family
from fila.storage.records import LeaseEnd
from tests.helpers.broker import MS, Driver


def fail(driver, queue, consumer, error="", delay_ms=0):
    """Nack the message that the consumer was handed last."""
    driver.settle_down()
    held = consumer.got[-1]
    nack = Nack(queue, held.id, error, held.token, delay_ms)
    return driver.ask(lambda reply: Settle(reply, nacks=[nack]))


@pytest.fixture
def mortal(driver):
    """A queue that gives up after three attempts, with one message that is held."""
    driver.create("m", max_attempts=3, fairness_header="tenant", weight_header="weight")
    consumer = driver.join("m", 1)
    seq = driver.send("m", b"body", headers={"tenant": "acme", "weight": "7"}, priority=2)
    return consumer, seq


def kill(driver, mortal):
    consumer, seq = mortal
    for number in range(3):
        assert fail(driver, "m", consumer, f"error {number}") == []
    driver.settle_down()
    return seq


class TestADeadLetter:
    def test_is_moved_at_the_last_attempt_and_not_before(self, driver, mortal):
        consumer, seq = mortal
        for _ in range(2):
            fail(driver, "m", consumer)
            assert seq in driver.queue("m").attempts
        fail(driver, "m", consumer)
        assert driver.places() == {seq: "ready"}
        assert driver.queue("m").size == 0
        assert driver.queue("m.dlq").size == 1
        assert driver.queue("m").counters.dead_lettered == 1
        assert driver.queue("m").counters.nacked == 3

    def test_keeps_its_id_place_body_attempts_and_errors(self, driver, mortal):
        seq = kill(driver, mortal)
        graves = driver.queue("m.dlq")
        (key,) = graves.keys.values()
        assert (key.name, key.weight, graves.attempts) == ("acme", 7, {seq: 3})
        (record,) = driver.store.dump()[Family.MESSAGES].values()
        assert record.endswith(b"body")
        death = death_of(driver.store, "m.dlq", seq)
        assert (death.record.source, death.record.reason, death.record.at) == ("m", "max_attempts", driver.now)
        assert [(number, one.kind, one.error) for number, one in death.attempts] == [
            (1, LeaseEnd.NACKED, "error 0"),
            (2, LeaseEnd.NACKED, "error 1"),
            (3, LeaseEnd.NACKED, "error 2"),
        ]

    def test_is_the_same_after_a_restart(self, driver, mortal):
        seq = kill(driver, mortal)
        driver.restart()
        graves = driver.queue("m.dlq")
        assert (graves.attempts, graves.keys["acme"].weight) == ({seq: 3}, 7)
        assert death_of(driver.store, "m.dlq", seq) is not None

    def test_is_moved_in_one_write_or_not_at_all(self, driver, mortal):
        consumer, _ = mortal
        for _ in range(2):
            fail(driver, "m", consumer)
        driver.settle_down()
        before, stored = driver.snapshot(), driver.store.dump()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            fail(driver, "m", consumer)
        driver.store.failing = False
        assert (driver.snapshot(), driver.store.dump()) == (before, stored)
        driver.now += 1000 * MS
        writes = driver.store.writes
        fail(driver, "m", consumer)
        assert driver.store.writes == writes + 1
        assert driver.queue("m.dlq").size == 1

    def test_leaves_nothing_behind_when_it_is_settled(self, driver, mortal):
        kill(driver, mortal)
        consumer = driver.join("m.dlq")
        driver.settle_down()
        driver.ack("m.dlq", consumer.got[0].id)
        left = driver.store.dump()
        assert left[Family.ATTEMPTS] == {}
        assert left[Family.MESSAGES] == {}

    def test_can_fail_again_and_stays(self, driver, mortal):
        seq = kill(driver, mortal)
        consumer = driver.join("m.dlq", 1)
        for _ in range(HISTORY + 2):
            fail(driver, "m.dlq", consumer, "again")
        assert driver.queue("m.dlq").attempts == {seq: 3 + HISTORY + 2}
        death = death_of(driver.store, "m.dlq", seq)
        assert death.record.source == "m"
        assert [one.error for _, one in death.attempts] == ["again"] * HISTORY
        driver.settle_down()
        driver.ack("m.dlq", consumer.got[-1].id)
        assert driver.store.dump()[Family.ATTEMPTS] == {}

    def test_of_a_message_that_kills_its_consumers_too(self, driver, mortal):
        consumer, seq = mortal
        driver.settle_down()
        driver.leave(consumer)
        driver.join("m", 1)
        driver.settle_down()
        driver.advance(30_001)
        driver.advance(30_001)
        death = death_of(driver.store, "m.dlq", seq)
        assert [one.kind for _, one in death.attempts] == [LeaseEnd.RETURNED, LeaseEnd.EXPIRED, LeaseEnd.EXPIRED]
        assert driver.queue("m").counters.expired == 2

    def test_by_a_script_only_what_was_nacked(self, driver):
        """An expired lease and a lost consumer are nothing that a consumer said: they are left to `max_attempts`."""
        driver.create("s", script="function on_failure(msg) return { action = 'dlq' } end")
        driver.send("s")
        consumer = driver.join("s", 1)
        driver.settle_down()
        driver.leave(consumer)
        consumer = driver.join("s", 1)
        driver.settle_down()
        driver.advance(30_001)
        assert (driver.queue("s").size, driver.queue("s.dlq").size) == (1, 0)
        fail(driver, "s", consumer)
        driver.settle_down()
        assert (driver.queue("s").size, driver.queue("s.dlq").size) == (0, 1)

    def test_wakes_who_waits_for_dead_letters(self, driver, mortal):
        waiting = driver.join("m.dlq")
        seq = kill(driver, mortal)
        assert waiting.seqs == [seq]

    def test_a_large_one_stays_large(self, driver, mortal):
        consumer, _ = mortal
        driver.settle_down()
        driver.ack("m", consumer.take()[0].id)
        seq = driver.send("m", b"x" * 70_000)
        for _ in range(3):
            fail(driver, "m", consumer)
        assert (driver.queue("m").large, driver.queue("m.dlq").large) == (set(), {seq})


def test_only_so_much_dies_in_one_tick():
    """A tick's write stays bounded, however large the messages are that fail together."""
    driver = Driver(max_tick_messages=100)
    driver.create("q", max_attempts=1)
    consumer = driver.join("q", 20)
    for _ in range(20):
        driver.send("q", b"x" * ((4 << 20) - (256 << 10)))
    driver.settle_down()
    nacks = [Nack("q", one.id, "", one.token) for one in consumer.take()]
    failures = driver.ask(lambda reply: Settle(reply, nacks=nacks))
    assert [type(failure.error) for failure in failures] == [Overloaded] * 3
    assert driver.queue("q.dlq").size == 17
    driver.advance(30_001)
    assert driver.queue("q.dlq").size == 20


class TestRetrying:
    def test_without_settings_is_at_once_and_for_ever(self, driver):
        driver.create("r")
        consumer = driver.join("r", 1)
        driver.send("r")
        for _ in range(50):
            fail(driver, "r", consumer)
        driver.settle_down()
        assert len(consumer.got) == 51
        assert len(driver.store.dump()[Family.ATTEMPTS]) == HISTORY

    def test_rests_longer_each_time_up_to_a_cap(self, driver):
        driver.create("r", retry_delay_ms=100, retry_backoff=2.0, retry_max_delay_ms=500)
        consumer = driver.join("r", 1)
        driver.send("r")
        rests = []
        for _ in range(5):
            fail(driver, "r", consumer)
            (due,) = [due for due, *_ in driver.queue("r").schedule.all()]
            rests.append((due - driver.now) // MS)
            driver.now = due
        assert rests == [100, 200, 400, 500, 500]

    def test_jitter_takes_off_a_part_that_differs(self, driver):
        driver.create("r", retry_delay_ms=1000, retry_jitter=0.5)
        consumer = driver.join("r", 20)
        for _ in range(20):
            driver.send("r")
        driver.settle_down()
        driver.ask(lambda reply: Settle(reply, nacks=[Nack("r", one.id) for one in consumer.got]))
        rests = [(due - driver.now) / MS for due, *_ in driver.queue("r").schedule.all()]
        assert all(500 <= rest <= 1000 for rest in rests)
        assert len(set(rests)) > 10

    def test_the_consumer_knows_better_than_the_queue(self, driver):
        driver.create("r", retry_delay_ms=1000)
        consumer = driver.join("r", 1)
        driver.send("r")
        fail(driver, "r", consumer, delay_ms=7)
        assert driver.queue("r").schedule.next_due() == driver.now + 7 * MS

    def test_a_lost_consumer_makes_no_message_rest(self, driver):
        driver.create("r", retry_delay_ms=1000)
        consumer = driver.join("r", 1)
        seq = driver.send("r")
        driver.settle_down()
        driver.leave(consumer)
        driver.settle_down()
        assert driver.places() == {seq: "ready"}


class TestSettingsOfALiveQueue:
    def update(self, driver, queue, **changes):
        return driver.ask(lambda reply: UpdateQueue(queue, changes, reply))

    def test_hold_from_then_on_and_after_a_restart(self, driver, mortal):
        consumer, _ = mortal
        fail(driver, "m", consumer)
        self.update(driver, "m", max_attempts=2, quantum=9, visibility_timeout_ms=5)
        assert driver.queue("m").drr.quantum == 9
        fail(driver, "m", consumer)
        assert driver.queue("m.dlq").size == 1
        driver.restart()
        assert driver.queue("m").retry.max_attempts == 2
        assert driver.queue("m").visibility_ns == 5 * MS

    def test_change_nothing_when_they_cannot_be_written(self, driver, mortal):
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            self.update(driver, "m", max_attempts=9)
        assert driver.queue("m").record.max_attempts == 3

    def test_of_a_dead_letter_queue_are_few(self, driver, mortal):
        assert self.update(driver, "m.dlq", visibility_timeout_ms=5).visibility_timeout_ms == 5
        with pytest.raises(
            InvalidArgument, match="only max_bytes, max_depth, overflow, quantum, visibility_timeout_ms can be changed"
        ):
            self.update(driver, "m.dlq", max_attempts=1)


class TestDeleting:
    def test_a_queue_with_dead_letters_needs_force(self, driver, mortal):
        kill(driver, mortal)
        with pytest.raises(NotNow, match=r'queue "m\.dlq" holds 1 dead letters'):
            driver.delete("m")
        assert driver.delete("m", force=True) == 1
        assert "m.dlq" not in driver.state.queues
        assert driver.store.dump()[Family.ATTEMPTS] == {}

    def test_a_dead_letter_queue_goes_with_its_queue_only(self, driver, mortal):
        with pytest.raises(
            InvalidArgument, match=r'"m\.dlq" is the dead-letter queue of "m": it is deleted together with'
        ):
            driver.delete("m.dlq")


class TestWhatAConsumerKnowsBetter:
    def settle(self, driver, consumer, **how):
        driver.settle_down()
        held = consumer.got[-1]
        nack = Nack(consumer.queue, held.id, "why", held.token, **how)
        return driver.ask(lambda reply: Settle(reply, nacks=[nack]))

    def test_a_rejected_message_is_dead_at_once(self, driver):
        driver.create("r", retry_delay_ms=1000)
        consumer = driver.join("r", 1)
        seq = driver.send("r")
        assert self.settle(driver, consumer, dead_letter=True) == []
        death = death_of(driver.store, "r.dlq", seq)
        assert (death.record.reason, [one.error for _, one in death.attempts]) == ("rejected", ["why"])

    def test_a_released_message_counts_no_attempt_however_often(self, driver):
        driver.create("r", max_attempts=1, retry_delay_ms=1000)
        consumer = driver.join("r", 1)
        seq = driver.send("r")
        for _ in range(5):
            assert self.settle(driver, consumer, release=True) == []
        assert driver.places() == {seq: "ready"}
        assert driver.queue("r").attempts == {}
        assert driver.queue("r").counters.returned == 5

    def test_a_released_message_is_free_after_a_restart_although_others_of_its_lease_are_held(self, driver):
        """Also when the lease was extended meanwhile, so that an older record still names the message."""
        driver.create("r")
        consumer = driver.join("r", 3)
        seqs = [driver.send("r") for _ in range(3)]
        driver.settle_down()
        ids = {one.seq: one for one in consumer.got}
        driver.extend("r", ids[seqs[0]].id, ids[seqs[1]].id, extend_ms=60_000)
        nack = Nack("r", ids[seqs[0]].id, release=True, delay_ms=500)
        driver.ask(lambda reply: Settle(reply, nacks=[nack]))
        driver.leave(consumer)
        driver.restart()
        assert driver.places()[seqs[0]] == "delayed"
        driver.advance(500)
        driver.restart()
        assert driver.places()[seqs[0]] == "ready"

    def test_both_at_once_make_no_sense(self, driver):
        driver.create("r")
        consumer = driver.join("r", 1)
        driver.send("r")
        (failure,) = self.settle(driver, consumer, release=True, dead_letter=True)
        assert isinstance(failure.error, InvalidArgument)
