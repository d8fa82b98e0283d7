"""The scheduler: who is served next."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core import drr as drr_module
from fila.core.drr import IDLE, SPARSE_RUN
from tests.support.scheduling import Rings, names, seqs


def test_three_equal_keys_get_a_third_each():
    """Equal weights, equal shares (story 2.1, criterion 7)."""
    rings = Rings()
    for name in "abc":
        rings.push(name, 1000)
    assert rings.shares(300) == {"a": 100, "b": 100, "c": 100}


def test_a_round_gives_each_key_its_weight_times_the_quantum():
    """A key is served until its share is spent, then the next has its turn (criteria 1 and 2)."""
    rings = Rings(quantum=2)
    rings.push("a", 100, weight=1)
    rings.push("b", 100, weight=3)
    assert rings.take(16) == ["a"] * 2 + ["b"] * 6 + ["a"] * 2 + ["b"] * 6


def test_one_key_is_served_in_order():
    """With a single key the scheduler is a FIFO."""
    rings = Rings()
    rings.push("a", 50)
    assert seqs(rings.drr.select(50).messages) == list(range(1, 51))


@given(st.integers(1, 5), st.integers(1, 5), st.lists(st.integers(1, 25), min_size=1, max_size=6))
def test_the_turns_of_a_key_that_is_alone_are_those_that_it_would_have_one_by_one(quantum, weight, limits):
    rings = Rings(quantum=quantum)
    rings.push("a", sum(limits) + 1, weight=weight)
    share = weight * quantum
    taken = 0
    for limit in limits:
        assert rings.take(limit) == ["a"] * limit
        taken += limit
        (key,) = rings.drr.order()
        assert (rings.drr.turns, key.deficit) == (taken // share, share - taken % share)


def test_only_keys_with_messages_take_part():
    """A key that has nothing gets nothing and holds nobody up (criterion 3)."""
    rings = Rings()
    rings.push("quiet", 1)
    rings.push("a", 100)
    rings.push("b", 100)
    shares = rings.shares(101)
    assert shares["quiet"] == 1
    assert abs(shares["a"] - shares["b"]) <= 4


def test_nothing_to_select_is_no_error():
    """An empty scheduler selects nothing, and a limit of 0 changes nothing."""
    rings = Rings()
    assert rings.take(10) == []
    rings.push("a", 1)
    before = rings.snapshot()
    assert rings.take(0) == []
    assert rings.snapshot() == before


def test_an_emptied_key_leaves():
    """Once a key has passed through, the scheduler does not know it any more (criterion 4)."""
    rings = Rings()
    rings.push("gone", 3)
    rings.push("a", 100)
    rings.take(3 + 8)
    assert rings.keys["gone"].ring == IDLE
    assert rings.keys["gone"].deficit == 0
    assert [key.name for key in rings.drr.order()] == ["a"]


def test_a_key_that_left_comes_back():
    """New messages make a key active again (criterion 5)."""
    rings = Rings()
    rings.push("b", 3)
    rings.push("a", 100)
    rings.take(3 + 8)
    rings.push("b", 3)
    assert rings.take(3) == ["b", "b", "b"]


def test_activating_an_active_key_changes_nothing():
    """A key that takes part keeps its deficit and its place, however often it is activated."""
    rings = Rings()
    rings.push("a", 10)
    rings.push("b", 10)
    rings.take(6)
    before = rings.snapshot()
    for key in rings.keys.values():
        rings.drr.activate(key)
    assert rings.snapshot() == before


def test_a_new_weight_counts_from_the_next_refill():
    """What a key has left of its turn is not touched by a new weight."""
    rings = Rings(quantum=2)
    rings.push("a", 100)
    rings.push("b", 100)
    assert rings.take(5) == ["a", "a", "b", "b", "a"]
    rings.keys["a"].weight = 3
    assert rings.take(3 + 6) == ["a", "b", "b", *["a"] * 6]


def test_a_quiet_key_behind_a_backlog_is_served_at_once():
    """A key that becomes active goes ahead of 20,000 messages of another."""
    rings = Rings()
    rings.push("noisy", 20_000)
    rings.take(100)
    rings.push("quiet", 1)
    assert rings.take(1) == ["quiet"]


def test_a_quiet_key_waits_for_almost_nobody_among_many_backlogged_ones():
    """A message every now and then is never behind more than one round, and mostly behind nobody."""
    rings = Rings()
    for number in range(10):
        rings.push(f"noisy{number}", 20_000)
    waits = []
    for _ in range(200):
        rings.push("quiet", 1)
        waits.append(next(n for n in count(1) if rings.take(1) == ["quiet"]))
        rings.take(100)
    assert max(waits) <= 100
    assert sorted(waits)[len(waits) // 2] == 1


@pytest.mark.parametrize("cost", [1, 3, 100])
def test_never_seen_keys_do_not_starve_a_backlogged_one(cost):
    """After SPARSE_RUN sparse keys one backlogged key has its turn, whatever the sparse ones cost."""
    rings = Rings(quantum=4)
    rings.push("backlogged", 10_000)
    rings.take(4)
    number = count()
    order = []
    for _ in range(400):
        for _ in range(10):
            rings.push(f"new{next(number)}", 1, cost=cost)
        order += rings.take(10)
    gaps = [len(run) for run in "".join("B" if name == "backlogged" else "." for name in order).split("B")]
    assert max(gaps) <= SPARSE_RUN
    assert order.count("backlogged") >= len(order) * 4 / (4 + SPARSE_RUN) - 4


def test_short_lived_keys_do_not_pile_up():
    """A million tenants that send one message each leave nothing behind but the last few."""
    rings = Rings()
    for number in range(5_000):
        rings.push(f"tenant{number}", 1)
        assert rings.take(1) == [f"tenant{number}"]
    assert len(rings.drr) <= 2 * SPARSE_RUN
    assert sum(key.ring != IDLE for key in rings.keys.values()) == len(rings.drr)


def test_emptying_and_coming_back_gains_nothing():
    """A key that sends in drops gets no more than one that has a backlog."""
    rings = Rings(quantum=4)
    rings.push("honest", 10_000)
    rings.push("gamer", 1)
    order = []
    for _ in range(4_000):
        order += rings.take(1)
        if not rings.keys["gamer"].ready:
            rings.push("gamer", 1)
    shares = Counter(order)
    assert shares["gamer"] <= shares["honest"]


def test_coming_back_at_once_is_waiting_with_the_backlogged():
    """A sparse key that empties must pass through the old list before it goes first again."""
    rings = Rings(quantum=4)
    for name in "abc":
        rings.push(name, 100)
    rings.take(12)
    rings.push("drops", 1)
    assert rings.take(1) == ["drops"]
    rings.push("drops", 1)
    assert rings.take(13) == ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["drops"]


def test_coming_back_brings_no_second_share():
    """What a sparse key had spent when it emptied is spent, also when it returns at once."""
    rings = Rings(quantum=4)
    rings.push("backlogged", 100)
    rings.take(4)
    rings.push("drops", 1)
    rings.take(1)
    rings.push("drops", 100)
    assert rings.take(4 + 3 + 4 + 4) == ["backlogged"] * 4 + ["drops"] * 3 + ["backlogged"] * 4 + ["drops"] * 4


def test_shares_are_by_cost():
    """A key whose messages cost three times as much gets a third as many."""
    rings = Rings(quantum=6)
    rings.push("dear", 5_000, cost=3)
    rings.push("cheap", 5_000)
    shares = rings.shares(4_000)
    assert shares["cheap"] == pytest.approx(3 * shares["dear"], rel=0.01)


def test_a_debt_is_paid_off_in_later_rounds():
    """Whoever spends ten turns' worth on one message waits for ten turns."""
    rings = Rings(quantum=1)
    rings.push("dear", 5, cost=10)
    rings.push("cheap", 100)
    order = rings.take(40)
    assert [index for index, name in enumerate(order) if name == "dear"] == [0, 11, 22, 33]


