"""Limits of a queue: what counts, what is refused, what is dropped, and whose limits they are."""

import pytest

from fila.auth.records import Principal
from fila.auth.registry import Put, Remove
from fila.broker import overflow
from fila.broker.attempts import death_of
from fila.broker.commands import ChangeAccess, CommitTransaction, Nack, Settle, StageEnqueue, UpdateQueue
from fila.core.errors import LimitExceeded, QueueFull, StoreFailed
from fila.storage.base import Family
from fila.storage.journal import Kind
from tests.helpers.broker import Driver, incoming, messages_of
from tests.helpers.journal import read_all


@pytest.fixture
def driver():
    return Driver()


def send(driver, *names, queue="q", **rest):
    """A message of the header `tenant` for each name, in one batch."""
    messages = [incoming(queue, b"12345", headers={"tenant": name}, **rest) for name in names]
    return driver.enqueue(*messages)


def refused(outcomes):
    return [isinstance(outcome, QueueFull) for outcome in outcomes]


def held(driver, name="q"):
    capacity = driver.queue(name).capacity
    assert capacity.messages == driver.queue(name).size == len(messages_of(driver.queue(name)))
    return capacity.messages, capacity.bytes


def update(driver, name="q", **changes):
    driver.ask(lambda reply: UpdateQueue(name, changes, reply))


class TestRejecting:
    def test_takes_as_many_as_it_may_and_names_queue_limit_and_value_to_the_next(self, driver):
        driver.create("q", max_depth=3)
        outcomes = send(driver, *"abcd")
        assert refused(outcomes) == [False, False, False, True]
        assert str(outcomes[3]) == 'queue "q" is full: it holds 3 messages, max_depth=3; retry when some are settled'
        assert held(driver) == (3, 0)
        assert driver.queue("q").counters.refused == 1

    def test_counts_bytes_of_headers_and_payload(self, driver):
        driver.create("q", max_bytes=12)
        first, second, third = send(driver, *"abc")
        assert refused([first, second, third]) == [False, False, True]
        assert "5 more would exceed max_bytes=12" in str(third)
        assert held(driver) == (2, 10)
        assert not refused(driver.enqueue(incoming("q", b"12")))[0]
        assert held(driver) == (3, 12)

    def test_every_message_of_a_batch_is_answered_by_itself(self, driver):
        driver.create("full", max_depth=1)
        driver.create("free")
        messages = [incoming(name) for name in ("full", "free", "full", "free", "full")]
        assert refused(driver.enqueue(*messages)) == [False, False, True, False, True]

    @pytest.mark.parametrize("how", ["ack", "purge", "dead letter"])
    def test_what_leaves_makes_room(self, driver, how):
        driver.create("q", max_depth=1, max_bytes=5)
        send(driver, "a")
        if how == "purge":
            driver.purge("q")
        else:
            consumer = driver.join("q")
            driver.settle_down()
            (got,) = consumer.take()
            nack = Nack("q", got.id, dead_letter=True)
            driver.ack("q", got.id) if how == "ack" else driver.ask(lambda reply: Settle(reply, nacks=[nack]))
        assert held(driver) == (0, 0)
        assert not refused(send(driver, "a"))[0]

    def test_leased_and_delayed_messages_count(self, driver):
        driver.create("q", max_depth=2)
        consumer = driver.join("q", max_in_flight=1)
        send(driver, "a")
        send(driver, "b", delay_ms=1000)
        driver.settle_down()
        assert len(consumer.got) == 1
        assert refused(send(driver, "c")) == [True]
        driver.nack("q", consumer.got[0].id)
        assert refused(send(driver, "c")) == [True]

    def test_a_message_that_was_sent_before_is_answered_as_before_though_the_queue_is_full(self, driver):
        driver.create("q", max_depth=1)
        (first,) = send(driver, "a", dedup_key="k")
        assert send(driver, "a", dedup_key="k") == [first]

    def test_a_message_that_was_refused_can_be_sent_again(self, driver):
        driver.create("q", max_depth=1)
        send(driver, "a")
        assert refused(send(driver, "b", dedup_key="k")) == [True]
        driver.purge("q")
        assert refused(send(driver, "b", dedup_key="k")) == [False]

    def test_a_lower_limit_keeps_what_is_there_and_refuses_what_comes(self, driver):
        driver.create("q")
        send(driver, *"abc")
        update(driver, max_depth=2)
        assert refused(send(driver, "d")) == [True]
        assert held(driver)[0] == 3

    def test_a_failed_write_counts_nothing(self, driver):
        driver.create("q", max_depth=2, max_bytes=100)
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            send(driver, *"abc")
        driver.store.failing = False
        assert held(driver) == (0, 0)
        driver.advance(2000)
        assert refused(send(driver, *"abc")) == [False, False, True]

    def test_counts_are_the_same_after_a_restart(self, driver):
        driver.create("q", max_depth=5, max_bytes=1000)
        send(driver, *"abc")
        send(driver, "d", delay_ms=1000)
        driver.join("q", max_in_flight=1)
        driver.settle_down()
        before = held(driver)
        driver.restart()
        assert held(driver) == before == (4, 20)
        assert refused(send(driver, *"ef")) == [False, True]


