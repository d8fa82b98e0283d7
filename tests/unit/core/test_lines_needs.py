"""What keys in line need: always what one of their lanes there needs now."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.drr import PARKED
from fila.core.lane import Overflow
from tests.support.scheduling import Rings, seqs

MS = 1_000_000
SECOND = 1000 * MS


def remove(rings, name, *gone):
    """Take messages of a key away for good, as a purge does."""
    key = rings.keys[name]
    for lane in list(key.lanes.values()):
        found = set(gone) & set(lane.waiting())
        if found:
            key.remove(lane, found)
    if key.head is None:
        rings.drr.drop({key})
    elif key.ring == PARKED:
        rings.drr.activate(key)


@pytest.fixture
def rings():
    """A bucket that is empty: everybody waits for it."""
    rings = Rings()
    rings.limit(t="rate=1,burst=1000", u="rate=1,burst=1")
    rings.push("z", cost=1000, throttles=["t"])
    assert rings.take(10) == ["z"]
    return rings


def test_a_message_that_is_gone_holds_nobody_up(rings):
    """Neither its own key nor those behind it, and its key keeps its place in line."""
    dear = rings.push("a", cost=1_000_000, throttles=["t"])
    rings.push("a", throttles=["t"])
    for name in "bcd":
        rings.push(name, throttles=["t"])
    rings.now += 4 * SECOND
    assert rings.take(10) == []
    remove(rings, "a", dear)
    assert rings.take(10) == ["a", "b", "c", "d"]


def test_nor_does_one_that_is_gone_from_another_lane_of_its_key(rings):
    """Its lane is gone with it, and its key stands in line for another one."""
    dear = rings.push("a", cost=1_000_000, throttles=["t"])
    rings.push("a", throttles=["t", "u"])
    rings.push("b", throttles=["t"])
    rings.now += 2 * SECOND
    assert rings.take(10) == []
    remove(rings, "a", dear)
    assert rings.take(10) == ["a", "b"]


def test_a_key_that_has_nothing_left_for_a_line_leaves_it(rings):
    """It may have other messages that wait for another throttle."""
    rings.limit(v="max_in_flight=1")
    rings.push("a", 2, throttles=["v"])
    dear = rings.push("a", cost=1_000_000, throttles=["t"])
    assert rings.take(10) == ["a"]
    rings.push("b", throttles=["t"])
    rings.now += 2 * SECOND
    assert rings.take(10) == []
    remove(rings, "a", dear)
    assert rings.take(10) == ["b"]


def test_a_message_that_comes_back_to_the_front_of_a_lane_is_what_it_waits_for(rings):
    cheap = rings.make("a", 1, 5, ["t"])
    rings.push("a", cost=1_000_000, throttles=["t"])
    rings.push("b", throttles=["t"])
    rings.now += SECOND
    assert rings.take(10) == []
    rings.put(cheap[1], cheap[0], 1)
    assert rings.take(10) == ["a"]


def test_a_dear_message_that_comes_back_is_waited_for(rings):
    """Those behind it wait with it, as behind any other."""
    dear = rings.make("a", 1, 5, ["t"])
    rings.push("a", throttles=["t"])
    rings.push("b", throttles=["t"])
    assert rings.take(10) == []
    rings.put(dear[1], dear[0], 500)
    rings.now += 499 * SECOND
    assert rings.take(10) == []
    rings.now += SECOND
    assert seqs(rings.select(1).messages) == [dear[0]]


LIMITS = ["rate=10,burst=1", "rate=3,burst=5", "max_in_flight=1", "rate=1,burst=20", ""]
STEPS = (
    st.tuples(
        st.just("push"),
        st.sampled_from("abc"),
        st.sampled_from([1, 1, 2, 7, 30]),
        st.sampled_from([("t",), ("t",), ("u",), ("t", "u"), ()]),
    )
    | st.tuples(st.just("take"), st.integers(1, 12))
    | st.tuples(st.just("undo"), st.integers(1, 12))
    | st.tuples(st.just("wait"), st.integers(1, 700))
    | st.tuples(st.just("limit"), st.sampled_from("tu"), st.sampled_from(LIMITS))
    | st.tuples(st.just("end"), st.integers(0, 20), st.booleans())
    | st.tuples(st.just("remove"), st.integers(0, 20))
)


def do(rings, in_flight, step, *args):
    match step:
        case "push":
            name, cost, throttles = args
            rings.push(name, cost=cost, throttles=throttles)
        case "take":
            in_flight += rings.select(*args).messages
        case "undo":
            rings.drr.rollback(rings.select(*args))
        case "wait":
            rings.now += args[0] * MS
        case "limit":
            rings.limit(**dict([args]))
        case "end" if in_flight:
            message = in_flight.pop(args[0] % len(in_flight))
            (rings.put_back if args[1] else rings.release)(message)
        case "remove":
            waiting = [
                (key.name, seq) for key in rings.keys.values() for lane in key.lanes.values() for seq in lane.waiting()
            ]
            if waiting:
                remove(rings, *waiting[args[0] % len(waiting)])


def check(rings):
    for line in rings.drr.lines.all():
        for key, (_, need) in line.keys.items():
            assert need in [lane.need for lane in key.at(line)]
    for key in rings.keys.values():
        assert key.special.shut == sum(lane.gate is not None for lane in key.lanes.values())
        for lane in key.lanes.values():
            if lane.gate is not None:
                assert key in lane.gate.keys or lane.gate in key.special.called
                assert isinstance(lane, Overflow) or lane.need == key.cost(lane.oldest)


@settings(max_examples=400)
@given(st.lists(STEPS, max_size=40), st.booleans())
def test_a_key_stands_in_line_for_what_one_of_its_lanes_needs(steps, few_lanes):
    """Whatever comes, goes, comes back or is taken away; and in the end everything goes out."""
    with pytest.MonkeyPatch.context() as patch:
        if few_lanes:
            patch.setattr("fila.core.fair_key.MAX_LANES", 1)
        rings, in_flight = Rings(), []
        rings.limit(t="rate=1,burst=20", u="max_in_flight=1")
        for step in steps:
            do(rings, in_flight, *step)
            check(rings)
        waiting = sum(key.ready for key in rings.keys.values())
        for _ in range(10 * waiting + 10):
            for message in in_flight:
                rings.release(message)
            in_flight = rings.select(7).messages
            waiting -= len(in_flight)
            rings.now = max(rings.now, rings.throttles.next_wakeup() or 0)
        assert waiting == 0
