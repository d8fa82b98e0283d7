"""Finding messages of a queue without taking them."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.broker import search
from fila.broker.commands import Nack, Settle
from fila.broker.search import Query, Search, finish
from fila.core.lifecycle import State
from tests.helpers.broker import Driver


def seqs(places):
    return [place.seq for place in places]


@pytest.fixture
def some(driver):
    """Messages of two tenants: one leased, one delayed, the others ready."""
    sent = [
        driver.send("q", b"leased", headers={"tenant": "a"}, priority=0),
        driver.send("q", b"x", headers={"tenant": "b"}),
        driver.send("q", b"delayed", headers={"tenant": "a"}, delay_ms=500),
        driver.send("q", b"x", headers={"tenant": "a"}, priority=9),
        driver.send("q", b"y", headers={"tenant": "b"}),
    ]
    driver.join("q", 1)
    driver.settle_down()
    assert list(driver.places().values()).count("leased") == 1
    return sent


class TestTheOrder:
    def test_is_that_of_age_whatever_the_place(self, driver, some):
        assert seqs(driver.find("q")) == some
        assert seqs(driver.find("q", newest=True)) == some[::-1]

    def test_says_where_each_is_and_until_when(self, driver, some):
        places = driver.find("q")
        assert [place.state for place in places].count(State.LEASED) == 1
        assert {place.until and place.until - driver.now for place in places} == {0, 500_000_000, 30_000_000_000}
        assert [(place.key, place.priority) for place in places] == [("a", 0), ("b", 5), ("a", 5), ("a", 9), ("b", 5)]


class TestFiltering:
    def test_by_state(self, driver, some):
        (leased,) = driver.find("q", states=frozenset({State.LEASED}))
        assert seqs(driver.find("q", states=frozenset({State.DELAYED}))) == [some[2]]
        ready = driver.find("q", states=frozenset({State.READY}))
        assert sorted([*seqs(ready), leased.seq, some[2]]) == some

    def test_by_fairness_key(self, driver, some):
        assert seqs(driver.find("q", fairness_key="a")) == [some[0], some[2], some[3]]
        assert seqs(driver.find("q", fairness_key="nobody")) == []

    def test_by_age_and_identity(self, driver, some):
        assert seqs(driver.find("q", low=some[1], high=some[3])) == some[1:4]
        assert seqs(driver.find("q", seqs=frozenset({some[4], 1}))) == [some[4]]

    def test_by_body(self, driver, some):
        assert seqs(driver.find("q", body=lambda body: body == b"x")) == [some[1], some[3]]

    def test_by_what_was_said_of_an_attempt(self, driver):
        sent = [driver.send("q"), driver.send("q"), driver.send("q")]
        consumer = driver.join("q")
        driver.settle_down()
        said = ["Timeout of the upstream", "no such user", ""]
        nacks = [Nack("q", one.id, error) for one, error in zip(consumer.take(), said, strict=True)]
        driver.ask(lambda reply: Settle(reply, nacks=nacks))
        driver.settle_down()
        assert seqs(driver.find("q", error="timeout")) == [sent[0]]
        driver.ask(lambda reply: Settle(reply, nacks=[Nack("q", one.id, "later") for one in consumer.take()]))
        assert seqs(driver.find("q", error="TIMEOUT OF")) == [sent[0]], "also of an earlier attempt"
        assert seqs(driver.find("q", error="later")) == sent


class TestWalking:
    def test_goes_on_behind_the_last_one(self, driver, some):
        for newest in (False, True):
            walk = Search(driver.store, driver.queue("q"), Query(newest=newest))
            order = some[::-1] if newest else some
            assert [match.location.seq for match in finish(walk.next(2, 10_000))] == order[:2]
            assert (walk.position, walk.done) == (order[1], False)
            rest = Search(driver.store, driver.queue("q"), Query(newest=newest).behind(walk.position))
            assert [match.location.seq for match in finish(rest.next(9, 10_000))] == order[2:]
            assert rest.done

    def test_ends_when_it_has_cost_enough(self, driver, some):
        walk = Search(driver.store, driver.queue("q"), Query(body=lambda _: False))
        assert finish(walk.next(9, 20)) == []
        assert walk.position is not None
        assert not walk.done
        while not walk.done:
            assert finish(walk.next(9, 20)) == []
        assert walk.position == some[-1]

    def test_pauses_so_that_others_can_work(self, driver):
        for _ in range(5000):
            driver.send("q", headers={"tenant": "a"})
        walk = Search(driver.store, driver.queue("q"), Query(error="x"))
        assert sum(1 for _ in walk.next(9, 1 << 30)) >= 5

    def test_misses_no_message_of_a_small_queue_that_moves_meanwhile(self, driver):
        """A delayed message becomes due in whatever pause there is."""
        sent = [driver.send("q", headers={"tenant": "a"}), driver.send("q", headers={"tenant": "a"}, delay_ms=500)]
        walk = Search(driver.store, driver.queue("q"), Query(seqs=frozenset(sent[1:])), read=True).next(9, 1 << 30)
        found = None
        while found is None:
            try:
                next(walk)
                driver.advance(600)
            except StopIteration as end:
                found = end.value
        assert [match.location.seq for match in found] == sent[1:]

    @pytest.mark.parametrize("pause", range(1, 12))
    @pytest.mark.parametrize("move", ["becomes due", "comes back", "is to be retried later"])
    def test_misses_no_message_that_moves_in_one_pause(self, driver, monkeypatch, move, pause):
        """Of a queue that is too large to be seen at one moment."""
        monkeypatch.setattr(search, "PAUSE_AFTER", 1)
        due = move == "becomes due"
        sent = [driver.send("q", headers={"tenant": "a"}, delay_ms=500 if due else 0)]
        if not due:
            driver.join("q", 1)
            driver.settle_down()
        driver.pause("q")
        sent += [driver.send("q", headers={"tenant": "b"}, delay_ms=delay) for delay in (0, 60_000)]
        steps = Search(driver.store, driver.queue("q"), Query()).next(9, 1 << 30)
        moves = {
            "becomes due": lambda: driver.advance(600),
            "comes back": lambda: driver.nack("q", driver.id(sent[0])),
            "is to be retried later": lambda: driver.nack("q", driver.id(sent[0]), delay_ms=60_000),
        }
        with pytest.raises(StopIteration) as end:
            for number in count(1):
                next(steps)
                if number == pause:
                    assert not moves[move]()
                    driver.settle_down()
        assert seqs(match.location for match in end.value.value) == sent

    def test_survives_what_happens_meanwhile(self, driver, monkeypatch):
        monkeypatch.setattr(search, "PAUSE_AFTER", 1)
        sent = [driver.send("q", headers={"tenant": str(number)}) for number in range(20)]
        steps = Search(driver.store, driver.queue("q"), Query(), read=True).next(99, 1 << 30)
        consumer = driver.join("q", 1)
        found = []
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found = [match.location.seq for match in end.value]
                break
            driver.settle_down()
            driver.ack("q", consumer.got[-1].id)
        assert found == sorted(set(found))
        assert set(found) < set(sent)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 5, 9]), st.booleans()), max_size=40),
    st.integers(0, 40),
    st.integers(0, 40),
    st.booleans(),
    st.integers(1, 5),
)
def test_a_walk_in_small_parts_finds_what_a_look_at_all_finds(messages, low, high, newest, gathered):
    """However many are gathered at a time: each message in the range once, in order."""
    driver = Driver()
    driver.create("q", fairness_header="tenant")
    sent = [
        driver.send("q", headers={"tenant": str(key)}, priority=priority, delay_ms=900 * delayed)
        for key, priority, delayed in messages
    ]
    driver.join("q", 3)
    driver.settle_down()
    low, high = sent[low] if low < len(sent) else 0, sent[high] if high < len(sent) else 1 << 63
    before = search.GATHERED
    try:
        search.GATHERED = gathered
        found = driver.find("q", low=low, high=high, newest=newest)
    finally:
        search.GATHERED = before
    assert seqs(found) == sorted((seq for seq in sent if low <= seq <= high), reverse=newest)
