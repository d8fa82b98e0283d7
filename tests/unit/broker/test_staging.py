"""Transactions: what is staged is invisible until it is committed, and then enqueued once."""

from typing import Any

import pytest

from fila.broker import staging
from fila.broker.commands import CommitTransaction, StageEnqueue
from fila.broker.staging import Committing
from fila.config import LimitsConfig
from fila.core.errors import (
    BrokerError,
    InvalidArgument,
    LimitExceeded,
    NotStaged,
    QueueNotFound,
    StoreFailed,
    TooFarAhead,
)
from fila.storage import keys
from fila.storage.base import Family
from tests.helpers.broker import MS, SECOND, Driver, incoming, messages_of


class Sender:
    """A producer that commits by transaction."""

    def __init__(self, driver: Driver, producer: str = "p") -> None:
        self.driver = driver
        self.producer = producer

    def stage(
        self, number: int, *bodies: bytes, part: str = "x", sequence: int = 1, ttl_ms: int = 0, **rest: Any
    ) -> bool:
        messages = [
            incoming(rest.get("queue", "q"), body, **{k: v for k, v in rest.items() if k != "queue"}) for body in bodies
        ]
        return self.driver.ask(
            lambda reply: StageEnqueue(self.producer, number, part, sequence, messages, reply, ttl_ms)
        )

    def commit(self, number: int, **parts: int) -> Committing:
        return self.driver.ask(lambda reply: CommitTransaction(self.producer, number, list(parts.items()), reply))


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.create("q", fairness_header="tenant", dedup_window_ms=60_000)
    return driver


@pytest.fixture
def sender(driver: Driver) -> Sender:
    return Sender(driver)


class TestNumbersFarAhead:
    @pytest.mark.parametrize("last, number", [(5, 2**63 - 1), (5, 1_000_006), (10**9, 10**9 + 10**7 + 1)])
    def test_silence_no_producer(self, driver, sender, last, number):
        sender.stage(last, b"a")
        sender.commit(last, x=1)
        for call in (lambda: sender.stage(number, b"b"), lambda: sender.commit(number)):
            with pytest.raises(TooFarAhead, match=f"its last one is {last}"):
                call()
        driver.restart()
        with pytest.raises(TooFarAhead):
            sender.commit(number)
        assert sender.stage(last + 1, b"b") is False
        assert not sender.commit(last + 1, x=1).before

    def test_nor_one_that_has_committed_nothing(self, driver, sender):
        with pytest.raises(TooFarAhead, match="its last one is none"):
            sender.commit(2**63 - 1)
        assert not sender.commit(0).before

    @pytest.mark.parametrize(
        "numbers",
        [
            (0, 1_000_000, 1_500_000),
            (20261130, 20261201, 20270101),
            (20251231235959, 20260101000000),
            (1_690_000_000, 1_690_000_000 + 120 * 86_400),
            (1_690_000_000_000_000_000, 1_699_999_999_999_999_999),
        ],
        ids=["counts", "dates", "dates with times", "seconds", "nanoseconds"],
    )
    def test_are_not_those_that_programs_use(self, sender, numbers):
        for number in numbers:
            assert not sender.commit(number).before


def stored(driver: Driver, queue: str = "q") -> dict[int, bytes]:
    """What the store has of a queue, by sequence number: also what nobody may see."""
    prefix = driver.queue(queue).prefix
    found = [(keys.read_message(key)[1], record) for key, record in driver.store.scan(Family.MESSAGES, prefix)]
    return {seq: record[11:] for seq, record in found}


def bodies(driver: Driver, queue: str = "q") -> list[bytes]:
    """What a queue holds, in the order of its messages."""
    found, there = stored(driver, queue), messages_of(driver.queue(queue)).keys()
    hidden = {seq for start, end in driver.state.transactions.hidden() for seq in range(start, end)}
    assert found.keys() == there | (hidden & found.keys())
    assert not there & hidden
    return [found[seq] for seq in sorted(there)]


