"""What operators do with messages that wait: send dead letters back, or remove messages."""

import pytest

from fila.broker import removal
from fila.broker.commands import Nack, Redrive, Settle
from fila.broker.explain import explain, search
from fila.core.errors import InvalidArgument, NotNow, QueueNotFound, StoreFailed
from fila.core.lifecycle import State
from fila.core.throttle import Limit
from fila.storage import keys
from fila.storage.base import Family
from tests.helpers.broker import MS, Driver, messages_of


def kill(driver, count, queue="m", **message):
    """Enqueue messages and let them die; their sequence numbers."""
    seqs = [driver.send(queue, b"body %d" % number, **message) for number in range(count)]
    consumer = driver.join(queue, count)
    driver.settle_down()
    nacks = [Nack(queue, one.id, f"error of {one.seq}", one.token) for one in consumer.take()]
    driver.ask(lambda reply: Settle(reply, nacks=nacks))
    driver.leave(consumer)
    driver.settle_down()
    return seqs


@pytest.fixture
def driver():
    driver = Driver()
    driver.create("m", max_attempts=1, fairness_header="tenant", weight_header="weight")
    return driver


class TestRedriving:
    def test_brings_messages_back_as_if_they_had_never_failed(self, driver):
        seqs = kill(driver, 3, headers={"tenant": "acme", "weight": "7"}, priority=2)
        stored = {keys.read_message(key)[1]: value for key, value in driver.store.dump()[Family.MESSAGES].items()}
        assert driver.redrive("m.dlq") == 3
        queue = driver.queue("m")
        assert (queue.size, driver.queue("m.dlq").size) == (3, 0)
        assert queue.attempts == {}
        assert driver.store.dump()[Family.ATTEMPTS] == {}
        assert {
            keys.read_message(key)[1]: value for key, value in driver.store.dump()[Family.MESSAGES].items()
        } == stored
        (key,) = queue.keys.values()
        assert (key.name, key.weight, list(key.lanes)) == ("acme", 7, [(2, ())])
        consumer = driver.join("m")
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_wakes_who_waits_for_them(self, driver):
        seqs = kill(driver, 2)
        consumer = driver.join("m")
        driver.redrive("m.dlq")
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_gives_them_their_old_place_among_the_others(self, driver):
        old = kill(driver, 2)
        fresh = driver.send("m")
        driver.redrive("m.dlq")
        consumer = driver.join("m")
        driver.settle_down()
        assert consumer.seqs == [*old, fresh]

    def test_does_not_change_the_weight_of_a_key_that_is_at_work(self, driver):
        kill(driver, 1, headers={"tenant": "acme", "weight": "7"})
        driver.send("m", headers={"tenant": "acme", "weight": "2"})
        driver.redrive("m.dlq")
        assert driver.queue("m").keys["acme"].weight == 2

    def test_leaves_leased_ones_where_they_are(self, driver):
        seqs = kill(driver, 3)
        holder = driver.join("m.dlq", 1)
        driver.settle_down()
        assert driver.redrive("m.dlq") == 2
        assert driver.queue("m.dlq").size == 1
        assert holder.seqs == [seqs[0]]
        assert driver.ack("m.dlq", holder.got[0].id) == []

    def test_takes_delayed_ones_along_and_ends_their_delay(self, driver):
        (seq,) = kill(driver, 1)
        holder = driver.join("m.dlq")
        driver.settle_down()
        driver.nack("m.dlq", holder.got[0].id, delay_ms=60_000)
        driver.leave(holder)
        driver.settle_down()
        assert driver.places() == {seq: "delayed"}
        assert driver.redrive("m.dlq") == 1
        assert driver.places() == {seq: "ready"}
        assert driver.store.dump()[Family.SCHEDULED] == {}
        assert len(driver.queue("m.dlq").schedule) == 0
        driver.advance(60_001)
        assert driver.places() == {seq: "ready"}

    def test_does_not_take_what_was_leased_since_it_was_found(self, driver):
        kill(driver, 2)
        places = driver.find("m.dlq")
        driver.join("m.dlq", 1)
        driver.settle_down()
        assert driver.ask(lambda reply: Redrive("m.dlq", places, reply)).done == 1
        assert driver.ask(lambda reply: Redrive("m.dlq", places, reply)).done == 0

    def test_takes_a_delayed_one_that_became_ready_since_it_was_found(self, driver):
        kill(driver, 1)
        holder = driver.join("m.dlq")
        driver.settle_down()
        driver.nack("m.dlq", holder.got[0].id, delay_ms=10)
        driver.leave(holder)
        places = driver.find("m.dlq")
        assert [place.state for place in places] == [State.DELAYED]
        driver.advance(11)
        assert driver.ask(lambda reply: Redrive("m.dlq", places, reply)).done == 1

    def test_is_one_write_or_nothing(self, driver):
        kill(driver, 3, headers={"tenant": "acme"})
        before, stored = driver.snapshot(), driver.store.dump()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.redrive("m.dlq")
        assert (driver.snapshot(), driver.store.dump()) == (before, stored)
        driver.store.failing = False
        writes = driver.store.writes
        assert driver.redrive("m.dlq") == 3
        assert driver.store.writes == writes + 1

    def test_changes_nothing_when_a_record_cannot_be_read(self, driver):
        seqs = kill(driver, 3)
        places, stored, read = driver.find("m.dlq"), driver.store.dump(), driver.store.inner.get

        def broken(family, key):
            if family is Family.MESSAGES and keys.read_message(key)[1] == seqs[2]:
                raise StoreFailed("a bad block")
            return read(family, key)

        driver.store.inner.get = broken
        with pytest.raises(StoreFailed):
            driver.ask(lambda reply: Redrive("m.dlq", places, reply))
        assert driver.store.dump() == stored
        assert driver.queue("m.dlq").size == 3

    def test_is_the_same_after_a_restart(self, driver):
        seqs = kill(driver, 3, headers={"tenant": "acme", "weight": "7"})
        driver.redrive("m.dlq", seqs=frozenset(seqs[:2]))

        def known():
            queues = [driver.queue("m"), driver.queue("m.dlq")]
            return [(messages_of(queue), queue.attempts, queue.ready, queue.keys["acme"].weight) for queue in queues]

        before = known()
        driver.restart()
        assert known() == before

    def test_a_lease_of_before_does_not_claim_it_after_a_restart(self, driver):
        """The grant under which it died lives on with its other messages, and its record names the dead one."""
        seqs = [driver.send("m"), driver.send("m")]
        consumer = driver.join("m")
        driver.settle_down()
        driver.nack("m", consumer.got[0].id)
        assert driver.redrive("m.dlq") == 1
        driver.restart()
        assert driver.places() == {seqs[0]: "ready", seqs[1]: "leased"}

    def test_of_large_ones_takes_several_writes(self, driver, monkeypatch):
        monkeypatch.setattr(removal, "MOVED_BYTES", 100_000)
        consumer = driver.join("m", 9)
        for _ in range(3):
            driver.send("m", b"x" * 70_000)
        driver.settle_down()
        driver.ask(lambda reply: Settle(reply, nacks=[Nack("m", one.id) for one in consumer.take()]))
        driver.leave(consumer)
        driver.settle_down()
        writes = driver.store.writes
        assert driver.redrive("m.dlq") == 3
        assert driver.store.writes == writes + 2
        assert (len(driver.queue("m").large), driver.queue("m.dlq").large) == (3, set())

    def test_can_be_done_again_when_they_die_again(self, driver):
        (seq,) = kill(driver, 1)
        for _ in range(3):
            driver.redrive("m.dlq")
            consumer = driver.join("m")
            driver.settle_down()
            driver.nack("m", consumer.got[0].id)
            driver.leave(consumer)
            driver.settle_down()
            assert driver.queue("m.dlq").attempts == {seq: 1}
        assert driver.queue("m").counters.redriven == driver.queue("m.dlq").counters.redriven == 3

    def test_counts_attempts_anew(self, driver):
        driver.create("n", max_attempts=2)
        consumer = driver.join("n", 1)
        driver.send("n")
        for _ in range(2):
            driver.settle_down()
            driver.nack("n", consumer.got[-1].id)
        driver.redrive("n.dlq")
        driver.settle_down()
        driver.nack("n", consumer.got[-1].id)
        assert (driver.queue("n").size, driver.queue("n.dlq").size) == (1, 0)

    def test_keeps_cost_and_throttle_keys_though_nothing_holds_dead_letters_up(self, driver):
        driver.create("t", max_attempts=1, throttle_headers=("api",), cost_header="cost")
        kill(driver, 1, "t", headers={"api": "x", "cost": "3"})
        driver.state.throttles.set("api:x", Limit(rate=1, burst=3), driver.now)
        (lane,) = driver.queue("t.dlq").keys["default"].lanes.values()
        assert lane.throttles == ()
        assert driver.redrive("t.dlq") == 1
        (key,) = driver.queue("t").keys.values()
        (lane,) = key.lanes.values()
        assert ([throttle.name for throttle in lane.throttles], list(key.special.costs.values())) == (["api:x"], [3])

    def test_begins_a_wait_of_its_own(self, driver):
        (seq,) = kill(driver, 1)
        driver.now += 5_000 * MS
        driver.redrive("m.dlq")
        driver.now += 700 * MS
        ledger, lane = driver.queue("m").ledger, driver.queue("m").keys["default"].lane_of(seq, 5)
        wait = ledger.split(lane, seq, came_back=False, now=driver.now)
        assert (wait.whole, wait.no_consumer, wait.delay, wait.retry) == (700 * MS, 700 * MS, 0, 0)

    def test_takes_what_was_put_there_by_hand(self, driver):
        seq = driver.send("m.dlq", b"by hand")
        assert driver.redrive("m.dlq") == 1
        assert driver.find("m")[0].seq == seq

    def test_is_for_dead_letter_queues(self, driver):
        driver.send("m")
        with pytest.raises(InvalidArgument, match='"m" is not a dead-letter queue'):
            driver.redrive("m")

    def test_needs_the_queue_that_they_came_from(self, driver):
        kill(driver, 1)
        places = driver.find("m.dlq")
        del driver.state.queues["m"]
        with pytest.raises(NotNow, match=r'queue "m", from which the messages of "m\.dlq" came, was deleted'):
            driver.ask(lambda reply: Redrive("m.dlq", places, reply))
        del driver.state.queues["m.dlq"]
        with pytest.raises(QueueNotFound):
            driver.ask(lambda reply: Redrive("m.dlq", places, reply))


