"""How records are written. Each begins with a version byte; an unknown one is refused, never guessed.

To change a record: add a new version beside the old one, read both, write the new one, and raise `FORMAT` in
`storage/format.py` so that an older broker refuses the store instead of misreading it.
"""

import json
from array import array
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from itertools import starmap
from struct import Struct, error, pack, unpack_from
from typing import Any, NamedTuple, TypeVar, get_origin

from fila.core.errors import StoreCorrupt
from fila.storage.records import (
    AttemptRecord,
    ClaimRecord,
    CommitRecord,
    DeathRecord,
    GrantRecord,
    GroupRecord,
    LeaseEnd,
    QueueRecord,
    StagedRecord,
    StagedRun,
    StagedTarget,
)

VERSION = 1
_HEAD = Struct(">BHII")  # version, bytes before the body, weight, cost
_THROTTLED = 2
_THROTTLED_MARK = bytes([_THROTTLED])
_THROTTLED_HEAD = Struct(">BIIIB")  # as above, then how many throttle keys follow
_LENGTH = Struct(">H")
_GRANT = Struct(">BQQII")  # version, token, expires at, members, members that came back before
_TRIED = Struct(">QI")  # seq, attempts
_ATTEMPT = Struct(">BQB")  # version, failed at, kind
_DEDUP = Struct(">BQQ")
_MARK = bytes([VERSION])
_PRODUCED = Struct(">BQIQ")  # version, heard at, digest, epoch
_PRODUCED_VERSION = 2  # version 1 has no epoch
_PRODUCED_BEFORE = Struct(">BQI")
NO_DIGEST = 0
"""Of a batch that was remembered before batches had one: any batch is taken for the same."""
_RESULT = Struct(">QIH")  # first seq or 0, how many that follow each other, bytes of text
_TEXT_LIMIT = 1024
_GROUP = Struct(">BQQQ")  # version, epoch, floor, last
_CLAIM = Struct(">BQQQ?")  # version, token, made at, expires at, sealed
_PART = Struct(">BQI")  # version, grant, members
_STAGED = Struct(">BQQQII")  # version, first, bytes, expires at, targets, runs
_STAGED_TARGET = Struct(">QII")  # created at, bytes of the lane, of the head
_STAGED_RUN = Struct(">IQ?HI")  # target, delay, large, bytes of the dedup key, messages
_STAGED_BODIES = 2  # the version that has the bytes of headers and payloads too
_COMMIT = Struct(">BQQI")  # version, last, heard at, bytes of the names of parts that are being enqueued
_RESULTS_LIMIT = 1_000_000  # the largest batch that can be configured


R = TypeVar("R", QueueRecord, DeathRecord)

Result = int | str
"""The answer to one message of a batch: its sequence number, or why it was refused."""


@lru_cache(maxsize=4096)
def message_head(weight: int, cost: int, throttle_keys: tuple[str, ...] = ()) -> bytes:
    """What precedes the body of a message. Version 2 has throttle keys; a message without any is of version 1."""
    if not throttle_keys:
        return _HEAD.pack(VERSION, _HEAD.size, weight, cost)
    texts = [key.encode() for key in throttle_keys]
    packed = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
    size = _THROTTLED_HEAD.size + len(packed)
    return _THROTTLED_HEAD.pack(_THROTTLED, size, weight, cost, len(texts)) + packed


@lru_cache(maxsize=4096)
def read_head(head: bytes) -> tuple[int, int, tuple[str, ...]]:
    """Weight, cost and throttle keys."""
    throttle_keys: tuple[str, ...] = ()
    if head[:1] == _THROTTLED_MARK:
        try:
            _, _, weight, cost, count = _THROTTLED_HEAD.unpack_from(head)
            throttle_keys = _read_texts(head, _THROTTLED_HEAD.size, count)
        except (error, ValueError) as cause:
            raise StoreCorrupt("a message cannot be read") from cause
    else:
        _, weight, cost = _unpack(_HEAD, head, "a message")
    if not weight or not cost:
        raise StoreCorrupt("a message cannot be read")
    return weight, cost, throttle_keys


def _read_texts(packed: bytes, at: int, count: int) -> tuple[str, ...]:
    """So many texts, and nothing behind them. Raises ValueError or struct.error."""
    texts = []
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size + size
        texts.append(packed[at - size : at].decode())
    if at != len(packed):
        raise ValueError("texts of another length")
    return tuple(texts)


def head_of(record: bytes) -> bytes:
    """What precedes the body. The body is what the producer encoded: headers and payload."""
    if record[:1] == _THROTTLED_MARK:
        least, size = _THROTTLED_HEAD.size, int.from_bytes(record[1:5], "big")
    else:
        _check_version(record, "a message")
        least, size = _HEAD.size, int.from_bytes(record[1:3], "big")
    if not least <= size <= len(record):
        raise StoreCorrupt("a message cannot be read")
    return record[:size]


