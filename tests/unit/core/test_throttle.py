"""Limits, token buckets and who manages them."""

import gc
from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.errors import InvalidArgument
from fila.core.throttle import EVERYTHING, MANY_DEAD, Figures, Limit, Throttle, ThrottleManager, TokenBucket

SECOND = 1_000_000_000
MS = 1_000_000
rates = st.floats(1e-6, 1e12)
bursts = st.floats(1, 1e12)
caps = st.integers(1, 10**9)


@given(st.none() | rates, st.none() | bursts, st.none() | caps)
def test_a_limit_is_read_back_from_its_text(rate, burst, cap):
    """Whatever parts it has."""
    try:
        limit = Limit(rate, burst, cap)
    except InvalidArgument:
        assert rate is None
        assert burst is not None or cap is None
        return
    assert Limit.parse(str(limit)) == limit


@pytest.mark.parametrize(
    "text, limit",
    [
        ("rate=10", Limit(rate=10)),
        ("rate=10,burst=20,max_in_flight=5", Limit(10, 20, 5)),
        (" max_in_flight = 5 , rate = 0.5 ", Limit(rate=0.5, max_in_flight=5)),
        ("rate=1.5e3", Limit(rate=1500)),
        ("max_in_flight=1", Limit(max_in_flight=1)),
    ],
)
def test_a_limit_is_written_in_parts(text, limit):
    """Each part is optional, in any order, with spaces where people put them."""
    assert Limit.parse(text) == limit


EVERY_PART = Limit(**{part.name: 4 for part in fields(Limit)})
"""With every part that there is"""


@given(st.integers(1, 9), st.integers(0, 3), st.sampled_from([Limit(rate=0.3), Limit(max_in_flight=3), EVERY_PART]))
def test_a_refund_undoes_a_charge_exactly(cost, before, limit):
    """A selection that is put back leaves no trace, whatever had passed before."""
    throttles = ThrottleManager()
    throttles.set("k", limit, 0)
    throttle = throttles.find("k")
    for _ in range(before):
        throttle.charge(1, 1)
    figures = throttle.figures(0)
    throttle.charge(1, cost)
    assert all(mine is None or mine != then for mine, then in zip(throttle.figures(0)[:3], figures, strict=False))
    throttle.refund(cost)
    assert throttle.figures(0) == figures


def test_the_figures_of_a_throttle_are_all_that_it_counts():
    """So that whatever compares them, such as the tests of rollbacks, compares everything."""
    counted = {"bucket", "in_flight", "passed", "held_up"}
    other = {"__weakref__", "_manager", "name", "limit", "cap", "waiting", "alarm"}
    assert set(Throttle.__slots__) == counted | other
    assert len(Figures._fields) == len(counted)
    throttles = ThrottleManager()
    throttles.set("k", EVERY_PART, 0)
    assert None not in throttles.find("k").figures(0)


def test_whole_numbers_are_written_as_such():
    """The text is the one that a person would write."""
    assert str(Limit(10, 20, 5)) == "rate=10,burst=20,max_in_flight=5"
    assert str(Limit(rate=0.25)) == "rate=0.25"


@pytest.mark.parametrize("text", ["10.0,100.0", " 10 , 1e2 "])
def test_rate_and_burst_may_be_written_as_bare_numbers(text):
    assert Limit.parse(text) == Limit(rate=10, burst=100)


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "unknown part .* in a throttle"),
        ("10", "unknown part .* in a throttle"),
        ("10,20,30", "unknown part .* in a throttle"),
        ("10,fast", "unknown part .* in a throttle"),
        ("0,20", "rate must be from 1e-06 to 1e.12"),
        ("10,0.5", "burst must be from 1 to"),
        ("rate", "unknown part .* in a throttle"),
        ("rate=10,", "unknown part .* in a throttle"),
        ("speed=10", "unknown part .* in a throttle"),
        ("RATE=10", "unknown part .* in a throttle"),
        ("rate=10,rate=10", "rate is given twice"),
        ("rate=", "rate must be a positive number"),
        ("rate=ten", "rate must be a positive number"),
        ("rate=-1", "rate must be a positive number"),
        ("rate=nan", "rate must be a positive number"),
        ("rate=inf", "rate must be a positive number"),
        ("rate=1_000", "rate must be a positive number"),
        ("rate=\u0661", "rate must be a positive number"),
        ("rate=10=20", "rate must be a positive number"),
        ("rate=" + "9" * 500, "rate must be a positive number"),
        ("rate=0", "rate must be from 1e-06 to 1e.12"),
        ("rate=1e999", "rate must be from"),
        ("rate=1e13", "rate must be from"),
        ("rate=1e-7", "rate must be from"),
        ("rate=1,burst=0.5", "burst must be from 1 to"),
        ("rate=1,burst=0", "burst must be from 1 to"),
        ("rate=1,burst=1e300", "burst must be from 1 to"),
        ("burst=5", "burst needs a rate"),
        ("burst=5,max_in_flight=5", "burst needs a rate"),
        ("max_in_flight=0", "max_in_flight must be from 1 to"),
        ("max_in_flight=1.5", "max_in_flight must be a positive whole number"),
        ("max_in_flight=1e3", "max_in_flight must be a positive whole number"),
        ("max_in_flight=" + "9" * 20, "max_in_flight must be from 1 to"),
    ],
)
def test_a_bad_limit_is_refused_with_the_reason(text, why):
    """The error says which part is wrong and what it must be."""
    with pytest.raises(InvalidArgument, match=why):
        Limit.parse(text)


