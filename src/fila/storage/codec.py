"""Records: what stands behind the keys. Each begins with a version byte; an unknown one is refused, never guessed.

To change a record: add a new version beside the old one, read both, write the new one, and raise `FORMAT` in
`storage/rocks.py` so that an older broker refuses the store instead of misreading it.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import starmap
from struct import Struct, error, pack, unpack_from
from typing import Any

from fila.core.errors import StoreCorrupt

VERSION = 1
_HEAD = Struct(">BHII")  # version, bytes before the body, weight, cost
_GRANT = Struct(">BQQII")  # version, token, expires at, members, members that came back before
_TRIED = Struct(">QI")  # seq, attempts
_ATTEMPTS = Struct(">BI")
_DEDUP = Struct(">BQQ")
_MARK = bytes([VERSION])
_PRODUCED = Struct(">BQ")  # version, heard at
_RESULT = Struct(">QIH")  # first seq or 0, how many that follow each other, bytes of text
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
    """A grant as it is kept. The attempts that its messages had tell a message that it still holds from one that came
    back since: coming back counts an attempt.
    """

    token: int
    expires_at: int
    members: list[int]
    """Sequence numbers"""
    attempts: dict[int, int]
    """Of those members that had any"""


Result = int | str
"""The answer to one message of a batch: its sequence number, or why it was refused."""


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
    members, attempts = record.members, record.attempts
    head = _GRANT.pack(VERSION, record.token, record.expires_at, len(members), len(attempts))
    return head + pack(f">{len(members)}Q", *members) + b"".join(starmap(_TRIED.pack, attempts.items()))


def read_grant(value: bytes) -> GrantRecord:
    try:
        version, token, expires_at, count, tried = _GRANT.unpack_from(value)
        _checked(version, "a lease")
        members = list(unpack_from(f">{count}Q", value, _GRANT.size))
        attempts = dict(_TRIED.iter_unpack(value[_GRANT.size + 8 * count :]))
    except error as cause:
        raise StoreCorrupt("a lease cannot be read") from cause
    if len(attempts) != tried:
        raise StoreCorrupt("a lease cannot be read")
    return GrantRecord(token, expires_at, members, attempts)


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


def produced(heard_at: int, results: list[Result]) -> bytes:
    """The answers to one batch of a producer. Messages that follow each other, which is nearly all, take one entry."""
    packed = [_PRODUCED.pack(VERSION, heard_at)]
    at = 0
    while at < len(results):
        first = results[at]
        if isinstance(first, str):
            text = first.encode()[:_TEXT_LIMIT]
            packed.append(_RESULT.pack(0, 1, len(text)) + text)
            at += 1
            continue
        end = at + 1
        while end < len(results) and results[end] == first + end - at:
            end += 1
        packed.append(_RESULT.pack(first, end - at, 0))
        at = end
    return b"".join(packed)


def read_produced(value: bytes) -> tuple[int, list[Result]]:
    """When the batch came, and its answers."""
    results: list[Result] = []
    at = _PRODUCED.size
    try:
        version, heard_at = _PRODUCED.unpack_from(value)
        _checked(version, "a producer's batch")
        while at < len(value):
            first, count, size = _RESULT.unpack_from(value, at)
            at += _RESULT.size
            results += range(first, first + count) if first else [value[at : at + size].decode(errors="replace")]
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
