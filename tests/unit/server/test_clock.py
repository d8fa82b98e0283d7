"""The broker's clock: never back, never a jump, and slowly with the wall clock."""

from contextlib import contextmanager

from hypothesis import given
from hypothesis import strategies as st

from fila.server import clock
from fila.server.clock import SteadyClock

MS = 1_000_000
SECOND = 1000 * MS
HOUR = 3600 * SECOND
START = 1_700_000_000 * SECOND


class World:
    """Time that passes, and a clock on the wall that somebody sets."""

    def __init__(self):
        self.passed = 5 * SECOND
        self.wall = START

    def pass_time(self, ns):
        self.passed += ns
        self.wall += ns


@contextmanager
def world():
    made = World()
    before = clock.wall_ns, clock.elapsed_ns
    clock.wall_ns, clock.elapsed_ns = lambda: made.wall, lambda: made.passed
    try:
        yield made
    finally:
        clock.wall_ns, clock.elapsed_ns = before


events = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 3 * SECOND)),
        st.tuples(st.just("set"), st.integers(-2 * HOUR, 2 * HOUR)),
        st.tuples(st.just("adjust"), st.just(0)),
    ),
    max_size=60,
)


@given(events, st.integers(-HOUR, HOUR))
def test_it_never_goes_back_and_runs_at_most_one_per_cent_too_fast_or_too_slow(happened, known):
    with world() as made:
        steady = SteadyClock(START + known)
        assert steady() == START + max(0, known)
        for what, ns in happened:
            before = steady()
            if what == "pass":
                made.pass_time(ns)
                assert 0.99 * ns - 2 <= steady() - before <= 1.01 * ns + 2
            elif what == "set":
                made.wall += ns
                assert steady() == before
            else:
                steady.adjust()
                assert steady() == before


@given(st.integers(-20 * SECOND, 20 * SECOND))
def test_it_agrees_with_the_wall_clock_in_the_end(ns):
    with world() as made:
        steady = SteadyClock()
        made.pass_time(250 * MS)
        steady.adjust()
        made.wall += ns
        for _ in range(100 * 4 * 21):
            made.pass_time(250 * MS)
            steady.adjust()
        assert abs(steady() - made.wall) <= MS


def test_it_says_by_how_much_the_wall_clock_was_set():
    with world() as made:
        steady = SteadyClock()
        told = []
        for ns in (0, 0, -HOUR, 0, 0, 2 * HOUR, 10 * MS, 0):
            made.pass_time(250 * MS)
            made.wall += ns
            told.append(round(steady.adjust() / SECOND))
        assert told == [0, 0, -3600, 0, 0, 7200, 0, 0]


def test_it_does_not_begin_before_what_is_known_to_have_been():
    with world() as made:
        assert SteadyClock(not_before=START - HOUR)() == START
        steady = SteadyClock(not_before=START + HOUR)
        assert steady() == START + HOUR
        made.pass_time(SECOND)
        assert steady() == START + HOUR + SECOND
