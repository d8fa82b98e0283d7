"""One tick, one write, answers after it."""

import pytest

from fila.broker.commands import AckGroup, CreateQueue, DeleteQueue, Enqueue, Nack, Produced, Settle, StageEnqueue
from fila.core.errors import Overloaded, QueueAlreadyExists, StoreBusy, StoreFailed, StoreFull
from fila.storage.base import Family
from tests.helpers.broker import MS, START, Driver, incoming, queue_record


def enqueue(driver, *messages, **rest):
    return driver.submit(lambda reply: Enqueue(list(messages), reply, **rest))


def ack(driver, *ids, queue="q", token=""):
    return driver.submit(lambda reply: Settle(reply, acks=[AckGroup(queue, list(ids), token)]))


class TestOneWriteATick:
    def test_all_that_came_since_the_last_tick_is_written_at_once(self, driver):
        first = driver.send("q")
        driver.join("q")
        driver.settle_down()
        writes = driver.store.writes
        enqueue(driver, incoming("q"), incoming("q"))
        enqueue(driver, incoming("q"), produced=Produced("p", 1))
        ack(driver, driver.id(first))
        driver.tick()
        assert driver.store.writes == writes + 1

    def test_due_work_and_deliveries_share_the_write_of_the_commands(self, driver):
        driver.send("q", delay_ms=10)
        driver.send("q")
        driver.join("q")
        driver.now += 10 * MS
        writes = driver.store.writes
        enqueue(driver, incoming("q"))
        driver.tick()
        assert driver.store.writes == writes + 1
        assert sorted(driver.places().values()) == ["leased", "ready", "ready"]

    def test_a_tick_without_changes_writes_nothing(self, driver):
        driver.settle_down()
        writes = driver.store.writes
        ack(driver, "no id")
        driver.tick()
        driver.tick()
        assert driver.store.writes == writes

    def test_commands_about_queues_have_a_tick_of_their_own(self, driver):
        driver.submit(lambda reply: CreateQueue(queue_record("r"), reply))
        sent = enqueue(driver, incoming("r"))
        driver.tick()
        assert sent == []
        driver.tick()
        assert isinstance(sent[0][0], int)

    def test_commands_keep_their_order_around_a_deletion(self, driver):
        before = enqueue(driver, incoming("q"))
        deleted = driver.submit(lambda reply: DeleteQueue("q", reply))
        after = enqueue(driver, incoming("q"))
        for _ in range(3):
            driver.tick()
        assert isinstance(before[0][0], int)
        assert deleted == [1]
        assert "does not exist" in str(after[0][0])

    def test_a_tick_takes_on_a_bounded_number_of_messages(self):
        driver = Driver(max_tick_messages=3)
        driver.create("q")
        answers = [enqueue(driver, incoming("q"), incoming("q")) for _ in range(3)]
        driver.tick()
        assert [len(answer) for answer in answers] == [1, 1, 0]
        assert driver.engine.has_work(driver.now)
        driver.tick()
        assert [len(answer) for answer in answers] == [1, 1, 1]

    def test_a_batch_larger_than_a_tick_is_still_taken_whole(self):
        driver = Driver(max_tick_messages=3)
        driver.create("q")
        (outcomes,) = (driver.enqueue(*[incoming("q")] * 10),)
        assert len(outcomes) == 10


class TestAnswersFollowTheWrite:
    def test_nobody_is_answered_or_handed_anything_before_the_write(self, driver):
        first = driver.send("q")
        consumer = driver.join("q", 2)
        driver.settle_down()
        answers = [enqueue(driver, incoming("q")), ack(driver, driver.id(first))]
        driver.send("q")  # something to deliver in the same tick as the next answers
        seen = []
        answers += [enqueue(driver, incoming("q"))]
        driver.store.on_write = lambda _: seen.append(([len(one) for one in answers], len(consumer.got)))
        before = len(consumer.got)
        driver.tick()
        assert seen == [([1, 1, 0], before)]
        assert [len(one) for one in answers] == [1, 1, 1]

    def test_whoever_is_answered_finds_things_as_the_answer_says(self, driver):
        depths = []
        driver.engine.submit(Enqueue([incoming("q")], lambda _: depths.append(driver.queue("q").depth)))
        driver.engine.submit(CreateQueue(queue_record("r"), lambda _: depths.append(len(driver.state.queues))))
        driver.settle_down()
        assert depths == [1, 4]  # each with its dead-letter queue

    def test_memory_changes_only_after_the_write(self, driver):
        driver.send("q")
        driver.join("q")
        enqueue(driver, incoming("q", headers={"tenant": "new"}), produced=Produced("p", 1))
        before = driver.snapshot()
        seen = []

        def look(_):
            snapshot = driver.snapshot()
            # What the scheduler chose is out of its lane while the write is under way, and nowhere else yet.
            for name in ("attempts", "dedup", "consumers", "leases", "counters"):
                assert snapshot["queues"]["q"][name] == before["queues"]["q"][name]
            seen.append(snapshot["producers"] == before["producers"])

        driver.store.on_write = look
        driver.tick()
        assert seen == [True]