class TestPurging:
    def test_leaves_nothing_of_them(self, driver):
        kill(driver, 3, headers={"tenant": "acme"})
        assert driver.purge("m.dlq") == 3
        assert driver.queue("m.dlq").size == 0
        assert driver.queue("m.dlq").keys == {}
        assert driver.queue("m.dlq").counters.purged == 3
        left = driver.store.dump()
        assert (left[Family.MESSAGES], left[Family.ATTEMPTS]) == ({}, {})

    def test_leaves_nothing_of_those_that_came_back(self, driver):
        driver.send("m", delay_ms=5)
        driver.advance(6)
        assert driver.queue("m").ledger._returned
        driver.purge("m")
        assert driver.queue("m").ledger._returned == {}

    def test_takes_some_and_leaves_the_others_in_order(self, driver):
        seqs = kill(driver, 9)
        assert driver.purge("m.dlq", seqs=frozenset(seqs[1::3])) == 3
        consumer = driver.join("m.dlq")
        driver.settle_down()
        assert consumer.seqs == [seq for seq in seqs if seq not in seqs[1::3]]

    def test_takes_delayed_ones_and_leaves_leased_ones(self, driver):
        driver.create("q")
        leased, delayed, _ = driver.send("q"), driver.send("q", delay_ms=1000), driver.send("q")
        driver.join("q", 1)
        driver.settle_down()
        assert driver.purge("q") == 2
        assert driver.places() == {leased: "leased"}
        assert delayed not in driver.places()
        driver.advance(1001)
        assert driver.places() == {leased: "leased"}
        driver.restart()
        assert driver.places() == {leased: "leased"}

    def test_is_one_write_or_nothing(self, driver):
        kill(driver, 3)
        before, stored = driver.snapshot(), driver.store.dump()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.purge("m.dlq")
        assert (driver.snapshot(), driver.store.dump()) == (before, stored)

    def test_a_purged_key_waits_for_nobody_when_it_comes_back(self, driver):
        for _ in range(50):
            driver.send("m", headers={"tenant": "loud"})
        driver.purge("m", fairness_key="loud")
        assert len(driver.queue("m").drr) == 0
        seq = driver.send("m", headers={"tenant": "loud"})
        consumer = driver.join("m")
        driver.settle_down()
        assert consumer.seqs == [seq]


