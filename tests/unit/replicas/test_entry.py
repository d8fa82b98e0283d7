"""Entries of a log: what is written is read, and whatever else is read is told to be unreadable."""

from contextlib import suppress
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.replicas import entry as module
from fila.replicas.entry import (
    OVERHEAD,
    Barrier,
    Head,
    Kind,
    TooLarge,
    Unreadable,
    read_barrier,
    read_changes,
    read_entry,
    read_name,
    write_barrier,
    write_changes,
    write_entry,
    write_release,
    write_tick,
)
from fila.storage.base import Batch, Family

KEYS = st.binary(max_size=300)
FAMILIES = st.sampled_from(Family)
NUMBERS = st.integers(0, (1 << 63) - 1)
CHANGES = st.lists(
    st.one_of(
        st.tuples(FAMILIES, KEYS, st.binary(max_size=1000), st.none()),
        st.tuples(FAMILIES, KEYS, st.none(), st.none()),
        st.tuples(FAMILIES, KEYS, st.none(), KEYS).filter(lambda change: change[1] < change[3]),
    ),
    max_size=30,
)


@given(CHANGES)
def test_the_changes_of_a_batch_are_read_as_they_were_written(changes):
    assert read_changes(write_changes(changes)) == changes


def test_everything_that_a_batch_takes_can_be_written():
    batch = Batch()
    batch.put(Family.MESSAGES, b"a", b"")
    batch.put_many(Family.AUDIT, [(b"", b"v" * 200)])
    batch.delete(Family.LEASES, b"b" * 130)
    batch.delete_many(Family.STATE, [b"c", b"d"])
    batch.delete_range(Family.JOURNAL, b"", b"z")
    assert read_changes(write_changes(batch.changes)) == batch.changes


@given(CHANGES, st.integers(0, 65535), NUMBERS, NUMBERS, st.integers(OVERHEAD + 1, 3000))
def test_a_tick_goes_in_as_many_parts_as_it_needs(changes, shard, epoch, tick, limit):
    entries = write_tick(shard, epoch, tick, changes, limit)
    read = [read_entry(entry) for entry in entries]
    assert max(map(len, entries)) <= limit
    assert [head for head, _ in read] == [
        Head(Kind.TICK, shard, epoch, tick, part, len(entries)) for part in range(len(entries))
    ]
    assert read_changes(b"".join(body for _, body in read)) == changes
    assert all(len(entry) == limit for entry in entries[:-1])


@given(NUMBERS, st.binary(min_size=16, max_size=16), st.text(max_size=60))
def test_barriers_and_releases_name_a_member(number, nonce, member):
    head, body = read_entry(write_barrier(3, number, Barrier(nonce, member)))
    assert (head, read_barrier(body)) == (Head(Kind.BARRIER, 3, number, 0), Barrier(nonce, member))
    head, body = read_entry(write_release(3, number, 9, member))
    assert (head, read_name(body)) == (Head(Kind.RELEASE, 3, number, 9), member)


@given(st.binary(max_size=200))
def test_strange_bytes_are_unreadable(entry):
    with pytest.raises(Unreadable):
        read_entry(entry)


@given(CHANGES, st.data())
def test_a_damaged_or_shortened_entry_is_unreadable(changes, data):
    (entry,) = write_tick(1, 2, 3, changes, 1 << 20)
    at = data.draw(st.integers(0, len(entry) - 1))
    flipped = bytes([entry[at] ^ data.draw(st.integers(1, 255))])
    for damaged in (entry[:at], entry[:at] + flipped + entry[at + 1 :]):
        with pytest.raises(Unreadable):
            read_entry(damaged)


@given(st.binary(max_size=400))
def test_strange_changes_are_read_or_unreadable(body):
    """What is read means the same when it is written again."""
    try:
        changes = read_changes(body)
    except Unreadable:
        return
    assert read_changes(write_changes(changes)) == changes


@given(CHANGES, st.data())
def test_changes_that_are_cut_off_are_read_or_unreadable(changes, data):
    body = write_changes(changes)
    cut = body[: data.draw(st.integers(0, len(body)))]
    with suppress(Unreadable):
        assert read_changes(cut) == changes[: len(read_changes(cut))]


@given(st.binary(max_size=300))
def test_strange_barriers_are_read_or_unreadable(body):
    try:
        barrier = read_barrier(body)
    except Unreadable:
        return
    assert barrier.nonce + barrier.member.encode() == body


def crafted(*numbers, version=1):
    head = pack(">BBHQQHH", version, *numbers)
    return head + pack(">I", crc32(head))


@pytest.mark.parametrize(
    "entry, text",
    [
        (crafted(2, 0, 0, 0, 0, 1, version=2), "format 2, this version of Fila reads 1"),
        (crafted(0, 0, 0, 0, 0, 1), "unknown kind 0"),
        (crafted(6, 0, 0, 0, 0, 1), "unknown kind 6"),
        (crafted(2, 0, 1 << 63, 0, 0, 1), "numbers that cannot be"),
        (crafted(2, 0, 0, 1 << 63, 0, 1), "numbers that cannot be"),
        (crafted(2, 0, 0, 0, 1, 1), "numbers that cannot be"),
        (crafted(2, 0, 0, 0, 0, 0), "numbers that cannot be"),
        (b"", "has 0 bytes"),
    ],
)
def test_an_entry_that_cannot_be_says_why(entry, text):
    with pytest.raises(Unreadable, match=text):
        read_entry(entry)


@pytest.mark.parametrize(
    "body",
    [
        b"\x0d\x00\x00",  # a family that does not exist
        b"\xc1\x00\x00",  # neither a deletion nor a range
        b"\x81\x01b\x01a",  # a range that ends before it begins
        b"\x01\x05a",  # a key that ends in the middle
        b"\x01" + b"\xff" * 12,  # a length without end
        b"\x01\x00\xff\xff\xff\xff\x0f",  # a value of 4 GB
    ],
)
def test_changes_that_cannot_be_are_unreadable(body):
    with pytest.raises(Unreadable):
        read_changes(body)


def test_a_tick_that_no_reader_would_take_is_not_written(monkeypatch):
    put = (Family.STATE, b"k", b"v" * 100, None)
    monkeypatch.setattr(module, "MAX_TICK_BYTES", 250)
    assert len(write_tick(0, 1, 1, [put] * 2, 1000)) == 1
    with pytest.raises(TooLarge, match="3 changes has 312 bytes, 250 are allowed"):
        write_tick(0, 1, 1, [put] * 3, 1000)
    monkeypatch.setattr(module, "MAX_CHANGES", 1)
    with pytest.raises(TooLarge):
        write_tick(0, 1, 1, [put] * 2, 1000)
    with pytest.raises(Unreadable):
        read_changes(write_changes([put] * 2))


def test_a_tick_that_would_have_too_many_parts_is_not_written():
    with pytest.raises(TooLarge):
        write_tick(0, 1, 1, [(Family.STATE, b"k", b"v" * 70_000, None)], OVERHEAD + 1)


def test_a_name_that_is_too_long_is_neither_written_nor_read():
    with pytest.raises(ValueError, match="256 bytes"):
        write_release(0, 1, 1, "n" * 256)
    with pytest.raises(Unreadable, match="256 bytes"):
        read_name(b"n" * 256)
    with pytest.raises(Unreadable, match="no text"):
        read_name(b"\xff")


def test_the_crc_covers_the_head():
    entry = write_entry(Head(Kind.TICK, 1, 2, 3), b"body")
    with pytest.raises(Unreadable, match="damaged"):
        read_entry(entry[:3] + b"\x02" + entry[4:])
