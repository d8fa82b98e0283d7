"""What may enter: names and sizes, checked before anything else looks at a message."""

import unicodedata
from collections.abc import Mapping

from fila.broker.commands import Incoming, RefusedMessage
from fila.broker.queue import DEAD_LETTERS
from fila.config import LimitsConfig
from fila.core.errors import InvalidArgument, LimitExceeded, PayloadTooLarge
from fila.core.policy import MAX_PRIORITY
from fila.storage.base import Storage

MAX_PRODUCER_BYTES = 64


PART_MARK = "#"
"""Of a queue in parts, `<queue>#<n>` is one of them."""


def check_queue_name(name: str, limits: LimitsConfig) -> None:
    """Raises InvalidArgument for a name that no queue may have."""
    check_name("a queue name", name, limits)
    if name.endswith(DEAD_LETTERS):
        raise InvalidArgument(f"names that end in {DEAD_LETTERS} are reserved for dead-letter queues")
    if any(unicodedata.category(char)[0] == "C" for char in name):
        raise InvalidArgument("a queue name must not contain control characters")
    if PART_MARK in name:
        raise InvalidArgument(f'a queue name must not contain "{PART_MARK}": it stands before the number of a part')
    if name != name.strip():
        raise InvalidArgument("a queue name must not start or end with whitespace")


def check_name(what: str, name: str, limits: LimitsConfig) -> None:
    """Raises InvalidArgument for a name that is empty or too long."""
    if not name:
        raise InvalidArgument(f"{what} must not be empty")
    if len(name.encode()) > limits.max_name_bytes:
        raise InvalidArgument(f"{what} must not exceed {limits.max_name_bytes} bytes")


def check_message(message: Incoming, headers: Mapping[str, str], limits: LimitsConfig) -> None:
    """Raises InvalidArgument or LimitExceeded for a message, with its headers, that no queue would take."""
    if isinstance(message, RefusedMessage):
        raise message.refusal
    if message.payload_bytes > limits.max_payload_bytes:
        raise PayloadTooLarge(message.payload_bytes, limits.max_payload_bytes)
    if len(message.body) - message.payload_bytes > limits.max_header_bytes:
        raise LimitExceeded(f"the headers must not exceed {limits.max_header_bytes} bytes")
    if len(headers) > limits.max_headers:
        raise LimitExceeded(f"there are {len(headers)} headers, {limits.max_headers} are allowed")
    if message.delay_ms:
        check_delay(message.delay_ms, limits)
    if not 0 <= message.priority <= MAX_PRIORITY:
        raise InvalidArgument(f"priority must be from 0 to {MAX_PRIORITY}, not {message.priority}")
    if message.dedup_key and len(message.dedup_key.encode()) > limits.max_key_bytes:
        raise LimitExceeded(f"dedup_key must not exceed {limits.max_key_bytes} bytes")


def check_headers(headers: Mapping[str, str], limits: LimitsConfig) -> None:
    """Raises LimitExceeded for headers that no message may have."""
    if len(headers) > limits.max_headers:
        raise LimitExceeded(f"there are {len(headers)} headers, {limits.max_headers} are allowed")
    if sum(len(name.encode()) + len(value.encode()) for name, value in headers.items()) > limits.max_header_bytes:
        raise LimitExceeded(f"the headers must not exceed {limits.max_header_bytes} bytes")


def check_delay(ms: int, limits: LimitsConfig, field: str = "delay_ms") -> None:
    """Raises InvalidArgument for a time that is negative or too long."""
    if not 0 <= ms <= limits.max_delay_ms:
        raise InvalidArgument(f"{field} must be from 0 to {limits.max_delay_ms}, not {ms}")


def check_batch(size: int, producer: str, sequence: int, limits: LimitsConfig) -> None:
    """Raises InvalidArgument or LimitExceeded for a batch that is refused as a whole."""
    check_batch_size(size, limits)
    if producer and not sequence:
        raise InvalidArgument("a batch with a producer_id needs a sequence of at least 1")
    if len(producer.encode()) > MAX_PRODUCER_BYTES:
        raise LimitExceeded(f"producer_id must not exceed {MAX_PRODUCER_BYTES} bytes")


def check_batch_size(size: int, limits: LimitsConfig) -> None:
    """Raises LimitExceeded for more messages than one call may bring."""
    if size > limits.max_batch_messages:
        raise LimitExceeded(f"the batch has {size} messages, {limits.max_batch_messages} are allowed")


def check_settle_size(size: int, limits: LimitsConfig) -> None:
    """Raises LimitExceeded for more messages than one call may settle."""
    if size > limits.max_batch_messages:
        raise LimitExceeded(f"the batch settles {size} messages, {limits.max_batch_messages} are allowed")


def check_room(store: Storage) -> None:
    """Raises StoreFull when there is too little room for more messages."""
    refusal = store.refusal()
    if refusal is not None:
        raise refusal
