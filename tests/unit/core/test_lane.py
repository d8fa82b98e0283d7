"""Waiting messages: priority first, age second."""

import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.fair_key import FairKey
from fila.core.lane import NONE, Lane, new_lane
from fila.core.throttle import ThrottleManager
from tests.support.packing import chunks_of
from tests.support.scheduling import seqs


@pytest.fixture(autouse=True, scope="module", params=[1, 2, 5, 1024])
def chunk(request):
    """Every rule holds wherever the packed part of a lane begins and ends."""
    with chunks_of(request.param):
        yield


def taken(key, budget=10_000, limit=10_000):
    out = []
    spent = key.take(out, budget, limit)
    return out, spent


def key_with(lanes, cost_of=None):
    """A key with messages `{priority: [seq, ...]}`."""
    key = FairKey("tenant")
    for priority, numbers in lanes.items():
        lane = Lane(key, priority, (b"", bytes([priority])))
        for seq in numbers:
            key.push(lane, seq, (cost_of or {}).get(seq, 1))
    return key


@given(st.lists(st.integers(1, 1000), unique=True), st.data())
def test_a_lane_is_emptied_oldest_first(numbers, data):
    """Whatever the order of arrival, and however many are taken at a time, a lower sequence number goes first."""
    lane = Lane(FairKey("tenant"), 5, (b"", b""))
    for seq in numbers:
        lane.push(seq)
    assert lane.waiting() == sorted(numbers)
    out = []
    while len(lane):
        count = data.draw(st.integers(1, 5))
        before = len(lane)
        assert lane.take(out, count) == min(count, before)
    assert seqs(out) == sorted(numbers)
    assert lane.take(out, 1) == 0


@given(st.lists(st.integers(1, 100), unique=True, min_size=1), st.data())
def test_a_message_that_comes_back_takes_its_old_place(numbers, data):
    """Taking some and returning part of them leaves the rest in order."""
    lane = Lane(FairKey("tenant"), 5, (b"", b""))
    lane.push_many(sorted(numbers))
    out = []
    lane.take(out, data.draw(st.integers(1, len(numbers))))
    returned = data.draw(st.permutations(data.draw(st.lists(st.sampled_from(seqs(out)), unique=True))))
    for seq in returned:
        lane.push(seq)
    kept = set(seqs(out)) - set(returned)
    assert lane.waiting() == sorted(set(numbers) - kept)


