"""A tick that is in flight: planned, and not durable yet. Whoever writes it may take its time."""

import pytest

from fila.broker.commands import (
    AckClaims,
    AckGroup,
    DeleteQueue,
    Enqueue,
    ExtendClaims,
    ExtendGroup,
    MakeClaim,
    Parting,
    SetConfig,
    Settle,
)
from fila.config import JournalConfig
from fila.core.errors import LeaseEnded, MessageGone, QueueNotFound, SteppedDown, StoreBusy, StoreFailed
from fila.storage.journal import Kind
from tests.helpers.broker import MS, SECOND, Driver, incoming, stats_of
from tests.helpers.journal import read_all

LEASE_MS = 30_000


@pytest.fixture
def driver():
    """With an empty queue `q`."""
    return made()


def made(setting=None, **settings):
    driver = Driver(late=True, **settings)
    driver.committer.prompt = True
    driver.create("q", throttle_headers=("provider",))
    if setting is not None:
        driver.ask(lambda reply: SetConfig(*setting, reply))
    driver.committer.prompt = False
    return driver


def fly(driver, make=None):
    """Plan a tick, with a command or without. Returns the answers of the command."""
    answers = driver.submit(make) if make is not None else []
    driver.tick()
    assert driver.engine.in_flight
    return answers


def whole(driver, make=None):
    """A tick that lands at once."""
    answers = fly(driver, make)
    driver.land()
    return answers


def enqueue(count=1, **rest):
    return lambda reply: Enqueue([incoming("q", b"%d" % n, **rest) for n in range(count)], reply)


def extend(driver, seq):
    return lambda reply: Settle(reply, extends=[ExtendGroup("q", [driver.id(seq)], "", LEASE_MS)])


def held(driver, count=1, recipient=None):
    """Messages that a consumer holds."""
    recipient = recipient or driver.join("q", count)
    ((seqs,),) = [whole(driver, enqueue(count))]
    if not recipient.got:
        whole(driver)
    return recipient, list(seqs)


class TestInFlight:
    def test_nothing_is_answered_stored_or_planned(self, driver):
        stored = driver.store.dump()
        answers = fly(driver, enqueue())
        later = driver.submit(enqueue())
        driver.tick()
        driver.engine.tick_in_turn(driver.now)
        assert (answers, later) == ([], [])
        assert driver.store.dump() == stored
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() is None

    def test_what_comes_meanwhile_makes_one_tick(self, driver):
        fly(driver, enqueue())
        later = [driver.submit(enqueue()) for _ in range(3)]
        driver.land()
        assert driver.engine.has_work(driver.now)
        writes = driver.store.writes
        whole(driver)
        assert driver.store.writes == writes + 1
        assert all(len(answers) == 1 for answers in later)

    def test_a_tick_that_writes_nothing_is_not_in_flight(self, driver):
        driver.tick()
        assert not driver.engine.in_flight

    def test_whoever_looks_finds_all_but_what_is_being_delivered(self, driver):
        whole(driver, enqueue(9))
        driver.join("q", 4)
        fly(driver)
        assert len(driver.find("q")) == 5
        assert stats_of(driver.queue("q")) is not None
        driver.land()
        assert len(driver.find("q")) == 9


class TestLateFailure:
    def test_leaves_all_as_it_was_and_pauses_from_then_on(self, driver):
        whole(driver, enqueue(3))
        recipient = driver.join("q", 2)
        before = driver.snapshot()
        answers = fly(driver, enqueue())
        driver.now += 5 * SECOND
        driver.land(StoreFailed("no room"))
        driver.now -= 5 * SECOND
        assert driver.snapshot() == before
        assert isinstance(answers[0], StoreFailed)
        assert recipient.got == []
        assert driver.engine.next_wakeup() == driver.now + 6 * SECOND

    def test_of_a_store_that_is_behind_keeps_the_commands(self, driver):
        answers = fly(driver, enqueue())
        driver.now += 5 * SECOND
        driver.land(StoreBusy("behind"))
        assert answers == []
        assert driver.engine.next_wakeup() == driver.now + MS
        driver.now += MS
        whole(driver)
        assert len(answers) == 1

    def test_fills_no_bucket_beyond_its_burst(self):
        driver = made(("throttle.provider:x", "rate=1,burst=1"))
        whole(driver, enqueue(headers={"provider": "x"}))
        driver.join("q")
        fly(driver)
        throttle = driver.state.throttles.find("provider:x")
        driver.now += 60 * SECOND
        assert throttle.room(driver.now) == 1
        driver.land(StoreFailed("no room"))
        assert throttle.room(driver.now) == 1


