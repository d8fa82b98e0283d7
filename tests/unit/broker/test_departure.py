"""What becomes of the messages of a consumer that goes: which count an attempt, which die, which come back alone."""

import pytest

from fila.broker.commands import Enqueue, Parting
from fila.broker.departure import RETURNED_AT_ONCE
from fila.broker.explain import explain, first_of
from fila.core.consumers import EMPTIED_WITHIN, TRIALS
from fila.core.throttle import Limit
from tests.helpers.broker import MS, Driver, incoming, stats_of


@pytest.fixture
def driver():
    return Driver()


def fill(driver, count, queue="q", **headers):
    return driver.enqueue(*[incoming(queue, b"x", headers=headers) for _ in range(count)])


def attempts(driver, queue="q"):
    return dict(driver.queue(queue).attempts)


def lose(driver, count, *, handed, reports=True, parting=Parting.LOST, max_in_flight=100):
    """A consumer takes so many messages, hands over some of them, and goes."""
    recipient = driver.join("q", max_in_flight, reports=reports)
    driver.settle_down()
    assert len(recipient.got) == count
    if reports:
        recipient.hand(handed)
    driver.leave(recipient, parting)
    driver.settle_down()
    return recipient.seqs


@pytest.mark.parametrize("parting", Parting)
def test_what_was_never_handed_counts_no_attempt(driver, parting):
    """However its consumer goes; and it waits as if it had never been delivered."""
    driver.create("q", max_attempts=1)
    fill(driver, 10)
    lose(driver, 10, handed=0, parting=parting)
    if parting is Parting.KEPT:  # nothing comes back before its lease ends, or its client gives it back
        assert driver.queue("q").depth == 0
        driver.advance(30_001)
    assert attempts(driver) == {}
    assert driver.queue("q").depth == 10
    assert not driver.queue("q").consumers._leaving
    assert driver.queue("q.dlq").depth == 0


def test_nothing_is_remembered_of_a_consumer_that_held_nothing(driver):
    driver.create("q")
    lose(driver, 0, handed=0, parting=Parting.KEPT)
    assert not driver.queue("q").consumers._leaving


def test_a_consumer_whose_leases_are_kept_may_still_settle_them(driver):
    """Also what the server did not know to be handed; what it was not handed counts no attempt when it expires."""
    driver.create("q")
    seqs = fill(driver, 10)
    lose(driver, 10, handed=3, parting=Parting.KEPT)
    assert driver.ack("q", *[driver.id(seq) for seq in seqs[:5]]) == []
    driver.advance(30_001)
    assert attempts(driver) == {}
    assert driver.queue("q").ready == 5
    assert not driver.queue("q").consumers._leaving


def test_what_was_handed_counts_an_attempt(driver):
    """Also when the consumer leaves on purpose."""
    driver.create("q")
    first, *_ = fill(driver, 10)
    lose(driver, 10, handed=1, parting=Parting.LEFT)
    assert attempts(driver) == {first: 1}


def test_a_consumer_that_pauses_keeps_what_was_handed(driver):
    """Until that is settled, or its lease ends."""
    driver.create("q")
    first, *_ = fill(driver, 10)
    lose(driver, 10, handed=1, parting=Parting.PAUSED)
    assert driver.queue("q").ready == 9
    assert driver.ack("q", driver.id(first)) == []


def test_a_consumer_that_says_nothing_holds_all_in_its_hands(driver):
    """As with the plain Lease call."""
    driver.create("q")
    seqs = fill(driver, 3)
    lose(driver, 3, handed=0, reports=False, parting=Parting.LEFT)
    assert attempts(driver) == dict.fromkeys(seqs, 1)


@pytest.mark.parametrize("parting", Parting)
def test_what_was_granted_and_never_sent_goes_back_at_once_and_counts_no_attempt(driver, parting):
    """However its consumer goes, and although that says nothing."""
    driver.create("q")
    seqs = fill(driver, 10)
    recipient = driver.join("q", 100)
    driver.settle_down()
    driver.leave(recipient, parting, unsent=seqs[4:])
    driver.settle_down()
    stays = parting in {Parting.KEPT, Parting.PAUSED}
    counted = parting in {Parting.LEFT, Parting.LOST}
    assert driver.queue("q").depth == (6 if stays else 10)
    assert attempts(driver) == (dict.fromkeys(seqs[:4], 1) if counted else {})


