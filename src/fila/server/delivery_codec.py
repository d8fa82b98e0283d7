"""Messages on their way to consumers: put together from bytes around the body that their producer encoded.

Protobuf fields may simply stand one after another. `tests/unit/server/test_codec.py` holds this equal to what the
generated classes make of the same values.
"""

from collections.abc import Callable
from functools import lru_cache

from fila.broker.attempts import Death
from fila.broker.grants import token_text
from fila.core.ids import MessageIds
from fila.core.lane import Lane
from fila.server.enums import number_of
from fila.storage import codec, keys
from fila.storage.records import AttemptRecord
from fila.v1 import messages_pb2
from fila.wire.varint import write_varint

NS_PER_S = 1_000_000_000

# Tags of length-delimited fields: number << 3 | 2.
_LEASE_ID, _LEASE_BYTES = b"\x42\x10", 18  # a token is always 16 digits long
_ID, _METADATA, _TIMESTAMPS = b"\x0a\x24", b"\x22", b"\x2a"  # an id is always 36 bytes long
_IN_RESPONSE = _KEY = b"\x0a"


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
    key = _KEY + write_varint(key_bytes)
    return _METADATA + write_varint(len(key) + key_bytes + len(behind) + more_bytes) + key, behind


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
    return _IN_RESPONSE + write_varint(size) + _ID


_TIMESTAMP_BYTES = 12
_STAMPS = _TIMESTAMPS + bytes([2 * (2 + _TIMESTAMP_BYTES)])
_ONE_STAMP = _TIMESTAMPS + bytes([2 + _TIMESTAMP_BYTES])
_ENQUEUED_AT = b"\x0a" + bytes([_TIMESTAMP_BYTES])
_LEASED_AT = b"\x12" + bytes([_TIMESTAMP_BYTES])


_NO_HEAD = b"\x00"  # begins no record
_TOGETHER = 64
"""So many messages are put together at a time: their pieces do not push everything else out of the nearest cache."""


class DeliveryWriter:
    """Writes messages of one queue that one lease holds, or none: what they have in common is encoded once."""

    def __init__(
        self,
        ids: MessageIds,
        token: int | None,
        leased_at: int,
        attempts: dict[int, int],
        death_of: Callable[[int], Death | None] | None = None,
        isolation: int = 0,
    ) -> None:
        self._isolation = b"\x50" + write_varint(isolation) if isolation else b""
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
        self._around: dict[int, tuple[bytes, bytes]] = {}
        """What stands before and behind a fairness key, by its length and the priority; of messages with `_head`"""
        self._head = _NO_HEAD

    def write(self, messages: list[tuple[int, Lane, bytes]], parts: list[bytes]) -> None:
        """Append messages of a response, each with tag and length: sequence number, lane, record."""
        starts = range(0, len(messages), _TOGETHER)
        parts += [b"".join(self._pieces(messages[start : start + _TOGETHER])) for start in starts]

    def _pieces(self, messages: list[tuple[int, Lane, bytes]]) -> list[bytes]:
        parts: list[bytes] = []
        attempts, ascii_id, common, fixed_bytes = self._attempts, self._ascii_id, self._common, self._fixed_bytes
        lease_bytes, last, head, usual = self._lease_bytes, None, self._head, b""
        isolation, around = self._isolation, self._around
        for seq, lane, record in messages:
            if lane is not last or not record.startswith(head):  # a few of each tenant follow each other
                if not record.startswith(head):
                    self._head = head = codec.head_of(record)
                    around.clear()
                last, key = lane, keys.fairness_key(lane.behind)
                pair = around.get(alike := len(key) << 8 | lane.priority)
                if pair is None:
                    pair = around[alike] = _around_key(lane.before, lane.priority, head, len(key), lease_bytes)
                usual = pair[0] + key + pair[1]
            metadata = usual
            if isolation or (attempts and seq in attempts):
                tried = b"\x20" + write_varint(attempts.get(seq, 0)) + self._write_death(seq) + isolation
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
    return _IN_RESPONSE + write_varint(size)


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
    letter = messages_pb2.DeadLetter(
        source_queue=death.record.source, reason=number_of(messages_pb2.DeadLetterReason, death.record.reason)
    )
    letter.died_at.FromNanoseconds(death.record.at)
    letter.attempts.extend(write_attempt(number, attempt) for number, attempt in death.attempts)
    return letter


def write_attempt(number: int, attempt: AttemptRecord) -> messages_pb2.FailedAttempt:
    failed = messages_pb2.FailedAttempt(
        attempt=number, kind=number_of(messages_pb2.AttemptEnd, attempt.kind.name), error=attempt.error
    )
    failed.failed_at.FromNanoseconds(attempt.at)
    return failed
