"""What every store does, in memory or on disk."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fila.core.ids import NODE_BITS
from fila.storage.base import Batch, Family

MESSAGES = Family.MESSAGES
OTHERS = [family for family in Family if family is not MESSAGES]


def put(store, *pairs, family=MESSAGES):
    batch = Batch()
    for key, value in pairs:
        batch.put(family, key, value)
    store.write(batch)


def all_of(store, family=MESSAGES):
    return [pair for pair in store.scan(family) if family is not Family.DEFAULT or pair[0] != b"node"]


def test_what_was_put_is_there(store):
    """A written value is read back, byte for byte, also an empty one."""
    put(store, (b"a", b"1"), (b"\x00\xff", b""), (b"b", bytes(range(256)) * 100))
    assert store.get(MESSAGES, b"a") == b"1"
    assert store.get(MESSAGES, b"\x00\xff") == b""
    assert store.get(MESSAGES, b"b") == bytes(range(256)) * 100


def test_keys_may_be_long(store):
    """The longest have a queue, a fairness key of zero bytes, which take two each, and numbers."""
    long = [b"q" * 780 + b"%020d" % number for number in range(3)]
    put(store, *((key, key) for key in long))
    assert store.get_many(MESSAGES, long) == long
    assert all_of(store) == [(key, key) for key in long]
    assert store.has_any(MESSAGES, long[1], long[2])
    batch = Batch()
    batch.delete(MESSAGES, long[0])
    batch.delete_range(MESSAGES, long[1], long[2])
    store.write(batch)
    assert [key for key, _ in all_of(store)] == long[2:]


def test_an_unknown_key_is_none(store):
    """Absence is None, not an error and not an empty value."""
    assert store.get(MESSAGES, b"nothing") is None


def test_nothing_is_visible_before_the_write(store):
    """A batch is a plan until it is written."""
    batch = Batch()
    batch.put(MESSAGES, b"a", b"1")
    assert store.get(MESSAGES, b"a") is None
    assert len(batch) == 1


def test_an_empty_batch_can_be_written(store):
    """Writing nothing changes nothing."""
    batch = Batch()
    assert len(batch) == 0
    store.write(batch)
    assert all_of(store) == []


def test_a_batch_counts_its_changes(store):
    """The length tells whether there is anything to write."""
    batch = Batch()
    batch.put(MESSAGES, b"a", b"1")
    batch.delete(MESSAGES, b"b")
    batch.delete_range(MESSAGES, b"c", b"d")
    assert len(batch) == 3


def test_a_put_replaces(store):
    """The last value wins."""
    put(store, (b"a", b"1"))
    put(store, (b"a", b"2"))
    assert all_of(store) == [(b"a", b"2")]


def test_a_delete_removes_one_key(store):
    """Deleting what is not there is no error."""
    put(store, (b"a", b"1"), (b"b", b"2"))
    batch = Batch()
    batch.delete(MESSAGES, b"a")
    batch.delete(MESSAGES, b"nothing")
    store.write(batch)
    assert all_of(store) == [(b"b", b"2")]


def test_a_range_is_deleted_without_its_end(store):
    """From start, included, to end, not included."""
    put(store, *((key, b"") for key in (b"a", b"b", b"ba", b"c", b"d")))
    batch = Batch()
    batch.delete_range(MESSAGES, b"b", b"c")
    store.write(batch)
    assert [key for key, _ in all_of(store)] == [b"a", b"c", b"d"]


@pytest.mark.parametrize("start, end", [(b"b", b"b"), (b"c", b"a")])
def test_an_empty_range_deletes_nothing(store, start, end):
    """A range that ends before it begins holds nothing."""
    put(store, *((key, b"") for key in (b"a", b"b", b"c")))
    batch = Batch()
    batch.delete_range(MESSAGES, start, end)
    store.write(batch)
    assert [key for key, _ in all_of(store)] == [b"a", b"b", b"c"]


def test_later_changes_of_a_batch_win(store):
    """Put, delete and delete_range take effect in the order in which they were added."""
    put(store, (b"old", b"1"))
    batch = Batch()
    batch.put(MESSAGES, b"a", b"1")
    batch.delete(MESSAGES, b"a")
    batch.delete(MESSAGES, b"b")
    batch.put(MESSAGES, b"b", b"2")
    batch.put(MESSAGES, b"c", b"3")
    batch.delete_range(MESSAGES, b"c", b"z")
    batch.put(MESSAGES, b"d", b"4")
    store.write(batch)
    assert all_of(store) == [(b"b", b"2"), (b"d", b"4")]


@pytest.mark.parametrize("other", OTHERS, ids=lambda family: family.name)
def test_families_are_separate(store, other):
    """One key in two families is two entries, and a range deletes in one."""
    put(store, (b"k", b"message"))
    put(store, (b"k", b"other"), family=other)
    assert store.get(MESSAGES, b"k") == b"message"
    assert store.get(other, b"k") == b"other"
    batch = Batch()
    batch.delete_range(MESSAGES, b"", b"z")
    store.write(batch)
    assert all_of(store) == []
    assert all_of(store, other) == [(b"k", b"other")]


def test_one_batch_covers_many_families(store):
    """All families of a batch change together."""
    batch = Batch()
    for family in Family:
        batch.put(family, b"k", family.name.encode())
    store.write(batch)
    assert [store.get(family, b"k") for family in Family] == [family.name.encode() for family in Family]


def test_many_are_read_at_once(store):
    """Values come in the order of the keys, None for those that are not there."""
    put(store, (b"a", b"1"), (b"b", b""), (b"c", b"3"))
    assert store.get_many(MESSAGES, [b"c", b"x", b"b", b"a", b"a"]) == [b"3", None, b"", b"1", b"1"]
    assert store.get_many(MESSAGES, []) == []


def test_many_are_found_in_any_order_and_with_others_between(store):
    put(store, *[(b"%03d" % number, b"%d" % number) for number in range(0, 200, 2)])
    wanted = [b"%03d" % number for number in [*range(20), 199, *range(150, 90, -3), 10, 10, 500]]
    expected = [b"%d" % int(key) if int(key) % 2 == 0 and int(key) < 200 else None for key in wanted]
    assert store.get_many(MESSAGES, wanted) == expected


@pytest.mark.parametrize("run, gap", [(1, 1), (1, 3), (4, 9), (4, 30), (64, 5), (64, 200), (300, 0)])
@pytest.mark.parametrize("missing", [0, 3])
def test_many_are_found_in_runs_with_gaps_of_any_length(store, run, gap, missing):
    """Whether it pays to walk from one to the next or not; also beyond the last key of the store."""
    kept = {b"%05d" % number: b"%d" % number for number in range(1500) if not missing or number % missing}
    put(store, *kept.items())
    wanted = [b"%05d" % number for number in range(50, 1700) if number % (run + gap) < run]
    assert store.get_many(MESSAGES, wanted) == [kept.get(key) for key in wanted]


def test_a_scan_is_in_order_of_bytes(store):
    """Shorter keys before longer ones that begin like them, unsigned bytes."""
    keys = [b"\xff", b"a\xff", b"", b"a", b"\x00", b"a\x00", b"b", b"\x7f", b"\x80"]
    put(store, *((key, key) for key in keys))
    assert all_of(store) == [(key, key) for key in sorted(keys)]


@pytest.mark.parametrize(
    "start, end, found",
    [
        (b"", None, "abcd"),
        (b"b", None, "bcd"),
        (b"b", b"d", "bc"),
        (b"aa", b"cc", "bc"),
        (b"", b"a", ""),
        (b"b", b"b", ""),
        (b"c", b"a", ""),
        (b"x", None, ""),
    ],
)
def test_a_scan_begins_at_its_start_and_ends_before_its_end(store, start, end, found):
    """Bounds need not be keys; a range that ends before it begins is empty."""
    put(store, *((key.encode(), b"") for key in "abcd"))
    assert "".join(key.decode() for key, _ in store.scan(MESSAGES, start, end)) == found


def test_a_scan_sees_the_store_as_it_was(store):
    """Writing while scanning neither hides nor adds anything."""
    put(store, *((b"%03d" % number, b"") for number in range(100)))
    scan = store.scan(MESSAGES)
    seen = [next(scan)[0]]
    batch = Batch()
    batch.delete_range(MESSAGES, b"", b"z")
    batch.put(MESSAGES, b"0505", b"")
    store.write(batch)
    seen += [key for key, _ in scan]
    assert seen == [b"%03d" % number for number in range(100)]
    assert [key for key, _ in store.scan(MESSAGES)] == [b"0505"]


def test_a_range_has_a_key_or_not_whatever_is_around_it(store):
    put(store, (b"a", b""), (b"c", b""), (b"e", b""))
    batch = Batch()
    batch.delete(MESSAGES, b"c")
    store.write(batch)
    assert store.has_any(MESSAGES, b"a", b"b")
    assert store.has_any(MESSAGES, b"b", b"ee")
    assert not store.has_any(MESSAGES, b"b", b"e")
    assert not store.has_any(MESSAGES, b"f", b"g")
    assert not store.has_any(Family.STATE, b"a", b"z")


def test_a_scan_need_not_be_finished(store):
    """A scan that is given up does not stop the store from closing."""
    put(store, *((b"%03d" % number, b"") for number in range(100)))
    next(store.scan(MESSAGES))


small = st.binary(max_size=3)
changes = st.lists(
    st.tuples(st.just("put"), small, small)
    | st.tuples(st.just("delete"), small)
    | st.tuples(st.just("delete_range"), small, small),
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(changes, max_size=4), small, st.none() | small)
def test_any_store_is_a_sorted_dictionary(store, batches, start, end):
    """Whatever is written in whatever batches, reads answer as a dictionary would."""
    clear = Batch()
    clear.delete_range(MESSAGES, b"", b"\xff" * 4)
    store.write(clear)
    model = {}
    for batch_of_changes in batches:
        batch = Batch()
        for change, *args in batch_of_changes:
            getattr(batch, change)(MESSAGES, *args)
            if change == "put":
                model[args[0]] = args[1]
            elif change == "delete":
                model.pop(args[0], None)
            else:
                model = {key: value for key, value in model.items() if not args[0] <= key < args[1]}
        store.write(batch)
    assert all_of(store) == sorted(model.items())
    inside = [(key, value) for key, value in sorted(model.items()) if start <= key and (end is None or key < end)]
    assert list(store.scan(MESSAGES, start, end)) == inside
    assert store.get_many(MESSAGES, list(model)) == list(model.values())
    if end is not None:
        assert store.has_any(MESSAGES, start, end) == bool(inside)


def test_a_store_has_a_name_that_fits_into_message_ids(store):
    assert 0 <= store.node < 1 << NODE_BITS
    assert store.node == store.node


def test_a_store_that_nobody_touches_can_be_checked_at_any_time(store):
    put(store, (b"a", b"1"))
    store.check()
    assert [notice for notice in store.notices if notice.files] == []
    assert store.get(MESSAGES, b"a") == b"1"


def test_a_scan_sees_what_was_there_when_it_was_asked_for(store):
    put(store, (b"a", b"1"), (b"b", b"2"))
    scan = store.scan(MESSAGES)
    put(store, (b"a", b"3"), (b"c", b"4"))
    assert list(scan) == [(b"a", b"1"), (b"b", b"2")]


def test_what_is_written_is_in_the_sizes_or_there_are_none(store):
    """A store without files has no sizes. Of one with files, what was written is in memory first."""
    before = store.sizes()
    put(store, *((b"%06d" % number, bytes(1000)) for number in range(2_000)))
    after = store.sizes()
    assert (before is None) == (after is None)
    if after is not None:
        assert after.file_bytes + after.buffer_bytes >= before.file_bytes + before.buffer_bytes + 2_000_000
        assert min(after) >= 0
