"""Message ids: a sequence number inside, a UUIDv7 outside."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.ids import NODE_BITS, NS_PER_MS, MessageIds, Sequence

NODE = 0x2A5F_00C0_FFEE_17
seqs = st.integers(0, 2**63)
nodes = st.integers(0, 2**NODE_BITS - 1)


@given(nodes, seqs)
def test_an_id_leads_back_to_its_sequence_number(node, seq):
    """The id carries the whole sequence number, whatever the store."""
    ids = MessageIds(node)
    assert ids.seq(ids.text(seq)) == seq
    assert ids.ascii(seq) == ids.text(seq).encode()


@given(nodes, seqs)
def test_an_id_is_a_uuid_of_version_7(node, seq):
    """Version, variant and milliseconds are where RFC 9562 puts them."""
    parsed = uuid.UUID(MessageIds(node).text(seq))
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 80 == seq // NS_PER_MS
    assert parsed.int & (2**NODE_BITS - 1) == node


@given(nodes, st.integers(0, 2**63 - 3000), st.integers(0, 3000), st.binary(max_size=3))
def test_a_run_of_ids_is_its_ids(node, first, count, before):
    """Also where a millisecond, or 256 parts of one, ends within the run."""
    ids = MessageIds(node)
    for start in (first, first // NS_PER_MS * NS_PER_MS - 5 if first >= NS_PER_MS else 0):
        expected = b"".join(before + ids.ascii(seq) for seq in range(start, start + count))
        assert ids.ascii_run(start, count, before) == expected


@given(nodes, st.lists(seqs, min_size=2))
def test_ids_sort_like_their_sequence_numbers(node, numbers):
    """Sorting ids as text sorts messages by age."""
    ids = MessageIds(node)
    assert sorted(map(ids.text, numbers)) == [ids.text(seq) for seq in sorted(numbers)]


@given(st.lists(seqs, min_size=1))
def test_ids_are_read_in_any_order(numbers):
    """What was read before does not matter to what is read now."""
    ids = MessageIds(NODE)
    texts = [ids.text(seq) for seq in numbers]
    assert [ids.seq(text) for text in reversed(texts)] == numbers[::-1]


def _put_together(ms, rest):
    digits, tail = f"{ms:012x}", MessageIds(NODE).text(rest & 255)[18:]
    return f"{digits[:8]}-{digits[8:]}-7{rest >> 8:03x}{tail}"


@given(
    st.lists(
        seqs.map(MessageIds(NODE).text)
        | st.sampled_from(["", "0188d5c8-1c80-7f42-bfc0-000000000000"])
        | st.builds(_put_together, st.integers(0, 2**48 - 1), st.integers(0, 2**20 - 1))
    )
)
def test_many_ids_are_read_as_each_of_them(texts):
    """Also those that are none, and those that name more nanoseconds than a millisecond has."""
    ids = MessageIds(NODE)
    expected = [ids.seq(text) for text in texts]
    assert ids.seqs(texts) == expected
    assert MessageIds(NODE).seqs(texts) == expected


@given(nodes, nodes, seqs)
def test_an_id_of_another_store_is_none_of_ours(node, other, seq):
    """A store reads back only the ids that it gave out."""
    assert (MessageIds(node).seq(MessageIds(other).text(seq)) == seq) == (node == other)


@given(st.text() | st.uuids().map(str))
def test_any_other_text_is_no_id(text):
    """Malformed and foreign ids are answered with None, never with an error."""
    assert MessageIds(NODE).seq(text) is None


GOOD = MessageIds(NODE).text(1_700_000_000_123_456_789)


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        " " + GOOD,
        GOOD.replace("-", ""),
        "{" + GOOD + "}",
        "urn:uuid:" + GOOD,
        GOOD[:14] + "4" + GOOD[15:],
        GOOD[:19] + "f" + GOOD[20:],
        "+" + GOOD[1:],
        GOOD[:3] + "_" + GOOD[4:],
        "\N{FULLWIDTH DIGIT ONE}" + GOOD[1:],
        GOOD[:15] + "fff" + GOOD[18:],
    ],
)
def test_a_text_that_is_almost_an_id_is_refused(text):
    """An id is read strictly: one form, the right version and variant, a possible time."""
    assert MessageIds(NODE).seq(text) is None


def test_sub_milliseconds_past_the_millisecond_are_no_id():
    """20 bits can say more than a million nanoseconds; such an id was never given out."""
    ids = MessageIds(NODE)
    last = uuid.UUID(ids.text(NS_PER_MS - 1)).int
    beyond = str(uuid.UUID(int=last + (1 << 54)))
    assert ids.seq(beyond) is None


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 1000)), min_size=1), st.integers(0, 2**62))
def test_numbers_increase_whatever_the_clock_does(steps, last):
    """Every number given out is larger than all before it, also when the clock steps back."""
    sequence = Sequence(last)
    for now, count in steps:
        before = sequence.last
        first = sequence.reserve(now, count)
        assert first > before
        assert first >= now
        assert sequence.last == first + count - 1


def test_numbers_follow_the_clock():
    """While the clock moves on faster than numbers are used, a number is the time."""
    sequence = Sequence()
    assert [sequence.reserve(now, 1) for now in (100, 200, 300)] == [100, 200, 300]