@pytest.mark.parametrize("parting", [Parting.LOST, Parting.LEFT])
def test_nothing_dies_in_company(driver, parting):
    """Of several nobody knows which was the cause: they come again, each alone, though attempts are used up."""
    driver.create("q", max_attempts=1)
    seqs = fill(driver, 3)
    lose(driver, 3, handed=3, parting=parting)
    assert driver.queue("q.dlq").depth == 0
    recipient = driver.join("q", 100)
    driver.settle_down()
    assert recipient.seqs == seqs[:1]
    assert driver.ack("q", driver.id(seqs[0])) == []
    driver.settle_down()
    assert recipient.seqs == seqs[:2]


@pytest.mark.parametrize("parting", [Parting.LOST, Parting.LEFT])
def test_what_was_alone_dies(driver, parting):
    driver.create("q", max_attempts=1)
    first, *_ = fill(driver, 5)
    lose(driver, 5, handed=1, parting=parting)
    assert driver.queue("q").ready == 4
    assert list(attempts(driver, "q.dlq")) == [first]


def test_the_next_message_is_suspected_when_none_was_reported(driver):
    """It may have been handed since the last report. It is delivered alone, and counts no attempt."""
    driver.create("q", max_attempts=1)
    seqs = fill(driver, 4)
    lose(driver, 4, handed=0)
    assert attempts(driver) == {}
    assert [seq for seq, _, _ in driver.queue("q").suspects.all()] == seqs[:1]


def test_suspects_stay_suspects_over_a_restart(driver):
    """The record of the last attempt says so."""
    driver.create("q")
    seqs = fill(driver, 3)
    lose(driver, 3, handed=2)
    driver.restart()
    assert [seq for seq, _, _ in driver.queue("q").suspects.all()] == seqs[:2]
    assert driver.queue("q").depth == 3


def test_a_suspect_without_a_counted_attempt_is_an_ordinary_message_after_a_restart(driver):
    """No record of an attempt says so. Nothing is lost but one trial alone: the next loss makes it a suspect again."""
    driver.create("q", max_attempts=1)
    seqs = fill(driver, 4)
    lose(driver, 4, handed=0)
    driver.restart()
    assert len(driver.queue("q").suspects) == 0
    assert attempts(driver) == {}
    assert lose(driver, 4, handed=2) == seqs
    assert [seq for seq, _, _ in driver.queue("q").suspects.all()] == seqs[:2]
    assert driver.queue("q.dlq").depth == 0


def test_a_suspect_that_is_nacked_is_cleared(driver):
    """Its consumer lives: it comes again as any other message."""
    driver.create("q")
    fill(driver, 2)
    lose(driver, 2, handed=2)
    recipient = driver.join("q", 100)
    driver.settle_down()
    (tried,) = recipient.take()
    driver.nack("q", tried.id)
    assert tried.seq not in driver.queue("q").suspicion
    driver.settle_down()
    assert len(recipient.take()) == 1, "the other suspect, or this one"


def test_a_message_that_kills_every_consumer_does_not_keep_others_from_being_delivered(driver):
    """Without a limit of attempts it comes for ever. Every consumer that starts is given others first."""
    driver.create("q")
    poison, *others = fill(driver, 41)
    handled = set()
    for _ in range(20):
        recipient = driver.join("q", 10, reports=True)
        driver.settle_down()
        while True:
            got = recipient.take()
            if not got or poison in [one.seq for one in got]:
                break
            for one in got:
                handled.add(one.seq)
                recipient.hand()
                driver.ack("q", one.id)
            driver.settle_down()
        recipient.hand(len(got))
        driver.leave(recipient, Parting.LOST)
        driver.settle_down()
    assert handled == set(others)
    assert list(attempts(driver)) == [poison]