class TestPurgingWhatThrottlesHoldUp:
    @pytest.fixture
    def throttled(self, driver):
        """Three tenants that wait for one throttle, which lets one message pass a second, and a fourth that does not"""
        driver.create("t", throttle_headers=("api",), fairness_header="tenant")
        driver.state.throttles.set("api:x", Limit(rate=1, burst=1), driver.now)
        self.sent = {
            name: [driver.send("t", headers={"tenant": name, "api": "x"}) for _ in range(3)] for name in ("a", "b", "c")
        }
        consumer = driver.join("t")
        driver.settle_down()
        assert len(consumer.take()) == 1
        return consumer

    @pytest.mark.parametrize("name", ["a", "b", "c"])
    def test_lets_the_others_go_on(self, driver, throttled, name):
        driver.purge("t", fairness_key=name)
        for _ in range(20):
            driver.advance(1000)
        left = {seq for other, seqs in self.sent.items() if other != name for seq in seqs}
        assert set(throttled.seqs) == left & set(throttled.seqs)
        assert len(throttled.seqs) >= len(left) - 1
        assert driver.queue("t").ready == 0
        assert driver.queue("t").drr.parked == 0

    def test_of_all_leaves_no_line(self, driver, throttled):
        driver.purge("t")
        queue = driver.queue("t")
        assert (queue.drr.parked, queue.drr.lines.all(), queue.active_keys) == (0, [], 0)
        seq = driver.send("t", headers={"tenant": "b", "api": "x"})
        driver.advance(1000)
        assert throttled.seqs == [seq]

    def test_of_the_first_in_line_lets_the_next_be_tried(self, driver, throttled):
        first = driver.find("t", fairness_key="b")[0]
        driver.purge("t", seqs=frozenset({first.seq}))
        for _ in range(20):
            driver.advance(1000)
        assert driver.queue("t").ready == 0
        assert first.seq not in throttled.seqs


