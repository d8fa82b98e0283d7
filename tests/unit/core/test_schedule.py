"""Delayed messages: not before their time."""

from hypothesis import given
from hypothesis import strategies as st

from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.schedule import Schedule

LANE = Lane(FairKey("tenant"), 5, (b"", b""))
dues = st.lists(st.integers(0, 100), max_size=30)


def filled(dues):
    schedule = Schedule()
    for seq, due in enumerate(dues):
        schedule.add((due, seq, LANE, 1))
    return schedule


@given(dues, st.integers(0, 100))
def test_nothing_is_taken_before_its_time(dues, now):
    """What is due by now is taken, earliest first; the rest stays."""
    schedule = filled(dues)
    taken = [due for due, *_ in schedule.take_due(now, 1_000)]
    assert taken == sorted(due for due in dues if due <= now)
    assert len(schedule) == len(dues) - len(taken)
    later = [due for due in dues if due > now]
    assert schedule.next_due() == (min(later) if later else None)


@given(dues, st.integers(0, 10))
def test_a_limit_leaves_the_later_ones(dues, limit):
    """No more than the limit is taken, and those are the earliest."""
    assert [due for due, *_ in filled(dues).take_due(100, limit)] == sorted(dues)[:limit]


@given(dues, st.integers(0, 100))
def test_what_is_put_back_is_there_again(dues, now):
    """Taking and adding again is as if nothing had happened."""
    schedule, untouched = filled(dues), filled(dues)
    for delayed in schedule.take_due(now, 1_000):
        schedule.add(delayed)
    assert sorted(schedule.all()) == sorted(untouched.all())
    assert schedule.next_due() == untouched.next_due()


def test_messages_of_one_time_keep_their_order():
    """Among messages due at one moment, the older goes first."""
    schedule = Schedule()
    for seq in (3, 1, 2):
        schedule.add((50, seq, LANE, 1))
    assert [seq for _, seq, *_ in schedule.take_due(50, 10)] == [1, 2, 3]


@given(st.lists(st.integers(0, 100), max_size=200), st.data())
def test_what_is_removed_never_becomes_ready(dues, data):
    """However many are removed: the others come as if those had never been there, and can be taken and put back."""
    schedule = filled(dues)
    gone = data.draw(st.sets(st.sampled_from(range(len(dues))))) if dues else set()
    for seq in gone:
        schedule.remove(dues[seq], seq)
    left = sorted((due, seq) for seq, due in enumerate(dues) if seq not in gone)
    assert len(schedule) == len(left)
    assert sorted((due, seq) for due, seq, *_ in schedule.all()) == left
    assert schedule.next_due() == (left[0][0] if left else None)
    for delayed in schedule.take_due(50, 10):
        schedule.add(delayed)
    assert [(due, seq) for due, seq, *_ in schedule.take_due(100, 1_000)] == left
    assert len(schedule) == 0