def test_emptying_does_not_cancel_a_debt():
    """A key that empties in debt still has it when it comes back."""
    rings = Rings(quantum=1)
    rings.push("dear", 1, cost=10)
    rings.push("cheap", 100)
    assert rings.take(3) == ["dear", "cheap", "cheap"]
    rings.push("dear", 1, cost=10)
    order = rings.take(20)
    assert order.index("dear") == 8


class CountedTurns:
    """Counts the turns of all schedulers."""

    def __init__(self, monkeypatch):
        self.turns = 0
        for name in ("_end_turn", "_pass_through"):
            original = getattr(drr_module.Drr, name)
            monkeypatch.setattr(drr_module.Drr, name, self._counted(original))

    def _counted(self, original):
        def call(*args):
            self.turns += 1
            return original(*args)

        return call


def test_large_debts_of_all_keys_are_paid_off_in_few_steps(monkeypatch):
    """A million rounds in which nobody can be served are one step."""
    counted = CountedTurns(monkeypatch)
    rings = Rings(quantum=1)
    for name in "abc":
        rings.push(name, 10, cost=1_000_000)
    assert Counter(rings.take(30)) == {"a": 10, "b": 10, "c": 10}
    assert counted.turns < 1_000


def test_one_key_in_debt_is_served_in_few_steps(monkeypatch):
    """A single tenant with dear messages pays for no empty rounds."""
    counted = CountedTurns(monkeypatch)
    rings = Rings(quantum=1)
    rings.push("a", 100, cost=1_000_000)
    assert len(rings.take(100)) == 100
    assert counted.turns < 1_000