class TestConsumers:
    def test_one_that_goes_while_it_is_delivered_to_gives_all_back(self, driver):
        first, second = driver.join("q", 1), driver.join("q", 1)
        (outcomes,) = fly(driver, enqueue(2)) or [None]
        assert outcomes is None
        driver.leave(second)
        driver.leave(first)
        driver.land()
        whole(driver)
        assert len(driver.queue("q").consumers) == 0
        assert set(driver.places().values()) == {"ready"}

    def test_what_it_was_never_sent_is_known_when_it_goes(self, driver):
        recipient = driver.join("q", 1)
        fly(driver, enqueue())
        driver.engine.leave("q", recipient.consumer, Parting.LOST, lambda: frozenset(recipient.seqs))
        assert recipient.got == []
        driver.land()
        whole(driver)
        (seq,) = driver.places()
        assert seq not in driver.queue("q").attempts
        assert not driver.queue("q").suspicion

    def test_one_that_goes_is_gone_after_a_late_failure_too(self, driver):
        recipient = driver.join("q", 1)
        fly(driver, enqueue())
        driver.leave(recipient)
        driver.land(StoreFailed("no room"))
        assert len(driver.queue("q").consumers) == 0

    def test_one_that_comes_to_a_queue_whose_deletion_is_in_flight_is_told(self, driver):
        fly(driver, lambda reply: DeleteQueue("q", reply))
        recipient = driver.join("q")
        driver.land()
        assert isinstance(recipient.ended, QueueNotFound)

    def test_one_that_comes_to_a_queue_whose_deletion_fails_is_served(self, driver):
        fly(driver, lambda reply: DeleteQueue("q", reply))
        recipient = driver.join("q")
        driver.land(StoreFailed("no room"))
        driver.now += 2 * SECOND
        whole(driver, enqueue())
        assert len(recipient.got) == 1

    def test_one_that_comes_is_served_by_the_next_tick(self, driver):
        whole(driver, enqueue())
        fly(driver, enqueue())
        recipient = driver.join("q")
        driver.land()
        whole(driver)
        assert len(recipient.got) == 2

    def test_one_that_comes_is_counted_in_the_next_record_of_the_journal(self):
        driver = made(journal=JournalConfig(enabled=True))
        whole(driver, enqueue())
        fly(driver, enqueue())
        driver.join("q")
        driver.land()
        whole(driver, enqueue())
        counts = [entry for entry in read_all(driver.journal) if entry.kind is Kind.CONSUMERS]
        assert len(counts) == 1

    def test_so_is_the_second_that_comes(self):
        driver = made(journal=JournalConfig(enabled=True))
        whole(driver, enqueue())
        driver.join("q")
        fly(driver, enqueue())
        driver.join("q")
        driver.land()
        whole(driver, enqueue())
        counts = [entry for entry in read_all(driver.journal) if entry.kind is Kind.CONSUMERS]
        assert len(counts) == 2


class TestInTime:
    """What came while a tick was in flight came before what became due meanwhile."""

    def test_an_extension_keeps_a_lease(self, driver):
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        fly(driver, enqueue())
        answers = driver.submit(extend(driver, seq))
        driver.now += 5 * SECOND
        driver.land()
        whole(driver)
        assert answers == [[]]
        assert driver.places()[seq] == "leased"

    def test_so_it_does_when_others_fill_the_next_tick(self):
        driver = made(max_tick_messages=2)
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        fly(driver, enqueue())
        for _ in range(3):
            driver.submit(enqueue(2))
        answers = driver.submit(extend(driver, seq))
        driver.now += 5 * SECOND
        driver.land()
        for _ in range(4):
            whole(driver)
        assert answers == [[]]
        assert driver.places()[seq] == "leased"

    def test_so_it_does_when_its_tick_is_put_off(self, driver):
        """Also by a store that is behind for long, and says so at once."""
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        answers = fly(driver, extend(driver, seq))
        driver.now += SECOND // 2
        driver.land(StoreBusy("behind"))
        driver.now += 5 * SECOND
        whole(driver)
        assert answers == [[]]
        assert driver.places()[seq] == "leased"

    def test_an_ack_counts(self, driver):
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        fly(driver, enqueue())
        answers = driver.submit(lambda reply: Settle(reply, acks=[AckGroup("q", [driver.id(seq)])]))
        driver.now += 5 * SECOND
        driver.land()
        whole(driver)
        assert answers == [[]]
        assert seq not in driver.places()

    def test_the_extension_of_a_claim_counts(self, driver):
        whole(driver, enqueue(2))
        whole(driver, lambda reply: MakeClaim("q", "g", 0, 2, reply, lease_ms=LEASE_MS))
        driver.now += (LEASE_MS - 1000) * MS
        fly(driver, enqueue())
        extended = driver.submit(lambda reply: ExtendClaims("q", "g", LEASE_MS, reply))
        acked = driver.submit(lambda reply: AckClaims("q", "g", 1, reply))
        driver.now += 5 * SECOND
        driver.land()
        for _ in range(3):
            whole(driver)
        assert (extended[0].extended, extended[0].expired) == ([1], [])
        assert (acked[0].messages, acked[0].expired) == (2, [])

    def test_leases_end_all_the_same_however_much_comes(self, driver):
        """They end at the latest one flight later, however many commands each flight finds waiting."""
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        for _ in range(3):
            fly(driver, enqueue())
            driver.submit(enqueue())
            driver.now += 5 * SECOND
            driver.land()
        whole(driver)
        assert driver.queue("q").attempts == {seq: 1}

    def test_what_comes_after_the_landing_came_too_late(self, driver):
        _, (seq,) = held(driver)
        driver.now += (LEASE_MS - 1000) * MS
        fly(driver, enqueue())
        driver.now += 5 * SECOND
        driver.land()
        answers = driver.submit(extend(driver, seq))
        whole(driver)
        ((failure,),) = answers
        assert isinstance(failure.error, LeaseEnded)
        assert driver.queue("q").attempts == {seq: 1}


