"""Where a wait went: the parts sum up to the whole, and each is what was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.broker.commands import SetConfig
from fila.core import ledger
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.ledger import MAX_STEPS, Holdups, Ledger, Timeline, WaitSums
from fila.storage.journal import Kind
from tests.helpers.broker import MS, SECOND, START, Driver, incoming
from tests.helpers.journal import read_all


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=60), st.data())
def test_a_timeline_knows_any_stretch(changes, data):
    """As if every moment had been written down."""
    timeline = Timeline(0, on=True)
    state, moments = True, []
    for on, pause in changes:
        moments += [state] * pause
        timeline.set(on, len(moments))
        state = on
    moments += [state] * 10
    end = data.draw(st.integers(0, len(moments)))
    start = data.draw(st.integers(0, end))
    assert timeline.between(start, end) == sum(moments[start:end])


def test_a_timeline_stays_small_and_keeps_its_sum():
    timeline = Timeline(0, on=False)
    for now in range(1, 20_001):
        timeline.set(now % 2 == 1, now)
    assert timeline.between(0, 20_000) == 10_000
    assert timeline.between(19_000, 20_000) == 500
    assert len(timeline._times) <= MAX_STEPS
    assert abs(timeline.between(2000, 4000) - 1000) <= 2, "as on average"


@given(st.lists(st.tuples(st.sampled_from(["", "x", "y"]), st.integers(0, 30)), max_size=20), st.integers(0, 100))
def test_holdups_know_who_held_up_when(changes, start):
    """As if every moment had been written down."""
    holdups, moments = Holdups(), []
    now, by = 0, ""
    for name, pause in changes:
        moments += [by] * pause
        now += pause
        holdups.set(name, now)
        by = name
    moments += [by] * 5
    found = holdups.within(start, len(moments))
    for name in ("x", "y"):
        assert sum(end - begin for begin, end, key in found if key == name) == moments[start:].count(name)


@st.composite
def runs(draw):
    """What happens to a queue: (what, how long afterwards)."""
    events = ["enqueue", "delayed", "limited", "limited", "join", "leave", "ack", "nack", "nack later", "wait"]
    more = draw(st.lists(st.tuples(st.sampled_from(events), st.integers(0, 700)), min_size=5, max_size=40))
    return [("join", 0), ("limited", 0), ("limited", 0), *more]


@given(runs())
def test_the_parts_of_every_wait_sum_up_to_the_whole(run):
    """Whatever happens, and no part is negative.

    The journal tells of every delivery how long throttles held it up, also while no consumer had credit.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "SAMPLE", 1)
        driver = Driver()
        driver.create("q", throttle_headers=("t",))
        driver.queue("q").ledger._skip = 1
        driver.ask(lambda reply: SetConfig("throttle.t:x", "rate=2,burst=1,max_in_flight=2", reply))
        waits = []
        real_add = WaitSums.add
        whole = driver.queue("q").ledger.sums
        patch.setattr(
            WaitSums, "add", lambda self, wait: (waits.append(wait) if self is whole else None, real_add(self, wait))[1]
        )
        consumers = []
        for event, pause in run:
            do(driver, event, consumers)
            driver.advance(pause)
        for wait in waits:
            parts = [wait.delay, wait.retry, wait.no_consumer, *wait.throttle.values(), wait.fair_share]
            assert sum(parts) == wait.whole
            assert min(parts) >= 0
        assert len(waits) == driver.queue("q").counters.delivered
        leased = [entry for entry in read_all(driver.journal) if entry.kind is Kind.LEASED]
        for entry, wait in zip(leased, waits, strict=True):
            throttle = sum(wait.throttle.values())
            assert throttle <= entry.throttled <= throttle + wait.no_consumer


def do(driver, event, consumers):
    if event == "join":
        consumers.append(driver.join("q", 2))
    elif event == "leave" and consumers:
        driver.leave(consumers.pop())
    elif event in {"ack", "nack", "nack later"} and consumers and consumers[-1].got:
        held = consumers[-1].got.pop(0)
        if event == "ack":
            driver.ack("q", held.id, token=held.token)
        else:
            driver.nack("q", held.id, token=held.token, delay_ms=300 if event == "nack later" else 0)
    elif event in {"enqueue", "delayed", "limited"}:
        headers = {"t": "x"} if event == "limited" else {}
        driver.send("q", headers=headers, delay_ms=400 if event == "delayed" else 0)


