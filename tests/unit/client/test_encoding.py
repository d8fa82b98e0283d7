"""Messages on the wire, against protobuf itself."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client.encoding import (
    MAX_BATCH_BYTES,
    MAX_BATCH_MESSAGES,
    MAX_MESSAGE_BYTES,
    OutgoingMessage,
    encode,
    encode_all,
    encode_payloads,
)
from fila.client.errors import InvalidArgumentError, LimitExceededError
from fila.v1 import service_pb2

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)
outgoing = st.builds(
    OutgoingMessage,
    payload=st.binary(max_size=300),
    headers=st.none() | st.dictionaries(texts, texts, max_size=4),
    delay_ms=st.integers(-5, 2**40),
    priority=st.none() | st.integers(0, 255),
    dedup_key=st.none() | texts,
)


def expected(message: OutgoingMessage, queue: str = "") -> service_pb2.EnqueueRequest:
    return service_pb2.EnqueueRequest(
        queue=queue,
        headers=message.headers,
        payload=message.payload,
        delay_ms=message.delay_ms,
        priority=message.priority,
        dedup_key=message.dedup_key,
    )


@given(texts, outgoing)
def test_one_message_reads_back_as_protobuf_would_write_it(queue, message):
    decoded = service_pb2.EnqueueBatchRequest.FromString(encode(queue, message).frames)
    assert list(decoded.messages) == [expected(message, queue)]


@given(st.lists(outgoing | st.binary(max_size=50), max_size=30))
def test_many_messages_read_back_in_order(messages):
    decoded = service_pb2.EnqueueBatchRequest()
    chunks = list(encode_all("q", messages))
    for chunk in chunks:
        decoded.MergeFromString(chunk.frames)
    assert list(decoded.messages) == [
        expected(m if isinstance(m, OutgoingMessage) else OutgoingMessage(m)) for m in messages
    ]
    assert sum(chunk.count for chunk in chunks) == len(messages)


@given(st.lists(st.sampled_from([0, 10, 40_000, MAX_BATCH_BYTES // 3, MAX_BATCH_BYTES + 1]), max_size=60))
def test_a_batch_stays_within_its_limits_unless_one_message_is_larger(sizes):
    for chunk in encode_all("q", [b"\0" * size for size in sizes]):
        assert chunk.count <= MAX_BATCH_MESSAGES
        assert chunk.count == 1 or len(chunk.frames) <= MAX_BATCH_BYTES + 16 * chunk.count


@given(st.lists(st.binary(max_size=300), max_size=1200), st.binary(max_size=20))
def test_payloads_of_a_buffer_are_encoded_as_those_of_a_list(payloads, before):
    data = before + b"".join(payloads)
    ends = [len(before), *accumulate(map(len, payloads), initial=len(before))][1:]
    assert list(encode_payloads("q", memoryview(data), ends)) == list(encode_all("q", payloads))


def test_a_payload_of_a_buffer_that_no_request_can_carry_is_refused_after_those_before_it():
    data = bytes(MAX_MESSAGE_BYTES + 2)
    chunks = encode_payloads("q", memoryview(data), [0, 1, MAX_MESSAGE_BYTES + 2])
    assert next(chunks).count == 1
    with pytest.raises(LimitExceededError):
        next(chunks)


def test_many_small_messages_are_split_by_count():
    counts = [chunk.count for chunk in encode_all("q", [b""] * (2 * MAX_BATCH_MESSAGES + 1))]
    assert counts == [MAX_BATCH_MESSAGES, MAX_BATCH_MESSAGES, 1]


@pytest.mark.parametrize(
    "message",
    [
        OutgoingMessage("text"),
        OutgoingMessage(headers={"n": 1}),
        OutgoingMessage(headers={1: "n"}),
        OutgoingMessage(headers=["no"]),
        OutgoingMessage(headers={"n": "\ud800"}),
        OutgoingMessage(priority="high"),
        OutgoingMessage(delay_ms=1.5),
        OutgoingMessage(delay_ms=2**70),
        OutgoingMessage(dedup_key=b"\xff"),
    ],
    ids=repr,
)
def test_a_malformed_message_is_an_invalid_argument(message):
    with pytest.raises(InvalidArgumentError):
        encode("q", message)


@pytest.mark.parametrize("queue", [None, 3, ["q"], b"q", "\ud800"])
def test_a_malformed_queue_name_is_an_invalid_argument(queue):
    with pytest.raises(InvalidArgumentError):
        encode(queue, OutgoingMessage())


def test_a_message_that_no_request_can_carry_is_refused_before_it_is_sent():
    with pytest.raises(LimitExceededError):
        encode("q", OutgoingMessage(b"\0" * (MAX_MESSAGE_BYTES + 1)))


def test_what_comes_before_a_malformed_message_is_still_sent():
    chunks = encode_all("q", [b"one", b"two", "three", b"four"])
    assert next(chunks).count == 2
    with pytest.raises(InvalidArgumentError):
        next(chunks)