def test_a_busy_consumer_is_emptied_for_a_suspect(driver):
    """It is given nothing more until it holds nothing, then the suspect; another consumer goes on meanwhile."""
    driver.create("q")
    suspects = fill(driver, 2)
    lose(driver, 2, handed=2)
    fill(driver, 40)
    one, two = driver.join("q", 2), driver.join("q", 3)
    driver.settle_down()
    done = []
    for _ in range(200):
        waiting = [(recipient, recipient.take()) for recipient in (one, two)]
        for _, got in waiting:
            assert len(got) == 1 or not {each.seq for each in got} & set(suspects), "a suspect is alone"
            for each in got:
                done.append(each.seq)
                driver.ack("q", each.id)
        driver.settle_down()
        if not any(got for _, got in waiting):
            break
    assert len(done) == 42
    assert not set(suspects) & set(done[:4])


def test_a_consumer_that_is_not_emptied_in_time_goes_on(driver):
    """One that keeps what it holds would otherwise be given nothing for ever."""
    driver.create("q")
    fill(driver, 2)
    lose(driver, 2, handed=2)
    fill(driver, 20)
    one = driver.join("q", 3)
    driver.settle_down()
    held = one.take()
    driver.ack("q", held[0].id)
    driver.settle_down()
    assert one.take() == [], "it is emptied"
    driver.now += EMPTIED_WITHIN
    driver.ack("q", held[1].id)
    driver.settle_down()
    assert len(one.take()) == 2


def test_others_are_served_between_many_suspects(driver):
    """A consumer tries so many in a row while others wait."""
    driver.create("q")
    suspects = set(fill(driver, 50))
    lose(driver, 50, handed=50)
    fill(driver, 50)
    recipient, order = driver.join("q", 5), []
    driver.settle_down()
    while got := recipient.take():
        for one in got:
            order.append(one.seq in suspects)
            driver.ack("q", one.id)
        driver.settle_down()
    runs = "".join("s" if each else "." for each in order).split(".")
    assert sum(order) == 50
    assert max(map(len, runs)) == TRIALS


def test_a_suspect_that_let_the_last_of_the_others_go_first_is_tried_next(driver):
    """Consumers that have just come are given others first; nothing else need happen before one tries a suspect."""
    driver.create("q")
    suspects = fill(driver, 2)
    lose(driver, 2, handed=2)
    ordinary = fill(driver, 1)
    both = [driver.join("q", 1), driver.join("q", 1)]
    driver.settle_down()
    held = [seq for one in both for seq in one.seqs]
    assert ordinary[0] in held
    assert set(held) & set(suspects)


@pytest.mark.parametrize("parting", [Parting.KEPT, Parting.LEFT])
def test_a_suspect_is_tried_when_the_consumer_that_tries_another_goes(driver, parting):
    """Also when that one's lease is kept, so that nothing goes back: an idle consumer takes over at once."""
    driver.create("q")
    fill(driver, 2)
    lose(driver, 2, handed=2)
    trying, idle = driver.join("q", 1), driver.join("q", 1)
    driver.settle_down()
    assert (len(trying.got), idle.got) == (1, [])
    driver.leave(trying, parting)
    driver.tick()
    assert len(idle.got) == 1
    assert idle.seqs != trying.seqs


def test_suspects_obey_their_throttles(driver):
    """One that is held up keeps no consumer waiting for it."""
    driver.create("q", throttle_headers=("l",))
    driver.state.apply_setting("throttle.l:t", "rate=1,burst=2", driver.now)
    fill(driver, 2, l="t")
    lose(driver, 2, handed=2)
    recipient = driver.join("q", 100)
    driver.settle_down()
    assert recipient.got == []
    plain = fill(driver, 1)
    driver.settle_down()
    assert recipient.seqs == plain
    driver.ack("q", driver.id(plain[0]))
    driver.advance(1500)
    assert len(recipient.got) == 2


