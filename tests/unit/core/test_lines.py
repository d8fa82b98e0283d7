"""Keys that throttles hold up: who waits, who is called, who is not held up by whom."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core import lines as lines_module
from fila.core.drr import MAX_PARKED, PARKED
from fila.core.fair_key import MAX_LANES
from fila.core.lines import MAX_CALLED
from fila.core.throttle import ThrottleManager
from tests.support.scheduling import Rings, names, seqs

MS = 1_000_000
SECOND = 1000 * MS


def test_a_message_passes_when_its_throttle_has_a_token():
    """And waits when it has none, as long as that takes."""
    rings = Rings()
    rings.limit(t="rate=10,burst=2")
    rings.push("a", 5, throttles=["t"])
    assert rings.take(10) == ["a", "a"]
    assert rings.take(10) == []
    rings.now += 100 * MS
    assert rings.take(10) == ["a"]
    rings.now += 99 * MS
    assert rings.take(10) == []


def test_all_throttles_must_let_a_message_pass():
    """If either has no token, none is spent of the other (FR17)."""
    rings = Rings()
    rings.limit(provider="rate=1,burst=5", region="rate=1,burst=2")
    rings.push("a", 4, throttles=["provider", "region"])
    assert rings.take(10) == ["a", "a"]
    assert rings.take(10) == []
    assert rings.throttles.find("provider").room(0) == 3
    rings.push("b", 4, throttles=["provider"])
    assert rings.take(10) == ["b", "b", "b"]


def test_a_throttle_without_a_limit_holds_nobody_up():
    """Throttle keys may be given before anybody limits them."""
    rings = Rings()
    rings.push("a", 3, throttles=["t", "u"])
    assert rings.take(10) == ["a"] * 3


def test_a_held_up_message_hides_no_other_of_its_key():
    """Not an unthrottled one, not one of another throttle, not one of lower priority."""
    rings = Rings()
    rings.limit(t="max_in_flight=1")
    rings.push("a", 3, throttles=["t"], priority=0)
    rings.push("a", 1, throttles=["u"], priority=9)
    rings.push("a", 2, priority=9)
    assert seqs(rings.select(10).messages) == [1, 4, 5, 6]


def test_lanes_of_one_priority_are_one_queue():
    """Priority first, then age, whatever the throttles."""
    rings = Rings()
    order = [("t", 5), ("", 5), ("u", 5), ("t", 5), ("", 0), ("t", 0), ("", 5), ("", 5), ("u", 5)]
    for throttle, priority in order:
        rings.push("a", 1, priority=priority, throttles=[throttle] if throttle else [])
    assert seqs(rings.select(100).messages) == [5, 6, 1, 2, 3, 4, 7, 8, 9]


def test_a_new_unthrottled_message_of_a_parked_key_goes_at_once():
    """A parked key is not out of reach."""
    rings = Rings()
    rings.limit(t="rate=1,burst=1")
    rings.push("a", 5, throttles=["t"])
    rings.take(10)
    assert rings.keys["a"].ring == PARKED
    rings.push("a", 1, throttles=["t"])
    assert rings.keys["a"].ring == PARKED
    rings.push("a", 1)
    assert rings.take(10) == ["a"]
    assert rings.keys["a"].ring == PARKED


def test_parked_keys_are_not_looked_at():
    """However many there are, a selection does not touch them."""
    rings = Rings()
    for number in range(50):
        rings.limit(**{f"t{number}": "max_in_flight=1"})
        rings.push(f"a{number}", 2, throttles=[f"t{number}"])
    assert len(rings.take(100)) == 50
    assert rings.drr.parked == 50
    rings.push("free", 1)
    assert [key.name for key, _, _ in rings.select(10).before] == ["free"]


def test_one_token_calls_one_key():
    """Keys that wait for one bucket are not all woken for it."""
    rings = Rings()
    rings.limit(t="rate=10,burst=1")
    for number in range(100):
        rings.push(f"a{number}", 10, throttles=["t"])
    rings.take(1)
    while rings.drr.parked < 100:
        rings.take(1)
    rings.now += 100 * MS
    chosen = rings.select(100)
    assert len(chosen.messages) == 1
    assert len(chosen.before) == 1


def test_a_share_is_finished_before_the_next_in_line():
    """Whoever is held up with something left to spend is called next; then all others come first."""
    rings = Rings(quantum=2)
    rings.limit(t="rate=10,burst=1")
    for name, weight in (("a", 1), ("b", 2)):
        rings.push(name, 100, weight=weight, throttles=["t"])
    order = []
    for _ in range(24):
        order += rings.take(5)
        rings.now += 100 * MS
    assert Counter(order[:24]) == {"a": 8, "b": 16}
    assert "bbbbaabbbbaa" in "".join(order)


def test_a_share_that_was_spent_on_other_messages_is_spent():
    """A key with plenty of unthrottled messages does not keep the first place in line with them."""
    rings = Rings(quantum=2)
    rings.limit(t="rate=10,burst=1")
    for name in "ab":
        rings.push(name, 50, throttles=["t"])
        rings.push(name, 500)
    passed = Counter()
    for _ in range(40):
        passed.update(lane.key.name for lane, _, _ in rings.select(20).messages if lane.throttles)
        rings.now += 100 * MS
    assert passed.total() == 40
    assert abs(passed["a"] - passed["b"]) <= 2


def test_whoever_comes_later_stands_behind():
    """A key that has never been seen gets no token before those that wait for it."""
    rings = Rings(quantum=1)
    rings.limit(t="rate=10,burst=1")
    for name in "abc":
        rings.push(name, 1, throttles=["t"])
    assert rings.take(5) == ["a"]
    rings.now += 100 * MS
    rings.push("new", 1, throttles=["t"])
    assert rings.take(5) == ["b"]
    rings.now += 200 * MS
    assert rings.take(5) == ["c"]
    rings.now += 100 * MS
    assert rings.take(5) == ["new"]


def test_an_in_flight_cap_frees_with_each_message():
    """One goes out for each that ends."""
    rings = Rings()
    rings.limit(t="max_in_flight=2")
    rings.push("a", 5, throttles=["t"])
    first = rings.select(10).messages
    assert len(first) == 2
    rings.now += 3600 * SECOND
    assert rings.take(10) == []
    rings.release(first[0])
    assert seqs(rings.select(10).messages) == [3]
    rings.put_back(first[1])
    assert seqs(rings.select(10).messages) == [2]
    assert rings.take(10) == []


def test_tokens_are_spent_by_cost():
    """A message that costs more waits for more, and nobody overtakes it at the same throttle."""
    rings = Rings(quantum=100)
    rings.limit(t="rate=10,burst=10")
    rings.push("a", 1, throttles=["t"], cost=8)
    rings.push("b", 1, throttles=["t"], cost=5)
    rings.push("c", 1, throttles=["t"])
    assert rings.take(10) == ["a"]
    rings.now += 200 * MS
    assert rings.take(10) == []
    rings.now += 100 * MS
    assert rings.take(10) == ["b"]
    rings.now += 100 * MS
    assert rings.take(10) == ["c"]


def test_a_message_dearer_than_the_burst_is_not_stuck():
    """It waits for a full bucket and leaves a debt."""
    rings = Rings(quantum=1000)
    rings.limit(t="rate=10,burst=10")
    rings.push("a", 2, throttles=["t"], cost=50)
    assert rings.take(10) == ["a"]
    rings.now += 4999 * MS
    assert rings.take(10) == []
    rings.now += MS
    assert rings.take(10) == ["a"]


def test_being_held_up_spends_nothing():
    """A parked key keeps what it has left of its share (story 4.2, criterion 5)."""
    rings = Rings(quantum=4)
    rings.limit(t="rate=1,burst=3")
    rings.push("a", 10, throttles=["t"])
    rings.take(10)
    assert rings.keys["a"].deficit == 1
    rings.take(10)
    assert rings.keys["a"].deficit == 1


@pytest.mark.parametrize("limit, count", [("rate=100,burst=3", 3), ("max_in_flight=9", 9), ("", 20)])
def test_a_changed_limit_holds_from_the_next_selection(limit, count):
    """Raised or taken away, those that wait need not wait for the old time."""
    rings = Rings()
    rings.limit(t="rate=0.001,burst=1")
    rings.push("a", 21, throttles=["t"])
    assert rings.take(100) == ["a"]
    rings.limit(t=limit)
    rings.now += 30 * MS
    assert len(rings.take(100)) == (count if "in_flight" not in limit else count - 1)


def test_a_lowered_rate_makes_those_that_wait_wait_longer():
    """An alarm of the old rate comes too early, and does no harm."""
    rings = Rings()
    rings.limit(t="rate=10,burst=1")
    rings.push("a", 5, throttles=["t"])
    rings.take(10)
    rings.limit(t="rate=1,burst=1")
    rings.now += 100 * MS
    assert rings.take(10) == []
    rings.now += 900 * MS
    assert rings.take(10) == ["a"]


def test_queues_share_a_throttle():
    """Tokens are spent once, whoever spends them, and both queues are told when there are new ones."""
    throttles = ThrottleManager()
    one, two = Rings(throttles=throttles, name="one"), Rings(throttles=throttles, name="two")
    one.limit(t="rate=10,burst=4")
    for rings in (one, two):
        rings.push("a", 10, throttles=["t"])
    assert len(one.take(3)) == 3
    assert len(two.take(10)) == 1
    assert one.take(10) == []
    assert throttles.next_wakeup() == 100 * MS
    assert sorted(throttles.due(100 * MS)) == ["one", "two"]


def test_the_queue_that_was_served_last_is_told_last():
    """Two queues that wait for one bucket take turns."""
    throttles = ThrottleManager()
    queues = {name: Rings(throttles=throttles, name=name) for name in ("one", "two")}
    queues["one"].limit(t="rate=10,burst=1")
    for rings in queues.values():
        rings.push("a", 50, throttles=["t"])
        rings.take(10)
    served = []
    for now in range(100 * MS, 1100 * MS, 100 * MS):
        served += [name for name in throttles.due(now) if queues[name].drr.select(10, now).messages]
    assert served in (["one", "two"] * 5, ["two", "one"] * 5)


def test_a_line_is_forgotten_with_the_last_that_stood_in_it():
    """And the throttle no longer knows the queue."""
    rings = Rings()
    rings.limit(t="rate=10,burst=1")
    rings.push("a", 2, throttles=["t"])
    rings.take(10)
    assert rings.throttles.find("t").waiting
    rings.now += SECOND
    assert rings.take(10) == ["a"]
    assert rings.drr.lines.all() == []
    assert not rings.throttles.find("t").waiting
    assert rings.throttles.next_wakeup() is None


def test_a_queue_that_goes_leaves_its_lines():
    """The throttle outlives it."""
    rings = Rings()
    rings.limit(t="max_in_flight=1")
    rings.push("a", 2, throttles=["t"])
    rings.take(10)
    rings.drr.lines.close()
    assert not rings.throttles.find("t").waiting


def test_a_key_keeps_its_place_in_a_line_that_it_left_for_another():
    """Waiting for the second throttle does not cost the place at the first."""
    rings = Rings(quantum=1)
    rings.limit(t="rate=1,burst=1", u="max_in_flight=1")
    (held,) = (rings.push("x", 1, throttles=["u"]), rings.select(1))[1].messages
    rings.push("y", 1, throttles=["t"])
    assert rings.take(9) == ["y"]
    rings.push("both", 1, throttles=["t", "u"])
    for name in "abc":
        rings.push(name, 1, throttles=["t"])
    assert rings.take(9) == []
    rings.now += SECOND
    assert rings.take(9) == ["a"]  # "both" was called first, and waits for "u" now
    rings.release(held)
    assert rings.take(9) == []  # and for "t" again, as the first
    rings.now += SECOND
    assert rings.take(9) == ["both"]


def test_keys_that_need_the_same_two_throttles_do_not_wait_for_each_other():
    """Two are called by one throttle, two by the other, and both have room: somebody passes."""
    rings = Rings(quantum=1)
    rings.limit(t="max_in_flight=1", u="max_in_flight=1")
    held = []
    for throttle, pair in (("u", "bd"), ("t", "ac")):
        rings.push(f"holds {throttle}", 1, throttles=[throttle])
        held += rings.select(9).messages
        for name in pair:
            rings.push(name, 1, throttles=["t", "u"])
        assert rings.take(9) == []
    assert {line.throttle.name: len(line.keys) for line in rings.drr.lines.all()} == {"t": 2, "u": 2}
    for message in held:
        rings.release(message)
    done = []
    for _ in range(4):
        messages = rings.select(9).messages
        assert len(messages) == 1
        done += names(messages)
        rings.release(messages[0])
    assert sorted(done) == ["a", "b", "c", "d"]


def test_a_key_that_one_throttle_calls_does_not_take_what_another_holds_for_its_own():
    """Tokens of both come at the same time, again and again: those that need one of them get it too."""
    rings = Rings(quantum=1)
    rings.limit(t="rate=10,burst=1", u="rate=10,burst=1")
    for number in range(3):
        rings.push(f"both{number}", 50, throttles=["t", "u"])
        rings.push(f"only{number}", 50, throttles=["u"])
    passed = Counter()
    for _ in range(60):
        passed.update(name[:4] for name in rings.take(9))
        rings.now += 100 * MS
    assert passed.total() >= 55
    assert min(passed["both"], passed["only"]) >= 15


def test_a_key_that_is_put_off_is_put_off_with_all_its_lanes():
    """What another throttle holds for its own is not taken by a less urgent message of the key that lets them first."""
    rings = Rings(quantum=4)
    rings.limit(t="max_in_flight=1", u="max_in_flight=1")
    held = []
    for throttle in "tu":
        rings.push(f"holds {throttle}", 1, throttles=[throttle])
        held += rings.select(9).messages
    rings.push("from t", 1, throttles=["t"])
    rings.push("from u", 1, throttles=["u"])
    assert rings.take(9) == []
    for message in held:
        rings.release(message)
    urgent = rings.push("from t", 1, throttles=["u"], priority=0)
    later = rings.push("from t", 1, throttles=["u"], priority=9)
    passed = rings.select(9).messages
    assert names(passed) == ["from t", "from u"]
    rings.release(passed[1])
    (first,) = rings.select(9).messages
    rings.release(first)
    (second,) = rings.select(9).messages
    assert seqs([first, second]) == [urgent, later]


def test_a_key_that_is_put_off_stands_behind_those_for_whom_the_room_is_kept():
    """Also behind a key that goes on in the backlogged ring, since not all that it has is held up."""
    rings = Rings(quantum=4)
    rings.limit(t="max_in_flight=1", u="max_in_flight=1")
    held = []
    for throttle in "tu":
        rings.push(f"holds {throttle}", 1, throttles=[throttle])
        held += rings.select(9).messages
    rings.push("from t", 1, throttles=["t"])
    assert rings.take(9) == []
    first = rings.push("backlogged", 1, throttles=["u"], priority=0)
    rings.push("backlogged", 4)
    assert rings.take(4) == ["backlogged"] * 4
    second = rings.push("from t", 1, throttles=["u"], priority=0)
    for message in held:
        rings.release(message)
    passed = rings.select(9).messages
    assert names(passed) == ["from t", "backlogged"]
    assert passed[1][1] == first
    rings.release(passed[1])
    assert seqs(rings.select(9).messages) == [second]


def test_a_turn_that_goes_on_begins_with_the_most_urgent_message():
    """What its throttle refused before the limit cut the turn short is tried again before what is less urgent."""
    rings = Rings(quantum=9)
    rings.limit(t="max_in_flight=1")
    rings.push("holds t", 1, throttles=["t"])
    (held,) = rings.select(9).messages
    first = rings.push("a", 2, throttles=["t"], priority=0) - 1
    assert rings.take(9) == []
    rings.push("a", 2, priority=5)
    later = rings.push("a", 1, throttles=["t"], priority=9)
    rings.release(held)
    taken = rings.select(2).messages
    assert (taken[0][1], len(taken)) == (first, 2)
    rings.release(taken[0])
    assert first + 1 < later
    assert seqs(rings.select(1).messages) == [first + 1]


def test_a_selection_does_not_look_at_too_many_held_up_keys():
    """It stops, says that there is more, and the next one goes on."""
    rings = Rings()
    rings.limit(t="max_in_flight=1")
    for number in range(MAX_PARKED + 10):
        rings.push(f"a{number}", 1, throttles=["t"])
    rings.push("free", 1)
    chosen = rings.select(5)
    assert chosen.unfinished
    assert rings.drr.parked == MAX_PARKED
    chosen = rings.select(5)
    assert names(chosen.messages) == ["free"]
    assert not chosen.unfinished


def test_everybody_is_called_when_a_limit_is_taken_away(monkeypatch):
    """Some at a time, but all."""
    monkeypatch.setattr(lines_module, "MAX_CALLED", 10)
    assert MAX_CALLED > 10
    rings = Rings()
    rings.limit(t="max_in_flight=1")
    for number in range(100):
        rings.push(f"a{number}", 1, throttles=["t"])
    assert len(rings.take(1000)) == 1
    rings.limit(t="")
    assert len(rings.take(1000)) == 99


def test_further_sets_of_throttles_share_a_lane():
    """A key has so many lanes and no more; only in the overflow is one message behind another."""
    rings = Rings(quantum=1000)
    for number in range(MAX_LANES + 3):
        rings.limit(**{f"t{number}": "max_in_flight=1"})
    for _ in range(2):
        for number in range(MAX_LANES + 3):
            rings.push("a", 1, throttles=[f"t{number}"])
    rings.push("a", 1)
    key = rings.keys["a"]
    assert len(key.lanes) == MAX_LANES + 2
    first = rings.select(1000).messages
    held_up = set(range(1, 2 * MAX_LANES + 8)) - set(seqs(first))
    assert len(first) == MAX_LANES + 3 + 1
    for message in first:
        rings.release(message)
    again = seqs(rings.select(1000).messages)
    assert sorted(again) == sorted(held_up)
    assert not key.lanes


def test_the_order_of_one_set_holds_through_the_overflow():
    """Messages of one set never overtake each other, wherever they are kept."""
    rings = Rings(quantum=1000)
    for number in range(MAX_LANES):
        rings.push("a", 1, throttles=[f"t{number}"])
    for _ in range(3):
        rings.push("a", 1, throttles=["x"])
    taken = seqs(rings.select(MAX_LANES + 1).messages)
    rings.push("a", 1, throttles=["x"])
    taken += seqs(rings.select(1000).messages)
    assert taken == sorted(taken)
    assert len(taken) == MAX_LANES + 4


def test_nobody_overtakes_those_of_its_set_in_the_overflow():
    """Not even when there is room for a lane again, and the overflow is held up."""
    rings = Rings(quantum=1000)
    rings.limit(y="max_in_flight=1")
    for number in range(MAX_LANES):
        rings.push("a", 1, throttles=[f"t{number}"])
    for throttle in "yyx":
        rings.push("a", 1, throttles=[throttle])
    first = rings.select(1000).messages
    assert len(first) == MAX_LANES + 1
    rings.push("a", 1, throttles=["x"])
    assert rings.take(10) == []
    rings.release(first[-1])
    assert seqs(rings.select(10).messages) == [MAX_LANES + 2, MAX_LANES + 3, MAX_LANES + 4]


def test_a_message_that_comes_back_to_the_overflow_is_tried_first():
    """What held up the lane may not hold up the new first message."""
    rings = Rings(quantum=1000)
    rings.limit(x="max_in_flight=1")
    for number in range(MAX_LANES):
        rings.push("a", 1, throttles=[f"t{number}"])
        rings.limit(**{f"t{number}": "max_in_flight=1"})
    rings.push("a", 1, throttles=["y"])
    rings.push("a", 1, throttles=["x"])
    rings.push("a", 1, throttles=["x"])
    for number in range(MAX_LANES):
        rings.push("a", 1, throttles=[f"t{number}"])
    first = rings.select(1000).messages
    of_y = next(message for message in first if message[1] == MAX_LANES + 1)
    assert rings.take(10) == []
    rings.put_back(of_y)
    assert seqs(rings.select(10).messages) == [of_y[1]]


KEYS, THROTTLES = "abcd", "tuv"
limits = st.sampled_from(
    ["rate=10,burst=1", "rate=10", "rate=3,burst=5", "max_in_flight=1", "max_in_flight=3,rate=20,burst=2", ""]
)
pushes = st.tuples(
    st.just("push"),
    st.sampled_from(KEYS),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([1, 1, 1, 2, 7]),
    st.integers(4, 5),
    st.sampled_from([("t",), ("t",), ("u",), ("t", "u"), ("u", "v"), ()]),
)
other_steps = (
    st.tuples(st.just("take"), st.integers(1, 12))
    | st.tuples(st.just("limit"), st.sampled_from(THROTTLES), limits)
    | st.tuples(st.just("wait"), st.integers(1, 700))
    | st.tuples(st.just("end"), st.integers(0, 20), st.booleans())
)


def in_words(limits, pushes, steps):
    """First some limits and a backlog that they hold up, then whatever happens."""
    first = [("limit", throttle, limit) for throttle, limit in zip(THROTTLES, limits, strict=True)]
    return [*first, *pushes, ("take", 40), ("wait", 350), *steps]


steps = st.builds(
    in_words,
    st.lists(limits, min_size=3, max_size=3),
    st.lists(pushes, min_size=2, max_size=10),
    st.lists(pushes | other_steps, max_size=20),
)


def run(rings, steps):
    """Returns what is in flight, and what was delivered."""
    in_flight, delivered = [], []
    for step, *args in steps:
        match step:
            case "take":
                chosen = rings.select(*args).messages
                in_flight += chosen
                delivered += seqs(chosen)
            case "limit":
                rings.limit(**dict([args]))
            case "wait":
                rings.now += args[0] * MS
            case "end" if in_flight:
                message = in_flight.pop(args[0] % len(in_flight))
                (rings.put_back if args[1] else rings.release)(message)
            case "push":
                name, count, weight, cost, priority, throttles = args
                rings.push(name, count, weight=weight, cost=cost, priority=priority, throttles=throttles)
    return in_flight, delivered


@settings(max_examples=400)
@given(st.integers(1, 10), steps, st.integers(1, 4) | st.integers(1, 40), st.booleans())
def test_a_rollback_restores_everything(quantum, steps, limit, few_lanes):
    """Rings, parks, lines, tokens and what is in flight; the next selection is the one that was rolled back."""
    with pytest.MonkeyPatch.context() as patch:
        if few_lanes:
            patch.setattr("fila.core.fair_key.MAX_LANES", 1)
        rings = Rings(quantum)
        run(rings, steps)
        rings.throttles.due(rings.now)
        before = rings.snapshot()
        chosen = rings.drr.select(limit, rings.now)
        after = rings.snapshot()
        rings.drr.rollback(chosen)
        assert rings.snapshot() == before
        again = rings.drr.select(limit, rings.now)
        assert again.messages == chosen.messages
        assert rings.snapshot() == after


@settings(max_examples=400)
@given(st.integers(1, 10), steps, st.lists(st.integers(1, 7), min_size=1))
def test_the_size_of_selections_does_not_matter(quantum, steps, sizes):
    """Many small selections deliver as much as one large one: nothing is held up that could pass.

    For messages of one throttle and cost 1; others may have to wait for each other.
    """
    plain = [(*step[:4], 1, step[5], step[6][:1]) if step[0] == "push" else step for step in steps]
    one, many = Rings(quantum), Rings(quantum)
    run(one, plain)
    run(many, plain)
    whole = seqs(one.select(sum(sizes)).messages)
    parts = [seq for size in sizes for seq in seqs(many.select(size).messages)]
    assert len(parts) == len(whole)


@settings(max_examples=400)
@given(st.integers(1, 10), steps, st.booleans())
def test_nothing_is_lost_and_nothing_is_stuck(quantum, steps, few_lanes):
    """Whatever happened: as time passes and consumers finish, every message goes out, and at the end nobody waits."""
    with pytest.MonkeyPatch.context() as patch:
        if few_lanes:
            patch.setattr("fila.core.fair_key.MAX_LANES", 1)
        rings = Rings(quantum)
        in_flight, _ = run(rings, steps)
        waiting = {seq for key in rings.keys.values() for lane in key.lanes.values() for seq in lane.waiting()}
        got = []
        idle = 0
        while len(got) < len(waiting) and idle < 50:
            for message in in_flight:
                rings.release(message)
            in_flight = rings.select(7).messages
            got += seqs(in_flight)
            if not in_flight:
                wakeup = rings.throttles.next_wakeup()
                rings.now = max(rings.now, wakeup or 0)
                idle += 1
            else:
                idle = 0
        assert sorted(got) == sorted(waiting)
        for message in in_flight:
            rings.release(message)
        rings.take(1)
        assert rings.drr.parked == 0
        assert rings.drr.lines.all() == []
        assert all(throttle.in_flight == 0 for throttle in rings.throttles._known.values())
