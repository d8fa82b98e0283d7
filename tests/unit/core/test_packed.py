"""The packed part of a lane, against a sorted list."""

import tracemalloc
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.packed import Packed, _unpack
from tests.support.packing import chunks_of

ANY = 1 << 64
numbers = st.sets(st.one_of(st.integers(0, 40), st.integers(0, ANY - 1)), min_size=1).map(sorted)


@pytest.fixture(autouse=True, scope="module", params=[1, 2, 5, 1024])
def chunk(request):
    with chunks_of(request.param):
        yield request.param


def packed(seqs):
    return Packed(array("Q", seqs))


@given(numbers)
def test_all_numbers_come_out_as_they_went_in(seqs):
    """Also those that are as far apart as numbers can be."""
    one = packed(seqs)
    assert (list(one), one.size, one.oldest, one.newest) == (seqs, len(seqs), seqs[0], seqs[-1])


@given(numbers, st.data())
def test_what_is_taken_is_the_oldest(seqs, data):
    one, left = packed(seqs), list(seqs)
    while left:
        assert (one.oldest, one.newest) == (left[0], left[-1])
        count = data.draw(st.integers(1, 7))
        assert one.take(count).tolist() == left[:count]
        del left[:count]
        assert (list(one), one.size) == (left, len(left))
    assert not one.take(1)


@given(numbers, st.data())
def test_the_newest_can_be_had_back_until_all_are_gone(seqs, data):
    one, left = packed(seqs), list(seqs)
    one.take(data.draw(st.integers(0, len(seqs) - 1)))
    left = list(one)
    while left:
        newest = one.take_newest().tolist()
        assert newest
        assert newest == left[-len(newest) :]
        del left[-len(newest) :]
        assert (list(one), one.size) == (left, len(left))


@given(numbers, st.data())
def test_numbers_are_added_where_they_belong(seqs, data):
    """At either end or among the others."""
    others = data.draw(st.sets(st.sampled_from(seqs), max_size=len(seqs) - 1)) if len(seqs) > 1 else set()
    kept = [seq for seq in seqs if seq not in others]
    one = packed(kept)
    late = sorted(others)
    newer = [seq for seq in late if seq > kept[-1]]
    among = [seq for seq in late if seq < kept[-1]]
    if data.draw(st.booleans()):
        while among and among[-1] < one.oldest:
            one.prepend(among.pop())
    if among:
        one.insert(among)
    one.extend(array("Q", newer))
    assert (list(one), one.size, one.oldest, one.newest) == (seqs, len(seqs), seqs[0], seqs[-1])


@given(numbers, st.data())
def test_what_is_removed_leaves_the_others(seqs, data):
    """Strangers among what is to be removed are of no concern."""
    one = packed(seqs)
    one.take(data.draw(st.integers(0, len(seqs) - 1)))
    there = list(one)
    gone = data.draw(st.sets(st.one_of(st.sampled_from(there), st.integers(0, 40)), min_size=1))
    left = [seq for seq in there if seq not in gone]
    assert one.remove(gone) == len(there) - len(left)
    assert (list(one), one.size) == (left, len(left))
    if left:
        assert (one.oldest, one.newest) == (left[0], left[-1])


@given(numbers, st.integers(0, 42), st.integers(0, 42), st.integers(0, 10), st.booleans())
def test_looking_finds_what_is_there_and_changes_nothing(seqs, low, high, count, newest):
    one = packed(seqs)
    found = one.between(low, high, count, newest=newest)
    assert found == sorted((seq for seq in seqs if low <= seq <= high), reverse=newest)[:count]
    assert all(one.holds(seq) == (seq in seqs) for seq in {low, high, seqs[0], seqs[-1]})
    assert one.older(low) == sum(seq < low for seq in seqs)
    run = one.run(high)
    assert seqs[:run] == [seq for seq in seqs if seq <= high][:run]
    assert bool(run) == (seqs[0] <= high)
    assert list(one) == seqs


def test_what_came_together_takes_less_than_a_byte_for_each():
    """A hundred thousand messages that came 500 at a time: what a lane is packed for."""
    lane = Lane(FairKey("tenant"), 5, (b"", b""))
    tracemalloc.start()
    try:
        with chunks_of(1024):
            for batch in range(200):
                lane.push_many(range(batch * 2_345_678, batch * 2_345_678 + 500))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(lane) == 100_000
    assert used < len(lane)


def test_old_messages_that_come_behind_new_ones_are_packed_too():
    """As when a start reads what is older than all that has arrived since."""
    lane = Lane(FairKey("tenant"), 5, (b"", b""))
    with chunks_of(1024):
        lane.push_many(range(1 << 40, (1 << 40) + 5000))
        tracemalloc.start()
        try:
            for batch in range(400):
                lane.push_many(range(batch * 2_345_678, batch * 2_345_678 + 500))
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(lane) == 205_000
    assert used < len(lane)


def test_removing_costs_nothing_between_what_is_removed(monkeypatch):
    """A few messages of a long lane, far from each other."""
    unpacked = []
    with chunks_of(5):
        one = packed(range(1000))
        monkeypatch.setattr("fila.core.packed._unpack", lambda chunk: unpacked.append(chunk) or _unpack(chunk))
        one.remove({100, 900})
    assert len(unpacked) == 2
    assert list(one) == [seq for seq in range(1000) if seq not in {100, 900}]
