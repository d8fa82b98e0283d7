"""What comes in: where it goes, and what must not come in twice."""

import pytest

from fila.broker import lane_cache, producers
from fila.broker.commands import AckGroup, Earlier, Enqueue, Incoming, Produced, Settle, UpdateQueue
from fila.core.dedup import SEQUENCE_JUMP, SEQUENCES_KEPT
from fila.core.errors import (
    InvalidArgument,
    PayloadTooLarge,
    ProducerFenced,
    QueueNotFound,
    SequenceReused,
    StaleSequence,
    StoreFailed,
    TooFarAhead,
)
from fila.storage.base import Family
from tests.helpers.broker import MS, SECOND, Driver, incoming, messages_of


class TestOrder:
    def test_messages_of_one_key_are_delivered_in_the_order_in_which_they_came(self, driver):
        seqs = [driver.send("q") for _ in range(5)]
        consumer = driver.join("q")
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_inside_a_key_a_lower_priority_number_goes_first(self, driver):
        seqs = {priority: driver.send("q", priority=priority) for priority in (5, 255, 0, 10, 1)}
        consumer = driver.join("q")
        driver.settle_down()
        assert consumer.seqs == [seqs[priority] for priority in (0, 1, 5, 10, 255)]

    def test_numbers_follow_the_clock_and_the_order_of_the_batch(self, driver):
        driver.now += 5 * SECOND
        outcomes = driver.enqueue(*[incoming("q")] * 3)
        assert outcomes == [driver.now, driver.now + 1, driver.now + 2]

    def test_the_latest_weight_of_a_key_counts(self, driver):
        for weight in ("7", "3"):
            driver.send("q", headers={"tenant": "a", "weight": weight})
        assert driver.queue("q").keys["a"].weight == 3

    def test_a_key_is_forgotten_with_its_last_message(self, driver):
        consumer = driver.join("q", 1)
        for number in range(300):
            driver.send("q", headers={"tenant": str(number)})
            driver.settle_down()
            (got,) = consumer.take()
            driver.ack("q", got.id)
        assert len(driver.queue("q").keys) < 20
        assert len(driver.queue("q").drr) < 20