def test_what_is_staged_is_nowhere_until_it_is_committed(driver, sender):
    assert sender.stage(1, b"a", b"b") is False
    assert bodies(driver) == []
    assert driver.queue("q").size == 0
    assert sender.commit(1, x=2) == Committing(before=False, done=False)
    driver.settle_down()
    assert bodies(driver) == [b"a", b"b"]
    assert driver.queue("q").counters.enqueued == 2
    assert sender.commit(1, x=2) == Committing(before=True, done=True)
    driver.settle_down()
    assert bodies(driver) == [b"a", b"b"]
    assert len(driver.store.dump()[Family.STAGED]) == 1
    assert driver.state.transactions.size == 0


def test_what_parts_stage_at_once_is_enqueued_as_it_came(driver, sender):
    for part, sequence in (("y", 1), ("x", 1), ("y", 2), ("x", 2)):
        sender.stage(0, f"{part}{sequence}".encode(), part=part, sequence=sequence)
    sender.commit(0, x=2, y=2)
    driver.settle_down()
    assert bodies(driver) == [b"y1", b"x1", b"y2", b"x2"]


@pytest.mark.parametrize("crash_after", range(6))
def test_a_part_whose_calls_came_out_of_order_is_put_in_order(driver, sender, crash_after):
    """The answer to a call was lost, so it was sent again when others had come already."""
    for part, sequence in (("y", 2), ("x", 1), ("x", 3), ("y", 1), ("x", 2)):
        sender.stage(0, f"{part}{sequence}".encode(), part=part, sequence=sequence)
    sender.stage(0, b"z", part="z")
    sender.commit(0, y=2, x=3, z=1)
    for _ in range(crash_after):
        driver.tick()
    driver.restart()
    driver.settle_down()
    assert bodies(driver) == [b"z", b"y1", b"y2", b"x1", b"x2", b"x3"]
    assert len(driver.store.dump()[Family.STAGED]) == 1


def test_messages_have_their_place_from_when_they_were_staged(driver, sender):
    """Before what came to their fairness key since, also when that is on its way already."""
    driver.enqueue(incoming("q", b"before"))
    sender.stage(1, b"staged", b"too")
    for body in (b"since", b"last"):
        driver.enqueue(incoming("q", body))
    consumer = driver.join("q", max_in_flight=1)
    driver.settle_down()
    sender.commit(1, x=2)
    driver.settle_down()
    assert bodies(driver) == [b"before", b"staged", b"too", b"since", b"last"]
    (key,) = driver.queue("q").keys.values()
    found = stored(driver)
    assert [found[seq] for lane in key.lanes.values() for seq in lane.waiting()] == [
        b"staged",
        b"too",
        b"since",
        b"last",
    ]
    driver.leave(consumer)


def test_the_weight_of_a_key_is_that_of_its_newest_message(driver, sender):
    driver.create("weighed", fairness_header="tenant", weight_header="weight")

    def headers(weight):
        return {"tenant": "ada", "weight": str(weight)}

    sender.stage(1, b"old", queue="weighed", headers=headers(2))
    driver.enqueue(incoming("weighed", b"new", headers=headers(9)))
    sender.stage(2, b"newest", queue="weighed", headers=headers(5))
    for number, weight in ((1, 9), (2, 5)):
        sender.commit(number, x=1)
        driver.settle_down()
        assert driver.queue("weighed").keys["ada"].weight == weight
        driver.restart()
        assert driver.queue("weighed").keys["ada"].weight == weight


def test_what_was_staged_waits_from_its_commit_on(driver, sender):
    sender.stage(1, b"a")
    driver.now += 500 * MS
    sender.commit(1, x=1)
    driver.settle_down()
    (seq,) = messages_of(driver.queue("q"))
    queue = driver.queue("q")
    queue.ledger.ask(seq)
    driver.now += 20 * MS
    driver.join("q")
    driver.settle_down()
    wait = queue.ledger.answer(seq)
    assert wait is not None
    assert 20 * MS <= wait.whole < 500 * MS
    assert wait.delay == 0


def test_a_call_that_is_sent_again_takes_the_place_of_the_first(driver, sender):
    sender.stage(1, b"a", b"b")
    size = driver.state.transactions.size
    sender.stage(1, b"a", b"b")
    assert driver.state.transactions.size == size
    assert sorted(stored(driver).values()) == [b"a", b"b"]
    sender.commit(1, x=2)
    driver.settle_down()
    assert bodies(driver) == [b"a", b"b"]


