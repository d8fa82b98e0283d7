"""What is too much to decode is told from its bytes; what may be decoded is never refused by its decode_limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.config import LimitsConfig
from fila.internal import wire_pb2
from fila.server import decode_limits, message_codec
from fila.server.decode_limits import (
    BATCH_SEQUENCE,
    SETTLE_SEQUENCE,
    excess_of_batch,
    excess_of_message,
    excess_of_settle,
    sequence_of,
    walk,
)
from fila.v1 import service_pb2 as pb

LIMITS = LimitsConfig()
MOST = LIMITS.max_batch_messages

messages = st.builds(
    pb.EnqueueRequest,
    queue=st.text(max_size=20),
    headers=st.dictionaries(st.text(max_size=10), st.text(max_size=300), max_size=LIMITS.max_headers),
    payload=st.binary(max_size=2000),
    delay_ms=st.integers(0, 1 << 40),
    dedup_key=st.text(max_size=10),
)


@given(messages)
def test_the_walk_finds_every_field_of_a_message(message):
    encoded = message.SerializeToString()
    fields = list(walk(encoded))
    assert sum(field.tag == 0x12 for field in fields) == len(message.headers)
    assert not fields or fields[-1].stop == len(encoded)


@given(messages)
def test_a_message_within_the_limits_is_never_refused_by_its_shape(message):
    assert excess_of_message(message.SerializeToString(), LIMITS) is None


@given(st.binary(max_size=2000))
def test_the_walk_takes_any_bytes(encoded):
    for field in walk(encoded):
        assert 0 < field.start <= field.stop <= len(encoded)


@pytest.mark.parametrize(
    "encoded, said",
    [
        (b"\x12\x00" * 1_800_000, "there are more than 64 headers"),
        (b"\x12\x06\x0a\x01a\x12\x01b" * 500, "there are more than 64 headers"),
        (b"\x78\x00" * 1000, "there are more than 64 headers"),  # fields that nobody knows
        (b"\x7b\x7c" * 1000, "there are more than 64 headers"),  # groups
        (b"\x12\x80\x08" + b"\x0a\x00" * 512, "a header has more than a name and a value"),
        (pb.EnqueueRequest(headers={"a": "b" * 17_000}).SerializeToString(), "the headers must not exceed 16384 bytes"),
    ],
)
def test_a_message_with_too_much_in_it_is_refused(encoded, said):
    """A batch goes on without it: it is refused as one message, when it is judged."""
    assert str(excess_of_message(encoded, LIMITS)) == said
    (read,) = message_codec.read_batch(wire_pb2.EncodedEnqueueBatch(messages=[encoded], queue="q"), LIMITS)
    assert (read.queue, str(read.refusal)) == ("q", said)


def test_a_batch_of_more_messages_than_allowed_is_refused():
    assert excess_of_batch(b"\x0a\x00" * (1 << 23), LIMITS) is not None
    assert excess_of_batch(b"\x18\x01" * (1 << 23), LIMITS) is not None
    allowed = wire_pb2.EncodedEnqueueBatch(messages=[bytes(400)] * MOST, producer_id="p", sequence=1, queue="q")
    assert len(allowed.SerializeToString()) > decode_limits.SMALL_BATCH_BYTES
    assert excess_of_batch(allowed.SerializeToString(), LIMITS) is None


def test_a_settle_of_more_messages_than_allowed_is_refused():
    for tag in (0x0A, 0x12, 0x1A):
        assert excess_of_settle(bytes([tag, 0]) * (1 << 20), LIMITS) is not None
    ids = pb.SettleRequest(acks=[pb.AckGroup(message_ids=[""] * 200_000)])
    assert excess_of_settle(ids.SerializeToString(), LIMITS) is not None


@pytest.mark.parametrize("groups", [1, 7, MOST])
def test_a_settle_of_as_many_messages_as_allowed_is_never_refused_by_its_shape(groups):
    whole = pb.SettleRequest(
        acks=[pb.AckGroup(queue="q" * 99, lease_id="l" * 50, message_ids=["x" * 60] * (MOST // groups))] * groups,
        sequence=5,
    )
    assert len(whole.SerializeToString()) > decode_limits.SMALL_SETTLE_BYTES
    assert excess_of_settle(whole.SerializeToString(), LIMITS) is None


@pytest.mark.parametrize("error_bytes", [50, 1000])
def test_as_many_nacks_as_allowed_are_never_refused_by_their_shape(error_bytes):
    nack = pb.NackRequest(
        queue="q", message_id="m" * 36, error="e" * error_bytes, lease_id="l" * 16, delay_ms=5, dead_letter=True
    )
    assert excess_of_settle(pb.SettleRequest(nacks=[nack] * MOST).SerializeToString(), LIMITS) is None


def test_a_nack_that_says_everything_a_thousand_times_is_refused():
    content = b"\x0a\x00" * 2000
    request = b"\x12\xa0\x1f" + content
    assert pb.SettleRequest.FromString(request).nacks
    assert excess_of_settle(request * 100, LIMITS) is not None


@pytest.mark.parametrize(
    "tag, request_type", [(BATCH_SEQUENCE, pb.EnqueueBatchRequest), (SETTLE_SEQUENCE, pb.SettleRequest)]
)
def test_the_number_of_a_refused_request_is_found_in_front_and_behind(tag, request_type):
    number = request_type(sequence=2**64 - 1).SerializeToString()
    assert sequence_of(number + b"\x0a\x00" * MOST, tag, LIMITS) == 2**64 - 1
    assert sequence_of(b"\x0a\x00" * MOST + number, tag, LIMITS) == 2**64 - 1
    assert sequence_of(b"", tag, LIMITS) is None
    assert sequence_of(b"\x0a\x00" * MOST * 100 + number, tag, LIMITS) is None


def test_a_number_of_a_megabyte_takes_no_time():
    """Adding it up would take minutes, and nobody else would be served."""
    assert excess_of_batch(b"\xff" * (2 << 20), LIMITS) is None