class TestBytesThatBeginToBeLimited:
    def test_are_counted_in_the_next_ticks(self, driver, monkeypatch):
        monkeypatch.setattr("fila.broker.measuring.MEASURED_AT_ONCE", 2)
        driver.create("q")
        driver.create("q2")
        send(driver, *"abcde")
        send(driver, "z", queue="q2")
        consumer = driver.join("q", max_in_flight=1)
        driver.settle_down()
        update(driver, max_bytes=27)
        driver.tick()
        assert held(driver)[1] == 10, "two of five"
        send(driver, "f")  # the next two are counted in the same tick
        driver.ack("q", consumer.got[0].id)
        driver.settle_down()
        assert held(driver) == (5, 25)
        assert refused(send(driver, "g")) == [True]

    def test_are_not_counted_any_more_when_the_limit_goes_or_the_queue(self, driver):
        driver.create("q")
        send(driver, *"abc")
        update(driver, max_bytes=10)
        update(driver, max_bytes=0)
        driver.settle_down()
        assert held(driver) == (3, 0)
        update(driver, max_bytes=10)
        driver.delete("q")
        driver.settle_down()

    def test_what_is_staged_is_not_taken_for_what_is_there(self, driver):
        driver.create("q")
        stage(driver, 1, 2)
        update(driver, max_bytes=100)
        driver.settle_down()
        assert held(driver) == (0, 0)
        commit(driver, 1, 2)
        assert held(driver) == (2, 10)


def stage(driver, number, count, queue="q", sequence=1):
    messages = [incoming(queue, b"12345") for _ in range(count)]
    return driver.ask(lambda reply: StageEnqueue("p", number, "x", sequence, messages, reply))


def commit(driver, number, count):
    driver.ask(lambda reply: CommitTransaction("p", number, [("x", count)], reply))
    driver.settle_down()


class TestStaging:
    @pytest.mark.parametrize("limits", [{"max_depth": 3}, {"max_bytes": 15}])
    def test_what_is_staged_has_its_place_so_that_its_commit_is_not_refused(self, driver, limits):
        driver.create("q", **limits)
        stage(driver, 1, 2)
        assert refused(send(driver, *"ab")) == [False, True]
        with pytest.raises(QueueFull, match='queue "q" is full'):
            stage(driver, 1, 1, sequence=2)
        commit(driver, 1, 2)
        assert held(driver)[0] == 3
        assert driver.queue("q").capacity.staged == driver.queue("q").capacity.staged_bytes == 0

    def test_what_is_staged_again_takes_the_place_of_the_first(self, driver):
        driver.create("q", max_depth=3)
        stage(driver, 1, 2)
        stage(driver, 1, 3)
        assert driver.queue("q").capacity.staged == 3

    def test_what_expires_or_is_passed_over_gives_its_place_back(self, driver):
        driver.create("q", max_depth=3)
        stage(driver, 1, 2)
        stage(driver, 2, 1)
        commit(driver, 2, 1)
        assert (driver.queue("q").capacity.staged, held(driver)[0]) == (0, 1)
        driver.purge("q")
        stage(driver, 3, 3)
        driver.advance(3_700_000)
        assert driver.queue("q").capacity.staged == 0
        assert refused(send(driver, *"abc")) == [False] * 3

    def test_it_is_the_same_after_a_restart_also_in_the_middle_of_a_commit(self, driver):
        driver.create("q", max_depth=4, max_bytes=100)
        stage(driver, 1, 1)
        stage(driver, 1, 2, sequence=2)
        driver.restart()
        capacity = driver.queue("q").capacity
        assert (capacity.staged, capacity.staged_bytes) == (3, 15)
        driver.ask(lambda reply: CommitTransaction("p", 1, [("x", 3)], reply))
        driver.restart()
        assert refused(send(driver, *"ab")) == [False, True]
        driver.settle_down()
        assert held(driver) == (4, 20)
        assert driver.queue("q").capacity.staged == 0

    def test_a_queue_that_drops_takes_as_much_as_it_may_hold(self, driver):
        driver.create("q", max_depth=2, overflow="drop-oldest")
        send(driver, *"ab")
        stage(driver, 1, 2)
        with pytest.raises(QueueFull):
            stage(driver, 1, 1, sequence=2)
        commit(driver, 1, 2)
        assert held(driver)[0] == 2
        assert held(driver, "q.dlq")[0] == 2