@given(st.text(max_size=60))
def test_any_text_is_a_limit_or_refused(text):
    """Nothing but InvalidArgument."""
    with suppress(InvalidArgument):
        Limit.parse(text)


def test_a_refusal_repeats_only_so_much():
    """However long the text was."""
    with pytest.raises(InvalidArgument) as refused:
        Limit.parse("x" * 100_000)
    assert len(str(refused.value)) < 300


def test_not_a_number_is_refused_however_it_comes():
    """Also from code."""
    for bad in (float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidArgument):
            Limit(rate=bad)
    with pytest.raises(InvalidArgument, match="give a rate"):
        Limit()


def test_tokens_are_taken_while_there_are_any():
    """A refusal takes nothing (story 4.1)."""
    bucket = TokenBucket(rate=10, burst=3, now=0)
    assert bucket.try_consume(2, 0)
    assert not bucket.try_consume(2, 0)
    assert bucket.tokens(0) == 1
    assert bucket.try_consume(1, 0)
    assert not bucket.try_consume(1, 0)


def test_a_bucket_fills_up_to_its_burst():
    """And not beyond, however long nobody takes anything."""
    bucket = TokenBucket(rate=10, burst=5, now=0)
    assert bucket.try_consume(5, 0)
    assert bucket.tokens(100 * MS) == 1
    assert bucket.tokens(3600 * SECOND) == 5


@pytest.mark.parametrize("rate", [0.3, 1, 7, 50, 1 / 3, 1000, 12345.678])
@pytest.mark.parametrize("step", [1, 137, 999_983, 10 * MS + 1, 250 * MS])
def test_the_rate_is_exact_over_any_time(rate, step):
    """Refilled in steps of any size, ten seconds give ten times the rate: nothing drifts."""
    bucket = TokenBucket(rate, burst=1e6, now=0)
    bucket.spend(10**6)
    steps = min(10 * SECOND // step, 20_000)
    for number in range(1, steps + 1):
        bucket.tokens(number * step)
    assert bucket.tokens(10 * SECOND) == pytest.approx(10 * rate, rel=1e-6)


@given(
    st.floats(0.1, 1000),
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 2 * SECOND), st.integers(1, 80)), max_size=60),
)
def test_no_window_holds_more_than_its_share(rate, burst, asks):
    """What is spent in any stretch of time is at most rate * time + burst, and what one dear message was above it."""
    bucket = TokenBucket(rate, burst, 0)
    now, spent = 0, []
    for pause, n in asks:
        now += pause
        if bucket.try_consume(n, now):
            spent.append((now, n))
    for first in range(len(spent)):
        total = 0
        for at, n in spent[first:]:
            total += n
            above = max(0, n - burst)
            assert total - above <= rate * (at - spent[first][0]) / SECOND + burst + 1e-6


def test_a_message_dearer_than_the_burst_passes_when_the_bucket_is_full_and_leaves_a_debt():
    """It is never stuck, and over time it costs what it costs."""
    bucket = TokenBucket(rate=10, burst=10, now=0)
    assert bucket.try_consume(100, 0)
    assert bucket.tokens(0) == -90
    assert not bucket.try_consume(1, 9 * SECOND)
    assert bucket.try_consume(1, 9 * SECOND + 100 * MS)
    assert not bucket.try_consume(100, 10 * SECOND)
    assert bucket.ready_at(100, 10 * SECOND) == 10 * SECOND + 100 * MS


@given(st.floats(1e-6, 1e9), bursts, st.integers(1, 10**9), st.integers(0, 10**18))
def test_ready_at_is_the_first_time_at_which_it_is_ready(rate, burst, n, now):
    """Not a nanosecond early, not one late."""
    bucket = TokenBucket(rate, burst, now)
    bucket.spend(10**6)
    at = bucket.ready_at(n, now)
    if at > now:
        assert not bucket.holds(n, at - 1)
    assert bucket.holds(n, at)


def test_a_clock_that_steps_back_gives_no_tokens_and_stops_nobody():
    """From the new time on, tokens come as before."""
    bucket = TokenBucket(rate=1, burst=10, now=1000 * SECOND)
    bucket.spend(10)
    assert bucket.tokens(10 * SECOND) == 0
    assert bucket.tokens(12 * SECOND) == 2


