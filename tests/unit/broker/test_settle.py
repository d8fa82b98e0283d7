"""What consumers say of the messages they hold, and what happens when they say nothing."""

import pytest

from fila.broker.commands import AckGroup, ExtendGroup, Nack, Settle
from fila.core.errors import MessageNotFound, QueueNotFound
from fila.storage.base import Family
from tests.helpers.broker import MS, Driver


def errors(failures):
    return [type(failure.error) for failure in failures]


def assert_refused(failures, count=1):
    assert len(failures) == count
    assert all(isinstance(failure.error, MessageNotFound) for failure in failures)


def empty(driver):
    """Whether nothing but the queue is left in the store."""
    kept = {Family.DEFAULT, Family.QUEUES, Family.JOURNAL, Family.AUDIT}
    return all(not rows for family, rows in driver.store.dump().items() if family not in kept)


class TestAck:
    def test_removes_the_message_for_good(self, driver, held):
        assert driver.ack("q", held.id, token=held.token) == []
        assert driver.places() == {}
        assert empty(driver)
        driver.restart()
        assert driver.places() == {}

    def test_works_without_a_token(self, driver, held):
        assert driver.ack("q", held.id) == []
        assert driver.places() == {}

    def test_twice_is_refused_the_second_time(self, driver, held):
        driver.ack("q", held.id, token=held.token)
        assert_refused(driver.ack("q", held.id, token=held.token))

    def test_twice_in_one_batch_is_refused_the_second_time(self, driver, held):
        assert_refused(driver.ack("q", held.id, held.id))
        assert driver.queue("q").counters.acked == 1

    def test_twice_in_one_tick_is_refused_the_second_time(self, driver, held):
        one = driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", [held.id])]))
        two = driver.submit(lambda reply: Settle(reply, nacks=[Nack("q", held.id)]))
        driver.tick()
        assert one == [[]]
        assert_refused(two[0])
        assert driver.places() == {}

    def test_of_a_waiting_message_is_refused(self, driver):
        seq = driver.send("q")
        assert_refused(driver.ack("q", driver.id(seq)))
        assert driver.places() == {seq: "ready"}

    def test_of_a_delayed_message_is_refused(self, driver):
        seq = driver.send("q", delay_ms=1000)
        assert_refused(driver.ack("q", driver.id(seq)))
        assert driver.places() == {seq: "delayed"}

    @pytest.mark.parametrize("token", ["0", "ffffffffffffffff", "no number", "-1", "1" * 10_000, " "])
    def test_with_another_token_is_refused_and_changes_nothing(self, driver, held, token):
        before, stored = driver.snapshot(), driver.store.dump()
        assert_refused(driver.ack("q", held.id, token=token))
        assert driver.snapshot() == before
        assert driver.store.dump() == stored

    @pytest.mark.parametrize(
        "message_id",
        ["", "x", "018bcfe5-6800-7000-8000-00000000002b", "00000000-0000-0000-0000-000000000000", "é" * 36],
        ids=["nothing", "no id", "of another store", "zeros", "no ASCII"],
    )
    def test_of_what_is_no_message_is_refused(self, driver, held, message_id):
        (failure,) = driver.ack("q", message_id)
        assert failure.message_id == message_id
        assert isinstance(failure.error, MessageNotFound)

    def test_in_another_queue_is_refused(self, driver, held):
        driver.create("r")
        assert_refused(driver.ack("r", held.id))
        assert errors(driver.ack("nowhere", held.id)) == [QueueNotFound]
        assert driver.places() == {held.seq: "leased"}

    def test_each_message_of_a_batch_succeeds_or_fails_by_itself(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        driver.join("q", 2)
        driver.settle_down()
        failures = driver.ack("q", *map(driver.id, seqs))
        assert [failure.message_id for failure in failures] == [driver.id(seqs[2])]
        assert driver.places().keys() <= {seqs[2]}

    def test_after_the_lease_ended_is_refused_and_the_next_holder_keeps_the_message(self, driver, held):
        driver.advance(30_000)
        (again,) = driver.consumer.take()
        assert again.token != held.token
        assert_refused(driver.ack("q", held.id, token=held.token))
        assert driver.places() == {held.seq: "leased"}
        assert driver.ack("q", held.id, token=again.token) == []

    def test_in_the_tick_in_which_the_lease_ends_is_refused(self, driver, held):
        driver.now += 30_000 * MS
        assert_refused(driver.ack("q", held.id, token=held.token))
        assert driver.places() == {held.seq: "ready"}

    def test_a_moment_before_the_lease_ends_is_taken(self, driver, held):
        driver.now += 30_000 * MS - 1
        assert driver.ack("q", held.id, token=held.token) == []

    def test_frees_the_credit_of_the_consumer(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        consumer = driver.join("q", 1)
        for seq in seqs:
            driver.settle_down()
            (got,) = consumer.take()
            assert got.seq == seq
            driver.ack("q", got.id)
        assert consumer.consumer.in_flight == 0


class TestNack:
    def test_gives_the_message_back_at_once_with_one_more_attempt(self, driver, held):
        assert driver.nack("q", held.id, token=held.token) == []
        assert driver.places() == {held.seq: "ready"}
        assert driver.queue("q").attempts == {held.seq: 1}
        driver.settle_down()
        (again,) = driver.consumer.take()
        assert again.seq == held.seq
        driver.nack("q", held.id)
        assert driver.queue("q").attempts == {held.seq: 2}

    def test_with_a_delay_holds_the_message_back(self, driver, held):
        driver.nack("q", held.id, delay_ms=200)
        driver.advance(199)
        assert driver.places() == {held.seq: "delayed"}
        driver.advance(1)
        assert driver.places() == {held.seq: "leased"}
        assert driver.queue("q").attempts == {held.seq: 1}

    def test_puts_the_message_back_in_its_old_place(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        first = driver.join("q", 2)
        driver.settle_down()
        driver.leave(first)
        driver.settle_down()
        consumer = driver.join("q", 3)
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_the_attempts_go_with_the_message(self, driver, held):
        driver.nack("q", held.id)
        driver.settle_down()
        driver.ack("q", held.id)
        assert driver.queue("q").attempts == {}
        assert empty(driver)

    @pytest.mark.parametrize("token", ["0", "no number"])
    def test_with_another_token_is_refused(self, driver, held, token):
        assert_refused(driver.nack("q", held.id, token=token))
        assert driver.places() == {held.seq: "leased"}
        assert driver.queue("q").attempts == {}

    def test_in_an_unknown_queue_says_so(self, driver, held):
        assert errors(driver.nack("nowhere", held.id)) == [QueueNotFound]


class TestExtend:
    def test_moves_the_end_of_the_lease_and_keeps_its_token(self, driver, held):
        driver.now += 20_000 * MS
        assert driver.extend("q", held.id, token=held.token) == []
        driver.advance(29_999)
        assert driver.places() == {held.seq: "leased"}
        assert driver.queue("q").attempts == {}
        driver.advance(1)
        assert driver.queue("q").attempts == {held.seq: 1}

    def test_by_a_time_of_ones_own(self, driver, held):
        driver.extend("q", held.id, extend_ms=100_000)
        driver.advance(99_999)
        assert driver.places() == {held.seq: "leased"}
        assert driver.ack("q", held.id, token=held.token) == []

    def test_leaves_the_other_messages_of_the_lease_alone(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        consumer = driver.join("q", 3)
        driver.settle_down()
        driver.leave(consumer)
        driver.settle_down()
        holder = driver.join("q", 3)
        driver.settle_down()
        assert len({got.token for got in holder.got}) == 1
        driver.extend("q", driver.id(seqs[1]), extend_ms=60_000)
        driver.queue("q").consumers.remove(holder.consumer.number)
        driver.advance(30_000)
        assert driver.places() == {seqs[0]: "ready", seqs[1]: "leased", seqs[2]: "ready"}

    def test_keeps_the_credit_of_the_consumer(self, driver, held):
        driver.extend("q", held.id)
        assert driver.consumer.consumer.in_flight == 1
        driver.ack("q", held.id)
        assert driver.consumer.consumer.in_flight == 0
        assert empty(driver)

    def test_of_what_is_not_held_is_refused(self, driver, held):
        assert_refused(driver.extend("q", held.id, token="0"))
        driver.ack("q", held.id)
        assert_refused(driver.extend("q", held.id))
        assert errors(driver.extend("nowhere", held.id)) == [QueueNotFound]

    def test_twice_in_one_tick_the_last_one_counts(self, driver, held):
        answers = [
            driver.submit(lambda reply, ms=ms: Settle(reply, extends=[ExtendGroup("q", [held.id], held.token, ms)]))
            for ms in (50_000, 40_000)
        ]
        driver.tick()
        assert answers == [[[]], [[]]]
        (grant,) = driver.queue("q").leases.grants()
        assert grant.expires_at == driver.now + 40_000 * MS

    def test_with_another_token_is_refused_also_beside_a_right_one(self, driver, held):
        right = driver.submit(lambda reply: Settle(reply, extends=[ExtendGroup("q", [held.id], held.token)]))
        wrong = driver.submit(lambda reply: Settle(reply, extends=[ExtendGroup("q", [held.id], "0")]))
        driver.tick()
        assert right == [[]]
        assert_refused(wrong[0])

    def test_comes_after_the_acks_and_nacks_of_its_tick(self, driver, held):
        extended = driver.submit(lambda reply: Settle(reply, extends=[ExtendGroup("q", [held.id])]))
        acked = driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", [held.id])]))
        driver.tick()
        assert acked == [[]]
        assert_refused(extended[0])

    def test_of_many_does_not_let_memory_or_store_grow(self, driver, held):
        for _ in range(1000):
            driver.now += MS
            driver.extend("q", held.id)
        assert len(driver.queue("q").leases._expiry) < 200
        assert len(driver.store.dump()[Family.LEASES]) == 1
        assert len(driver.store.dump()[Family.LEASE_EXPIRY]) == 1


class TestExpiry:
    def test_gives_the_message_back_with_one_more_attempt(self, driver, held):
        driver.queue("q").consumers.remove(driver.consumer.consumer.number)
        driver.advance(30_000)
        assert driver.places() == {held.seq: "ready"}
        assert driver.queue("q").attempts == {held.seq: 1}
        assert driver.queue("q").counters.expired == 1

    def test_happens_in_one_tick_for_all(self, driver):
        seqs = [driver.send("q") for _ in range(50)]
        driver.join("q", 50)
        driver.settle_down()
        driver.now += 30_000 * MS
        writes = driver.store.writes
        driver.tick()
        assert driver.store.writes == writes + 1
        assert driver.places() == dict.fromkeys(seqs, "ready")

    def test_of_many_leases_is_spread_over_ticks(self):
        driver = Driver(max_tick_messages=10)
        driver.create("q")
        for _ in range(30):
            driver.send("q")
        consumer = driver.join("q", 30)
        driver.settle_down()
        driver.queue("q").consumers.remove(consumer.consumer.number)
        driver.now += 30_000 * MS
        counts = []
        for _ in range(4):
            driver.tick()
            counts.append(driver.queue("q").ready)
        assert counts[0] < 30
        assert counts[-1] == 30

    def test_frees_the_credit_of_the_consumer(self, driver):
        seqs = [driver.send("q") for _ in range(2)]
        consumer = driver.join("q", 1)
        driver.settle_down()
        driver.advance(30_000)
        assert consumer.seqs == [seqs[0], seqs[0]]
        assert consumer.consumer.in_flight == 1

    def test_leaves_only_the_attempts_behind(self, driver, held):
        driver.queue("q").consumers.remove(driver.consumer.consumer.number)
        driver.advance(30_000)
        stored = driver.store.dump()
        assert not stored[Family.LEASES]
        assert not stored[Family.LEASE_EXPIRY]
        assert len(stored[Family.ATTEMPTS]) == 1


class TestAConsumerThatLeaves:
    def test_returns_what_it_holds_in_the_next_tick_with_one_more_attempt(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        consumer = driver.join("q", 3)
        driver.settle_down()
        driver.ack("q", driver.id(seqs[0]))
        driver.leave(consumer)
        driver.tick()
        assert driver.places() == {seqs[1]: "ready", seqs[2]: "ready"}
        assert driver.queue("q").attempts == {seqs[1]: 1, seqs[2]: 1}
        assert driver.queue("q").counters.returned == 2

    def test_returns_also_what_was_extended(self, driver, held):
        driver.extend("q", held.id, extend_ms=3_600_000)
        driver.leave(driver.consumer)
        driver.tick()
        assert driver.places() == {held.seq: "ready"}

    def test_what_it_held_goes_to_the_others(self, driver, held):
        other = driver.join("q")
        driver.leave(driver.consumer)
        driver.settle_down()
        assert other.seqs == [held.seq]

    def test_is_handed_nothing_more(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        driver.leave(consumer)
        driver.send("q")
        driver.settle_down()
        assert consumer.got == []

    def test_may_leave_twice(self, driver, held):
        driver.leave(driver.consumer)
        driver.leave(driver.consumer)
        driver.settle_down()
        assert driver.queue("q").attempts == {held.seq: 1}

    def test_cannot_ack_afterwards(self, driver, held):
        driver.leave(driver.consumer)
        driver.tick()
        assert_refused(driver.ack("q", held.id, token=held.token))
