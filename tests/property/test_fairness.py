"""Fairness as a property: for any keys and weights."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.packing import chunks_of
from tests.support.scheduling import Rings, seqs

DELIVERIES = 10_000
weights_of_keys = st.dictionaries(st.text(max_size=3), st.integers(1, 10), min_size=1, max_size=20)
quanta = st.integers(1, 20)


def backlogged(weights, quantum, messages=DELIVERIES):
    """Keys that all have more waiting than they will deliver."""
    rings = Rings(quantum)
    for name, weight in weights.items():
        rings.push(name, messages, weight=weight)
    return rings


@settings(max_examples=25)
@given(weights_of_keys, quanta)
def test_a_backlogged_key_is_served_in_proportion_to_its_weight(weights, quantum):
    """Over 10,000 deliveries each share is within 1 % of its due, or within one turn where that is more."""
    total = sum(weights.values())
    rings = backlogged(weights, quantum, 2 * DELIVERIES)
    rings.settle()
    shares = rings.shares(DELIVERIES)
    for name, weight in weights.items():
        due = DELIVERIES * weight / total
        assert abs(shares[name] - due) <= max(0.01 * due, quantum * weight)


@given(weights_of_keys, quanta, st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_the_size_of_selections_does_not_change_the_order(weights, quantum, sizes):
    """Chunks of any size choose what selecting one by one does."""
    chunks, ones = backlogged(weights, quantum, 200), backlogged(weights, quantum, 200)
    chosen = [seq for size in sizes for seq in seqs(chunks.drr.select(size).messages)]
    assert chosen == [seq for _ in chosen for seq in seqs(ones.drr.select(1).messages)]


@given(weights_of_keys, quanta)
def test_nobody_waits_longer_than_a_round(weights, quantum):
    """Between two turns of a backlogged key every other key has one turn at most."""
    rings = backlogged(weights, quantum, 1_000)
    round_length = quantum * sum(weights.values())
    rings.take(round_length)
    order = rings.take(min(3 * round_length, 3_000))
    for name, weight in weights.items():
        turns = [index for index, served in enumerate(order) if served == name]
        gaps = [later - earlier for earlier, later in pairwise(turns)]
        assert all(gap == 1 or gap <= round_length - quantum * weight + 1 for gap in gaps)


arrivals = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 10), st.integers(1, 4), st.integers(0, 12)), max_size=60
)


@given(arrivals, quanta)
def test_order_inside_a_key_is_priority_then_age(arrivals, quantum):
    """However arrivals and deliveries mix, of what waits in a key the most urgent and then the oldest goes first."""
    rings = Rings(quantum)
    waiting = {name: [] for name in "abcde"}
    for name, priority, count, take in arrivals:
        last = rings.push(name, count, priority=priority)
        waiting[name] += [(priority, seq) for seq in range(last - count + 1, last + 1)]
        for lane, seq, _ in rings.drr.select(take).messages:
            assert (lane.priority, seq) == min(waiting[lane.key.name])
            waiting[lane.key.name].remove((lane.priority, seq))


@given(arrivals, quanta)
def test_a_selection_is_full_while_messages_wait(arrivals, quantum):
    """The scheduler never holds back: it selects as many as asked for, or all there are."""
    rings = Rings(quantum)
    for name, priority, count, take in arrivals:
        rings.push(name, count, priority=priority)
        ready = sum(key.ready for key in rings.keys.values())
        assert len(rings.take(take)) == min(take, ready)


@settings(max_examples=25)
@given(weights_of_keys, quanta, st.dictionaries(st.integers(0, 19), st.integers(1, 30), max_size=5))
def test_shares_by_cost_follow_the_weights(weights, quantum, costs):
    """What keys spend, not how many messages they get, is in proportion to their weights."""
    cost_of = {name: costs.get(index, 1) for index, name in enumerate(weights)}
    total = sum(weights.values())
    rings = Rings(quantum)
    budget = 5_000
    for name, weight in weights.items():
        rings.push(
            name, budget * weight // (total * cost_of[name]) + weight * quantum + 2, weight=weight, cost=cost_of[name]
        )
    spent: Counter[str] = Counter()
    while sum(spent.values()) < budget * 0.9:
        for lane, _, cost in rings.drr.select(20).messages:
            spent[lane.key.name] += cost
    reached = sum(spent.values())
    for name, weight in weights.items():
        assert abs(spent[name] - reached * weight / total) <= 2 * (quantum * weight + max(cost_of.values()))


@given(st.integers(1, 10), st.integers(1, 30), st.integers(0, 500))
def test_a_quiet_key_waits_for_one_turn_at_most(quantum, noisy, warm_up):
    """Behind any number of backlogs, wherever the round stands, a key that becomes active is next but for one turn."""
    rings = backlogged({f"noisy{number}": 1 for number in range(noisy)}, quantum, 2_000)
    rings.settle()
    rings.take(warm_up)
    rings.push("quiet", 1)
    assert "quiet" in rings.take(quantum + 1)


pushes = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.integers(0, 2), st.integers(1, 12), st.integers(0, 40), st.booleans()),
    max_size=40,
)


@given(pushes, quanta, st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 4)), st.integers(1, 4))
def test_turns_taken_in_one_place_are_those_taken_one_by_one(pushes, quantum, weights, chunk):
    """A selection takes plain turns in a loop of their own, but with a cap, here one that nothing reaches."""
    with chunks_of(chunk):
        together, apart = Rings(quantum), Rings(quantum)
        for name, priority, count, limit, failed in pushes:
            chosen = []
            for rings, cap in ((together, None), (apart, 1 << 62)):
                rings.push(name, count, weight=weights.get(name, 1), priority=priority)
                for each in rings.keys.values():
                    for waiting in each.lanes.values():
                        waiting.pack()
                selection = rings.drr.select(limit, cap=cap)
                if failed:
                    rings.drr.rollback(selection)
                chosen.append((told(selection), standing(rings)))
            assert chosen[0] == chosen[1]


def told(selection):
    return (
        [(lane.key.name, lane.priority, seq, cost) for lane, seq, cost in selection.messages],
        [(key.name, count) for key, count in selection.served],
        [(key.name, deficit, ring) for key, deficit, ring in selection.before],
    )


def standing(rings):
    drr = rings.drr
    keys = [(key.name, key.ring, key.deficit, key.ready, key.head and key.head.priority) for key in drr.order()]
    return keys, drr.round, drr.turns, drr._turns_left, drr._sparse_run
