"""Messages on their way out: what a caller hands over, and its bytes on the wire.

Each message is encoded by protobuf on its own and framed by hand as an element of `EnqueueBatchRequest.messages`.
Building the batch as one protobuf object copies every message once more: 4.3 us a message with two headers and 1 KB,
against 2.9 us.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fila.client.connection import MAX_RPC_BYTES
from fila.client.errors import InvalidArgumentError, LimitExceededError
from fila.v1 import service_pb2

#: What can be sent at all: what the broker takes as one request, with room for the rest of it.
MAX_MESSAGE_BYTES = MAX_RPC_BYTES - 4096

#: A batch is closed when it holds this many messages or bytes. Larger ones are not faster, and block the loop longer.
MAX_BATCH_MESSAGES = 500
MAX_BATCH_BYTES = 1 << 20

_MESSAGES_TAG = b"\x0a"  # field 1 of EnqueueBatchRequest, length-delimited


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One message for `enqueue_many`."""

    payload: bytes = b""
    headers: Mapping[str, str] | None = None
    delay_ms: int = 0
    #: 0 (most urgent) to 255; the broker's default when absent.
    priority: int | None = None
    #: A second message with this key inside the queue's window is not enqueued: its answer names the first.
    dedup_key: str | None = None


@dataclass(slots=True)
class Chunk:
    """Encoded messages that travel in one batch. `queue` is for those that do not name theirs."""

    frames: bytes
    count: int
    queue: str = ""


def encode(queue: str, message: OutgoingMessage) -> Chunk:
    """One message that names its queue. Raises InvalidArgumentError or LimitExceededError."""
    return Chunk(_frame(message.payload, message, queue), 1)


def encode_all(queue: str, messages: Iterable[OutgoingMessage | bytes]) -> Iterator[Chunk]:
    """Split messages into batches by count and bytes. A message larger than a batch travels alone.

    Raises InvalidArgumentError or LimitExceededError at a hopeless message, after yielding everything before it.
    """
    frames: list[bytes] = []
    size = 0
    for message in messages:
        try:
            frame = _frame(message.payload, message) if isinstance(message, OutgoingMessage) else _frame(message)
        except (InvalidArgumentError, LimitExceededError):
            if frames:
                yield Chunk(b"".join(frames), len(frames), queue)
            raise
        if frames and (len(frames) == MAX_BATCH_MESSAGES or size + len(frame) > MAX_BATCH_BYTES):
            yield Chunk(b"".join(frames), len(frames), queue)
            frames, size = [], 0
        frames.append(frame)
        size += len(frame)
    if frames:
        yield Chunk(b"".join(frames), len(frames), queue)


def _frame(payload: bytes, message: OutgoingMessage | None = None, queue: str = "") -> bytes:
    try:
        if message is None:
            request = service_pb2.EnqueueRequest(payload=payload)
        else:
            request = service_pb2.EnqueueRequest(
                queue=queue,
                headers=message.headers,
                payload=payload,
                delay_ms=message.delay_ms,
                priority=message.priority,
                dedup_key=message.dedup_key,
            )
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"not a message (payload: bytes, headers: str to str): {error}") from error
    body = request.SerializeToString()
    if len(body) > MAX_MESSAGE_BYTES:
        raise LimitExceededError(f"the message has {len(body)} bytes, {MAX_MESSAGE_BYTES} can be sent")
    return _MESSAGES_TAG + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
