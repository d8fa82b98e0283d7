"""Who is handed what."""

from collections import Counter

import pytest

from fila.broker.commands import UpdateQueue
from fila.broker.delivery import FULL_GRANT, share_out
from fila.core.consumers import Consumer
from fila.core.errors import QueueNotFound, StoreFailed
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.storage.base import Family
from tests.helpers.broker import Driver, incoming


def test_only_a_queue_that_exists_can_be_joined(driver):
    with pytest.raises(QueueNotFound):
        driver.join("nowhere")


def test_a_consumer_holds_no_more_than_it_may(driver):
    driver.enqueue(*[incoming("q")] * 10)
    consumer = driver.join("q", 3)
    driver.settle_down()
    assert len(consumer.got) == 3
    driver.ack("q", consumer.got[1].id)
    driver.settle_down()
    assert len(consumer.got) == 4


def test_two_consumers_never_share_a_message(driver):
    driver.enqueue(*[incoming("q", headers={"tenant": str(number % 7)}) for number in range(50)])
    consumers = [driver.join("q", 9), driver.join("q", 100), driver.join("q", 1)]
    driver.settle_down()
    handed = Counter(seq for consumer in consumers for seq in consumer.seqs)
    assert len(handed) == 50
    assert set(handed.values()) == {1}


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 7])
def test_consumers_are_served_in_turn_however_many_messages_come_at_once(driver, at_once):
    consumers = [driver.join("q", 10_000) for _ in range(3)]
    for _ in range(30):
        driver.enqueue(*[incoming("q")] * at_once)
        driver.settle_down()
    counts = [len(consumer.got) for consumer in consumers]
    assert sum(counts) == 30 * at_once
    assert max(counts) - min(counts) <= 1


def test_a_consumer_without_credit_is_passed_over(driver):
    full, open_ = driver.join("q", 1), driver.join("q", 100)
    driver.enqueue(*[incoming("q")] * 10)
    driver.settle_down()
    assert (len(full.got), len(open_.got)) == (1, 9)


def test_a_consumer_that_is_still_writing_is_handed_nothing(driver):
    busy, other = driver.join("q"), driver.join("q")
    busy.consumer.busy = True
    driver.enqueue(*[incoming("q")] * 4)
    driver.settle_down()
    assert (len(busy.got), len(other.got)) == (0, 4)
    busy.consumer.busy = False
    driver.engine.want("q")
    driver.send("q")
    driver.settle_down()
    assert len(busy.got) + len(other.got) == 5


def test_what_is_handed_out_at_once_is_one_lease_and_one_record(driver):
    driver.enqueue(*[incoming("q")] * 20)
    consumer = driver.join("q")
    driver.settle_down()
    assert len({got.token for got in consumer.got}) == 1
    assert len(driver.store.dump()[Family.LEASES]) == 1


def test_a_queue_with_many_messages_does_not_starve_another():
    driver = Driver(max_tick_messages=10)
    driver.create("a")
    driver.create("b")
    driver.enqueue(*[incoming("a")] * 100)
    driver.send("b")
    driver.join("a", 100)
    small = driver.join("b", 1)
    driver.tick()
    driver.tick()
    assert len(small.got) == 1