def test_a_new_rate_keeps_the_tokens_that_fit():
    """What was gained so far was gained at the old rate."""
    bucket = TokenBucket(rate=1, burst=10, now=0)
    bucket.spend(10)
    bucket.change(rate=100, burst=5, now=3 * SECOND)
    assert bucket.tokens(3 * SECOND) == 3
    assert bucket.tokens(3 * SECOND + 10 * MS) == 4
    assert bucket.tokens(9 * SECOND) == 5


def test_a_throttle_without_limit_lets_everything_pass_and_counts_it():
    """A cap that is set later knows what is in flight."""
    manager = ThrottleManager()
    throttle = manager.find("k")
    assert throttle.room(0) == EVERYTHING
    throttle.charge(3, 1)
    manager.set("k", Limit(max_in_flight=4), 0)
    assert throttle.room(0) == 1
    throttle.release()
    assert throttle.room(0) == 2
    manager.set("k", Limit(max_in_flight=1), 0)
    assert throttle.room(0) == 0
    assert throttle.ready_at(1, 0) is None


def test_the_burst_is_a_second_unless_given():
    """And at least one token, so that something can pass."""
    manager = ThrottleManager()
    manager.set("fast", Limit(rate=50), 0)
    manager.set("slow", Limit(rate=0.1), 0)
    assert manager.find("fast").room(0) == 50
    assert manager.find("slow").room(0) == 1


def test_a_limit_that_is_taken_away_limits_nothing():
    """Removing what is not there says so."""
    manager = ThrottleManager()
    manager.set("k", Limit(rate=1), 0)
    assert manager.limits() == {"k": Limit(rate=1)}
    assert manager.remove("k")
    assert not manager.remove("k")
    assert manager.find("k").room(0) == EVERYTHING
    assert manager.limits() == {}


def test_setting_the_same_limit_again_gives_no_new_tokens():
    """An operator's habit is no way around a limit."""
    manager = ThrottleManager()
    manager.set("k", Limit(rate=1, burst=5), 0)
    manager.find("k").charge(5, 1)
    manager.set("k", Limit(rate=1, burst=5), 0)
    assert manager.find("k").room(0) == 0


def test_throttles_that_nobody_uses_are_forgotten():
    """Throttle keys come from clients: those of the past cost nothing."""
    manager = ThrottleManager()
    kept = manager.find("used")
    manager.set("limited", Limit(rate=1), 0)
    for number in range(1000):
        manager.find(f"passing {number}")
    gc.collect()
    assert set(manager._known) == {"used", "limited"}
    assert manager.find("used") is kept


class Queue:
    """Something that waits, and counts how often it is told."""

    def __init__(self, name):
        self.name = name
        self.told = 0

    def notice(self):
        self.told += 1
        return self.name


def test_queues_are_told_when_it_is_time():
    """At the alarm, once, and all that wait for the throttle."""
    manager = ThrottleManager()
    throttle = manager.find("k")
    throttle.waiting = {Queue("a"): None, Queue("b"): None}
    manager.alarm(throttle, 100)
    manager.alarm(throttle, 200)
    assert manager.next_wakeup() == 100
    assert manager.due(99) == []
    assert manager.due(100) == ["a", "b"]
    assert manager.due(300) == []
    assert manager.next_wakeup() is None


def test_an_earlier_alarm_replaces_a_later_one():
    """The later one is not heard any more."""
    manager = ThrottleManager()
    throttle = manager.find("k")
    throttle.waiting = {Queue("a"): None}
    manager.alarm(throttle, 200)
    manager.alarm(throttle, 100)
    assert manager.due(100) == ["a"]
    assert manager.next_wakeup() is None
    assert manager.due(200) == []


def test_alarms_that_do_not_count_do_not_pile_up():
    """However often an alarm is moved."""
    manager = ThrottleManager()
    throttle = manager.find("k")
    throttle.waiting = {Queue("a"): None}
    for at in range(10_000, 0, -1):
        manager.alarm(throttle, at)
    assert len(manager._alarms) <= 2 * MANY_DEAD
    assert manager.next_wakeup() == 1


def test_after_the_clock_stepped_back_everybody_looks_again():
    """Alarms of the old time would come too late."""
    manager = ThrottleManager()
    throttle = manager.find("k")
    throttle.waiting = {Queue("a"): None}
    manager.due(1000 * SECOND)
    manager.alarm(throttle, 1001 * SECOND)
    assert manager.due(10 * SECOND) == ["a"]
    assert manager.next_wakeup() is None


@pytest.mark.parametrize("change", ["set", "remove", "release"])
def test_whoever_waits_is_told_of_changes(change):
    """A new limit, none any more, or room in flight."""
    manager = ThrottleManager()
    manager.set("k", Limit(max_in_flight=1), 0)
    manager.due(0)
    throttle = manager.find("k")
    throttle.charge(1, 1)
    throttle.waiting = {Queue("a"): None}
    assert manager.due(0) == []
    if change == "set":
        manager.set("k", Limit(max_in_flight=2), 0)
    elif change == "remove":
        manager.remove("k")
    else:
        throttle.release()
    assert manager.due(0) == ["a"]
    assert manager.due(0) == []