class TestDropping:
    @pytest.fixture
    def driver(self):
        driver = Driver()
        driver.create("q", max_depth=3, overflow="drop-oldest", fairness_header="tenant")
        return driver

    def test_moves_the_oldest_to_the_dead_letters_and_says_why(self, driver):
        seqs = send(driver, *"aaaa")
        driver.settle_down()
        seqs += send(driver, "a")
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q"))) == seqs[2:]
        assert sorted(messages_of(driver.queue("q.dlq"))) == seqs[:2]
        death = death_of(driver.store, "q.dlq", seqs[0])
        assert (death.record.source, death.record.reason, death.attempts) == ("q", "max_depth", [])
        counters = driver.queue("q").counters
        assert (counters.enqueued, counters.dropped, counters.dead_lettered, counters.refused) == (5, 2, 2, 0)

    def test_the_longest_key_loses_first(self, driver):
        quiet = send(driver, "quiet")
        loud = send(driver, *["loud"] * 5)
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q"))) == quiet + loud[3:]

    def test_the_least_urgent_priority_of_it_goes_first(self, driver):
        urgent = send(driver, "a", priority=0)
        others = send(driver, *"aaa", priority=9)
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q"))) == urgent + others[1:]

    def test_leased_and_delayed_messages_stay_and_then_new_ones_are_refused(self, driver):
        consumer = driver.join("q", max_in_flight=2)
        send(driver, *"ab")
        send(driver, "c", delay_ms=60_000)
        driver.settle_down()
        assert len(consumer.got) == 2
        assert refused(send(driver, "d")) == [True]

    def test_bytes_count_too(self):
        driver = Driver()
        driver.create("q", max_bytes=12, overflow="drop-oldest")
        seqs = send(driver, *"aaaa")
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q"))) == seqs[2:]
        assert death_of(driver.store, "q.dlq", seqs[0]).record.reason == "max_bytes"
        assert refused(driver.enqueue(incoming("q", b"x" * 13))) == [True], "it would not fit into an empty queue"

    def test_each_message_is_said_to_go_for_the_limit_that_it_is_over(self):
        driver = Driver()
        driver.create("q", max_depth=3, max_bytes=10, overflow="drop-oldest")
        seqs = send(driver, *"aaaa")
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q.dlq"))) == seqs[:2]
        reasons = [death_of(driver.store, "q.dlq", seq).record.reason for seq in seqs[:2]]
        assert reasons == ["max_depth", "max_bytes"]

    def test_takes_the_history_of_a_message_along(self, driver):
        consumer = driver.join("q", max_in_flight=1)
        (first,) = send(driver, "a")
        driver.settle_down()
        driver.ask(lambda reply: Settle(reply, nacks=[Nack("q", consumer.got[0].id, "broken")]))
        driver.leave(consumer)
        driver.settle_down()
        send(driver, *"aaa")
        driver.settle_down()
        death = death_of(driver.store, "q.dlq", first)
        assert [(number, attempt.error) for number, attempt in death.attempts[:1]] == [(1, "broken")]
        assert not [key for key, _ in driver.store.scan(Family.ATTEMPTS) if b"dlq" not in key]

    def test_nothing_is_left_when_what_was_dropped_is_settled_after_a_restart(self, driver):
        send(driver, *"aaaa")
        driver.settle_down()
        driver.restart()
        consumer = driver.join("q.dlq")
        driver.settle_down()
        driver.ack("q.dlq", consumer.got[0].id)
        assert not list(driver.store.scan(Family.ATTEMPTS))
        assert held(driver, "q.dlq")[0] == 0

    def test_is_one_write_or_nothing(self, driver):
        send(driver, *"aaaa")
        before, stored = driver.snapshot(), driver.store.dump()
        driver.store.failing = True
        driver.tick()
        driver.store.failing = False
        assert driver.snapshot() == before
        assert driver.store.dump() == stored
        driver.advance(2000)
        assert held(driver)[0] == 3

    def test_what_was_planned_before_the_store_could_not_be_read_holds(self, driver, monkeypatch):
        send(driver, *"abababab")
        read, left = driver.store.get_many, [1, 2]

        def read_twice(*about):
            if not left:
                raise StoreFailed("it cannot be read")
            left.pop()
            return read(*about)

        monkeypatch.setattr(driver.store, "get_many", read_twice)
        driver.tick()
        monkeypatch.setattr(driver.store, "get_many", read)
        before = messages_of(driver.queue("q")), messages_of(driver.queue("q.dlq"))
        assert len(before[1]) == 2
        driver.restart()
        assert (messages_of(driver.queue("q")), messages_of(driver.queue("q.dlq"))) == before
        send(driver, "a")
        driver.settle_down()
        assert held(driver)[0] == 3

    def test_many_are_dropped_in_several_ticks_and_each_key_loses_what_it_has_too_much(self, driver, monkeypatch):
        monkeypatch.setattr(overflow, "DROPPED_AT_ONCE", 4)
        send(driver, *"abababababac")
        driver.tick()
        assert held(driver)[0] == 8
        driver.settle_down()
        left = [place[1] for place in messages_of(driver.queue("q")).values()]
        assert sorted(left) == ["a", "b", "c"]

    def test_a_lower_limit_drops_with_the_next_message(self, driver):
        send(driver, *"abc")
        update(driver, max_depth=1)
        driver.settle_down()
        assert held(driver)[0] == 3
        send(driver, "d")
        driver.settle_down()
        assert held(driver)[0] == 1

    def test_the_journal_says_that_it_died_of_being_dropped(self, driver):
        send(driver, *"aaaa")
        driver.settle_down()
        dead = [entry for entry in read_all(driver.journal) if entry.kind is Kind.DEAD]
        assert [(entry.cause, entry.target) for entry in dead] == [(Kind.DROPPED, "q.dlq")]