class TestMoreThanATickHandsOut:
    """Consumers are filled in turn, and not all of them a little: a grant has a cost of its own."""

    @staticmethod
    def hands(ready, consumers, credit, at_once):
        driver = Driver(max_tick_messages=at_once)
        driver.create("q")
        for _ in range(ready):
            driver.send("q")
        joined = [driver.join("q", credit) for _ in range(consumers)]
        driver.settle_down()
        return [list(Counter(got.token for got in one.got).values()) for one in joined]

    def test_is_dealt_in_full_hands(self):
        assert self.hands(ready=100, consumers=5, credit=10, at_once=10) == [[10]] * 5

    def test_is_dealt_in_equal_parts_when_consumers_have_room_for_more(self):
        assert self.hands(ready=50, consumers=5, credit=50, at_once=10) == [[10]] * 5

    def test_is_dealt_to_all_of_few_that_have_room_for_much(self):
        hands = self.hands(ready=3 * FULL_GRANT, consumers=2, credit=4 * FULL_GRANT, at_once=2 * FULL_GRANT)
        assert hands == [[FULL_GRANT, FULL_GRANT // 2]] * 2

    def test_reaches_those_with_little_room_too(self):
        driver = Driver(max_tick_messages=10)
        driver.create("q")
        for _ in range(100):
            driver.send("q")
        large, small = driver.join("q", 50), driver.join("q", 1)
        driver.tick()
        driver.tick()
        assert (len(large.got), len(small.got)) == (19, 1)


class TestWhatHasJustArrived:
    """A consumer that waits is handed it in the same tick, where the scheduler would have nothing to decide."""

    def test_leaves_in_its_tick(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        writes = driver.store.writes
        seqs = driver.enqueue(incoming("q"), incoming("q"))
        assert consumer.seqs == seqs
        assert driver.store.writes == writes + 1
        assert not driver.engine.has_work(driver.now)

    def test_waits_for_its_turn_behind_what_waits(self, driver):
        driver.enqueue(*[incoming("q")] * 3)
        consumer = driver.join("q", 3)
        driver.settle_down()
        driver.send("q")
        first = driver.send("q")
        driver.ack("q", consumer.got[0].id)
        assert first not in consumer.seqs
        driver.settle_down()
        assert consumer.seqs == sorted(consumer.seqs)

    def test_is_left_to_the_scheduler_when_it_is_of_several_keys(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        driver.enqueue(*[incoming("q", headers={"tenant": name}) for name in "aab"])
        assert consumer.got == []
        driver.settle_down()
        assert len(consumer.got) == 3

    def test_is_left_to_the_scheduler_when_there_is_no_room_for_all(self, driver):
        consumer = driver.join("q", 2)
        driver.settle_down()
        seqs = driver.enqueue(*[incoming("q")] * 3)
        assert consumer.got == []
        driver.settle_down()
        assert consumer.seqs == seqs[:2]

    def test_does_not_leave_a_queue_that_is_paused(self, driver):
        consumer = driver.join("q")
        driver.ask(lambda reply: UpdateQueue("q", {"paused": True}, reply))
        driver.settle_down()
        driver.send("q")
        driver.settle_down()
        assert consumer.got == []

    def test_never_was_when_the_write_fails(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        before = driver.snapshot()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q")
        driver.store.failing = False
        assert (consumer.got, driver.snapshot()) == ([], before)
        driver.advance(1000)
        seq = driver.send("q")
        driver.settle_down()
        assert consumer.seqs == [seq]

    def test_is_kept_over_a_restart_as_leased(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        driver.send("q")
        driver.restart()
        assert driver.queue("q").ready == 0
        assert driver.ack("q", consumer.got[0].id) == []
        assert driver.queue("q").size == 0

    def test_comes_back_like_any_other(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        driver.send("q")
        driver.nack("q", consumer.take()[0].id)
        driver.settle_down()
        (again,) = consumer.take()
        assert driver.queue("q").attempts == {again.seq: 1}


def test_a_quiet_key_is_served_before_a_backlog(driver):
    driver.enqueue(*[incoming("q", headers={"tenant": "noisy"}) for _ in range(200)])
    consumer = driver.join("q", 5)
    driver.settle_down()
    quiet = driver.send("q", headers={"tenant": "quiet"})
    driver.ack("q", *[got.id for got in consumer.take()])
    driver.settle_down()
    assert quiet in consumer.seqs


def test_keys_share_by_weight(driver):
    weights = {"a": "1", "b": "2", "c": "5"}
    for key, weight in weights.items():
        driver.enqueue(*[incoming("q", headers={"tenant": key, "weight": weight})] * 500)
    consumer = driver.join("q", 16)
    shares: Counter[str] = Counter()
    for _ in range(50):
        driver.settle_down()
        got = consumer.take()
        leased = driver.queue("q").leases
        shares.update(leased.find(one.seq).members[one.seq][0].key.name for one in got)
        driver.ack("q", *[one.id for one in got])
    total = sum(shares.values())
    assert {key: round(8 * count / total, 1) for key, count in shares.items()} == {"a": 1.0, "b": 2.0, "c": 5.0}


LANE = Lane(FairKey("a"), 5, (b"", b""))


class TestDeal:
    @staticmethod
    def consumers(*credits_):
        return [(Consumer(number, credit, print, print), credit) for number, credit in enumerate(credits_, 1)]

    def test_one_by_one_until_credit_or_messages_end(self):
        hands, last = share_out([(LANE, seq, 1) for seq in range(7)], self.consumers(1, 3, 3))
        assert {consumer.number: [seq for _, seq, _ in hand] for consumer, hand in hands} == {
            1: [0],
            2: [1, 3, 5],
            3: [2, 4, 6],
        }
        assert last.number == 3

    def test_the_last_is_who_was_dealt_the_last_message(self):
        _, last = share_out([(LANE, seq, 1) for seq in range(3)], self.consumers(5, 5))
        assert last.number == 1

    def test_who_is_dealt_nothing_has_no_hand(self):
        hands, _ = share_out([(LANE, 0, 1)], self.consumers(5, 5))
        assert [consumer.number for consumer, _ in hands] == [1]