class TestEachPart:
    @pytest.fixture
    def driver(self, monkeypatch):
        monkeypatch.setattr(ledger, "SAMPLE", 1)
        driver = Driver()
        driver.create("q", throttle_headers=("t",))
        driver.queue("q").ledger._skip = 1
        return driver

    def parts(self, driver):
        sums = driver.queue("q").ledger.sums
        return {name: round(ns / MS) for name, ns in sums.parts.items() if ns}

    def test_nobody_was_there(self, driver):
        driver.send("q")
        driver.advance(500)
        driver.join("q")
        driver.settle_down()
        assert self.parts(driver) == {"no_consumer": 500}

    def test_its_time_had_not_come(self, driver):
        driver.join("q")
        driver.settle_down()
        driver.send("q", delay_ms=700)
        driver.advance(700)
        assert self.parts(driver) == {"delay": 700}

    def test_it_had_failed(self, driver):
        consumer = driver.join("q")
        driver.settle_down()
        driver.send("q")
        driver.settle_down()
        driver.advance(100)
        driver.nack("q", consumer.got[0].id, delay_ms=250)
        driver.advance(250)
        assert self.parts(driver) == {"retry": 350}

    def test_a_throttle_held_it_up(self, driver):
        driver.ask(lambda reply: SetConfig("throttle.t:x", "rate=1,burst=1", reply))
        driver.join("q")
        driver.settle_down()
        driver.enqueue(*[incoming("q", headers={"t": "x"})] * 3)
        driver.settle_down()
        for _ in range(2):
            driver.advance(1000)
        assert self.parts(driver) == {"throttle": 3000}
        assert round(driver.queue("q").ledger.sums.throttles["t:x"] / SECOND, 3) == 3

    def test_others_had_their_turn(self, driver):
        consumer = driver.join("q", 1)
        driver.settle_down()
        driver.enqueue(incoming("q"), incoming("q"))
        driver.settle_down()
        driver.advance(200)
        driver.ack("q", consumer.got[0].id)
        driver.settle_down()
        # The only consumer was busy with the other message.
        assert self.parts(driver) == {"no_consumer": 200}


def test_one_in_so_many_is_accounted_for():
    book = Ledger(0)
    lane = Lane(FairKey("k"), 5, (b"", b""))
    for start in range(0, 3200, 10):
        book.deliver([(lane, START + number, 1) for number in range(start, start + 10)], {}, START + SECOND)
    assert book.sums.count == 3200 // ledger.SAMPLE
    assert book.of_key("k").count == book.sums.count
    assert book.sums.quantile(0.5) >= SECOND


def test_the_waits_of_a_key_are_summed_up_whether_or_not_somebody_asks_in_between(monkeypatch):
    monkeypatch.setattr(ledger, "SAMPLE", 1)
    for asks in ({1, 2, 3}, {3}):
        book = Ledger(0)
        book._skip = 1
        seen = []
        for number in (1, 2, 3):
            book.deliver([(Lane(FairKey("k"), 5, (b"", b"")), START, 1)], {}, START + number * SECOND)
            seen += [book.of_key("k")] if number in asks else []
        assert seen[0] is seen[-1]
        assert (seen[0].count, seen[0].whole, sum(seen[0].parts.values())) == (3, 6 * SECOND, 6 * SECOND)


def test_keys_that_were_not_served_for_longest_are_forgotten(monkeypatch):
    monkeypatch.setattr(ledger, "SAMPLE", 1)
    book = Ledger(0)
    book._skip = 1
    for number in range(ledger.MAX_KEYS + 5):
        book.deliver([(Lane(FairKey(str(number)), 5, (b"", b"")), 1, 1)], {}, 2)
    assert len(book._keys) == ledger.MAX_KEYS
    assert book.of_key("0") is None