def test_parts_that_are_not_named_and_earlier_transactions_are_dropped(driver, sender):
    sender.stage(1, b"never")
    sender.stage(2, b"lost", part="loser")
    sender.stage(2, b"won")
    sender.stage(3, b"later")
    sender.commit(2, x=1)
    assert sorted(stored(driver).values()) == [b"later", b"won"]
    driver.settle_down()
    assert bodies(driver) == [b"won"]
    sender.commit(3, x=1)
    driver.settle_down()
    assert bodies(driver) == [b"won", b"later"]
    assert len(driver.store.dump()[Family.STAGED]) == 1
    assert driver.state.transactions.size == 0


def test_a_transaction_up_to_the_last_one_is_not_staged_for_again(driver, sender):
    sender.commit(5)
    assert sender.stage(5, b"a") is True
    assert sender.stage(4, b"a") is True
    assert sender.commit(4, x=1).before
    assert Sender(driver, "other").stage(4, b"a") is False


@pytest.mark.parametrize("parts", [{"x": 3}, {"x": 1}, {"x": 0}, {"y": 2}, {"x": 2, "y": 1}])
def test_a_part_that_is_not_whole_is_not_committed(driver, sender, parts):
    sender.stage(1, b"a", b"b")
    with pytest.raises(NotStaged):
        sender.commit(1, **parts)
    assert sender.commit(1, x=2).before is False


def test_a_part_with_a_gap_is_not_committed(driver, sender):
    sender.stage(1, b"a", sequence=2)
    with pytest.raises(NotStaged):
        sender.commit(1, x=1)


def test_what_is_not_committed_in_time_is_removed(driver, sender):
    sender.stage(1, b"a", ttl_ms=1000)
    driver.advance(900)
    sender.stage(1, b"b", sequence=2, ttl_ms=1000)
    driver.advance(999)
    assert driver.state.transactions.size
    driver.advance(1002)
    assert driver.state.transactions.size == 0
    assert driver.store.dump()[Family.STAGED] == {}
    assert stored(driver) == {}
    with pytest.raises(NotStaged):
        sender.commit(1, x=2)


def test_a_restart_keeps_what_is_staged_and_removes_what_was_too_long(driver, sender):
    sender.stage(1, b"a", ttl_ms=1000)
    sender.stage(2, b"b")
    driver.restart()
    assert bodies(driver) == []
    assert len(stored(driver)) == 2
    driver.now += 2 * SECOND
    driver.settle_down()
    assert list(stored(driver).values()) == [b"b"]
    assert list(driver.state.transactions.producers["p"].open) == [2]
    sender.commit(2, x=1)
    driver.settle_down()
    assert bodies(driver) == [b"b"]
    assert driver.state.transactions.size == 0


def test_a_commit_goes_on_after_a_restart(driver, sender):
    for sequence in range(1, 5):
        sender.stage(1, b"%d" % sequence, sequence=sequence)
    sender.commit(1, x=4)
    driver.tick()
    assert bodies(driver) == [b"1"]
    driver.restart()
    assert sender.commit(1, x=4) == Committing(before=True, done=False)
    driver.settle_down()
    assert bodies(driver) == [b"1", b"2", b"3", b"4"]
    assert sender.commit(1, x=4) == Committing(before=True, done=True)


def test_the_next_commit_waits_until_the_one_before_is_enqueued(driver, sender):
    sender.stage(1, b"1")
    sender.stage(2, b"2")
    sender.commit(1, x=1)
    assert sender.commit(2, x=1) == Committing(before=False, done=False, decided=False)
    driver.settle_down()
    assert sender.commit(2, x=1).decided
    driver.settle_down()
    assert bodies(driver) == [b"1", b"2"]


def test_a_failed_write_leaves_everything_as_it_was(driver, sender):
    sender.stage(1, b"a")
    stored = driver.store.dump()
    driver.store.failing = True
    for call in (lambda: sender.stage(1, b"b", sequence=2), lambda: sender.commit(1, x=1)):
        with pytest.raises(StoreFailed):
            call()
    driver.store.failing = False
    assert driver.store.dump() == stored
    assert driver.state.transactions.producers["p"].open[1].messages == 1
    sender.commit(1, x=1)
    driver.store.failing = True
    driver.now += 2 * SECOND
    driver.tick()
    driver.store.failing = False
    assert bodies(driver) == []
    driver.advance(2000)
    assert bodies(driver) == [b"a"]