class TestAFailedWrite:
    @pytest.fixture
    def busy(self, driver):
        """Messages in every place, and a command of every kind waiting."""
        driver.join("q", 4)
        for number in range(6):
            driver.send("q", b"x", headers={"tenant": "ab"[number % 2]}, priority=number % 3)
        driver.settle_down()
        driver.send("q", delay_ms=5)
        driver.send("q", delay_ms=90_000, dedup_key="k")
        held = [seq for seq, place in driver.places().items() if place == "leased"]
        self.answers = [
            enqueue(driver, incoming("q", headers={"tenant": "c", "weight": "9"}), incoming("nowhere")),
            enqueue(driver, incoming("q", dedup_key="other"), produced=Produced("p", 1)),
            ack(driver, driver.id(held[0])),
            driver.submit(lambda reply: Settle(reply, nacks=[Nack("q", driver.id(held[1]), delay_ms=7)])),
            driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", ["no id"])])),
        ]
        driver.now += 31_000 * MS  # everything expires and one message is due
        return driver

    def test_answers_every_command_of_the_tick_with_the_error(self, busy):
        busy.store.failing = True
        busy.tick()
        assert [type(answer) for (answer,) in self.answers] == [StoreFailed] * 5

    def test_leaves_memory_and_store_as_they_were(self, busy):
        before, stored = busy.snapshot(), busy.store.dump()
        busy.store.failing = True
        busy.tick()
        assert busy.snapshot() == before
        assert busy.store.dump() == stored

    def test_leaves_no_queue_behind_nor_removes_one(self, driver):
        before = driver.snapshot()
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.create("r")
        with pytest.raises(StoreFailed):
            driver.delete("q")
        assert driver.snapshot() == before
        driver.store.failing = False
        with pytest.raises(QueueAlreadyExists):
            driver.create("q")
        driver.create("r")

    def test_the_next_write_works_as_if_nothing_had_been(self, busy):
        busy.store.failing = True
        busy.tick()
        busy.store.failing = False
        seq = busy.send("q", b"later")
        assert busy.places()[seq] == "ready"
        busy.restart()
        assert busy.places()[seq] == "ready"

    def test_commands_are_tried_at_once_but_what_nobody_waits_for_rests_a_second(self, driver):
        consumer = driver.join("q")
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q")
        driver.store.failing = False
        seq = driver.send("q")
        driver.tick()
        assert consumer.got == []
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() == driver.now + 1000 * MS
        driver.advance(1000)
        assert consumer.seqs == [seq]

    def test_no_number_is_given_out_twice(self, driver):
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q")
        driver.store.failing = False
        seqs = [driver.send("q"), driver.send("q")]
        assert len(set(seqs)) == 2

    def test_a_full_disk_is_said_to_be_one(self, driver):
        def full(_):
            raise StoreFull("no room")

        driver.store.on_write = full
        with pytest.raises(StoreFull):
            driver.send("q")

    def test_what_a_consumer_that_left_was_holding_still_goes_back(self, driver):
        seq = driver.send("q")
        consumer = driver.join("q")
        driver.settle_down()
        driver.leave(consumer)
        driver.store.failing = True
        driver.tick()
        assert driver.places()[seq] == "leased"
        driver.store.failing = False
        driver.advance(1000)
        assert driver.places()[seq] == "ready"
        assert driver.queue("q").attempts[seq] == 1

    def test_dedup_rows_whose_time_is_over_are_still_removed_later(self, driver):
        driver.send("q", dedup_key="k")
        driver.now += 61_000 * MS
        driver.store.failing = True
        driver.tick()
        driver.store.failing = False
        driver.advance(2000)
        assert driver.store.dump()[Family.DEDUP] == {}