def body_bytes(record: bytes) -> int:
    """How many bytes its headers and payload have."""
    return len(record) - len(head_of(record))


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


def group(record: GroupRecord) -> bytes:
    return _GROUP.pack(VERSION, record.epoch, record.floor, record.last)


def read_group(value: bytes) -> GroupRecord:
    return GroupRecord(*_unpack(_GROUP, value, "a group"))


def claim(record: ClaimRecord) -> bytes:
    return _CLAIM.pack(VERSION, record.token, record.made_at, record.expires_at, record.sealed)


def read_claim(value: bytes) -> ClaimRecord:
    return ClaimRecord(*_unpack(_CLAIM, value, "a claim"))


def claim_part(grant_number: int, seqs: Sequence[int]) -> bytes:
    """The messages of a part in their order, and the grant that holds them."""
    return _PART.pack(VERSION, grant_number, len(seqs)) + pack(f">{len(seqs)}Q", *seqs)


def read_claim_part(value: bytes) -> tuple[int, "array[int]"]:
    number, count = _unpack(_PART, value[: _PART.size], "a claim")
    if not count or len(value) != _PART.size + 8 * count:
        raise StoreCorrupt("a claim cannot be read")
    return number, array("Q", unpack_from(f">{count}Q", value, _PART.size))


def staged(record: StagedRecord) -> bytes:
    counts = len(record.targets), len(record.runs)
    packed = [_STAGED.pack(_STAGED_BODIES, record.first, record.size, record.expires_at, *counts)]
    for lane, created_at, opening in record.targets:
        packed += (_STAGED_TARGET.pack(created_at, len(lane), len(opening)), lane, opening)
    for target, delay_ms, large, dedup_key, sizes, bodies in record.runs:
        key = dedup_key.encode()
        head = _STAGED_RUN.pack(target, delay_ms, large, len(key), len(sizes))
        packed += (head, key, pack(f">{2 * len(sizes)}I", *sizes, *bodies))
    return b"".join(packed)


def read_staged(value: bytes) -> StagedRecord:
    """Version 1 has the sizes of payloads alone: headers count as nothing."""
    version = _STAGED_BODIES if value[:1] == bytes([_STAGED_BODIES]) else VERSION
    opening = _MARK + value[1 : _STAGED.size] if version == _STAGED_BODIES else value[: _STAGED.size]
    first, size, expires_at, target_count, run_count = _unpack(_STAGED, opening, "a staged call")
    targets: list[StagedTarget] = []
    runs: list[StagedRun] = []
    at = _STAGED.size
    try:
        for _ in range(target_count):
            created_at, lane_bytes, head_bytes = _STAGED_TARGET.unpack_from(value, at)
            at += _STAGED_TARGET.size + lane_bytes + head_bytes
            middle = at - head_bytes
            targets.append(StagedTarget(value[middle - lane_bytes : middle], created_at, value[middle:at]))
        for _ in range(run_count):
            target, delay_ms, large, key_bytes, count = _STAGED_RUN.unpack_from(value, at)
            at += _STAGED_RUN.size + key_bytes
            dedup_key = value[at - key_bytes : at].decode()
            kept = unpack_from(f">{version * count}I", value, at)
            runs.append(StagedRun(target, delay_ms, large, dedup_key, kept[:count], kept[-count:]))
            at += 4 * len(kept)
            if target >= target_count or not count or (dedup_key and count > 1):
                raise ValueError("a run that cannot be")
    except (error, ValueError) as cause:
        raise StoreCorrupt("a staged call cannot be read") from cause
    if at != len(value):
        raise StoreCorrupt("a staged call cannot be read")
    return StagedRecord(first, size, expires_at, targets, runs)


def commit(record: CommitRecord) -> bytes:
    names = json.dumps([record.parts, record.moved]).encode()
    return _COMMIT.pack(VERSION, record.last, record.heard_at, len(names)) + names


def read_commit(value: bytes) -> CommitRecord:
    last, heard_at, size = _unpack(_COMMIT, value[: _COMMIT.size], "a commit")
    try:
        parts, moved = json.loads(value[_COMMIT.size :])
        whole = all(isinstance(name, str) for name in [*parts, *moved]) and len(value) == _COMMIT.size + size
    except (ValueError, TypeError) as cause:
        raise StoreCorrupt("a commit cannot be read") from cause
    if not whole or not (isinstance(parts, list) and isinstance(moved, list)):
        raise StoreCorrupt("a commit cannot be read")
    return CommitRecord(last, heard_at, parts, moved)