def test_what_cannot_be_read_is_tried_again_later(driver, sender, monkeypatch):
    sender.stage(1, b"a")
    sender.commit(1, x=1)
    with monkeypatch.context() as patch:

        def broken(*_):
            raise StoreFailed("not now")

        patch.setattr(driver.store, "get", broken)
        driver.settle_down()
        assert not driver.engine.has_work(driver.now)
        assert driver.engine.next_wakeup() == driver.now + SECOND
    driver.advance(1000)
    assert bodies(driver) == [b"a"]


def test_fairness_priority_delay_and_dedup_are_as_at_an_enqueue(driver, sender):
    sender.stage(1, b"a", headers={"tenant": "t"}, priority=2, dedup_key="k")
    sender.stage(1, b"b", sequence=2, delay_ms=1000, dedup_key="k2")
    sender.stage(1, b"c", sequence=3, dedup_key="k")
    sender.commit(1, x=3)
    driver.settle_down()
    places = sorted(place[:3] for place in messages_of(driver.queue("q")).values())
    assert places == [("delayed", "default", 5), ("ready", "t", 2)]
    assert len(stored(driver)) == 2
    driver.advance(1000)
    assert driver.queue("q").ready == 2


def test_messages_of_a_queue_that_is_deleted_go_with_it(driver, sender):
    driver.create("other")
    sender.stage(1, b"a", queue="other")
    sender.stage(1, b"b", sequence=2)
    driver.delete("other")
    sender.commit(1, x=2)
    driver.settle_down()
    assert bodies(driver) == [b"b"]
    driver.restart()


@pytest.mark.parametrize("second_first", [False, True])
def test_messages_of_a_queue_that_was_deleted_are_not_in_one_that_has_its_name_now(driver, sender, second_first):
    driver.create("other")
    calls = [(b"a", 1), (b"b", 2)]
    for body, sequence in reversed(calls) if second_first else calls:
        sender.stage(1, body, queue="other", sequence=sequence)
    driver.delete("other")
    driver.now += MS
    driver.create("other", created_at=driver.now)
    sender.stage(1, b"c", queue="other", sequence=3)
    sender.commit(1, x=3)
    driver.settle_down()
    assert bodies(driver, "other") == [b"c"]
    driver.restart()
    assert bodies(driver, "other") == [b"c"]


def test_large_messages_and_costs_are_known_after_the_commit(driver, sender):
    driver.create("costly", cost_header="cost")
    for sequence, (size, cost) in enumerate([(10, 1), (100_000, 1), (10, 7)], 1):
        sender.stage(1, b"x" * size, queue="costly", headers={"cost": str(cost)}, sequence=sequence)
    sender.commit(1, x=3)
    driver.settle_down()
    _, second, third = sorted(messages_of(driver.queue("costly")))
    for _ in range(2):
        queue = driver.queue("costly")
        assert queue.large == {second}
        (key,) = queue.keys.values()
        assert (key.special.costs, key.ready, key.live) == ({third: 7}, 3, 3)
        driver.restart()


def test_consumers_are_handed_what_was_committed(driver, sender):
    recipient = driver.join("q")
    sender.stage(1, b"a", b"b")
    driver.settle_down()
    assert recipient.got == []
    sender.commit(1, x=2)
    driver.settle_down()
    assert len(recipient.got) == 2


def test_a_call_with_a_message_that_is_refused_stages_nothing(driver, sender):
    with pytest.raises(InvalidArgument, match="message 0 of the batch"):
        sender.stage(1, b"a", priority=300)
    with pytest.raises(QueueNotFound):
        sender.stage(1, b"a", queue="nowhere")
    assert driver.store.dump()[Family.STAGED] == {}