class TestAStoreThatIsBehind:
    """RocksDB's write stall: the tick is tried again, and nobody is told anything meanwhile."""

    def test_keeps_commands_in_their_order_and_answers_them_when_it_has_caught_up(self, driver):
        driver.store.stalls = 3
        first, second = enqueue(driver, incoming("q")), enqueue(driver, incoming("q"))
        before = driver.snapshot()
        for _ in range(3):
            driver.tick()
            assert (first, second) == ([], [])
            assert driver.snapshot() == before
        driver.tick()
        assert first[0][0] < second[0][0]
        assert driver.engine.queued == 0
        assert (driver.engine.load().write_stalls, driver.engine.load().write_failures) == (3, 0)

    def test_is_tried_again_later_and_later_and_not_before_its_time(self, driver):
        driver.store.stalls = 100
        enqueue(driver, incoming("q"))
        pauses = []
        for _ in range(9):
            tried = driver.engine.load().write_stalls
            driver.engine.tick_in_turn(driver.now)
            assert driver.engine.load().write_stalls == tried + 1
            driver.engine.tick_in_turn(driver.now)  # a command that comes meanwhile plans nothing
            assert driver.engine.load().write_stalls == tried + 1
            assert not driver.engine.has_work(driver.now)
            pauses.append((driver.engine.next_wakeup() - driver.now) // MS)
            driver.now = driver.engine.next_wakeup()
        assert pauses == [1, 2, 4, 8, 16, 32, 64, 64, 64]

    def test_lets_commands_wait_no_longer_when_a_write_has_failed_before(self, driver):
        """What nobody waits for rests a second then; a client does wait."""
        driver.store.failing = True
        with pytest.raises(StoreFailed):
            driver.send("q")
        driver.store.failing, driver.store.stalls = False, 1
        answers = enqueue(driver, incoming("q"))
        driver.tick()
        assert driver.engine.next_wakeup() == driver.now + 1 * MS
        driver.advance(1)
        assert len(answers) == 1

    def test_refuses_more_commands_than_may_wait(self):
        driver = Driver(max_queued_commands=3)
        driver.create("q")
        driver.store.stalls = 1
        enqueue(driver, *[incoming("q")] * 3)
        driver.tick()
        with pytest.raises(Overloaded):
            enqueue(driver, incoming("q"))

    def test_is_not_waited_for_for_ever(self, driver):
        driver.store.stalls = 100
        answers = enqueue(driver, incoming("q"))
        driver.tick()
        driver.now += 10_000 * MS
        driver.tick()
        assert [type(answer) for answer in answers] == [StoreBusy]
        assert driver.engine.load().write_failures == 1
        driver.store.stalls = 0
        driver.send("q")

    def test_does_not_hold_up_a_stop(self, driver):
        driver.store.stalls = 100
        answers = enqueue(driver, incoming("q"))
        driver.engine.finish(driver.now)
        assert [type(answer) for answer in answers] == [StoreBusy]

    def test_lets_leases_end_when_no_command_waited_for_it(self, driver):
        """Only commands that waited may have come in time."""
        seq = driver.send("q")
        driver.join("q")
        driver.store.stalls = 1
        driver.tick()
        driver.advance(1)
        assert driver.places()[seq] == "leased"
        driver.advance(3_600_000)
        assert driver.queue("q").attempts == {seq: 1}

    def test_delivers_what_it_could_not_deliver_while_it_was_behind(self, driver):
        seq = driver.send("q")
        consumer = driver.join("q")
        driver.store.stalls = 1
        driver.tick()
        assert (consumer.got, driver.places()[seq]) == ([], "ready")
        driver.advance(1)
        assert consumer.seqs == [seq]


class TestAFullStore:
    """Producers are refused before anything is written; whatever empties the store goes on."""

    def test_refuses_what_takes_room(self, driver):
        driver.store.full = True
        writes = driver.store.writes
        with pytest.raises(StoreFull):
            driver.send("q")
        with pytest.raises(StoreFull):
            driver.create("r")
        with pytest.raises(StoreFull):
            driver.ask(lambda reply: StageEnqueue("p", 1, "a", 1, [incoming("q")], reply))
        assert driver.store.writes == writes
        assert driver.engine.load().store_full
        driver.store.full = False
        driver.send("q")

    def test_answers_a_batch_again_that_it_took_before(self, driver):
        first = driver.enqueue(incoming("q"), producer="p", sequence=1)
        driver.store.full = True
        assert driver.enqueue(incoming("q"), producer="p", sequence=1) == first
        with pytest.raises(StoreFull):
            driver.enqueue(incoming("q"), producer="p", sequence=2)

    def test_delivers_and_settles_purges_and_deletes(self, driver):
        driver.create("r")
        seqs = [driver.send("q") for _ in range(3)]
        driver.send("r")
        driver.store.full = True
        consumer = driver.join("q", 2)
        driver.settle_down()
        assert consumer.seqs == seqs[:2]
        assert driver.ack("q", driver.id(seqs[0])) == []
        assert driver.nack("q", driver.id(seqs[1])) == []
        driver.leave(consumer)
        driver.settle_down()
        assert driver.purge("q") == 2
        assert driver.delete("r", force=True) == 1
        assert driver.places() == {}


class TestOverload:
    def test_past_the_bound_commands_are_refused_and_nothing_is_kept(self):
        driver = Driver(max_queued_commands=5)
        driver.create("q")
        enqueue(driver, *[incoming("q")] * 5)
        for _ in range(3):
            with pytest.raises(Overloaded, match="too many requests are waiting"):
                enqueue(driver, incoming("q"))
        driver.settle_down()
        assert len(driver.places()) == 5
        driver.send("q")

    @pytest.mark.parametrize(
        "command",
        [
            lambda reply: Enqueue([], reply, Produced("p", 1)),
            Settle,
            lambda reply: Settle(reply, acks=[AckGroup("q", [])]),
            lambda reply: CreateQueue(queue_record("r"), reply),
        ],
        ids=["no messages", "no settlements", "an empty group", "a queue"],
    )
    def test_a_command_without_messages_counts_too(self, command):
        driver = Driver(max_queued_commands=3)
        for _ in range(3):
            driver.submit(command)
        with pytest.raises(Overloaded):
            driver.submit(command)

    def test_a_consumer_may_always_leave(self):
        driver = Driver(max_queued_commands=1)
        driver.create("q")
        seq = driver.send("q")
        consumer = driver.join("q")
        driver.settle_down()
        enqueue(driver, incoming("q"))
        driver.leave(consumer)
        driver.settle_down()
        assert driver.places()[seq] == "ready"


class TestWakingUp:
    def test_an_idle_broker_sleeps_until_something_is_due(self, driver):
        driver.settle_down()
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() is None
        driver.send("q", delay_ms=250)
        driver.settle_down()
        assert driver.engine.next_wakeup() == START + 250 * MS

    def test_it_wakes_when_the_first_lease_ends(self, driver):
        driver.send("q")
        driver.join("q")
        driver.settle_down()
        assert driver.engine.next_wakeup() == driver.now + 30_000 * MS

    def test_it_does_not_wake_for_messages_that_nobody_wants(self, driver):
        driver.send("q")
        driver.settle_down()
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() is None

    def test_finishing_does_what_was_asked_and_delivers_nothing_more(self, driver):
        consumer = driver.join("q")
        sent = enqueue(driver, incoming("q"))
        created = driver.submit(lambda reply: CreateQueue(queue_record("r"), reply))
        driver.engine.finish(driver.now)
        driver.tick()
        assert len(sent) == len(created) == 1
        assert consumer.got == []

    def test_finishing_ends_also_when_nothing_can_be_written(self, driver):
        seq = driver.send("q")
        consumer = driver.join("q")
        driver.settle_down()
        driver.leave(consumer)
        sent = enqueue(driver, incoming("q"))
        driver.store.failing = True
        driver.engine.finish(driver.now)
        assert isinstance(sent[0], StoreFailed)
        assert driver.places() == {seq: "leased"}


class TestTheClock:
    def test_numbers_grow_when_the_clock_steps_back(self, driver):
        first = driver.send("q")
        driver.now -= 3_600_000 * MS
        assert driver.send("q") > first

    def test_numbers_grow_over_a_restart_after_which_the_clock_is_behind(self, driver):
        seqs = [driver.send("q") for _ in range(3)]
        driver.ack("q", *map(driver.id, seqs))
        for _ in range(5):
            driver.now -= 60_000 * MS
            driver.restart()
            seqs.append(driver.send("q"))
        assert seqs == sorted(set(seqs))

    def test_a_token_is_never_given_out_again_after_a_restart(self, driver):
        driver.send("q")
        tokens = []
        for _ in range(4):
            consumer = driver.join("q")
            driver.settle_down()
            (got,) = consumer.take()
            tokens.append(got.token)
            driver.nack("q", got.id)
            driver.now -= 60_000 * MS
            driver.restart()
        assert len(set(tokens)) == 4

    def test_ids_are_no_more_than_a_moment_ahead_of_the_clock(self, driver):
        driver.send("q")
        driver.restart()
        assert driver.send("q") - driver.now <= 200 * MS
