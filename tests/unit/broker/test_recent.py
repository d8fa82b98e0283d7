"""Records kept for a moment, within a bound."""

from hypothesis import given
from hypothesis import strategies as st

from fila.broker.recent import RecentRecords


@given(
    st.integers(0, 50),
    st.lists(st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=20)), max_size=5))),
)
def test_it_never_holds_more_than_it_may_and_never_gives_what_was_not_put_in(limit, steps):
    recent = RecentRecords(limit)
    put: dict[int, bytes] = {}
    number = 0
    for adding, records in steps:
        if adding:
            fresh = []
            for _, record in records:
                number += 1
                fresh.append((number, record))
            put.update(fresh)
            recent.add(fresh)
        else:
            wanted = [seq for seq, _ in records]
            found = recent.take(wanted)
            assert all(put[seq] == record for seq, record in found.items())
            assert recent.take(wanted) == {}
        assert sum(map(len, recent._records.values())) == recent._bytes <= limit


def test_the_oldest_go_first():
    recent = RecentRecords(10)
    recent.add([(1, b"12345"), (2, b"12345"), (3, b"1")])
    assert recent.take([1, 2, 3]) == {2: b"12345", 3: b"1"}


def test_a_record_larger_than_all_room_is_not_kept():
    recent = RecentRecords(4)
    recent.add([(1, b"12345")])
    assert len(recent) == 0
