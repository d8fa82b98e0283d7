"""The rule by which every member reads the log, one clause at a time."""

import pytest

from fila.core.errors import StoreBusy
from fila.replicas import replica as module
from fila.replicas.entry import Barrier, Head, Kind, Unreadable, write_barrier, write_entry, write_release, write_tick
from fila.replicas.log import Entry
from fila.replicas.replica import MARK_KEY, Lost, Mark, Replica, read_mark
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from tests.support.faulty import FaultyStorage

SHARD = 5


class Copy:
    """A replica that is given one entry after the other."""

    def __init__(self, store=None):
        self.store = store or MemoryStorage()
        self.replica = Replica(self.store, SHARD)

    @property
    def mark(self):
        return self.replica.mark

    def take(self, body):
        return self.replica.take(Entry(self.replica.position + 1, body))

    def kept(self):
        return [key.decode() for key, _ in self.store.scan(Family.MESSAGES)]


def barrier(epoch, shard=SHARD):
    return write_barrier(shard, epoch, Barrier(bytes(16), "m"))


def tick(epoch, number, *keys):
    (entry,) = parts(epoch, number, *keys, size=1000)
    return entry


def parts(epoch, number, *keys, size=40):
    changes = [(Family.MESSAGES, key.encode(), b"value", None) for key in keys]
    return write_tick(SHARD, epoch, number, changes, size)


@pytest.fixture
def copy():
    """Of a shard that somebody has taken over with epoch 3."""
    copy = Copy()
    copy.take(barrier(3))
    return copy


def test_a_store_without_a_mark_begins_before_the_log():
    assert Copy().mark == Mark(0, 0, 0, -1)


def test_a_higher_barrier_counts(copy):
    assert copy.mark == Mark(3, 0, 0, 0)
    assert copy.take(barrier(7)) == (Head(Kind.BARRIER, SHARD, 7, 0), Barrier(bytes(16), "m"), "")
    assert copy.mark == Mark(7, 0, 0, 1)


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_a_barrier_that_is_not_higher_is_ignored(copy, epoch):
    assert copy.take(barrier(epoch)) is None
    assert (copy.mark, copy.replica.position) == (Mark(3, 0, 0, 0), 1)


def test_ticks_of_the_epoch_count_in_their_order(copy):
    assert copy.take(tick(3, 1, "a")).head == Head(Kind.TICK, SHARD, 3, 1)
    copy.take(tick(3, 2, "b"))
    assert (copy.mark, copy.kept()) == (Mark(3, 0, 2, 2), ["a", "b"])


def test_numbers_go_on_over_epochs(copy):
    copy.take(tick(3, 1, "a"))
    copy.take(barrier(4))
    copy.take(tick(4, 2, "b"))
    assert (copy.mark, copy.kept()) == (Mark(4, 1, 2, 3), ["a", "b"])


def test_what_an_old_owner_sends_late_is_ignored(copy):
    copy.take(barrier(4))
    assert copy.take(tick(3, 1, "late")) is None
    assert copy.take(write_release(SHARD, 3, 0, "m")) is None
    assert (copy.mark, copy.kept()) == (Mark(4, 0, 0, 1), [])


def test_what_stands_twice_counts_once(copy):
    copy.take(tick(3, 1, "a"))
    copy.take(tick(3, 2, "b"))
    assert copy.take(tick(3, 1, "a")) is None
    assert copy.take(tick(3, 2, "b")) is None
    assert copy.mark == Mark(3, 0, 2, 2)


def test_a_tick_in_parts_counts_with_its_last(copy):
    *first, last = parts(3, 1, "a", "b", "c")
    assert len(first) > 1
    assert [copy.take(part) for part in first] == [None] * len(first)
    assert (copy.mark, copy.kept()) == (Mark(3, 0, 0, 0), [])
    assert copy.take(last) is not None
    assert copy.kept() == ["a", "b", "c"]


def test_parts_that_stand_twice_are_ignored(copy):
    for part in parts(3, 1, "a", "b", "c"):
        copy.take(part)
        copy.take(part)
    for part in parts(3, 1, "a", "b", "c"):
        assert copy.take(part) is None
    assert (copy.mark.tick, copy.kept()) == (1, ["a", "b", "c"])


def test_parts_before_a_barrier_are_dropped(copy):
    old, new = parts(3, 1, "old 1", "old 2"), parts(4, 1, "new 1", "new 2")
    copy.take(old[0])
    copy.take(barrier(4))
    assert copy.take(old[1]) is None
    for part in new:
        copy.take(part)
    assert copy.kept() == ["new 1", "new 2"]


def test_a_release_of_the_epoch_counts_and_changes_nothing(copy):
    copy.take(tick(3, 1, "a"))
    assert copy.take(write_release(SHARD, 3, 1, "other")).successor == "other"
    assert copy.mark == Mark(3, 0, 1, 1)