def test_limits_are_refused_with_words(monkeypatch):
    limits = LimitsConfig(
        max_batch_messages=3,
        max_transaction_messages=4,
        max_transaction_bytes=400,
        max_staged_bytes=450,
        max_transaction_ttl_ms=1000,
        max_transaction_producers=2,
    )
    driver = Driver(limits=limits)
    driver.create("q")
    sender = Sender(driver)
    for call, error in (
        (lambda: sender.stage(1), InvalidArgument),
        (lambda: sender.stage(1, b"a", part=""), InvalidArgument),
        (lambda: sender.stage(1, b"a", part="x" * 256), InvalidArgument),
        (lambda: sender.stage(1, b"a", sequence=0), InvalidArgument),
        (lambda: sender.stage(1, b"a", ttl_ms=1001), InvalidArgument),
        (lambda: Sender(driver, "").stage(1, b"a"), InvalidArgument),
        (lambda: Sender(driver, "").commit(1), InvalidArgument),
        (lambda: sender.stage(1, *[b""] * 4), LimitExceeded),
        (lambda: sender.stage(1, b"x" * 400), LimitExceeded),
    ):
        with pytest.raises(error):
            call()
    sender.stage(1, b"", b"", b"")
    with pytest.raises(LimitExceeded):
        sender.stage(1, b"", b"", sequence=2)
    monkeypatch.setattr(staging, "MAX_BATCHES", 1)
    with pytest.raises(LimitExceeded):
        sender.stage(1, b"", sequence=2)
    other = Sender(driver, "other")
    other.stage(1, b"x" * 200)
    with pytest.raises(LimitExceeded):
        other.stage(2, b"x" * 200)
    with pytest.raises(LimitExceeded):
        Sender(driver, "third").stage(1, b"")
    monkeypatch.setattr(staging, "MAX_OPEN", 2)
    with pytest.raises(LimitExceeded):
        other.stage(2, b"")
    driver.now += 2000 * MS
    driver.settle_down()
    assert Sender(driver, "third").stage(1, b"") is False


@pytest.mark.parametrize("limit", ["max_transaction_messages", "max_transaction_bytes", "max_staged_bytes"])
def test_a_call_that_stages_again_needs_no_more_room(limit):
    """Whoever lost the answer repeats the call, also the one that filled the transaction."""
    measured = Driver()
    measured.create("q")
    Sender(measured).stage(1, b"a", b"b")
    Sender(measured).stage(1, b"c", b"d", sequence=2)
    full = 4 if limit == "max_transaction_messages" else measured.state.transactions.size
    driver = Driver(limits=LimitsConfig(**{limit: full}))
    driver.create("q")
    sender = Sender(driver)
    sender.stage(1, b"a", b"b")
    sender.stage(1, b"c", b"d", sequence=2)
    assert sender.stage(1, b"c", b"d", sequence=2) is False
    with pytest.raises(LimitExceeded):
        sender.stage(1, b"c", b"d", b"e", sequence=2)
    with pytest.raises(LimitExceeded):
        sender.stage(1, b"e", sequence=3)
    assert sender.commit(1, x=4).decided


def test_a_producer_is_remembered_until_it_was_silent_for_very_long(driver, sender):
    sender.commit(7)
    driver.now += staging.SILENT_AFTER
    driver.restart()
    driver.tick()
    assert sender.stage(7, b"a") is True
    driver.now += 2 * SECOND
    driver.tick()
    assert driver.state.transactions.producers == {}
    assert driver.store.dump()[Family.STAGED] == {}


def test_errors_are_brokers(driver, sender):
    with pytest.raises(BrokerError, match="names a part twice"):
        driver.ask(lambda reply: CommitTransaction("p", 1, [("x", 1), ("x", 1)], reply))


def test_what_is_delivered_in_the_tick_of_its_commit_leaves_nothing_behind_in_the_ledger(driver, sender):
    """Its wait began with the commit and is over, so there is nothing to remember of it."""
    consumer = driver.join("q")
    driver.settle_down()
    sender.stage(1, b"a", b"b")
    driver.advance(1000)
    sender.commit(1, x=2)
    driver.settle_down()
    assert len(consumer.got) == 2
    assert not driver.queue("q").ledger._returned


@pytest.mark.parametrize("name", ["", "x" * 1000])
def test_a_name_that_cannot_be_staged_for_cannot_commit(driver, name):
    with pytest.raises(InvalidArgument, match="producer must not"):
        driver.ask(lambda reply: CommitTransaction(name, 1, [], reply))
    assert not driver.state.transactions.producers