class TestDeadLetters:
    @pytest.fixture
    def driver(self):
        driver = Driver()
        driver.create("q", max_depth=2, overflow="drop-oldest", max_attempts=1)
        return driver

    def test_a_full_dead_letter_queue_makes_its_queue_refuse(self, driver):
        update(driver, "q.dlq", max_depth=1)
        send(driver, *"abc")
        driver.settle_down()
        assert (held(driver)[0], held(driver, "q.dlq")[0]) == (2, 1)
        assert refused(send(driver, "d")) == [True]
        driver.purge("q.dlq")
        assert refused(send(driver, "d")) == [False]

    def test_a_dead_letter_queue_without_room_for_a_message_does_not_keep_the_broker_busy(self, driver):
        update(driver, "q.dlq", max_bytes=7)
        send(driver, *"abcde")
        driver.settle_down()
        assert (held(driver)[0], held(driver, "q.dlq")) == (4, (1, 5)), "two bytes are free, and no message has two"
        assert refused(send(driver, "f")) == [True], "what cannot be dropped is not accepted"
        driver.purge("q.dlq")
        assert refused(send(driver, "f")) == [False]
        driver.settle_down()
        assert (held(driver)[0], held(driver, "q.dlq")[0]) == (4, 1)

    def test_a_message_that_would_die_is_tried_again_while_there_is_no_room(self, driver):
        update(driver, "q.dlq", max_depth=1)
        consumer = driver.join("q", max_in_flight=1)
        for _ in range(2):
            send(driver, "a")
            driver.settle_down()
            driver.nack("q", consumer.take()[0].id)
        driver.settle_down()
        assert held(driver, "q.dlq")[0] == 1
        assert driver.queue("q.dlq").counters.refused == 1
        assert len(consumer.take()) == 1, "the second one again"

    def test_a_dead_letter_queue_that_drops_removes_its_oldest_for_good(self, driver):
        update(driver, "q.dlq", max_depth=2, overflow="drop-oldest")
        seqs = send(driver, *"aaaaaa")
        driver.settle_down()
        assert sorted(messages_of(driver.queue("q"))) == seqs[4:]
        assert sorted(messages_of(driver.queue("q.dlq"))) == seqs[2:4]
        assert driver.queue("q.dlq").counters.dropped == 2
        assert len([key for key, _ in driver.store.scan(Family.ATTEMPTS)]) == 2
        driver.restart()
        assert (held(driver)[0], held(driver, "q.dlq")[0]) == (2, 2)

    @pytest.mark.parametrize("kind", ["reject", "drop-oldest"])
    def test_a_redrive_moves_what_there_is_room_for_and_keeps_the_rest(self, driver, kind):
        send(driver, *"aaaaa")
        driver.settle_down()
        update(driver, overflow=kind)
        with pytest.raises(QueueFull):
            driver.redrive("q.dlq")
        take_one(driver)
        with pytest.raises(QueueFull):
            driver.redrive("q.dlq")
        assert (held(driver)[0], held(driver, "q.dlq")[0]) == (2, 2)
        assert driver.queue("q.dlq").counters.redriven == 1


