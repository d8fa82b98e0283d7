"""What is put together from bytes equals what the generated classes make of the same values."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fila.broker.commands import AckGroup, Earlier, ExtendGroup, Failure, Nack
from fila.broker.grants import token_text
from fila.config import LimitsConfig
from fila.core.errors import InvalidArgument, LeaseEnded, MessageGone, MessageNotFound, QueueNotFound
from fila.core.fair_key import FairKey
from fila.core.ids import MessageIds
from fila.core.lane import Lane
from fila.internal import wire_pb2
from fila.server import delivery_codec, message_codec, settle_codec
from fila.storage import codec as records
from fila.storage import keys
from fila.v1 import errors_pb2, messages_pb2, service_pb2
from fila.wire.varint import write_varint

IDS = MessageIds(0x1234567890)
YEAR_2200 = 7_258_118_400_000_000_000

texts = st.text(max_size=8)
headers_ = st.dictionaries(texts, st.one_of(texts, st.text(min_size=100, max_size=200)), max_size=4)
payloads = st.one_of(st.binary(max_size=40), st.integers(100, 70_000).map(bytes))
seqs = st.integers(0, YEAR_2200)


def digest(*messages: dict, **batch) -> int:
    """Of a batch as a client would encode it, each message with its headers in the order that is given."""
    encoded = []
    for message in messages:
        plain = {name: value for name, value in message.items() if name not in ("headers", "payload")}
        parts = [service_pb2.EnqueueRequest(**plain).SerializeToString()]
        headers = message.get("headers", {}).items()
        parts += [service_pb2.EnqueueRequest(headers={name: value}).SerializeToString() for name, value in headers]
        parts.append(service_pb2.EnqueueRequest(payload=message.get("payload", b"")).SerializeToString())
        encoded.append(b"".join(parts))
    request = wire_pb2.EncodedEnqueueBatch(messages=encoded, **({"producer_id": "p", "sequence": 1} | batch))
    received = message_codec.receive_batch(request.SerializeToString())
    return message_codec.digest(received, message_codec.read_batch(received.request, LimitsConfig()))


sent = st.fixed_dictionaries(
    {"headers": headers_, "payload": st.binary(max_size=10)},
    optional={
        "queue": st.sampled_from(["a", "b"]),
        "delay_ms": st.integers(0, 2),
        "priority": st.integers(0, 9),
        "dedup_key": st.sampled_from(["", "k"]),
    },
)


class TestDigests:
    @given(st.lists(sent, max_size=4), st.randoms())
    def test_are_the_same_in_whatever_order_headers_are_written(self, messages, random):
        again = []
        for message in messages:
            items = list(message["headers"].items())
            random.shuffle(items)
            again.append(message | {"headers": dict(items)})
        assert digest(*messages) == digest(*again)

    @given(st.lists(sent, max_size=3), st.lists(sent, max_size=3))
    def test_are_others_for_other_messages(self, messages, others):
        same = [_values(one) for one in messages] == [_values(one) for one in others]
        assert same or digest(*messages) != digest(*others)

    def test_belong_to_a_queue_and_need_a_producer(self):
        one = {"payload": b"x"}
        many = {"payload": b"x", "headers": {"a": "1", "b": "2"}}
        assert digest(one, queue="a") != digest(one, queue="b")
        assert digest(many, queue="a") != digest(many, queue="b")
        assert digest(many, producer_id="") == digest(one, producer_id="") == 0


def _values(message: dict) -> tuple:
    named = {"queue": "", "delay_ms": 0, "priority": 5, "dedup_key": ""} | message
    return tuple(sorted((name, repr(value) if name != "headers" else "") for name, value in named.items())), sorted(
        message["headers"].items()
    )


def padded(number, width):
    """A varint of at least so many bytes."""
    out = write_varint(number)
    fill = width - len(out)
    return out if fill <= 0 else out[:-1] + bytes([out[-1] | 0x80]) + b"\x80" * (fill - 1) + b"\x00"


# Fields that are nearly right: any number, any wire type, lengths written longer than they need be or a little wrong.
fields = st.one_of(
    st.builds(
        lambda number, value, width, off: (
            write_varint(number << 3 | 2) + padded(max(0, len(value) + off), width) + value
        ),
        st.integers(1, 7),
        st.one_of(st.binary(max_size=6), st.just(b"\x0a\x01a\x12\x01b")),
        st.integers(1, 7),
        st.sampled_from([0, 0, 0, 0, 1, -1]),
    ),
    st.builds(lambda tag, rest: bytes([tag]) + rest, st.integers(0, 64), st.binary(max_size=9)),
)
encodings = st.one_of(st.binary(max_size=30), st.lists(fields, max_size=4).map(b"".join))


def lane_of(queue, key, priority):
    return Lane(FairKey(key), priority, keys.lane(queue, key, priority))


def read_encoded(*messages, queue=""):
    """What the broker makes of messages as they stand on the wire."""
    batch = wire_pb2.EncodedEnqueueBatch(messages=messages, queue=queue)
    return message_codec.read_batch(wire_pb2.EncodedEnqueueBatch.FromString(batch.SerializeToString()), LimitsConfig())


def deliver(incoming, seq=1, attempts=0):
    """What a consumer sees of a message that came in."""
    lane = lane_of("q", "k", 5)
    writer = delivery_codec.DeliveryWriter(IDS, 7, 5, {seq: attempts} if attempts else {})
    parts: list[bytes] = []
    writer.write([(seq, lane, records.message_head(1, 1) + incoming.body)], parts)
    (message,) = service_pb2.LeaseResponse.FromString(b"".join(parts)).messages
    return message


class TestDeliveries:
    @given(
        st.lists(
            st.tuples(
                seqs,
                texts,
                texts,
                st.integers(0, 255),
                st.integers(1, 1000),
                st.integers(0, 2**32 - 1),
                headers_,
                payloads,
            ),
            max_size=6,
            unique_by=lambda one: one[0],
        ),
        st.integers(0, 2**64 - 1),
        seqs,
    )
    def test_a_delivery_parses_to_the_message_that_was_meant(self, wanted, token, leased_at):
        attempts = {seq: tried for seq, *_, tried, _, _ in wanted if tried}
        chosen, expected = [], service_pb2.LeaseResponse()
        for seq, queue, key, priority, weight, tried, headers, payload in wanted:
            lane = lane_of(queue, key, priority)
            body = service_pb2.EnqueueRequest(headers=headers, payload=payload).SerializeToString()
            chosen.append((seq, lane, records.message_head(weight, 1) + body))
            message = expected.messages.add(id=IDS.text(seq), headers=headers, payload=payload)
            message.metadata.CopyFrom(
                messages_pb2.MessageMetadata(
                    fairness_key=key,
                    weight=weight,
                    attempt_count=tried,
                    queue_id=queue,
                    priority=priority,
                    cost=1,
                    lease_id=token_text(token),
                )
            )
            message.timestamps.enqueued_at.FromNanoseconds(seq)
            message.timestamps.leased_at.FromNanoseconds(leased_at)
        writer = delivery_codec.DeliveryWriter(IDS, token, leased_at, attempts)
        parts: list[bytes] = []
        writer.write(chosen[:2], parts)
        writer.write(chosen[2:], parts)
        assert service_pb2.LeaseResponse.FromString(b"".join(parts)) == expected

    @given(st.integers(0, 2**64 - 1))
    def test_a_varint_is_as_protobuf_writes_it(self, number):
        written = service_pb2.SettleRequest(sequence=number).SerializeToString()
        assert written == (b"\x20" + write_varint(number) if number else b"")

    @given(seqs)
    @example(0)
    @example(999_999_999)
    @example(1_000_000_000)
    def test_a_timestamp_of_fixed_length_says_the_same(self, ns):
        stamp = messages_pb2.MessageTimestamps.FromString(b"\x0a\x0c" + delivery_codec._timestamp(ns)).enqueued_at
        assert stamp.ToNanoseconds() == ns


class TestIncoming:
    @given(headers_, payloads, st.integers(-5, 10**9), st.one_of(st.none(), st.integers(-3, 300)), texts, texts)
    def test_every_field_arrives_and_only_headers_and_payload_are_kept(
        self, headers, payload, delay_ms, priority, dedup_key, queue
    ):
        request = service_pb2.EnqueueRequest(
            queue=queue, headers=headers, payload=payload, delay_ms=delay_ms, priority=priority, dedup_key=dedup_key
        )
        encoded = request.SerializeToString()
        (batched,) = read_encoded(encoded, queue="default queue")
        single = message_codec.read_message(service_pb2.EnqueueRequest.FromString(encoded))
        for incoming, default in ((batched, "default queue"), (single, "")):
            assert incoming.queue == (queue or default)
            assert dict(incoming.headers) == headers
            assert incoming.payload_bytes == len(payload)
            assert incoming.delay_ms == delay_ms
            assert incoming.priority == (5 if priority is None else priority)
            assert incoming.dedup_key == dedup_key
            assert service_pb2.EnqueueRequest.FromString(incoming.body) == service_pb2.EnqueueRequest(
                headers=headers, payload=payload
            )
            delivered = deliver(incoming)
            assert (dict(delivered.headers), delivered.payload) == (headers, payload)

    @settings(max_examples=400)
    @given(st.lists(encodings, max_size=2))
    def test_any_bytes_are_read_as_protobuf_reads_them_or_refused(self, encoded):
        parsed = []
        for one in encoded:
            try:
                parsed.append(service_pb2.EnqueueRequest.FromString(one))
            except Exception:  # noqa: BLE001 - whatever protobuf refuses
                with pytest.raises(InvalidArgument, match="is not valid protobuf"):
                    read_encoded(*encoded)
                return
        for request, incoming in zip(parsed, read_encoded(*encoded), strict=True):
            assert incoming.queue == request.queue
            assert dict(incoming.headers) == dict(request.headers)
            assert incoming.payload_bytes == len(request.payload)
            assert deliver(incoming).payload == request.payload

    @pytest.mark.parametrize("width", range(1, 13))
    @pytest.mark.parametrize("size", range(3, 11))
    def test_a_length_is_padded_as_protobuf_allows_or_the_message_is_refused(self, width, size):
        """Otherwise the message would be kept as it is, and no consumer could ever read it."""
        encoded = b"\x1a" + padded(size, width) + b"abc"
        try:
            (incoming,) = read_encoded(encoded)
        except InvalidArgument:
            assert width > 5 or size != 3
        else:
            assert deliver(incoming).payload == b"abc"

    @pytest.mark.parametrize(
        "encoded", [b"\x12", b"\x12\x05\x0a", b"\x1a", b"\x1a\x05ab", b"\x1a\xff", b"\x12\x02\x0a\x05"]
    )
    def test_a_message_that_is_cut_off_is_refused(self, encoded):
        with pytest.raises(InvalidArgument, match="is not valid protobuf"):
            read_encoded(encoded)

    def test_headers_that_are_no_text_are_refused(self):
        with pytest.raises(InvalidArgument):
            read_encoded(b"\x12\x04\x0a\x02\xff\xfe")

    def test_the_queue_of_the_batch_is_for_messages_that_name_none(self):
        messages = [service_pb2.EnqueueRequest(queue=queue, payload=b"x").SerializeToString() for queue in ("", "own")]
        assert [one.queue for one in read_encoded(*messages, queue="batch")] == ["batch", "own"]


def varint_field(number, value):
    return write_varint(number << 3) + write_varint(value)


def bytes_field(number, value):
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


FORGED = messages_pb2.MessageMetadata(fairness_key="forged", attempt_count=99, lease_id="forged").SerializeToString()
STAMPS = b"\x0a\x02\x08\x01"
HOSTILE = {
    "metadata in place of the delay": bytes_field(4, FORGED),
    "timestamps in place of the priority": bytes_field(5, STAMPS),
    "an id in place of the queue, as a number": varint_field(1, 5),
    "headers as a number": varint_field(2, 5),
    "a payload as a number": varint_field(3, 5),
    "a dedup key as a number": varint_field(6, 5),
    "fields of the future": bytes_field(7, b"x") + bytes_field(8, FORGED) + varint_field(100, 1),
    "a fixed number": write_varint(4 << 3 | 1) + bytes(8),
    "a group": write_varint(4 << 3 | 3) + bytes_field(1, b"x") + write_varint(4 << 3 | 4),
    "unknown fields in a header": bytes_field(2, b"\x0a\x01a\x12\x01b" + bytes_field(4, FORGED)),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("where", ["before", "after", "between", "alone"])
class TestHostileMessages:
    def encoded(self, hostile, where):
        header, payload = bytes_field(2, b"\x0a\x01h\x12\x01v"), bytes_field(3, b"payload")
        return {
            "before": hostile + header + payload,
            "after": header + payload + hostile,
            "between": header + hostile + payload,
            "alone": hostile,
        }[where]

    def test_nothing_of_them_reaches_what_the_broker_says_of_a_message(self, hostile, where):
        encoded = self.encoded(hostile, where)
        single = message_codec.read_message(service_pb2.EnqueueRequest.FromString(encoded))
        for incoming in (*read_encoded(encoded), single):
            delivered = deliver(incoming, seq=1_000_000_000, attempts=2)
            assert delivered.id == IDS.text(1_000_000_000)
            assert delivered.metadata == messages_pb2.MessageMetadata(
                fairness_key="k", weight=1, attempt_count=2, queue_id="q", priority=5, cost=1, lease_id=token_text(7)
            )
            assert delivered.timestamps.enqueued_at.ToNanoseconds() == 1_000_000_000
            assert delivered.timestamps.leased_at.ToNanoseconds() == 5
            delivered.DiscardUnknownFields()
            assert delivered.payload == (b"" if where == "alone" else b"payload")


def test_a_repeated_payload_is_the_last_one_and_counted_as_such():
    (incoming,) = read_encoded(bytes_field(3, b"first one") + bytes_field(3, b"last"))
    assert incoming.payload_bytes == 4
    assert deliver(incoming).payload == b"last"


@given(headers_, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3), st.data())
def test_headers_are_read_as_protobuf_reads_them_or_left_to_it(headers, changes, data):
    """Also when a few bytes are others, or some are missing."""
    block = bytearray(service_pb2.EnqueueRequest(headers=headers).SerializeToString())
    for at, byte in changes:
        if block:
            block[at % len(block)] = byte
    block = bytes(block[: data.draw(st.integers(0, len(block)))] if data.draw(st.booleans()) else block)
    read = message_codec._read_usual(block)
    if read is not None:
        expected = service_pb2.EnqueueRequest.FromString(block)
        assert read == dict(expected.headers)
        expected.ClearField("headers")
        assert expected == service_pb2.EnqueueRequest()


def test_large_headers_are_not_kept_in_memory():
    """They come in before any limit is looked at."""
    message_codec._read_headers.cache_clear()
    entry = bytes_field(2, b"\x0a\x01a\x12\x64" + b"v" * 100)
    for number in range(10):
        read_encoded(bytes_field(2, b"\x0a\x01%d" % number) + entry * 1000)
    assert message_codec._read_headers.cache_info().currsize == 0


outcomes = st.one_of(
    seqs,
    seqs.map(Earlier),
    texts.map(QueueNotFound),
    texts.map(InvalidArgument),
    st.just(MessageNotFound("id", "q")),
)


class TestAnswers:
    @given(st.lists(outcomes, max_size=8), st.integers(0, 2**64 - 1))
    def test_outcomes_parse_to_one_result_each(self, outcomes, sequence):
        answer = service_pb2.EnqueueBatchResponse.FromString(message_codec.write_outcomes(IDS, outcomes, sequence))
        assert answer.sequence == sequence
        assert len(answer.results) == len(outcomes)
        for outcome, result in zip(outcomes, answer.results, strict=True):
            if isinstance(outcome, int):
                assert result.message_id == IDS.text(outcome)
                assert not result.HasField("error")
                assert result.duplicate == isinstance(outcome, Earlier)
            else:
                assert result.message_id == ""
                assert result.error.code == (3 if isinstance(outcome, InvalidArgument) else 5)
                assert result.error.message == str(outcome)

    def test_failures_say_what_and_why_and_whether_the_message_is_gone(self):
        answer = settle_codec.write_failures(
            [
                Failure("q", "one", LeaseEnded("one", "q")),
                Failure("q", "two", MessageNotFound("two", "q")),
                Failure("r", "three", QueueNotFound("r")),
                Failure("q", "four", MessageGone("four", "q")),
            ],
            9,
        )
        assert answer.sequence == 9
        assert [(one.queue, one.message_id, one.error.code) for one in answer.failures] == [
            ("q", "one", 5),
            ("q", "two", 5),
            ("r", "three", 5),
            ("q", "four", 5),
        ]
        kinds = [errors_pb2.ErrorKind.Name(one.error.kind).removeprefix("ERROR_KIND_") for one in answer.failures]
        assert kinds == ["LEASE_ENDED", "MESSAGE_NOT_FOUND", "QUEUE_NOT_FOUND", "MESSAGE_GONE"]
        assert answer.failures[2].error.message == 'queue "r" does not exist'


def test_settlements_are_read_as_they_stand():
    group = service_pb2.AckGroup(queue="q", lease_id="t", message_ids=["a", "b"])
    assert settle_codec.read_acks([group]) == [AckGroup("q", ["a", "b"], "t")]
    nack = service_pb2.NackRequest(queue="q", message_id="a", error="e", lease_id="t", delay_ms=-4)
    assert settle_codec.read_nack(nack) == Nack("q", "a", "e", "t", -4)
    extend = service_pb2.ExtendGroup(queue="q", lease_id="t", message_ids=["a"], extend_ms=7)
    assert settle_codec.read_extends([extend]) == [ExtendGroup("q", ["a"], "t", 7)]


def test_the_encoded_batch_is_the_batch():
    """EncodedEnqueueBatch exists to read the same bytes: the numbers of its fields are those of EnqueueBatchRequest."""
    encoded, batch = wire_pb2.EncodedEnqueueBatch.DESCRIPTOR, service_pb2.EnqueueBatchRequest.DESCRIPTOR
    assert {field.name: field.number for field in encoded.fields} == {
        field.name: field.number for field in batch.fields
    }


def test_headers_and_payload_have_the_same_numbers_in_both_messages():
    for name in ("headers", "payload"):
        sent = service_pb2.EnqueueRequest.DESCRIPTOR.fields_by_name[name]
        delivered = messages_pb2.Message.DESCRIPTOR.fields_by_name[name]
        assert (sent.number, sent.type) == (delivered.number, delivered.type)
