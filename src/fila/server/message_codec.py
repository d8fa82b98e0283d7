"""Messages of producers: from the bytes of a request to what the broker takes, and what became of them.

Messages are not rebuilt on their way through. What a producer sent of headers and payload is kept in its encoded form
(the body), and a delivery is put together around it (`delivery_codec.py`). `tests/unit/server/test_codec.py` holds this
equal to what the generated classes make of the same values.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from google.protobuf.message import DecodeError

from fila.broker.commands import DEFAULT_PRIORITY, Earlier, EnqueueResult, Incoming, Produced, RefusedMessage
from fila.config import LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument
from fila.core.ids import MessageIds
from fila.internal import wire_pb2
from fila.server.decode_limits import excess_of_message
from fila.server.status import write_error
from fila.v1 import service_pb2
from fila.wire.varint import LONG, write_varint

# Tags of length-delimited fields: number << 3 | 2.
_QUEUE, _HEADERS, _PAYLOAD = 0x0A, 0x12, 0x1A
_NAME, _VALUE = 0x0A, 0x12  # of a header
_MAX_SHIFT = 28  # a length has at most five bytes
_CACHED_HEADER_BYTES = 512
_NO_HEADERS: dict[str, str] = {}
_RESULT = b"\x0a\x26\x0a\x24"  # results { message_id: 36 bytes }
_EARLIER, _DUPLICATE = b"\x0a\x28\x0a\x24", b"\x18\x01"  # results { message_id: 36 bytes, duplicate: true }


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

    request: wire_pb2.EncodedEnqueueBatch
    checksum: int
    """Of its bytes; 0 when it has no producer, who could send it again"""


def receive_batch(data: bytes) -> Batch:
    """Raises DecodeError."""
    request = wire_pb2.EncodedEnqueueBatch.FromString(data)
    return Batch(request, crc32(data) if request.producer_id else 0)


def digest(batch: Batch, messages: list[Incoming]) -> int:
    """What tells a batch that is sent again from another one under the same number.

    Of its bytes, but where a message has several headers: those are a map, and whoever encodes it again may write them
    in another order.
    """
    if not batch.request.producer_id:
        return 0
    different = {message.header_bytes for message in messages}
    if all(each is not None and len(each) <= 2 + each[1] for each in different if each != b""):
        return batch.checksum
    parts = [_described(message) for message in messages]
    parts += [message.body[len(message.body) - message.payload_bytes :] for message in messages]  # it stands last
    return crc32(b"".join(parts))


def produced(batch: Batch, messages: list[Incoming]) -> Produced:
    """Whose batch it is."""
    request = batch.request
    return Produced(request.producer_id, request.sequence, digest(batch, messages), request.producer_epoch)


def _described(message: Incoming) -> bytes:
    """All of a message but its payload, in the same bytes for the same values."""
    if message.header_bytes is not None:
        return _described_plain(message.queue, message.header_bytes) + write_varint(message.payload_bytes)
    terms = (message.queue, sorted(message.headers.items()), message.delay_ms, message.priority, message.dedup_key)
    return repr((terms, message.payload_bytes)).encode()


@lru_cache(maxsize=1024)
def _described_plain(queue: str, header_bytes: bytes) -> bytes:
    return repr((queue, sorted((_read_headers(header_bytes) or _NO_HEADERS).items()))).encode()


def read_batch(
    request: wire_pb2.EncodedEnqueueBatch | wire_pb2.EncodedStageEnqueue, limits: LimitsConfig
) -> list[Incoming]:
    """The messages of a batch. Raises InvalidArgument for bytes that are no messages."""
    queue = request.queue
    return [_read_plain(encoded, queue) or _read_bounded(encoded, queue, limits) for encoded in request.messages]


def _read_bounded(encoded: bytes, queue: str, limits: LimitsConfig) -> Incoming:
    """A message of any form, which is not decoded when it has more in it than any may have."""
    excess = excess_of_message(encoded, limits)
    return _read_any(encoded, queue) if excess is None else RefusedMessage(queue, excess)


def _read_any(encoded: bytes, queue: str) -> Incoming:
    try:
        return read_message(service_pb2.EnqueueRequest.FromString(encoded), queue)
    except DecodeError as cause:
        raise InvalidArgument("a message of the batch is not valid protobuf") from cause


class _Plain(Incoming):
    """A message whose headers are read when somebody asks: few are looked at, because many have the same."""

    __slots__ = ()

    def __init__(self, queue: str, header_bytes: bytes, body: bytes, payload_bytes: int) -> None:
        self.queue = queue
        self.header_bytes = header_bytes
        self.body = body
        self.payload_bytes = payload_bytes
        self.delay_ms = 0
        self.priority = DEFAULT_PRIORITY
        self.dedup_key = ""
        self.lane = None

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]
        return _read_headers(self.header_bytes) or _NO_HEADERS if self.header_bytes else _NO_HEADERS


def _read_plain(encoded: bytes, queue: str) -> Incoming | None:
    """A message that is nothing but short headers and a payload, as nearly all are: its bytes are its body.

    It may name its queue before these. Returns None for every other. Saves building an object of each message only to
    take it apart again.
    """
    try:
        if encoded and encoded[0] == _QUEUE:
            at = 2 + encoded[1]
            if encoded[1] >= LONG or at > len(encoded):
                return None
            queue = _read_name(encoded[2:at]) or queue
            encoded = encoded[at:]
        at, end = 0, len(encoded)
        most = min(end, _CACHED_HEADER_BYTES + 1)
        usual = True
        while at < most and encoded[at] == _HEADERS and encoded[at + 1] < LONG:
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
            while encoded[payload - 1] >= LONG and shift <= _MAX_SHIFT:
                size |= (encoded[payload] & 127) << shift
                shift += 7
                payload += 1
            if payload + size != end or encoded[payload - 1] >= LONG:
                return None
    except (IndexError, UnicodeDecodeError):
        return None
    if at > _CACHED_HEADER_BYTES or at > end:
        return None
    header_bytes = encoded[:at]
    if not (usual and header_bytes.isascii()) and _read_headers(header_bytes) is None:
        return None
    return _Plain(queue, header_bytes, encoded, end - payload)


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
    if message.header_bytes is None:
        message.headers = {**message.headers, name: value}
    else:
        message.header_bytes = header + message.header_bytes


def write_outcomes(ids: MessageIds, outcomes: Sequence[EnqueueResult], sequence: int) -> bytes:
    """An EnqueueBatchResponse."""
    tail = service_pb2.EnqueueBatchResponse(sequence=sequence).SerializeToString()
    if isinstance(outcomes, range):
        return ids.ascii_run(outcomes.start, len(outcomes), _RESULT) + tail
    return b"".join([*[_write_outcome(ids, one) for one in outcomes], tail])


def write_refused(sequence: int, error: BrokerError) -> bytes:
    """An EnqueueBatchResponse to a batch that was refused as a whole."""
    return service_pb2.EnqueueBatchResponse(sequence=sequence, error=write_error(error)).SerializeToString()


def _write_outcome(ids: MessageIds, outcome: EnqueueResult) -> bytes:
    if isinstance(outcome, Earlier):
        return _EARLIER + ids.ascii(outcome) + _DUPLICATE
    return _RESULT + ids.ascii(outcome) if isinstance(outcome, int) else _write_refusal(outcome)


def _write_refusal(error: BrokerError) -> bytes:
    result = service_pb2.EnqueueResult(error=write_error(error))
    return service_pb2.EnqueueBatchResponse(results=[result]).SerializeToString()