class TestPausing:
    def test_delivers_nothing_and_takes_everything(self, driver):
        held = driver.send("m")
        consumer = driver.join("m")
        driver.settle_down()
        driver.pause("m")
        seq = driver.send("m")
        driver.settle_down()
        assert consumer.seqs == [held]
        assert driver.extend("m", driver.id(held)) == []
        assert driver.ack("m", driver.id(held)) == []
        driver.settle_down()
        assert driver.places() == {seq: "ready"}

    def test_leases_and_delays_end_as_ever(self, driver):
        driver.create("q")
        held, delayed = driver.send("q"), driver.send("q", delay_ms=5)
        driver.join("q")
        driver.settle_down()
        driver.pause("q")
        driver.advance(30_001)
        assert driver.places() == {held: "ready", delayed: "ready"}

    def test_ends_with_all_that_waited(self, driver):
        consumer = driver.join("m")
        driver.pause("m")
        seqs = [driver.send("m") for _ in range(3)]
        driver.settle_down()
        assert driver.engine.next_wakeup() is None
        driver.pause("m", paused=False)
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_is_where_the_wait_went(self, driver):
        driver.join("m")
        driver.settle_down()
        driver.pause("m")
        seq = driver.send("m")
        driver.settle_down()
        driver.advance(900)
        leaver = driver.join("m")
        driver.leave(leaver)
        driver.advance(100)
        lane = driver.queue("m").keys["default"].lane_of(seq, 5)
        wait = driver.queue("m").ledger.split(lane, seq, came_back=False, now=driver.now)
        assert (wait.whole, wait.no_consumer) == (1000 * MS, 1000 * MS)

    def test_is_why_a_message_waits(self, driver):
        seq = driver.send("m")
        driver.join("m")
        driver.pause("m")
        (found,) = [one for one in search(driver.queue("m"), seq) if one]
        why = explain(driver.queue("m"), found, driver.now)
        assert (why.reasons[0].code, why.reasons[0].setting) == ("paused", "paused")
        assert why.estimate is None

    def test_outlives_a_restart(self, driver):
        driver.pause("m")
        driver.restart()
        driver.send("m")
        consumer = driver.join("m")
        driver.settle_down()
        assert consumer.seqs == []

    def test_of_a_dead_letter_queue_is_its_own(self, driver):
        driver.pause("m.dlq")
        waiting = driver.join("m.dlq")
        kill(driver, 1)
        assert waiting.seqs == []
        driver.pause("m.dlq", paused=False)
        driver.settle_down()
        assert len(waiting.seqs) == 1

    def test_changes_nothing_when_it_cannot_be_written(self, driver):
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.pause("m")
        driver.store.failing = False
        driver.now += 1000 * MS
        consumer = driver.join("m")
        driver.send("m")
        driver.settle_down()
        assert len(consumer.seqs) == 1