def test_keys_that_leave_among_debtors_do_not_stop_the_others():
    """Emptied keys, a small debt and a large one in one ring: everybody is served."""
    rings = Rings(quantum=4)
    for name in ("gone1", "gone2"):
        rings.push(name, 1)
    rings.push("small", 2, cost=7)
    rings.push("large", 2, cost=104)
    assert Counter(rings.take(6)) == {"gone1": 1, "gone2": 1, "small": 2, "large": 2}


def test_empty_debtors_do_not_stop_a_selection():
    """A selection asks for more than there is while emptied keys owe: it ends with what there is."""
    rings = Rings(quantum=1)
    for name in "ab":
        rings.push(name, 1, cost=1_000_000)
    assert sorted(rings.take(10)) == ["a", "b"]
    assert len(rings.drr) == 0


def test_rounds_are_counted():
    """A round is one turn of every backlogged key."""
    rings = Rings(quantum=1)
    for name in "ab":
        rings.push(name, 100)
    rings.take(2)
    begin = rings.drr.round
    rings.take(20)
    assert rings.drr.round == begin + 10


KEYS = "abcdefgh"
pushes = st.tuples(
    st.just("push"), st.sampled_from(KEYS), st.integers(1, 6), st.integers(1, 5), st.integers(1, 20), st.integers(4, 6)
)
steps = st.lists(pushes | st.tuples(st.just("take"), st.integers(1, 40)), max_size=30)


def run(rings, steps):
    for step, *args in steps:
        if step == "take":
            rings.take(*args)
        else:
            name, number, weight, cost, priority = args
            rings.push(name, number, weight=weight, cost=cost if cost > 10 else 1, priority=priority)


@given(st.integers(1, 10), steps, st.integers(1, 100))
def test_a_rollback_restores_everything(quantum, steps, limit):
    """After select and rollback all is as before, and the next selection is the one that was rolled back."""
    rings = Rings(quantum)
    run(rings, steps)
    before = rings.snapshot()
    chosen = rings.drr.select(limit)
    after = rings.snapshot()
    rings.drr.rollback(chosen)
    assert rings.snapshot() == before
    again = rings.drr.select(limit)
    assert again.messages == chosen.messages
    assert rings.snapshot() == after