def test_the_engine_rests_while_a_suspect_waits_for_a_consumer_and_others_for_its_throttle(driver):
    """The look at the suspect takes a token and puts it back, which is no news for those who wait for one."""
    driver.create("q", throttle_headers=("t",))
    driver.state.throttles.set("t:slow", Limit(rate=1, burst=2), driver.now)
    fill(driver, 2, t="slow")
    lose(driver, 2, handed=2)
    fill(driver, 1, t="slow")
    fill(driver, 1)
    busy = driver.join("q", 1)
    driver.settle_down()
    (other,) = busy.take()
    driver.advance(1000)
    assert busy.take() == []
    assert driver.ack("q", other.id) == []
    driver.settle_down()
    assert len(busy.take()) == 1


def test_suspects_can_be_found_purged_and_explained(driver):
    driver.create("q", fairness_header="tenant")
    seqs = fill(driver, 3, tenant="acme")
    lose(driver, 3, handed=2)
    queue = driver.queue("q")
    assert [place.seq for place in driver.find("q")] == seqs
    assert stats_of(queue).summary.depth == 3
    driver.purge("q", seqs=frozenset(seqs[2:]))
    found = first_of(queue, "acme")
    assert [reason.code for reason in explain(queue, found, driver.now).reasons] == ["no_consumer", "isolated"]
    assert driver.purge("q") == 2
    assert not queue.keys
    assert not queue.suspicion


def test_an_expired_lease_counts_no_attempt_for_what_was_never_handed(driver):
    driver.create("q", max_attempts=1, visibility_timeout_ms=1000)
    first, *rest = fill(driver, 3)
    recipient = driver.join("q", 100, reports=True)
    driver.settle_down()
    recipient.hand()
    driver.now += 1000 * MS
    driver.tick()
    assert list(attempts(driver, "q.dlq")) == [first]
    assert attempts(driver) == {}
    assert driver.queue("q").ready == len(rest)


def test_what_was_delivered_before_a_restart_does_not_die_when_its_lease_expires(driver):
    """Nobody knows whether an application was handed it: the loss of a whole machine buries nothing."""
    driver.create("q", max_attempts=1)
    fill(driver, 3)
    driver.join("q", 100, reports=True)
    driver.settle_down()
    driver.restart()
    driver.advance(30_000)
    assert set(attempts(driver).values()) == {1}
    assert driver.queue("q").ready == 3


def test_many_messages_come_back_a_part_in_each_tick(driver):
    """What one consumer leaves behind does not hold up everybody else."""
    driver.create("q")
    count = 3 * RETURNED_AT_ONCE
    seqs = [seq for _ in range(3) for seq in fill(driver, RETURNED_AT_ONCE)]
    recipient = driver.join("q", count, reports=True)
    driver.settle_down()
    recipient.hand(1)
    driver.leave(recipient, Parting.LOST)
    back = []
    while driver.engine.has_work(driver.now):
        driver.tick()
        back.append(driver.queue("q").depth)
    assert back == [RETURNED_AT_ONCE, 2 * RETURNED_AT_ONCE, count]
    assert attempts(driver) == {seqs[0]: 1}
    assert len(driver.queue("q").suspects) == 1


def test_a_failed_write_uses_up_no_trial(driver):
    """However often it is tried again: a store that stalls does not make a consumer pass suspects over."""
    driver.create("q")
    fill(driver, 2)
    lose(driver, 2, handed=1)
    recipient = driver.join("q", 100)
    recipient.consumer.trials_left = TRIALS
    driver.store.failing = True
    driver.tick()
    driver.store.failing = False
    assert (recipient.consumer.trials_left, recipient.consumer.trying, recipient.consumer.aside) == (
        TRIALS,
        False,
        False,
    )


def test_a_consumer_that_was_chosen_to_be_emptied_in_a_failed_write_goes_on(driver):
    driver.create("q")
    fill(driver, 2)
    busy = driver.join("q", 2)
    driver.settle_down()
    fill(driver, 1)
    lose(driver, 1, handed=1)
    consumers = driver.queue("q").consumers
    assert consumers.emptied is busy.consumer
    consumers.go_on()
    driver.engine.want("q")
    driver.store.failing = True
    driver.submit(lambda reply: Enqueue((incoming("q"),), reply))
    driver.tick()
    driver.store.failing = False
    assert consumers.emptied is None
    assert not busy.consumer.aside
    driver.advance(1_001)
    assert consumers.emptied is busy.consumer
