"""What is said of a waiting message is what then happens to it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.broker.commands import SetConfig, UpdateQueue
from fila.broker.explain import Found, explain, first_of, next_of, search
from tests.helpers.broker import MS, SECOND, Driver, incoming

messages = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 3), st.sampled_from([0, 5, 9]), st.integers(1, 3)),
    min_size=1,
    max_size=40,
)


def fill(driver: Driver, sent, **settings):
    """A queue with messages of (key, weight, priority, cost); their sequence numbers."""
    driver.create("q", fairness_header="k", weight_header="w", cost_header="c", throttle_headers=("t",), **settings)
    batch = [
        incoming("q", headers={"k": key, "w": str(weight), "c": str(cost)}, priority=priority)
        for key, weight, priority, cost in sent
    ]
    return driver.enqueue(*batch)


def find(driver: Driver, seq: int) -> Found:
    (found,) = [found for found in search(driver.queue("q"), seq) if found is not None]
    return found


def run_until(driver: Driver, end: int) -> None:
    """Let time pass as it does for a broker: it wakes up whenever it said that it would."""
    while (wake := driver.engine.next_wakeup()) is not None and wake <= end:
        driver.now = max(driver.now, wake)
        driver.settle_down()
    driver.now = end
    driver.settle_down()


@given(messages, st.data())
@settings(max_examples=200)
def test_as_many_deliveries_come_first_as_are_said(sent, data):
    """Counted, not estimated: the scheduler then delivers exactly that many before it."""
    driver = Driver()
    seqs = fill(driver, sent, quantum=2)
    served = data.draw(st.integers(0, len(seqs) - 1))
    consumer = driver.join("q", 1)
    for _ in range(served):
        driver.settle_down()
        driver.ack("q", consumer.got[-1].id)
    driver.settle_down()
    waiting = [seq for seq, place in driver.places().items() if place == "ready"]
    said = {seq: explain(driver.queue("q"), find(driver, seq), driver.now) for seq in waiting}
    before = len(consumer.got)
    while len(driver.places()) > 0:
        driver.ack("q", consumer.got[-1].id)
        driver.settle_down()
    order = [one.seq for one in consumer.got[before:]]
    assert {seq: (about.ahead, about.exact) for seq, about in said.items()} == {
        seq: (order.index(seq), True) for seq in waiting
    }


@given(messages, st.data())
def test_explaining_changes_nothing(sent, data):
    """Neither memory nor the order of what follows."""
    driver = Driver()
    seqs = fill(driver, sent, quantum=1)
    driver.ask(lambda reply: SetConfig("throttle.t:x", "rate=1,burst=2", reply))
    before, stored = driver.snapshot(), driver.store.dump()
    explain(driver.queue("q"), find(driver, data.draw(st.sampled_from(seqs))), driver.now)
    explain(driver.queue("q"), next_of(driver.queue("q"), driver.now), driver.now)
    assert (driver.snapshot(), driver.store.dump()) == (before, stored)


@given(
    st.integers(1, 12),
    st.integers(0, 11),
    st.sampled_from(["rate=2,burst=1", "rate=0.5,burst=3", "rate=10,burst=2"]),
    st.integers(1, 4),
)
def test_one_throttled_key_is_delivered_when_it_was_said(count, pick, limit, cost):
    """To the nanosecond when nobody else wants the tokens."""
    driver = Driver()
    driver.create("q", throttle_headers=("t",), cost_header="c", visibility_timeout_ms=86_400_000)
    driver.ask(lambda reply: SetConfig("throttle.t:x", limit, reply))
    consumer = driver.join("q", 100)
    seqs = driver.enqueue(*[incoming("q", headers={"t": "x", "c": str(cost)})] * count)
    driver.settle_down()
    seq = seqs[pick % count]
    if driver.places()[seq] == "leased":
        return
    about = explain(driver.queue("q"), find(driver, seq), driver.now)
    assert "throttled" in [reason.code for reason in about.reasons]
    assert about.estimate is not None
    run_until(driver, about.estimate - 1)
    assert seq not in consumer.seqs
    run_until(driver, about.estimate)
    assert seq in consumer.seqs


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.integers(0, 3)), min_size=1, max_size=20
    ),
    st.lists(st.integers(1, 900), min_size=5, max_size=20),
)
def test_nothing_is_delivered_earlier_than_said(sent, steps):
    """Whatever else goes on, `not_before` holds while settings stay as they are."""
    driver = Driver()
    driver.create("q", fairness_header="k", throttle_headers=("t",))
    for name, limit in (("x", "rate=1,burst=1"), ("y", "rate=3,burst=2,max_in_flight=2")):
        driver.ask(lambda reply, name=name, limit=limit: SetConfig(f"throttle.t:{name}", limit, reply))
    headers = [{"k": key} | ({"t": throttle} if throttle else {}) for key, throttle, _ in sent]
    seqs = driver.enqueue(
        *[
            incoming("q", headers=given, delay_ms=delay * 400)
            for given, (_, _, delay) in zip(headers, sent, strict=True)
        ]
    )
    consumer = driver.join("q", 3)
    earliest: dict[int, int] = {}
    for ms in steps:
        driver.settle_down()
        for one in consumer.take():
            assert earliest.get(one.seq, 0) <= driver.now
            driver.ack("q", one.id)
        for seq in seqs:
            if driver.places().get(seq) in {"ready", "delayed"}:
                about = explain(driver.queue("q"), find(driver, seq), driver.now)
                earliest[seq] = max(earliest.get(seq, 0), about.not_before)
        driver.now += ms * MS


class TestReasons:
    def codes(self, driver, seq):
        return [reason.code for reason in explain(driver.queue("q"), find(driver, seq), driver.now).reasons]

    def test_nobody_consumes(self):
        driver = Driver()
        (seq,) = fill(driver, [("a", 1, 5, 1)])
        assert self.codes(driver, seq) == ["no_consumer"]

    def test_the_queue_is_paused(self):
        driver = Driver()
        (seq,) = fill(driver, [("a", 1, 5, 1)])
        driver.join("q")
        driver.ask(lambda reply: UpdateQueue("q", {"paused": True}, reply))
        about = explain(driver.queue("q"), find(driver, seq), driver.now)
        assert [reason.code for reason in about.reasons] == ["paused"]
        assert about.estimate is None

    def test_consumers_are_full(self):
        driver = Driver()
        seqs = fill(driver, [("a", 1, 5, 1)] * 3)
        driver.join("q", 1)
        driver.settle_down()
        assert self.codes(driver, seqs[1]) == ["no_credit"]
        assert self.codes(driver, seqs[2]) == ["no_credit", "behind_own_key"]

    def test_somebody_holds_it(self):
        driver = Driver()
        (seq,) = fill(driver, [("a", 1, 5, 1)])
        consumer = driver.join("q", 1)
        driver.settle_down()
        about = explain(driver.queue("q"), find(driver, seq), driver.now)
        assert [reason.code for reason in about.reasons] == ["leased", "no_credit"]
        assert about.reasons[0].until == driver.now + 30 * SECOND
        assert about.reasons[0].subject == str(consumer.consumer.number)
        assert about.estimate is None

    def test_it_is_delayed(self):
        driver = Driver()
        driver.create("q")
        seq = driver.send("q", delay_ms=1500)
        driver.join("q")
        about = explain(driver.queue("q"), find(driver, seq), driver.now)
        assert [reason.code for reason in about.reasons] == ["delayed"]
        assert about.not_before == about.estimate == driver.now + 1500 * MS

    def test_others_have_their_turn(self):
        driver = Driver()
        seqs = fill(driver, [("a", 1, 5, 1), ("b", 1, 5, 1), ("c", 1, 5, 1)])
        driver.join("q", 1)
        about = explain(driver.queue("q"), find(driver, seqs[2]), driver.now)
        assert [reason.code for reason in about.reasons] == ["turn"]
        assert about.reasons[0].numbers == {"keys": 2, "deliveries": 2}

    def test_nothing_holds_up_what_comes_next(self):
        driver = Driver()
        seqs = fill(driver, [("a", 1, 5, 1), ("b", 1, 5, 1)])
        driver.join("q", 1)
        about = explain(driver.queue("q"), next_of(driver.queue("q"), driver.now), driver.now)
        assert (about.seq, about.reasons, about.estimate) == (seqs[0], [], driver.now)
        assert explain(driver.queue("q"), first_of(driver.queue("q"), "b"), driver.now).seq == seqs[1]

    def test_an_in_flight_cap_is_no_matter_of_time(self):
        driver = Driver()
        driver.create("q", throttle_headers=("t",))
        driver.ask(lambda reply: SetConfig("throttle.t:x", "max_in_flight=1", reply))
        seqs = driver.enqueue(*[incoming("q", headers={"t": "x"})] * 2)
        driver.join("q", 10)
        driver.settle_down()
        about = explain(driver.queue("q"), find(driver, seqs[1]), driver.now)
        (reason,) = about.reasons
        assert (reason.code, reason.until, reason.subject) == ("in_flight_cap", None, "t:x")
        assert reason.setting == "throttle.t:x"
        assert reason.numbers == {"in_flight": 1, "max_in_flight": 1}