@given(
    st.dictionaries(st.integers(0, 10), st.lists(st.integers(1, 10**6), min_size=1), max_size=4),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_a_lower_priority_number_goes_first(lanes, limits):
    """Inside one key: priority, then age, in bites of any size."""
    numbers = {priority: sorted({seq * 16 + priority for seq in seqs_}) for priority, seqs_ in lanes.items()}
    key = key_with(numbers)
    expected = [seq for _, run in sorted(numbers.items()) for seq in run]
    assert key.ready == len(expected)
    got = []
    turn = 0
    while key.ready:
        out, spent = taken(key, limit=limits[turn % len(limits)])
        assert spent == len(out)
        got += seqs(out)
        turn += 1
    assert got == expected
    assert key.lanes == {}
    assert key.head is None


def test_a_more_urgent_lane_overtakes_one_that_is_half_taken():
    """A lane of a lower number that appears later is the next to be taken from."""
    key = key_with({5: [1, 2, 3]})
    first, _ = taken(key, limit=1)
    key.push(Lane(key, 0, (b"", b"")), 9)
    rest, _ = taken(key)
    assert seqs(first + rest) == [1, 9, 2, 3]


def test_a_message_of_a_lane_that_was_replaced_goes_to_the_new_lane():
    """There is one lane per priority, also when a message remembers an earlier one."""
    key = key_with({5: [1]})
    ((old, _, _),), _ = taken(key)
    key.push(Lane(key, 5, (b"", b"new")), 7)
    key.push(old, 1)
    assert len(key.lanes) == 1
    assert seqs(taken(key)[0]) == [1, 7]


def test_spending_is_the_sum_of_costs():
    """Messages are taken while some of the budget is left; each says what it cost."""
    key = key_with({5: [1, 2, 3, 4]}, {1: 3, 3: 5})
    out, spent = taken(key, budget=5)
    assert [(seq, cost) for _, seq, cost in out] == [(1, 3), (2, 1), (3, 5)]
    assert spent == 9
    assert key.ready == 1
    assert not key.special.costs


def test_the_last_message_may_cost_more_than_is_left():
    """Otherwise a message dearer than the budget would never be delivered."""
    key = key_with({5: [1]}, {1: 1000})
    assert taken(key, budget=1)[1] == 1000


def test_a_limit_holds_for_messages_with_costs_too():
    """A limit counts messages, a budget their costs."""
    key = key_with({5: [1, 2, 3]}, {1: 2, 2: 2, 3: 2})
    out, spent = taken(key, budget=100, limit=2)
    assert (seqs(out), spent) == ([1, 2], 4)


def test_a_returned_message_keeps_its_cost():
    """A retry costs what the first delivery did."""
    key = key_with({5: [1]}, {1: 7})
    ((lane, seq, cost),), _ = taken(key)
    key.push(lane, seq, cost)
    assert taken(key)[1] == 7


@given(st.sets(st.integers(1, 60), min_size=1), st.data())
def test_messages_are_added_in_one_go(numbers, data):
    """The same as one by one: those that have just come, and those whose place is before or among the others."""
    late = data.draw(st.sets(st.sampled_from(sorted(numbers)), min_size=1))
    arrival = data.draw(st.permutations(sorted(numbers - late)))
    one, many = key_with({5: arrival}), key_with({5: arrival})
    for key in (one, many):
        key.take([], data.draw(st.shared(st.integers(0, 60), key="taken")), 60)
    lane = Lane(one, 5, (b"", (b"", b""))), Lane(many, 5, (b"", b""))
    for seq in sorted(late):
        one.push(lane[0], seq)
    came_back = list(many.lanes[5, ()].back) if many.ready else []
    many.push_many(lane[1], sorted(late))
    assert list(many.lanes[5, ()].back) == came_back, "looking for one that came back goes through all of them"
    assert one.ready == many.ready
    assert seqs(taken(one)[0]) == seqs(taken(many)[0])


numbers = st.lists(st.integers(1, 60), unique=True)


@given(numbers, st.data())
def test_what_is_removed_leaves_the_others_in_order(numbers, data):
    """Wherever they stood, in the order of arrival or come back into the middle."""
    key = key_with({5: numbers}, {seq: 3 for seq in numbers if seq % 5 == 0})
    gone = set(data.draw(st.lists(st.sampled_from(numbers), unique=True))) if numbers else set()
    if gone:
        key.remove(next(iter(key.lanes.values())), gone)
    left = sorted(set(numbers) - gone)
    assert (key.ready, key.head is None, set(key.special.costs or {})) == (
        len(left),
        not left,
        {seq for seq in left if seq % 5 == 0},
    )
    out, _ = taken(key)
    assert seqs(out) == left


@given(numbers, st.integers(-1, 61), st.integers(-1, 61), st.integers(0, 10), st.booleans())
def test_a_part_of_a_lane_is_the_first_of_what_is_in_it(numbers, low, high, count, newest):
    """Looking changes nothing."""
    (lane,) = key_with({5: [100, *numbers]}).lanes.values()
    found = lane.between(low, high, count, newest=newest)
    assert found == sorted((seq for seq in numbers if low <= seq <= high), reverse=newest)[:count]
    assert lane.waiting() == sorted([*numbers, 100])
    assert all(lane.holds(seq) for seq in numbers)
    assert not lane.holds(61)


def test_messages_of_many_sets_of_throttles_are_one_queue_in_the_overflow(monkeypatch):
    """Also when those of one set are added in one go after newer ones of another, as a restart does."""
    monkeypatch.setattr("fila.core.fair_key.MAX_LANES", 0)
    throttles = ThrottleManager()
    key = FairKey("tenant")
    for name, numbers in {"t": [1, 4, 6], "u": [2, 3, 7], "v": [5]}.items():
        key.push_many(new_lane(key, 5, (b"", b""), throttles.find_all([name])), numbers)
    out = []
    assert key.take_admitted(out, 100, 100, lambda *_: 1) == 7
    assert [(seq, lane.throttles[0].name) for lane, seq, _ in out] == list(enumerate("tuutvtu", 1))
    assert key.ready == key.special.throttled == 0
    assert key.lanes == {}


def test_a_key_with_one_message_is_small():
    """A hundred thousand tenants may wait with one message each."""
    key = FairKey("tenant")
    lane = Lane(key, 5, (b"", b""))
    key.push(lane, 7)
    assert sys.getsizeof(key) + sys.getsizeof(lane) <= 208
    assert lane.fifo is NONE
    other = FairKey("another")
    other.push(Lane(other, 5, (b"", b"")), 8)
    assert other.special is key.special
    assert seqs([*taken(key)[0], *taken(other)[0]]) == [7, 8]
    assert (key.head, other.head, NONE) == (None, None, array("Q"))