def attempt(record: AttemptRecord) -> bytes:
    return _ATTEMPT.pack(VERSION, record.at, record.kind) + record.error.encode()[:_TEXT_LIMIT]


def read_attempt(value: bytes) -> AttemptRecord:
    at, kind = _unpack(_ATTEMPT, value[: _ATTEMPT.size], "an attempt")
    if kind not in list(LeaseEnd):
        raise StoreCorrupt("an attempt cannot be read")
    return AttemptRecord(at, LeaseEnd(kind), value[_ATTEMPT.size :].decode(errors="ignore"))


def death(record: DeathRecord) -> bytes:
    return _MARK + json.dumps(asdict(record)).encode()


def read_death(value: bytes) -> DeathRecord:
    return _read_json(DeathRecord, value, "a dead letter")


def setting(value: str) -> bytes:
    """A value of the runtime configuration."""
    return _MARK + value.encode()


def read_setting(value: bytes) -> str:
    _check_version(value, "a runtime setting")
    try:
        return value[1:].decode()
    except UnicodeDecodeError as cause:
        raise StoreCorrupt("a runtime setting cannot be read") from cause


def scheduled() -> bytes:
    """Nothing but the version: when and what is in the key, the rest with the message."""
    return _MARK


def dedup(seq: int, expires_at: int) -> bytes:
    return _DEDUP.pack(VERSION, seq, expires_at)


def read_dedup(value: bytes) -> tuple[int, int]:
    seq, expires_at = _unpack(_DEDUP, value, "a dedup key")
    return seq, expires_at


class ProducedRecord(NamedTuple):
    """One batch of a producer, as it is remembered."""

    heard_at: int
    digest: int
    """What tells it from others"""
    epoch: int
    """The incarnation of the producer"""
    results: list[Result]


def produced(heard_at: int, digest: int, epoch: int, results: Sequence[Result]) -> bytes:
    """The answers to one batch of a producer, and what tells it from others. Messages that follow each other, which is
    nearly all, take one entry, and so do those that were refused for the same reason.
    """
    packed = [_PRODUCED.pack(_PRODUCED_VERSION, heard_at, digest, epoch)]
    if isinstance(results, range):
        return packed[0] + _RESULT.pack(results.start, len(results), 0) if results else packed[0]
    at = 0
    while at < len(results):
        first = results[at]
        end = at + 1
        if isinstance(first, str):
            while end < len(results) and results[end] == first:
                end += 1
            text = first.encode()[:_TEXT_LIMIT]
            packed.append(_RESULT.pack(0, end - at, len(text)) + text)
        else:
            while end < len(results) and results[end] == first + end - at:
                end += 1
            packed.append(_RESULT.pack(first, end - at, 0))
        at = end
    return b"".join(packed)


def read_produced(value: bytes) -> ProducedRecord:
    head, epoch = _PRODUCED_BEFORE, 0
    if value[:1] == bytes([_PRODUCED_VERSION]):
        head = _PRODUCED
        try:
            _, heard_at, digest, epoch = head.unpack_from(value)
        except error as cause:
            raise StoreCorrupt("a producer's batch cannot be read") from cause
    else:
        heard_at, digest = _unpack(head, value[: head.size], "a producer's batch")
    results: list[Result] = []
    at = head.size
    while at < len(value):
        try:
            first, count, size = _RESULT.unpack_from(value, at)
        except error as cause:
            raise StoreCorrupt("a producer's batch cannot be read") from cause
        at += _RESULT.size
        end = at + size
        if end > len(value) or not 0 < count <= _RESULTS_LIMIT or (first and size):
            raise StoreCorrupt("a producer's batch cannot be read")
        results += range(first, first + count) if first else [value[at:end].decode(errors="ignore")] * count
        at = end
    return ProducedRecord(heard_at, digest, epoch, results)


def queue(record: QueueRecord) -> bytes:
    return _MARK + json.dumps(asdict(record)).encode()


def read_queue(value: bytes) -> QueueRecord:
    return _read_json(QueueRecord, value, "a queue")


def _read_json(form: type[R], value: bytes, what: str) -> R:
    """A record that is kept as an object of JSON. Every value has the type that the record's field says."""
    _check_version(value, what)
    try:
        entries = json.loads(value[1:]).items()
        held: dict[str, Any] = {key: tuple(kept) if isinstance(kept, list) else kept for key, kept in entries}
        for field in fields(form):
            kept = held.get(field.name, field.default)
            whole = type(kept) is (get_origin(field.type) or field.type)
            if not whole or (isinstance(kept, tuple) and any(type(item) is not str for item in kept)):
                raise TypeError
        return form(**held)
    except (AttributeError, TypeError, ValueError, RecursionError) as cause:
        raise StoreCorrupt(f"{what} cannot be read") from cause


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
