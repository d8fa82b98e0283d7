"""Between the wire and the broker.

Messages are not rebuilt on their way through. What a producer sent of headers and payload is kept in its encoded form
(the body), and a delivery is put together around it from bytes: protobuf fields may simply stand one after another.
`tests/unit/server/test_codec.py` holds this equal to what the generated classes make of the same values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from google.protobuf.message import DecodeError

from fila.broker.commands import DEFAULT_PRIORITY, AckGroup, Excessive, ExtendGroup, Failure, Incoming, Nack, Outcome
from fila.broker.failure import Death
from fila.broker.settle import token_text
from fila.config import LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument, MessageGone
from fila.core.ids import MessageIds
from fila.core.pending import Lane
from fila.server.shape import excess_of_message
from fila.server.status import status_of
from fila.storage import codec, keys
from fila.v1 import messages_pb2, service_pb2

NS_PER_S = 1_000_000_000

# Tags of length-delimited fields: number << 3 | 2.
_LEASE_ID, _LEASE_BYTES = b"\x42\x10", 18  # a token is always 16 digits long
_ID, _METADATA, _TIMESTAMPS = b"\x0a\x24", b"\x22", b"\x2a"  # an id is always 36 bytes long
_IN_RESPONSE = _KEY = b"\x0a"
_QUEUE, _HEADERS, _PAYLOAD = 0x0A, 0x12, 0x1A
_NAME, _VALUE = 0x0A, 0x12  # of a header
_LONG = 128  # a byte from here on says that a varint goes on
_MAX_SHIFT = 28  # a length has at most five bytes
_CACHED_HEADER_BYTES = 512
_NO_HEADERS: dict[str, str] = {}
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
    """A message of any form. Uses up the request."""
    # A field this version does not know must not become part of a body: in a Message it could mean something else.
    request.DiscardUnknownFields()
    queue, delay_ms, dedup_key = request.queue, request.delay_ms, request.dedup_key
    priority = request.priority if request.HasField("priority") else DEFAULT_PRIORITY
    for field in ("queue", "delay_ms", "dedup_key", "priority"):
        request.ClearField(field)
    body = request.SerializeToString()
    headers, payload_bytes = dict(request.headers), len(request.payload)
    return Incoming(queue or default_queue, headers, body, payload_bytes, delay_ms, priority, dedup_key)


class Batch(NamedTuple):
    """A batch of a producer as it came."""

    request: service_pb2.EncodedEnqueueBatch
    checksum: int
    """Of its bytes; 0 when it has no producer, who could send it again"""


def receive_batch(data: bytes) -> Batch:
    """Raises DecodeError."""
    request = service_pb2.EncodedEnqueueBatch.FromString(data)
    return Batch(request, crc32(data) if request.producer_id else 0)


def digest(batch: Batch, messages: list[Incoming]) -> int:
    """What tells a batch that is sent again from another one under the same number.

    Of its bytes, but where a message has several headers: those are a map, and whoever encodes it again may write them
    in another order.
    """
    if not batch.request.producer_id:
        return 0
    kinds = {message.kind for message in messages}
    if all(kind is not None and len(kind) <= 2 + kind[1] for kind in kinds if kind != b""):
        return batch.checksum
    parts = [_described(message) for message in messages]
    parts += [message.body[len(message.body) - message.payload_bytes :] for message in messages]  # it stands last
    return crc32(b"".join(parts))


def _described(message: Incoming) -> bytes:
    """All of a message but its payload, in the same bytes for the same values."""
    if message.kind is not None:
        return _described_plain(message.queue, message.kind) + varint(message.payload_bytes)
    terms = (message.queue, sorted(message.headers.items()), message.delay_ms, message.priority, message.dedup_key)
    return repr((terms, message.payload_bytes)).encode()


@lru_cache(maxsize=1024)
def _described_plain(queue: str, kind: bytes) -> bytes:
    return repr((queue, sorted((_read_headers(kind) or _NO_HEADERS).items()))).encode()


def read_batch(
    request: service_pb2.EncodedEnqueueBatch | service_pb2.EncodedStageEnqueue, limits: LimitsConfig
) -> list[Incoming]:
    """The messages of a batch. Raises InvalidArgument for bytes that are no messages."""
    queue = request.queue
    return [_read_plain(encoded, queue) or _read_bounded(encoded, queue, limits) for encoded in request.messages]


def _read_bounded(encoded: bytes, queue: str, limits: LimitsConfig) -> Incoming:
    """A message of any form, which is not decoded when it has more in it than any may have."""
    excess = excess_of_message(encoded, limits)
    return _read_any(encoded, queue) if excess is None else Excessive(queue, excess)


def _read_any(encoded: bytes, queue: str) -> Incoming:
    try:
        return read_message(service_pb2.EnqueueRequest.FromString(encoded), queue)
    except DecodeError as cause:
        raise InvalidArgument("a message of the batch cannot be decoded") from cause


class _Plain(Incoming):
    """A message whose headers are read when somebody asks: few are looked at, because many have the same."""

    __slots__ = ()

    def __init__(self, queue: str, kind: bytes, body: bytes, payload_bytes: int) -> None:
        self.queue = queue
        self.kind = kind
        self.body = body
        self.payload_bytes = payload_bytes
        self.delay_ms = 0
        self.priority = DEFAULT_PRIORITY
        self.dedup_key = ""
        self.lane = None

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]
        return _read_headers(self.kind) or _NO_HEADERS if self.kind else _NO_HEADERS


def _read_plain(encoded: bytes, queue: str) -> Incoming | None:
    """A message that is nothing but short headers and a payload, as nearly all are: its bytes are its body.

    It may name its queue before these. Returns None for every other. Saves building an object of each message only to
    take it apart again.
    """
    try:
        if encoded and encoded[0] == _QUEUE:
            at = 2 + encoded[1]
            if encoded[1] >= _LONG or at > len(encoded):
                return None
            queue = _read_name(encoded[2:at]) or queue
            encoded = encoded[at:]
        at, end = 0, len(encoded)
        most = min(end, _CACHED_HEADER_BYTES + 1)
        usual = True
        while at < most and encoded[at] == _HEADERS and encoded[at + 1] < _LONG:
            value = at + 4 + encoded[at + 3]
            behind = at + 2 + encoded[at + 1]
            usual = usual and encoded[at + 2] == _NAME and encoded[value] == _VALUE
            usual = usual and value + 2 + encoded[value + 1] == behind
            at = behind
        payload = at
        if at < end:
            if encoded[at] != _PAYLOAD:
                return None
            size, shift, payload = encoded[at + 1] & 127, 7, at + 2
            while encoded[payload - 1] >= _LONG and shift <= _MAX_SHIFT:
                size |= (encoded[payload] & 127) << shift
                shift += 7
                payload += 1
            if payload + size != end or encoded[payload - 1] >= _LONG:
                return None
    except (IndexError, UnicodeDecodeError):
        return None
    if at > _CACHED_HEADER_BYTES or at > end:
        return None
    kind = encoded[:at]
    if not (usual and kind.isascii()) and _read_headers(kind) is None:
        return None
    return _Plain(queue, kind, encoded, end - payload)


@lru_cache(maxsize=1024)
def _read_name(encoded: bytes) -> str:
    return encoded.decode()


@lru_cache(maxsize=1024)
def _read_headers(encoded: bytes) -> dict[str, str] | None:
    """Headers that are encoded one after another; None for bytes that are none. Cached: many messages have the same."""
    try:
        return _read_usual(encoded) or dict(service_pb2.EnqueueRequest.FromString(encoded).headers)
    except DecodeError:
        return None


def _read_usual(encoded: bytes) -> dict[str, str] | None:
    """Headers in ASCII, each a name and a value, which are nearly all: in a third of the time that protobuf takes."""
    if not encoded.isascii():
        return None
    text, end, at = encoded.decode(), len(encoded), 0
    headers: dict[str, str] = {}
    try:
        while at < end:
            value, behind = at + 4 + encoded[at + 3], at + 2 + encoded[at + 1]
            if (encoded[at], encoded[at + 2], encoded[value]) != (_HEADERS, _NAME, _VALUE):
                return None
            if value + 2 + encoded[value + 1] != behind or behind > end:
                return None
            headers[text[at + 4 : value]] = text[value + 2 : behind]
            at = behind
    except IndexError:
        return None
    return headers


def read_body(body: bytes) -> tuple[Mapping[str, str], int]:
    """Headers and size of the payload."""
    message = _read_plain(body, "") or _read_any(body, "")
    return message.headers, message.payload_bytes


def add_header(message: Incoming, name: str, value: str) -> None:
    """Give a message a header that it does not have. Fields of protobuf may stand in any order."""
    header = service_pb2.EnqueueRequest(headers={name: value}).SerializeToString()
    message.body = header + message.body
    if message.kind is None:
        message.headers = {**message.headers, name: value}
    else:
        message.kind = header + message.kind


def write_outcomes(ids: MessageIds, outcomes: Sequence[Outcome], sequence: int) -> bytes:
    """An EnqueueBatchResponse."""
    tail = service_pb2.EnqueueBatchResponse(sequence=sequence).SerializeToString()
    if isinstance(outcomes, range):
        return ids.ascii_run(outcomes.start, len(outcomes), _RESULT) + tail
    results = [_RESULT + ids.ascii(one) if isinstance(one, int) else _write_refusal(one) for one in outcomes]
    return b"".join([*results, tail])


def _write_refusal(error: BrokerError) -> bytes:
    result = service_pb2.EnqueueResult(error=write_error(error))
    return service_pb2.EnqueueBatchResponse(results=[result]).SerializeToString()


def write_error(error: BrokerError) -> messages_pb2.Error:
    return messages_pb2.Error(code=status_of(error), message=str(error))


def read_acks(groups: Iterable[service_pb2.AckGroup]) -> list[AckGroup]:
    return [AckGroup(group.queue, list(group.message_ids), group.lease_id) for group in groups]


def read_nack(request: service_pb2.NackRequest) -> Nack:
    return Nack(
        request.queue,
        request.message_id,
        request.error,
        request.lease_id,
        request.delay_ms,
        request.release,
        request.dead_letter,
    )


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
                message_gone=isinstance(f.error, MessageGone),
            )
            for f in failures
        ],
    )


def _metadata(lane: Lane, head: bytes, more_bytes: int) -> bytes:
    """The metadata of a message but for what follows it, whose length is known: the same for many messages."""
    key = keys.fairness_key(lane.behind)
    before, behind = _around_key(lane.before, lane.priority, head, len(key), more_bytes)
    return before + key + behind


@lru_cache(maxsize=4096)
def _around_key(before: bytes, priority: int, head: bytes, key_bytes: int, more_bytes: int) -> tuple[bytes, bytes]:
    """What stands before the fairness key in metadata that has so many bytes more, and what behind: the same for many
    keys. Fields of protobuf may stand in any order.
    """
    queue, _ = keys.read_name(before, 0)
    weight, cost, throttle_keys = codec.read_head(head)
    behind = messages_pb2.MessageMetadata(
        weight=weight, throttle_keys=throttle_keys, queue_id=queue, priority=priority, cost=cost
    ).SerializeToString()
    key = _KEY + varint(key_bytes)
    return _METADATA + varint(len(key) + key_bytes + len(behind) + more_bytes) + key, behind


# Varints of a fixed five bytes, also where fewer would do: protobuf allows it, and nothing has to branch. 14 bits at a
# time are looked up.
_PAIRS = [bytes([number & 127 | 128, number >> 7 | 128]) for number in range(1 << 14)]
_ENDS = [bytes([number]) for number in range(128)]
_LOW = (1 << 14) - 1


def _fixed_varint(number: int) -> bytes:
    """A number below 2**35."""
    return _PAIRS[number & _LOW] + _PAIRS[number >> 14 & _LOW] + _ENDS[number >> 28]


@lru_cache(maxsize=64)
def _seconds(seconds: int) -> bytes:
    return b"\x08" + _fixed_varint(seconds) + b"\x10"


def _timestamp(ns: int) -> bytes:
    """A google.protobuf.Timestamp, always of `_TIMESTAMP_BYTES`."""
    seconds, nanos = divmod(ns, NS_PER_S)
    return _seconds(seconds) + _fixed_varint(nanos)


@lru_cache(maxsize=4096)
def _opening(size: int) -> bytes:
    """How a message of so many bytes begins in a response, up to its id."""
    return _IN_RESPONSE + varint(size) + _ID


_TIMESTAMP_BYTES = 12
_STAMPS = _TIMESTAMPS + bytes([2 * (2 + _TIMESTAMP_BYTES)])
_ONE_STAMP = _TIMESTAMPS + bytes([2 + _TIMESTAMP_BYTES])
_ENQUEUED_AT = b"\x0a" + bytes([_TIMESTAMP_BYTES])
_LEASED_AT = b"\x12" + bytes([_TIMESTAMP_BYTES])


_NO_HEAD = b"\x00"  # begins no record
_TOGETHER = 64
"""So many messages are put together at a time: their pieces do not push everything else out of the nearest cache."""


class DeliveryWriter:
    """Writes the messages of one lease, or of none: what they have in common is encoded once."""

    def __init__(
        self,
        ids: MessageIds,
        token: int | None,
        leased_at: int,
        attempts: dict[int, int],
        death_of: Callable[[int], Death | None] | None = None,
        isolation: int = 0,
    ) -> None:
        self._isolation = b"\x50" + varint(isolation) if isolation else b""
        self._ascii_id = ids.ascii
        self._attempts = attempts
        self._death_of = death_of
        """For a dead-letter queue"""
        if token is None:
            self._lease_bytes, self._common = 0, _ONE_STAMP + _ENQUEUED_AT
        else:
            lease = _LEASE_ID + token_text(token).encode()
            self._lease_bytes = len(lease)
            self._common = lease + _STAMPS + _LEASED_AT + _timestamp(leased_at) + _ENQUEUED_AT
        self._fixed_bytes = len(_ID) + 36 + len(self._common) + _TIMESTAMP_BYTES

    def write(self, messages: list[tuple[int, Lane, bytes]], parts: list[bytes]) -> None:
        """Append messages of a response, each with tag and length: sequence number, lane, record."""
        starts = range(0, len(messages), _TOGETHER)
        parts += [b"".join(self._pieces(messages[start : start + _TOGETHER])) for start in starts]

    def _pieces(self, messages: list[tuple[int, Lane, bytes]]) -> list[bytes]:
        parts: list[bytes] = []
        attempts, ascii_id, common, fixed_bytes = self._attempts, self._ascii_id, self._common, self._fixed_bytes
        lease_bytes, last, head, usual = self._lease_bytes, None, _NO_HEAD, b""
        isolation = self._isolation
        for seq, lane, record in messages:
            if lane is not last or not record.startswith(head):  # a few of each tenant follow each other
                if not record.startswith(head):
                    head = codec.head_of(record)
                last, usual = lane, _metadata(lane, head, lease_bytes)
            metadata = usual
            if isolation or (attempts and seq in attempts):
                tried = b"\x20" + varint(attempts.get(seq, 0)) + self._write_death(seq) + isolation
                metadata = _metadata(lane, head, len(tried) + lease_bytes) + tried
            body = record[len(head) :]
            second, nanos = divmod(seq, NS_PER_S)
            parts += (
                _opening(len(body) + len(metadata) + fixed_bytes),
                ascii_id(seq),
                body,
                metadata,
                common,
                _seconds(second),
                _PAIRS[nanos & _LOW],
                _PAIRS[nanos >> 14 & _LOW],
                _ENDS[nanos >> 28],
            )
        return parts

    def _write_death(self, seq: int) -> bytes:
        death = self._death_of(seq) if self._death_of else None
        return (
            b"" if death is None else messages_pb2.MessageMetadata(dead_letter=write_death(death)).SerializeToString()
        )


@lru_cache(maxsize=4096)
def _bare_opening(size: int) -> bytes:
    return _IN_RESPONSE + varint(size)


class BareWriter:
    """Writes messages with nothing but what their producers encoded: headers and payload."""

    def __init__(self) -> None:
        self._head = _NO_HEAD

    def write(self, messages: list[tuple[int, Lane, bytes]], parts: list[bytes]) -> None:
        """As that of DeliveryWriter."""
        head = self._head
        for _, _, record in messages:
            if not record.startswith(head):
                head = codec.head_of(record)
            body = record[len(head) :]
            parts += (_bare_opening(len(body)), body)
        self._head = head


def write_death(death: Death) -> messages_pb2.DeadLetter:
    """How a dead letter died."""
    letter = messages_pb2.DeadLetter(source_queue=death.record.source, reason=death.record.reason)
    letter.died_at.FromNanoseconds(death.record.at)
    letter.attempts.extend(write_attempt(number, attempt) for number, attempt in death.attempts)
    return letter


def write_attempt(number: int, attempt: codec.AttemptRecord) -> messages_pb2.FailedAttempt:
    failed = messages_pb2.FailedAttempt(attempt=number, kind=attempt.kind.name.lower(), error=attempt.error)
    failed.failed_at.FromNanoseconds(attempt.at)
    return failed