class TestSharedHeaders:
    """Messages that share their headers, as decoded ones do, are judged each by itself nevertheless."""

    ADA, BOB = {"tenant": "ada", "weight": "2"}, {"tenant": "bob", "weight": "3"}

    def test_each_goes_where_it_would_go_alone(self, driver):
        sent = [
            incoming("q", b"1", headers=self.ADA),
            incoming("q", b"2", headers=self.ADA, priority=1),
            incoming("q", b"3", headers=self.BOB),
            incoming("other", b"4", headers=self.ADA),
            incoming("q", b"5", headers=self.ADA, delay_ms=1000),
            incoming("q", b"6", headers=self.ADA, dedup_key="k"),
            incoming("q", b"7", headers=self.ADA, dedup_key="k"),
            incoming("q", b"8", headers=self.ADA),
        ]
        driver.create("other")
        outcomes = driver.enqueue(*sent)
        assert outcomes[6] == outcomes[5]
        places = messages_of(driver.queue("q"))
        assert [places[seq][:3] for seq in (outcomes[0], outcomes[1], outcomes[2], outcomes[4], outcomes[7])] == [
            ("ready", "ada", 5),
            ("ready", "ada", 1),
            ("ready", "bob", 5),
            ("delayed", "ada", 5),
            ("ready", "ada", 5),
        ]
        assert list(messages_of(driver.queue("other"))) == [outcomes[3]]

    def test_the_last_weight_counts(self, driver):
        light, heavy = {"tenant": "ada", "weight": "1"}, {"tenant": "ada", "weight": "7"}
        driver.enqueue(*[incoming("q", headers=headers) for headers in (heavy, light, heavy, light)])
        assert driver.queue("q").keys["ada"].weight == 1

    def test_a_weight_counts_also_when_the_write_failed_that_it_first_came_with(self, driver):
        driver.send("q", headers={"tenant": "ada"})
        heavy = {"tenant": "ada", "weight": "7"}
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q", headers=heavy)
        driver.store.failing = False
        driver.advance(1000)
        driver.send("q", headers=heavy)
        assert driver.queue("q").keys["ada"].weight == 7

    def test_a_key_that_comes_again_has_the_weight_that_it_comes_with(self, driver):
        consumer = driver.join("q", 1)
        light = {"tenant": "ada", "weight": "1"}
        for headers in (light, {"tenant": "ada", "weight": "7"}, light):
            driver.send("q", headers=headers)
            driver.settle_down()
            (got,) = consumer.take()
            assert driver.queue("q").keys["ada"].weight == int(headers["weight"])
            driver.ack("q", got.id)
            driver.settle_down()

    def test_a_key_that_comes_again_begins_to_count_again(self, driver):
        consumer = driver.join("q", 1)
        driver.queue("q").departed = {}
        for _ in range(3):
            driver.send("q", headers=self.ADA)
            driver.settle_down()
            driver.ack("q", consumer.take()[0].id)
            driver.settle_down()
        assert driver.queue("q").departed == {"ada": 3}

    def test_what_is_remembered_ends_with_the_settings_that_it_came_of(self, driver):
        headers = {"tenant": "ada", "region": "north"}
        driver.send("q", headers=headers)
        driver.ask(lambda reply: UpdateQueue("q", {"fairness_header": "region"}, reply))
        driver.send("q", headers=headers)
        assert {key.name: key.ready for key in driver.queue("q").keys.values()} == {"ada": 1, "north": 1}

    def test_a_key_that_was_forgotten_is_found_again(self, driver):
        consumer = driver.join("q", 1)
        for _ in range(3):
            seqs = driver.enqueue(*[incoming("q", headers=self.ADA), incoming("q", headers=self.ADA)])
            for seq in seqs:
                driver.settle_down()
                (got,) = consumer.take()
                assert driver.state.ids.seq(got.id) == seq
                driver.ack("q", got.id)
            driver.settle_down()
            assert messages_of(driver.queue("q")) == {}
        driver.leave(consumer)
        driver.send("q", headers=self.ADA)
        driver.restart()
        assert [(key.name, key.ready, key.live) for key in driver.queue("q").keys.values()] == [("ada", 1, 1)]

    def test_a_key_of_a_write_that_failed_is_made_anew(self, driver):
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q", headers=self.ADA)
        driver.store.failing = False
        driver.advance(1000)
        driver.send("q", headers=self.ADA)
        driver.send("q", headers=self.ADA)
        assert [(key.name, key.ready, key.live) for key in driver.queue("q").keys.values()] == [("ada", 2, 2)]

    def test_what_is_remembered_is_bounded(self, driver, monkeypatch):
        """By what there is: headers may be new with every message, and keys may go."""
        monkeypatch.setattr(lane_cache, "ENTRIES", 10)
        for number in range(100):
            driver.send("q", headers={"tenant": str(number % 5), "request": str(number)})
            assert len(driver.queue("q").lane_cache) <= 10 + lane_cache.ENTRIES_PER_KEY * 5 + 1
        for number in range(100):
            driver.send("q", headers={"tenant": str(number)})
        assert len(driver.queue("q").lane_cache) > 50
        consumer = driver.join("q", 200)
        driver.settle_down()
        for got in consumer.take():
            driver.ack("q", got.id)
        driver.settle_down()
        assert not driver.queue("q").keys
        assert not driver.queue("q").lane_cache

    def test_what_is_remembered_is_whole_also_when_too_much_was(self, driver, monkeypatch):
        """Where messages go is not remembered without what they cost there."""
        driver.create("c", fairness_header="tenant", cost_header="cost")
        monkeypatch.setattr(lane_cache, "ENTRIES", 0)
        kinds = [{"tenant": "ada", "cost": str(cost)} for cost in range(2, 8)]
        for _ in range(3):
            driver.enqueue(*[incoming("c", headers=headers) for headers in kinds])
        assert sorted(driver.queue("c").keys["ada"].special.costs.values()) == sorted([*range(2, 8)] * 3)

    def test_different_headers_of_a_key_share_it_also_after_it_was_forgotten(self, driver):
        kinds = [{"tenant": "ada", "request": str(number)} for number in range(3)]
        consumer = driver.join("q", 1)
        for headers in kinds:
            driver.send("q", headers=headers)
            driver.settle_down()
            driver.ack("q", consumer.take()[0].id)
            driver.settle_down()
        assert not driver.queue("q").keys
        driver.leave(consumer)
        seqs = driver.enqueue(*[incoming("q", headers=headers) for headers in kinds])
        seqs.append(driver.send("q", headers=kinds[1]))
        (key,) = driver.queue("q").keys.values()
        (lane,) = key.lanes.values()
        assert (lane.waiting(), key.ready, key.live) == (seqs, 4, 4)

    def test_different_headers_of_a_key_share_a_lane_also_after_it_was_empty(self, driver):
        kinds = [{"tenant": "ada", "request": str(number)} for number in range(2)]
        consumer = driver.join("q", 2)
        driver.enqueue(*[incoming("q", headers=kinds[0])] * 2)
        driver.settle_down()
        held = consumer.take()  # the lane is empty, but the key lives
        for order in (kinds[::-1], kinds, kinds):
            driver.enqueue(*[incoming("q", headers=kind) for kind in order])
        (lane,) = driver.queue("q").keys["ada"].lanes.values()
        assert (len(lane.fifo), list(lane.back)) == (6, [])
        driver.ack("q", held[0].id)

    def test_a_key_is_known_that_loses_a_message_in_the_tick_that_delivers_another(self, driver):
        consumer = driver.join("q", 2)
        driver.settle_down()
        driver.send("q", headers=self.ADA)
        (held,) = consumer.take()
        driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", [held.id])]))
        driver.send("q", headers=self.ADA)
        (key,) = driver.queue("q").keys.values()
        assert (key.ready, key.live, len(consumer.take())) == (0, 1, 1)

    def test_keys_wait_in_the_order_in_which_their_first_messages_came(self, driver):
        """Whether or not something else of theirs has to be found out."""
        driver.create("t", fairness_header="tenant", throttle_headers=["provider"])
        tenants = [{"tenant": "a", "provider": "x"}, {"tenant": "b"}, {"tenant": "c", "provider": "y"}, {"tenant": "d"}]
        driver.enqueue(*[incoming("t", headers=headers) for headers in [*tenants, *tenants]])
        assert [(key.name, key.ready) for key in driver.queue("t").drr.order()] == [(name, 2) for name in "abcd"]

    def test_a_large_payload_among_small_ones_is_refused(self, driver):
        limit = driver.engine.state.limits.max_payload_bytes
        small = incoming("q", b"x", headers=self.ADA)
        large = Incoming("q", self.ADA, b"", limit + 1)
        first, refused, last = driver.enqueue(small, large, incoming("q", b"y", headers=self.ADA))
        assert (first + 2, type(refused)) == (last, PayloadTooLarge)