def test_a_rollback_leaves_lanes_as_fast_as_before():
    """Messages put back are a plain queue again, not exceptions to it."""
    rings = Rings()
    rings.push("a", 1_000)
    rings.drr.rollback(rings.drr.select(500))
    assert not rings.keys["a"].lanes[5, ()].back


@given(st.integers(1, 10), steps, st.lists(st.integers(1, 7), min_size=1))
def test_the_size_of_selections_does_not_matter(quantum, steps, sizes):
    """Many small selections choose what one large one does, and leave the same behind."""
    one, many = Rings(quantum), Rings(quantum)
    run(one, steps)
    run(many, steps)
    whole = seqs(one.drr.select(sum(sizes)).messages)
    parts = [seq for size in sizes for seq in seqs(many.drr.select(size).messages)]
    assert parts == whole
    assert many.snapshot() == one.snapshot()


@given(st.integers(1, 10), steps)
def test_everything_is_delivered_once(quantum, steps):
    """Selecting until nothing is left delivers each message once, and no key stays behind."""
    rings = Rings(quantum)
    run(rings, [step for step in steps if step[0] == "push"])
    total = sum(key.ready for key in rings.keys.values())
    messages = rings.drr.select(total + 1).messages
    assert len(messages) == len(set(seqs(messages))) == total
    assert len(rings.drr) == 0
    assert set(names(messages)) == set(rings.keys)


def test_a_cap_leaves_out_what_is_newer_and_keeps_everybodys_place():
    """A key with newer messages only is passed over and has its turn as before."""
    rings = Rings(quantum=2)
    rings.push("a", 3)
    cap = rings.push("b", 1)
    rings.push("c", 2)
    rings.push("a", 2, priority=0)
    assert seqs(rings.drr.select(10, cap=cap).messages) == [1, 2, 4, 3]
    assert rings.drr.select(10, cap=cap).messages == []
    assert sorted(rings.take(10)) == ["a", "a", "c", "c"]


pushes = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(1, 4),
        st.sampled_from([0, 5]),
        st.sampled_from([1, 1, 3]),
        st.sampled_from([(), (), ("t",), ("u",)]),
    ),
    min_size=1,
    max_size=12,
)


@given(pushes, st.integers(0, 40), st.integers(1, 20), st.integers(1, 4))
def test_a_capped_selection_is_complete_and_can_be_undone(pushed, cap, limit, quantum):
    """Nothing newer than the cap is chosen, nothing is left out that could be, and undoing it leaves no trace."""
    twins = []
    for _ in range(2):
        rings = Rings(quantum=quantum)
        rings.limit(t="rate=1,burst=2", u="max_in_flight=1")
        for name, count_, priority, cost, throttles in pushed:
            rings.push(name, count_, priority=priority, cost=cost, throttles=throttles)
        twins.append(rings)
    capped, plain = twins
    capped.drr.rollback(capped.drr.select(limit, 0, cap))
    chosen = capped.drr.select(limit, 0, cap)
    capped.drr.rollback(chosen)
    assert all(seq <= cap for seq in seqs(chosen.messages))
    assert seqs(capped.drr.select(limit).messages) == seqs(plain.drr.select(limit).messages)
    rest = Rings(quantum=quantum)
    rest.limit(t="rate=1,burst=2", u="max_in_flight=1")
    for name, count_, priority, cost, throttles in pushed:
        rest.push(name, count_, priority=priority, cost=cost, throttles=throttles)
    taken = seqs(rest.drr.select(1000, 0, cap).messages)
    assert len(set(taken)) == len(taken)
    for key in rest.keys.values():
        assert not key.reaches(cap)