class TestStopping:
    def test_waits_for_the_tick_in_flight_and_does_what_came_meanwhile(self, driver):
        first = fly(driver, enqueue())
        second = driver.submit(enqueue())
        assert not driver.engine.finish(driver.now)
        driver.land()
        assert not driver.engine.finish(driver.now)
        driver.land()
        assert driver.engine.finish(driver.now)
        assert len(first) == len(second) == 1


class TestDeposed:
    def test_all_that_wait_are_told_and_nothing_more_is_done(self, driver):
        _, (seq,) = held(driver)
        first = fly(driver, enqueue())
        second = driver.submit(extend(driver, seq))
        driver.land(SteppedDown("ask another"))
        assert [type(answer) for answer in (*first, *second)] == [SteppedDown] * 2
        assert isinstance(driver.engine.deposed, SteppedDown)
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() is None
        assert driver.engine.finish(driver.now)
        assert not driver.engine.in_flight

    def test_a_broker_that_writes_nothing_is_told_from_outside(self, driver):
        whole(driver, enqueue())
        recipient = driver.join("q")
        answers = driver.submit(enqueue())
        driver.engine.step_down(SteppedDown("ask another"))
        assert [type(answer) for answer in answers] == [SteppedDown]
        driver.tick()
        driver.engine.tick_in_turn(driver.now)
        assert recipient.got == []
        assert not driver.engine.in_flight, "nothing is planned any more"

    def test_one_that_writes_hears_of_it_when_the_tick_lands(self, driver):
        answers = fly(driver, enqueue())
        driver.engine.step_down(SteppedDown("ask another"))
        assert answers == []
        driver.land(SteppedDown("ask another"))
        assert [type(answer) for answer in answers] == [SteppedDown]

    def test_so_are_those_whose_messages_are_looked_up(self, driver):
        """An ack of a message that is gone waits for the store to be asked, over many ticks if there are many."""
        answers = driver.submit(gone_acks(driver, 200))
        driver.tick()
        assert answers == []
        fly(driver, enqueue())
        driver.land(SteppedDown("ask another"))
        assert [type(answer) for answer in answers] == [SteppedDown]


def gone_acks(driver, count):
    return lambda reply: Settle(reply, acks=[AckGroup("q", [driver.id(driver.now + n) for n in range(count)])])


def enqueue_nowhere(reply):
    return Enqueue([incoming("nowhere")], reply)


def ack(message_id, queue="q"):
    return lambda reply: Settle(reply, acks=[AckGroup(queue, [message_id])])


class TestCommandsThatChangeNothing:
    """Whoever shares the log may have been deposed without knowing: what it knows is not an answer."""

    @pytest.mark.parametrize("message", ["never given out", "gone"])
    def test_are_answered_when_a_write_counts_that_came_after_them(self, driver, message):
        _, (seq,) = held(driver)
        whole(driver, ack(driver.id(seq)))
        asked = driver.id(seq) if message == "gone" else driver.id(driver.state.sequence.last + 1000)
        answers = fly(driver, ack(asked))
        assert answers == []
        driver.land()
        (failures,) = answers
        assert [type(failure.error) for failure in failures] == [MessageGone]

    def test_share_one_write(self, driver):
        asked = [driver.submit(ack(driver.id(number))) for number in range(1, 9)]
        writes = driver.store.writes
        whole(driver, enqueue_nowhere)
        assert driver.store.writes == writes + 1
        assert all(len(answers) == 1 for answers in asked)

    @pytest.mark.parametrize("make", [ack("m"), enqueue_nowhere], ids=["ack", "enqueue"])
    def test_are_not_answered_by_one_that_was_deposed(self, driver, make):
        answers = fly(driver, make)
        driver.land(SteppedDown("another has taken over; ask there"))
        assert [type(answer) for answer in answers] == [SteppedDown]

    def test_wait_while_the_log_is_away(self, driver):
        answers = fly(driver, ack("m"))
        driver.land(StoreBusy("away"))
        assert answers == []
        driver.now += MS
        whole(driver)
        assert len(answers) == 1

    def test_are_answered_at_once_by_a_broker_that_is_alone(self):
        driver = Driver()
        driver.create("q")
        writes = driver.store.writes
        answers = driver.submit(ack("m"))
        driver.tick()
        assert len(answers) == 1
        assert driver.store.writes == writes

    def test_are_not_what_the_broker_asks_of_itself(self, driver):
        driver.leave(driver.join("q"))
        driver.tick()
        assert not driver.engine.in_flight