class TestDelay:
    def test_a_delayed_message_is_delivered_when_its_time_has_come_and_not_before(self, driver):
        consumer = driver.join("q")
        seq = driver.send("q", delay_ms=500)
        driver.advance(499.999)
        assert consumer.seqs == []
        driver.advance(0.001)
        assert consumer.seqs == [seq]

    def test_messages_of_one_moment_become_ready_in_their_old_order(self, driver):
        seqs = [driver.send("q", delay_ms=500) for _ in range(4)]
        seqs.append(driver.send("q"))
        driver.advance(500)
        consumer = driver.join("q")
        driver.settle_down()
        assert consumer.seqs == seqs

    def test_a_delay_that_is_over_does_not_count_as_an_attempt(self, driver):
        driver.send("q", delay_ms=1)
        driver.advance(1)
        assert driver.queue("q").attempts == {}

    def test_becoming_ready_is_spread_over_ticks(self):
        driver = Driver(max_tick_messages=2)
        driver.create("q")
        for _ in range(5):
            driver.send("q", delay_ms=100)
        driver.now += 100 * MS
        counts = []
        for _ in range(3):
            driver.tick()
            counts.append(driver.queue("q").ready)
        assert counts == [2, 4, 5]


class TestDedupKeys:
    def test_a_second_message_with_the_key_is_answered_with_the_first(self, driver):
        first = driver.send("q", b"one", dedup_key="k")
        driver.now += 59_999 * MS
        assert driver.send("q", b"two", dedup_key="k") == first
        assert driver.places() == {first: "ready"}

    def test_also_when_the_first_was_acked_meanwhile(self, driver):
        first = driver.send("q", dedup_key="k")
        driver.join("q")
        driver.settle_down()
        driver.ack("q", driver.id(first))
        assert driver.send("q", dedup_key="k") == first
        assert driver.places() == {}

    def test_also_in_one_batch(self, driver):
        one, two = driver.enqueue(incoming("q", dedup_key="k"), incoming("q", dedup_key="k"))
        assert one == two
        assert driver.places() == {one: "ready"}

    def test_also_after_a_restart(self, driver):
        first = driver.send("q", dedup_key="k")
        driver.restart()
        assert driver.send("q", dedup_key="k") == first

    def test_not_after_the_window(self, driver):
        first = driver.send("q", dedup_key="k")
        driver.now += 60_000 * MS
        assert driver.send("q", dedup_key="k") != first

    def test_the_window_does_not_grow_with_messages_that_were_not_taken(self, driver):
        first = driver.send("q", dedup_key="k")
        driver.now += 40_000 * MS
        driver.send("q", dedup_key="k")
        driver.now += 20_000 * MS
        assert driver.send("q", dedup_key="k") != first

    def test_each_queue_has_keys_of_its_own(self, driver):
        driver.create("r")
        assert driver.send("q", dedup_key="k") != driver.send("r", dedup_key="k")

    def test_a_refused_message_uses_no_key(self, driver):
        driver.enqueue(incoming("q", dedup_key="k", delay_ms=-1))
        seq = driver.send("q", dedup_key="k")
        assert driver.places() == {seq: "ready"}

    def test_a_failed_write_uses_no_key(self, driver):
        driver.store.failing = True
        with pytest.raises(Exception, match="no more room"):
            driver.send("q", dedup_key="k")
        driver.store.failing = False
        seq = driver.send("q", dedup_key="k")
        assert driver.places() == {seq: "ready"}

    def test_a_queue_without_a_window_remembers_none(self, driver):
        driver.create("r", dedup_window_ms=0)
        one, two = driver.enqueue(incoming("r", dedup_key="k"), incoming("r", dedup_key="k"))
        assert one != two
        assert driver.store.dump()[Family.DEDUP] == {}

    def test_keys_are_forgotten_after_the_window(self, driver):
        for number in range(50):
            driver.send("q", dedup_key=str(number))
        driver.advance(62_000)
        assert len(driver.queue("q").dedup) == 0
        assert driver.store.dump()[Family.DEDUP] == {}

    def test_a_key_that_is_used_again_as_its_window_ends_has_a_whole_window(self, driver):
        driver.send("q", dedup_key="k")
        driver.now += 60_000 * MS
        second = driver.send("q", dedup_key="k")  # swept and set in one tick
        driver.advance(59_000)
        assert driver.send("q", dedup_key="k") == second
        driver.restart()
        assert driver.send("q", dedup_key="k") == second