@pytest.mark.parametrize(
    "entry, text",
    [
        (tick(3, 4, "x"), "ticks after 2 are missing"),
        (tick(4, 3, "x"), "whose barrier is missing"),
        (parts(3, 3, "x", "y", "z")[1], "part 1 of tick 3; 0 came before it"),
        (write_release(SHARD, 3, 3, "m"), "release of epoch 3 after tick 3"),
        (write_release(SHARD, 4, 2, "m"), "release of epoch 4"),
        (tick(3, 1, "x"), "1 came before that"),
    ],
)
def test_a_log_that_lacks_something_is_noticed(entry, text):
    """The last is a tick of this epoch with a number that was given out before it began: another log."""
    copy = Copy()
    for body in (barrier(1), tick(1, 1, "a"), barrier(3), tick(3, 2, "b")):
        copy.take(body)
    before = copy.mark, copy.replica.position
    for _ in range(2):
        with pytest.raises(Lost, match=text):
            copy.take(entry)
        assert (copy.mark, copy.replica.position, copy.kept()) == (*before, ["a", "b"])


def test_positions_that_are_not_the_next_are_noticed(copy):
    for position in (0, 2):
        with pytest.raises(Lost, match=f"after position 0 of the log comes {position}"):
            copy.replica.take(Entry(position, barrier(4)))


@pytest.mark.parametrize(
    "entry, text",
    [
        (b"junk", "position 1 of the log: an entry has 4 bytes"),
        (barrier(4, shard=6), "position 1 of the log: an entry is of shard 6, this is 5"),
        (write_entry(Head(Kind.TICK, SHARD, 3, 1), b"\x3f"), "unknown family"),
        (write_entry(Head(Kind.CHUNK, SHARD, 3, 1), b""), "a chunk stands in the log of ticks"),
        (write_entry(Head(Kind.BARRIER, SHARD, 4, 0), b"\xff" * 17), "no text"),
    ],
)
def test_what_cannot_be_read_stops_the_copy(copy, entry, text):
    with pytest.raises(Unreadable, match=text):
        copy.take(entry)
    assert (copy.mark, copy.replica.position) == (Mark(3, 0, 0, 0), 0)


def test_a_tick_without_end_is_not_kept_in_memory(copy, monkeypatch):
    monkeypatch.setattr(module, "MAX_TICK_BYTES", 20)
    first, second, *_ = parts(3, 1, "a", "b", "c", "d")
    copy.take(first)
    with pytest.raises(Unreadable, match="more than 20 bytes"):
        copy.take(second)


def test_changes_and_mark_are_one_write():
    """And one that fails changes nothing, so that it can be tried again."""
    store = FaultyStorage(MemoryStorage(), error=lambda: StoreBusy("busy"))
    copy = Copy(store)
    copy.take(barrier(3))
    *first, last = parts(3, 1, "a", "b", "c")
    for part in first:
        copy.take(part)
    assert store.writes == 1
    store.break_now()
    for _ in range(2):
        with pytest.raises(StoreBusy):
            copy.take(last)
        assert (copy.mark, copy.kept()) == (Mark(3, 0, 0, 0), [])
    store.heal()
    assert copy.take(last) is not None
    assert (store.writes, copy.kept()) == (4, ["a", "b", "c"])


def test_an_own_tick_is_stored_as_every_reader_stores_it(copy):
    other = Copy()
    other.take(barrier(3))
    changes = [(Family.MESSAGES, b"a", b"v", None), (Family.MESSAGES, b"b", None, None)]
    copy.replica.take_own(1, 3, changes, 100)
    other.take(write_tick(SHARD, 3, 1, changes, 1000)[0])
    assert copy.mark == other.mark
    for family in Family:
        assert list(copy.store.scan(family)) == list(other.store.scan(family))


def test_a_member_knows_how_large_entries_are_on_average(copy):
    assert copy.replica.entry_bytes == len(barrier(3))
    copy.take(tick(3, 1, "a"))
    copy.take(tick(2, 1, "late"))
    copy.replica.take_own(3, 3, [], 1000)
    assert copy.replica.entry_bytes == sum(map(len, (barrier(3), tick(3, 1, "a"), tick(2, 1, "late")))) / 4 + 250
    assert Copy(copy.store).replica.entry_bytes == 0


@pytest.mark.parametrize("position, epoch", [(2, 3), (0, 3), (1, 2), (1, 4)])
def test_an_own_tick_that_cannot_count_is_noticed(copy, position, epoch):
    with pytest.raises(Lost):
        copy.replica.take_own(position, epoch, [], 1)


def test_a_member_goes_on_where_its_store_stands(copy):
    copy.take(tick(3, 1, "a"))
    copy.take(parts(3, 2, "b", "c")[0])
    again = Copy(copy.store)
    assert again.mark == copy.mark
    assert again.replica.position == 1
    for part in parts(3, 2, "b", "c"):
        again.take(part)
    assert again.kept() == ["a", "b", "c"]


@pytest.mark.parametrize("stored", [b"", b"\x01", b"\x02" + bytes(32), b"\x01" + bytes(33)])
def test_a_mark_that_cannot_be_read_is_not_guessed(stored):
    store, batch = MemoryStorage(), Batch()
    batch.put(Family.DEFAULT, MARK_KEY, stored)
    store.write(batch)
    with pytest.raises(Unreadable, match="mark"):
        read_mark(store)
