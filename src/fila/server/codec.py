"""Between the wire and the broker.

Messages are not rebuilt on their way through. What a producer sent of headers and payload is kept in its encoded form
(the body), and a delivery is put together around it from bytes: protobuf fields may simply stand one after another.
`tests/unit/server/test_codec.py` holds this equal to what the generated classes make of the same values.
"""

from collections.abc import Iterable
from functools import lru_cache

from fila.broker.commands import AckGroup, ExtendGroup, Failure, Incoming, Nack, Outcome
from fila.broker.settle import token_text
from fila.core.errors import BrokerError, LeaseEnded
from fila.core.ids import MessageIds
from fila.core.leases import Grant
from fila.core.pending import Lane
from fila.server.status import status_of
from fila.storage import codec, keys
from fila.v1 import messages_pb2, service_pb2

DEFAULT_PRIORITY = 5
NS_PER_S = 1_000_000_000

# Tags of length-delimited fields: number << 3 | 2.
_ID, _METADATA, _TIMESTAMPS = b"\x0a\x24", b"\x22", b"\x2a"  # an id is always 36 bytes long
_IN_RESPONSE = b"\x0a"
_RESULT = b"\x0a\x26\x0a\x24"  # results { message_id: 36 bytes }


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_message(request: service_pb2.EnqueueRequest, default_queue: str = "") -> Incoming:
    """A message of a request whose unknown fields were discarded. Uses up the request."""
    queue = request.queue
    if queue:
        request.ClearField("queue")
    delay_ms = request.delay_ms
    if delay_ms:
        request.ClearField("delay_ms")
    priority = DEFAULT_PRIORITY
    if request.HasField("priority"):
        priority = request.priority
        request.ClearField("priority")
    dedup_key = request.dedup_key
    if dedup_key:
        request.ClearField("dedup_key")
    body = request.SerializeToString()
    return Incoming(queue or default_queue, request.headers, body, len(request.payload), delay_ms, priority, dedup_key)


def read_batch(request: service_pb2.EnqueueBatchRequest) -> list[Incoming]:
    # A field this version does not know must not become part of a body: in a Message it could mean something else.
    request.DiscardUnknownFields()
    queue = request.queue
    return [read_message(message, queue) for message in request.messages]


def write_outcomes(ids: MessageIds, outcomes: list[Outcome], sequence: int) -> bytes:
    """An EnqueueBatchResponse."""
    parts: list[bytes] = []
    ascii_id = ids.ascii
    for outcome in outcomes:
        if isinstance(outcome, int):
            parts.append(_RESULT + ascii_id(outcome))
        else:
            result = service_pb2.EnqueueResult(error=write_error(outcome))
            parts.append(service_pb2.EnqueueBatchResponse(results=[result]).SerializeToString())
    parts.append(service_pb2.EnqueueBatchResponse(sequence=sequence).SerializeToString())
    return b"".join(parts)


def write_error(error: BrokerError) -> messages_pb2.Error:
    return messages_pb2.Error(code=status_of(error).value[0], message=str(error))


def read_acks(groups: Iterable[service_pb2.AckGroup]) -> list[AckGroup]:
    return [AckGroup(group.queue, list(group.message_ids), group.lease_id) for group in groups]


def read_nack(request: service_pb2.NackRequest) -> Nack:
    return Nack(request.queue, request.message_id, request.error, request.lease_id, request.delay_ms)


def read_extends(groups: Iterable[service_pb2.ExtendGroup]) -> list[ExtendGroup]:
    return [ExtendGroup(group.queue, list(group.message_ids), group.lease_id, group.extend_ms) for group in groups]


def write_failures(failures: list[Failure], sequence: int) -> service_pb2.SettleResponse:
    return service_pb2.SettleResponse(
        sequence=sequence,
        failures=[
            service_pb2.SettleFailure(
                queue=f.queue,
                message_id=f.message_id,
                error=write_error(f.error),
                message_exists=isinstance(f.error, LeaseEnded),
            )
            for f in failures
        ],
    )


@lru_cache(maxsize=16_384)
def _metadata(prefix: bytes, head: bytes) -> bytes:
    """What a message's metadata says that is the same for every delivery of it, and for many messages."""
    queue, fairness_key, priority = keys.read_lane(prefix)
    weight, cost = codec.read_head(head)
    return messages_pb2.MessageMetadata(
        fairness_key=fairness_key, weight=weight, queue_id=queue, priority=priority, cost=cost
    ).SerializeToString()


def _fixed_varint(number: int) -> bytes:
    """A number below 2**35 in five bytes, also where fewer would do: protobuf allows it, and nothing has to branch."""
    spread = number & 0x7F | (number & 0x3F80) << 1 | (number & 0x1FC000) << 2 | (number & 0xFE00000) << 3
    return (spread | number >> 28 << 32 | 0x80808080).to_bytes(5, "little")


@lru_cache(maxsize=64)
def _seconds(seconds: int) -> bytes:
    return b"\x08" + _fixed_varint(seconds) + b"\x10"


def _timestamp(ns: int) -> bytes:
    """A google.protobuf.Timestamp, always of `_TIMESTAMP_BYTES`."""
    seconds, nanos = divmod(ns, NS_PER_S)
    return _seconds(seconds) + _fixed_varint(nanos)


_TIMESTAMP_BYTES = 12
_STAMPS = _TIMESTAMPS + bytes([2 * (2 + _TIMESTAMP_BYTES)])
_ENQUEUED_AT = b"\x0a" + bytes([_TIMESTAMP_BYTES])
_LEASED_AT = b"\x12" + bytes([_TIMESTAMP_BYTES])
_FIXED_BYTES = len(_ID) + 36 + _TIMESTAMP_BYTES


class DeliveryWriter:
    """Writes the messages of one grant: what they have in common is encoded once."""

    def __init__(self, ids: MessageIds, grant: Grant, leased_at: int, attempts: dict[int, int]) -> None:
        self._ascii_id = ids.ascii
        self._attempts = attempts
        self._lease = b"\x42\x10" + token_text(grant.token).encode()
        self._stamps = _STAMPS + _LEASED_AT + _timestamp(leased_at) + _ENQUEUED_AT
        self._commons: dict[tuple[Lane, bytes], bytes] = {}

    def message(self, seq: int, lane: Lane, record: bytes) -> bytes:
        """One message of a LeaseResponse, tag and length included."""
        head, body = codec.split_message(record)
        attempts = self._attempts.get(seq)
        if attempts:
            common = self._common(lane, head, b"\x20" + varint(attempts))
        else:
            common = self._commons.get((lane, head)) or self._first_common(lane, head)
        size = len(body) + len(common) + _FIXED_BYTES
        return b"".join((_IN_RESPONSE, varint(size), _ID, self._ascii_id(seq), body, common, _timestamp(seq)))

    def _first_common(self, lane: Lane, head: bytes) -> bytes:
        common = self._commons[lane, head] = self._common(lane, head, b"")
        return common

    def _common(self, lane: Lane, head: bytes, tried: bytes) -> bytes:
        """Everything behind the body but the time of enqueueing."""
        metadata = _metadata(lane.prefix, head) + tried + self._lease
        return _METADATA + varint(len(metadata)) + metadata + self._stamps
