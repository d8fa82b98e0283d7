"""Records: what stands behind the keys. Each begins with a version byte; an unknown one is refused, never guessed.

To change a record: add a new version beside the old one, read both, write the new one, and raise `FORMAT` in
`storage/rocks.py` so that an older broker refuses the store instead of misreading it.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from struct import Struct, error
from typing import Any

from fila.core.errors import StoreCorrupt

VERSION = 1
_HEAD = Struct(">BHII")  # version, bytes before the body, weight, cost
_GRANT = Struct(">BQQI")  # version, token, expires at, members
_MEMBER = Struct(">HQI")  # lane (index), seq, attempts
_ATTEMPTS = Struct(">BI")
_DEDUP = Struct(">BQQ")
_MARK = bytes([VERSION])
_PRODUCED = Struct(">BQI")  # version, heard at, messages
_RESULT = Struct(">QH")  # seq or 0, bytes of text
_TEXT = Struct(">H")
_TEXT_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A queue as it is kept: its settings with every default filled in at creation."""

    name: str
    created_at: int
    visibility_timeout_ms: int
    quantum: int
    dedup_window_ms: int
    fairness_header: str = ""
    weight_header: str = ""


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """A grant as it is kept: each member with the attempts it had, which tells a stale entry from a held one."""

    token: int
    expires_at: int
    members: list[tuple[bytes, int, int]]
    """(lane prefix, sequence number, attempts)"""


Result = tuple[int, str]
"""The answer to one message of a batch: its sequence number, or 0 and why it was refused."""


def _checked(version: int, what: str) -> None:
    if version != VERSION:
        raise StoreCorrupt(f"{what} has version {version}, this broker knows {VERSION}")


@lru_cache(maxsize=4096)
def message_head(weight: int, cost: int) -> bytes:
    """What precedes the body of a message."""
    return _HEAD.pack(VERSION, _HEAD.size, weight, cost)


@lru_cache(maxsize=4096)
def read_head(head: bytes) -> tuple[int, int]:
    """Weight and cost."""
    version, _, weight, cost = _HEAD.unpack_from(head)
    _checked(version, "a message")
    return weight, cost


def split_message(record: bytes) -> tuple[bytes, bytes]:
    """Head and body. The body is what the producer encoded: headers and payload."""
    size = record[1] << 8 | record[2]
    return record[:size], record[size:]


def grant(record: GrantRecord) -> bytes:
    lanes: dict[bytes, int] = {}
    members = [
        _MEMBER.pack(lanes.setdefault(prefix, len(lanes)), seq, attempts) for prefix, seq, attempts in record.members
    ]
    head = _GRANT.pack(VERSION, record.token, record.expires_at, len(members))
    return head + b"".join(members) + b"".join(_TEXT.pack(len(prefix)) + prefix for prefix in lanes)


def read_grant(value: bytes) -> GrantRecord:
    try:
        version, token, expires_at, count = _GRANT.unpack_from(value)
        _checked(version, "a lease")
        at = _GRANT.size + count * _MEMBER.size
        lanes: list[bytes] = []
        packed = [_MEMBER.unpack_from(value, _GRANT.size + i * _MEMBER.size) for i in range(count)]
        while at < len(value):
            (size,) = _TEXT.unpack_from(value, at)
            lanes.append(value[at + _TEXT.size : at + _TEXT.size + size])
            at += _TEXT.size + size
        return GrantRecord(token, expires_at, [(lanes[lane], seq, attempts) for lane, seq, attempts in packed])
    except (error, IndexError) as cause:
        raise StoreCorrupt("a lease cannot be read") from cause


def attempts(count: int) -> bytes:
    return _ATTEMPTS.pack(VERSION, count)


def read_attempts(value: bytes) -> int:
    version, count = _unpack(_ATTEMPTS, value, "an attempt count")
    _checked(version, "an attempt count")
    return int(count)


def scheduled() -> bytes:
    """Nothing but the version: when and what is in the key, the rest with the message."""
    return _MARK


def dedup(seq: int, expires_at: int) -> bytes:
    return _DEDUP.pack(VERSION, seq, expires_at)


def read_dedup(value: bytes) -> tuple[int, int]:
    version, seq, expires_at = _unpack(_DEDUP, value, "a dedup key")
    _checked(version, "a dedup key")
    return seq, expires_at


def produced(heard_at: int, results: Iterable[Result]) -> bytes:
    """The answers to one batch of a producer."""
    packed: list[bytes] = []
    for seq, text in results:
        encoded = text.encode()[:_TEXT_LIMIT]
        packed.append(_RESULT.pack(seq, len(encoded)) + encoded)
    return _PRODUCED.pack(VERSION, heard_at, len(packed)) + b"".join(packed)


def read_produced(value: bytes) -> tuple[int, list[Result]]:
    version, heard_at, count = _unpack(_PRODUCED, value[: _PRODUCED.size], "a producer's batch")
    _checked(version, "a producer's batch")
    results: list[Result] = []
    at = _PRODUCED.size
    try:
        for _ in range(count):
            seq, size = _RESULT.unpack_from(value, at)
            at += _RESULT.size
            results.append((seq, value[at : at + size].decode(errors="replace")))
            at += size
    except error as cause:
        raise StoreCorrupt("a producer's batch cannot be read") from cause
    return heard_at, results


def queue(record: QueueRecord) -> bytes:
    return bytes([VERSION]) + json.dumps(asdict(record)).encode()


def read_queue(value: bytes) -> QueueRecord:
    try:
        _checked(value[0], "a queue")
        return QueueRecord(**json.loads(value[1:]))
    except (IndexError, TypeError, ValueError) as cause:
        raise StoreCorrupt("a queue cannot be read") from cause


def _unpack(form: Struct, value: bytes, what: str) -> tuple[Any, ...]:
    try:
        return form.unpack(value)
    except error as cause:
        raise StoreCorrupt(f"{what} cannot be read") from cause
