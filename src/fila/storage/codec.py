"""Records: what stands behind the keys. Each begins with a version byte; an unknown one is refused, never guessed.

To change a record: add a new version beside the old one, read both, write the new one, and raise `FORMAT` in
`storage/rocks.py` so that an older broker refuses the store instead of misreading it.
"""

import json
from dataclasses import asdict, dataclass, fields
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
_RESULTS_LIMIT = 1_000_000  # the largest batch that can be configured


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


@lru_cache(maxsize=4096)
def message_head(weight: int, cost: int) -> bytes:
    """What precedes the body of a message."""
    return _HEAD.pack(VERSION, _HEAD.size, weight, cost)


@lru_cache(maxsize=4096)
def read_head(head: bytes) -> tuple[int, int]:
    """Weight and cost."""
    _, weight, cost = _unpack(_HEAD, head, "a message")
    if not weight or not cost:
        raise StoreCorrupt("a message cannot be read")
    return weight, cost


def head_of(record: bytes) -> bytes:
    """What precedes the body. The body is what the producer encoded: headers and payload."""
    size = int.from_bytes(record[1:3], "big")
    if not _HEAD.size <= size <= len(record):
        raise StoreCorrupt("a message cannot be read")
    return record[:size]


def grant(record: GrantRecord) -> bytes:
    members, attempts = record.members, record.attempts
    head = _GRANT.pack(VERSION, record.token, record.expires_at, len(members), len(attempts))
    return head + pack(f">{len(members)}Q", *members) + b"".join(starmap(_TRIED.pack, attempts.items()))


def read_grant(value: bytes) -> GrantRecord:
    token, expires_at, count, tried = _unpack(_GRANT, value[: _GRANT.size], "a lease")
    try:
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
    (count,) = _unpack(_ATTEMPTS, value, "an attempt count")
    return int(count)


def scheduled() -> bytes:
    """Nothing but the version: when and what is in the key, the rest with the message."""
    return _MARK


def dedup(seq: int, expires_at: int) -> bytes:
    return _DEDUP.pack(VERSION, seq, expires_at)


def read_dedup(value: bytes) -> tuple[int, int]:
    seq, expires_at = _unpack(_DEDUP, value, "a dedup key")
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
    (heard_at,) = _unpack(_PRODUCED, value[: _PRODUCED.size], "a producer's batch")
    results: list[Result] = []
    at = _PRODUCED.size
    while at < len(value):
        try:
            first, count, size = _RESULT.unpack_from(value, at)
        except error as cause:
            raise StoreCorrupt("a producer's batch cannot be read") from cause
        at += _RESULT.size
        end = at + size
        if end > len(value) or not 0 < count <= _RESULTS_LIMIT or (first and size) or (not first and count > 1):
            raise StoreCorrupt("a producer's batch cannot be read")
        results += range(first, first + count) if first else [value[at:end].decode(errors="ignore")]
        at = end
    return heard_at, results


def queue(record: QueueRecord) -> bytes:
    return bytes([VERSION]) + json.dumps(asdict(record)).encode()


def read_queue(value: bytes) -> QueueRecord:
    _check_version(value, "a queue")
    try:
        record = QueueRecord(**json.loads(value[1:]))
    except (TypeError, ValueError, RecursionError) as cause:
        raise StoreCorrupt("a queue cannot be read") from cause
    if any(type(getattr(record, field.name)) is not field.type for field in fields(record)):
        raise StoreCorrupt("a queue cannot be read")
    return record


def _unpack(form: Struct, value: bytes, what: str) -> tuple[Any, ...]:
    """What follows the version, which must be the one that is known."""
    _check_version(value, what)
    try:
        return form.unpack(value)[1:]
    except error as cause:
        raise StoreCorrupt(f"{what} cannot be read") from cause


def _check_version(value: bytes, what: str) -> None:
    if value[:1] != _MARK:
        version = value[0] if value else "none"
        raise StoreCorrupt(f"{what} has version {version}, this broker knows {VERSION}")
