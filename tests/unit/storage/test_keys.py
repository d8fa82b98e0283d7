"""Keys: order, round trips and ranges."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fila.storage import keys

# Names that would break a naive encoding: separators, the escape and the end themselves, nothing but zero bytes, none.
tricky = st.text(st.sampled_from(["\x00", "\x01", "\x02", "/", ":", "a", "ÿ", "é", "\U0010ffff"]), max_size=5)
names = st.text(max_size=8) | tricky
u64s = st.integers(0, 2**64 - 1)
bytes_ = st.integers(0, 255)


@given(names, names)
@example("", "\x00")
@example("a", "a\x00")
@example("a\x00", "a\x01")
@example("\x00", "\x00\x00")
def test_names_keep_their_order(one, other):
    """Encoded names sort as their text does, by code point."""
    assert (keys.name(one) < keys.name(other)) == (one < other)


@given(st.tuples(names, u64s, names, bytes_), st.tuples(names, u64s, names, bytes_))
def test_message_keys_sort_like_what_they_hold(one, other):
    """Queue, then age, then fairness key and priority."""

    def key(queue, seq, fairness_key, priority):
        return keys.message(keys.lane(queue, fairness_key, priority), seq)

    assert (key(*one) < key(*other)) == (one < other)


@given(names, names, bytes_)
def test_a_fairness_key_is_read_from_where_its_messages_stand(queue, fairness_key, priority):
    _, behind = keys.lane(queue, fairness_key, priority)
    assert keys.fairness_key(behind) == fairness_key.encode()


@given(st.tuples(u64s, names, u64s), st.tuples(u64s, names, u64s))
def test_times_come_first_where_time_is_what_is_wanted(one, other):
    """What is due or expires earlier sorts earlier, whatever its queue."""
    assert (keys.scheduled(*one) < keys.scheduled(*other)) == (one < other)
    assert (keys.grant_expiry(*one) < keys.grant_expiry(*other)) == (one < other)


@given(names, names, bytes_, u64s, u64s)
def test_every_key_is_read_back(queue, other, priority, number, time):
    """What was put into a key comes out of it."""
    assert keys.read_name(keys.name(queue) + b"rest", 0) == (queue, len(keys.name(queue)))
    lane = keys.lane(queue, other, priority)
    assert keys.read_lane(keys.joined(lane)) == (queue, other, priority)
    assert keys.read_message(keys.message(lane, number)) == (lane, number)
    assert keys.read_scheduled(keys.scheduled(time, queue, number)) == (time, queue, number)
    assert keys.read_grant(keys.grant(queue, number)) == (queue, number)
    assert keys.read_attempt(keys.attempt(queue, number, time)) == (queue, number, time)
    assert keys.read_dedup(keys.dedup(queue, other)) == (queue, other)
    assert keys.read_producer_batch(keys.producer_batch(queue, number)) == (queue, number)


@given(names, names, names, bytes_, u64s)
@example("a", "a\x00", "", 0, 0)
@example("", "\x00", "", 255, 2**64 - 1)
def test_the_range_of_a_name_holds_its_own_keys_only(queue, other, fairness_key, priority, number):
    """Deleting one queue never touches another, whatever their names."""
    prefix = keys.name(queue)
    for owner in (queue, other):
        for key in (
            keys.message(keys.lane(owner, fairness_key, priority), number),
            keys.grant(owner, number),
            keys.attempt(owner, number, 1),
            keys.name(owner),
        ):
            assert (prefix <= key < keys.after(prefix)) == (owner == queue)


@given(names, names, u64s)
def test_the_range_of_a_producer_holds_its_own_batches_only(producer, other, number):
    """And no dedup key of any queue."""
    prefix = keys.producer(producer)
    assert (prefix <= keys.producer_batch(other, number) < keys.after(prefix)) == (other == producer)
    assert not prefix <= keys.dedup(other, producer) < keys.after(prefix)


@given(st.binary(min_size=1).filter(lambda prefix: prefix.strip(b"\xff")), st.binary())
def test_after_is_the_end_of_all_that_begins_with_a_prefix(prefix, rest):
    """Inside is what begins with it, outside all else."""
    end = keys.after(prefix)
    assert prefix <= prefix + rest < end
    assert (prefix <= rest < end) == rest.startswith(prefix)


READERS = [
    keys.read_lane,
    keys.read_message,
    keys.read_scheduled,
    keys.read_grant,
    keys.read_attempt,
    keys.read_dedup,
    keys.read_producer_batch,
]


@pytest.mark.parametrize("read", READERS)
@given(data=st.binary(max_size=40))
def test_a_key_that_is_none_raises_value_error(read, data):
    """Foreign bytes are either read or refused with ValueError, never with anything else."""
    try:
        read(data)
    except ValueError:
        return


@pytest.mark.parametrize(
    "read, key",
    [
        (keys.read_lane, keys.joined(keys.lane("queue", "key", 5))),
        (keys.read_message, keys.message(keys.lane("queue", "key", 5), 1)),
        (keys.read_scheduled, keys.scheduled(1, "queue", 2)),
        (keys.read_grant, keys.grant("queue", 1)),
        (keys.read_attempt, keys.attempt("queue", 1, 1)),
        (keys.read_dedup, keys.dedup("queue", "key")),
        (keys.read_producer_batch, keys.producer_batch("producer", 1)),
    ],
)
def test_a_key_with_a_wrong_length_is_refused(read, key):
    """A key that was cut short or has something behind it is not read as another one."""
    for end in range(len(key)):
        with pytest.raises(ValueError):
            read(key[:end])
    with pytest.raises(ValueError):
        read(key + b"\x00")
