"""Records of the audit: who changed what, from where, when, and how it ended.

    entry    version, time, then a JSON object
    head     version, next entry; then, of changes and of refusals: the oldest entry, and what all of them take in bytes
    sweep    version, how many messages are done, then the entry that began it

The number of an entry is in its key. A value that may be a secret is never in a record; a digest stands for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from struct import Struct, error
from typing import Any, NamedTuple

from fila.core.errors import StoreCorrupt

VERSION = 1
OK = "ok"
INTERRUPTED = "interrupted"
"""A sweep that the server did not see end: it stopped or crashed meanwhile."""

_ENTRY = Struct(">BQ")  # version, at
_HEAD = Struct(">BQQQQQ")  # version, next; first and bytes of changes; first and bytes of refusals
_SWEEP = Struct(">BQ")  # version, done
_MARK = bytes([VERSION])

Values = tuple[str | None, str | None]
"""Before and after; None where there is none"""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One entry."""

    at: int
    action: str
    """The RPC by its name, or what else was done"""
    kind: str
    """What the resource is: a queue, a throttle key, a configuration entry, a key, a principal, a role"""
    resource: str
    principal: str = ""
    """Empty: there were no keys, so nobody had to say who they are."""
    key_id: str = ""
    peer: str = ""
    """Its address, or what else stands for it"""
    stage: str = ""
    """"begin" or "end" of what takes long"""
    outcome: str = OK
    """Or the name of the status with which it was refused"""
    count: int = 0
    """Messages that were moved or removed"""
    times: int = 1
    """How many calls it stands for: the same refusal is not written again and again."""
    began: int = 0
    """Of an end: the number of the entry that says what was asked"""
    changes: Mapping[str, Values] = field(default_factory=dict)
    """By the names of what changed"""


class Head(NamedTuple):
    """How far the audit is."""

    next: int
    first_change: int
    change_bytes: int
    first_refusal: int
    refusal_bytes: int


_DEFAULTS: dict[str, Any] = {"stage": "", "principal": "", "key_id": "", "peer": "", "outcome": OK, "count": 0}
_DEFAULTS |= {"times": 1, "began": 0}
_TYPES = {each.name: (int if each.name in {"at", "count", "times", "began"} else str) for each in fields(AuditRecord)}


def entry(record: AuditRecord) -> bytes:
    told: dict[str, Any] = {
        name: value
        for name in _TYPES
        if name not in {"at", "changes"} and (value := getattr(record, name)) != _DEFAULTS.get(name)
    }
    if record.changes:
        told["changes"] = record.changes
    packed = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return _ENTRY.pack(VERSION, record.at) + packed.encode(errors="replace")


def read_at(value: bytes) -> int:
    """When it was, without reading all of it. Raises StoreCorrupt."""
    _check_version(value)
    try:
        return int(_ENTRY.unpack_from(value)[1])
    except error as cause:
        raise _unreadable() from cause


def read_entry(value: bytes) -> AuditRecord:
    """Raises StoreCorrupt."""
    at = read_at(value)
    try:
        told = json.loads(value[_ENTRY.size :])
        changes = {name: _read_values(pair) for name, pair in told.pop("changes", {}).items()}
        if not all(type(kept) is _TYPES[name] for name, kept in told.items()):
            raise TypeError
        return AuditRecord(at=at, changes=changes, **told)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as cause:
        raise _unreadable() from cause


def _read_values(pair: Any) -> Values:
    before, after = pair
    if not all(value is None or isinstance(value, str) for value in (before, after)):
        raise TypeError
    return before, after


def head(told: Head) -> bytes:
    return _HEAD.pack(VERSION, *told)


def read_head(value: bytes) -> Head:
    """Raises StoreCorrupt."""
    _check_version(value)
    try:
        return Head(*_HEAD.unpack(value)[1:])
    except error as cause:
        raise _unreadable() from cause


def sweep(done: int, begin: AuditRecord) -> bytes:
    return _SWEEP.pack(VERSION, done) + entry(begin)


def read_sweep(value: bytes) -> tuple[int, AuditRecord]:
    """Raises StoreCorrupt."""
    _check_version(value)
    try:
        _, done = _SWEEP.unpack_from(value)
    except error as cause:
        raise _unreadable() from cause
    return done, read_entry(value[_SWEEP.size :])


def _check_version(value: bytes) -> None:
    if value[:1] != _MARK:
        version = value[0] if value else "none"
        raise StoreCorrupt(f"a record of the audit has version {version}, this broker knows {VERSION}")


def _unreadable() -> StoreCorrupt:
    return StoreCorrupt("a record of the audit cannot be read")