def take_one(driver):
    consumer = driver.join("q", max_in_flight=1)
    driver.settle_down()
    driver.pause("q")
    driver.ack("q", consumer.got[0].id)
    driver.leave(consumer)
    driver.settle_down()


def be(driver, name, **limits):
    driver.ask(lambda reply: ChangeAccess([Put(Principal(name, (), 0, limits))], reply))


class TestOwners:
    def test_own_as_many_queues_as_they_may_and_get_back_what_they_delete(self, driver):
        be(driver, "team", queues=2)
        driver.create("a", owner="team")
        driver.create("b", owner="team")
        with pytest.raises(LimitExceeded, match='"team" owns 2 queues, its limit is queues=2'):
            driver.create("c", owner="team")
        driver.create("c", owner="other")
        driver.delete("a")
        driver.create("d", owner="team")
        driver.restart()
        with pytest.raises(LimitExceeded):
            driver.create("e", owner="team")

    def test_the_lower_limit_applies_and_the_refusal_says_whose_it_is(self, driver):
        be(driver, "team", queue_max_depth=2)
        driver.create("low", owner="team", max_depth=1)
        driver.create("high", owner="team", max_depth=9)
        driver.create("other", owner="other")
        (_, low), (_, _, high) = send(driver, *"ab", queue="low"), send(driver, *"abc", queue="high")
        assert "max_depth=1" in str(low)
        assert 'queue_max_depth of its owner "team"=2' in str(high)
        assert refused(send(driver, *"abc", queue="other")) == [False] * 3

    def test_limits_change_while_the_queue_is_used_and_are_there_after_a_restart(self, driver):
        be(driver, "team")
        driver.create("q", owner="team")
        send(driver, *"abc")
        be(driver, "team", queue_max_depth=4, queue_max_bytes=100)
        driver.settle_down()
        assert held(driver) == (3, 15)
        assert refused(send(driver, *"de")) == [False, True]
        driver.restart()
        assert held(driver) == (4, 20)
        assert refused(send(driver, "e")) == [True]
        be(driver, "team")
        assert refused(send(driver, "e")) == [False]

    def test_dead_letters_are_the_owners_too(self, driver):
        be(driver, "team", queue_max_depth=2)
        driver.create("q", owner="team", overflow="drop-oldest")
        for _ in range(5):
            send(driver, "a")
            driver.settle_down()
        assert (held(driver)[0], held(driver, "q.dlq")[0]) == (2, 2)
        assert refused(send(driver, "a")) == [True]

    def test_a_principal_that_is_removed_limits_nothing(self, driver):
        be(driver, "team", queue_max_depth=1)
        driver.create("q", owner="team")
        driver.ask(lambda reply: ChangeAccess([Remove(Principal, "team")], reply))
        assert refused(send(driver, *"ab")) == [False, False]