class TestProducers:
    def test_a_batch_that_is_sent_again_is_answered_again_and_enqueued_once(self, driver):
        batch = [incoming("q"), incoming("nowhere"), incoming("q", priority=999), incoming("q")]
        first = driver.enqueue(*batch, producer="p", sequence=1)
        again = driver.enqueue(*batch, producer="p", sequence=1)
        assert [str(one) for one in again] == [str(one) for one in first]
        assert [type(one) for one in again] == [Earlier, QueueNotFound, InvalidArgument, Earlier]
        assert len(driver.places()) == 2

    def test_also_when_both_come_in_one_tick(self, driver):
        answers = [
            driver.submit(lambda reply: Enqueue([incoming("q")], reply, Produced("p", 1))),
            driver.submit(lambda reply: Enqueue([incoming("q")], reply, Produced("p", 1))),
        ]
        driver.tick()
        assert [list(answer) for answer in answers[0]] == answers[1]
        assert len(driver.places()) == 1

    def test_also_after_a_restart(self, driver):
        first = driver.enqueue(incoming("q"), producer="p", sequence=7)
        driver.restart()
        assert driver.enqueue(incoming("q"), producer="p", sequence=7) == first

    @pytest.mark.parametrize("other", [[], [incoming("q", b"other")], [incoming("q", b"one"), incoming("q", b"two")]])
    @pytest.mark.parametrize("restarts", [False, True])
    def test_other_messages_under_the_same_number_are_refused(self, driver, other, restarts):
        first = driver.enqueue(incoming("q", b"one"), producer="p", sequence=1)
        if restarts:
            driver.restart()
        before = driver.store.dump()
        with pytest.raises(SequenceReused, match='batch 1 of producer "p" had other messages'):
            driver.enqueue(*other, producer="p", sequence=1)
        assert driver.store.dump() == before
        assert driver.enqueue(incoming("q", b"one"), producer="p", sequence=1) == first

    def test_also_in_the_tick_of_the_first(self, driver):
        made = [Produced("p", 1, digest) for digest in (1, 2)]
        first, other = [driver.submit(lambda reply, p=p: Enqueue([incoming("q")], reply, p)) for p in made]
        driver.tick()
        assert isinstance(other[0], SequenceReused)
        assert list(driver.places()) == list(first[0])

    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_later_incarnation_counts_from_the_beginning_and_fences_the_earlier(self, driver, restarts):
        """Nothing of a predecessor is enqueued once its successor was heard of."""
        for sequence in (1, 2):
            driver.enqueue(incoming("q", b"old"), producer="p", sequence=sequence, epoch=3)
        (first,) = driver.enqueue(incoming("q", b"new"), producer="p", sequence=1, epoch=4)
        if restarts:
            driver.restart()
        before = driver.store.dump()
        for sequence in (1, 2, 3):
            with pytest.raises(ProducerFenced, match="epoch 4 was heard of, this batch is of epoch 3"):
                driver.enqueue(incoming("q", b"old"), producer="p", sequence=sequence, epoch=3)
        assert driver.store.dump() == before
        assert driver.enqueue(incoming("q", b"new"), producer="p", sequence=1, epoch=4) == [first]
        (second,) = driver.enqueue(incoming("q", b"new"), producer="p", sequence=2, epoch=4)
        assert second > first

    def test_incarnations_of_one_tick_are_told_apart(self, driver):
        made = [Produced("p", 1, 7, epoch) for epoch in (1, 2, 1)]
        old, new, late = [driver.submit(lambda reply, p=p: Enqueue([incoming("q")], reply, p)) for p in made]
        driver.tick()
        assert isinstance(late[0], ProducerFenced)
        assert list(driver.places()) == [*old[0], *new[0]]

    def test_a_number_far_ahead_silences_no_producer(self, driver):
        driver.enqueue(incoming("q"), producer="p", sequence=5)
        for sequence in (2**64 - 1, 5 + SEQUENCE_JUMP + 1):
            with pytest.raises(TooFarAhead, match="its last one is 5"):
                driver.enqueue(incoming("q"), producer="p", sequence=sequence)
        driver.enqueue(incoming("q"), producer="p", sequence=6)
        driver.enqueue(incoming("q"), producer="p", sequence=6 + SEQUENCE_JUMP)
        assert len(driver.places()) == 3

    def test_also_when_later_batches_came_meanwhile(self, driver):
        answers = [driver.enqueue(incoming("q"), producer="p", sequence=number) for number in range(1, 65)]
        again = [driver.enqueue(incoming("q"), producer="p", sequence=number) for number in range(1, 65)]
        assert again == answers

    def test_a_batch_whose_write_failed_is_taken_when_it_is_sent_again(self, driver):
        driver.store.failing = True
        with pytest.raises(Exception, match="no more room"):
            driver.enqueue(incoming("q"), producer="p", sequence=1)
        driver.store.failing = False
        (seq,) = driver.enqueue(incoming("q"), producer="p", sequence=1)
        assert driver.places() == {seq: "ready"}

    def test_a_batch_from_too_far_back_is_refused(self, driver):
        for number in range(1, SEQUENCES_KEPT + 2):
            driver.enqueue(incoming("q"), producer="p", sequence=number)
        with pytest.raises(StaleSequence, match="batch 1 of this producer is too old"):
            driver.enqueue(incoming("q"), producer="p", sequence=1)
        assert len(driver.places()) == SEQUENCES_KEPT + 1

    def test_a_batch_that_was_skipped_is_refused(self, driver):
        driver.enqueue(incoming("q"), producer="p", sequence=3)
        with pytest.raises(StaleSequence):
            driver.enqueue(incoming("q"), producer="p", sequence=2)

    def test_each_producer_counts_for_itself(self, driver):
        one = driver.enqueue(incoming("q"), producer="p", sequence=1)
        two = driver.enqueue(incoming("q"), producer="r", sequence=1)
        assert one != two

    def test_only_the_last_answers_are_kept(self, driver):
        for number in range(1, 3 * SEQUENCES_KEPT):
            driver.enqueue(incoming("q"), producer="p", sequence=number)
        assert len(driver.store.dump()[Family.DEDUP]) == SEQUENCES_KEPT

    def test_a_producer_that_skips_numbers_leaves_nothing_behind_for_ever(self, driver):
        for number in range(1, 200):
            driver.enqueue(incoming("q"), producer="p", sequence=number * (SEQUENCES_KEPT + 1))
        assert len(driver.store.dump()[Family.DEDUP]) <= SEQUENCES_KEPT

    def test_an_empty_batch_is_answered_again_too(self, driver):
        assert driver.enqueue(producer="p", sequence=1) == []
        assert driver.enqueue(producer="p", sequence=1) == []

    def test_the_answer_again_has_the_words_of_a_long_refusal(self, driver):
        name = "n" * 5000
        (first,) = driver.enqueue(incoming(name), producer="p", sequence=1)
        (again,) = driver.enqueue(incoming(name), producer="p", sequence=1)
        assert type(again) is QueueNotFound
        assert str(again) == str(first)

    def test_a_silent_producer_is_forgotten_with_all_its_answers(self, driver):
        driver.enqueue(incoming("q"), producer="p", sequence=1)
        driver.enqueue(incoming("q"), producer="r", sequence=1)
        driver.advance(500_000)
        driver.enqueue(incoming("q"), producer="r", sequence=2)
        driver.advance(101_000)
        assert list(driver.state.producers._last) == ["r"]
        assert len(driver.store.dump()[Family.DEDUP]) == 2

    def test_a_producer_that_sends_in_the_tick_that_would_forget_it_stays_known(self, driver):
        driver.enqueue(incoming("q"), producer="p", sequence=1)
        driver.now += 601 * SECOND
        second = driver.enqueue(incoming("q"), producer="p", sequence=2)
        assert driver.enqueue(incoming("q"), producer="p", sequence=2) == second
        driver.restart()
        assert driver.enqueue(incoming("q"), producer="p", sequence=2) == second

    def test_the_number_of_producers_is_bounded(self, driver, monkeypatch):
        monkeypatch.setattr(producers, "MAX_PRODUCERS", 10)
        for number in range(30):
            driver.now += 1
            driver.enqueue(incoming("q"), producer=f"p{number}", sequence=1)
        driver.advance(2000)
        assert list(driver.state.producers._last) == [f"p{number}" for number in range(20, 30)]
        assert len(driver.store.dump()[Family.DEDUP]) == 10
