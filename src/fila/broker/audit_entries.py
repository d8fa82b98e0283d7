"""What the audit says of each command that changes something: old and new values, in words.

Everything is read before the command has changed memory. Rules:
- Settings and limits are told as they are.
- A value of the runtime configuration may be a secret that scripts use: a digest with a key of the store stands for it.
- Of a script its SHA-256 and its size are told, which `sha256sum` gives of the file it came from.
- Of a key its id, principal and expiry are told. No text is longer than `MAX_VALUE`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from fila.auth.certificates import CertificateRule
from fila.auth.keys import Key
from fila.auth.records import LastUse, Principal, Record, Role, name_of
from fila.auth.registry import Change, Put, Registry
from fila.broker.audit_commands import Origin
from fila.broker.auditing import plan_progress
from fila.broker.commands import (
    ChangeAccess,
    CreateQueue,
    DeleteQueue,
    DropGroup,
    Purge,
    Redrive,
    SetConfig,
    Swept,
    UpdateQueue,
)
from fila.broker.state import THROTTLE
from fila.broker.tick import Tick
from fila.storage.audit import AuditRecord, Values
from fila.storage.records import QueueRecord

MAX_VALUE: Final = 1_000
"""Characters of a value; of a longer one the rest is left out."""

_NOT_SETTINGS: Final = {"name", "created_at"}


def created(tick: Tick, command: CreateQueue, _: object) -> list[AuditRecord]:
    """Settings that differ from the defaults, and those whose defaults are the server's."""
    told = {name: (None, value) for name, value in _told(command.record).items()}
    return [command.origin.entry(tick.now, "queue", command.record.name, told)]


def updated(tick: Tick, command: UpdateQueue, answer: QueueRecord) -> list[AuditRecord]:
    """What changes."""
    before, after = _settings(tick.state.queues[command.name].record), _settings(answer)
    told: dict[str, Values] = {name: (before[name], after[name]) for name in after if after[name] != before[name]}
    return [command.origin.entry(tick.now, "queue", command.name, told)]


def deleted(tick: Tick, command: DeleteQueue, messages: int) -> list[AuditRecord]:
    """The settings that it had, and how many messages went with it."""
    told = {name: (value, None) for name, value in _told(tick.state.queues[command.name].record).items()}
    return [command.origin.entry(tick.now, "queue", command.name, told, messages)]


def configured(tick: Tick, command: SetConfig, before: str | None) -> list[AuditRecord]:
    """The limit of a throttle key, or an entry for scripts."""
    if command.decided:
        return []
    key, value = command.key, command.value
    if key.startswith(THROTTLE):
        told = _both("limit", before, value)
        return [command.origin.entry(tick.now, "throttle", key.removeprefix(THROTTLE), told)]
    return [command.origin.entry(tick.now, "config", key, _both("value", _hidden(tick, before), _hidden(tick, value)))]


def access_changed(tick: Tick, command: ChangeAccess, _: None) -> list[AuditRecord]:
    if command.decided:
        return []
    return access_entries(tick.state.access, command.changes, command.origin, tick.now)


def access_entries(registry: Registry, changes: Sequence[Change], origin: Origin, now: int) -> list[AuditRecord]:
    """An entry for each role, principal, key and certificate rule; the keys and rules of a principal that is deleted
    stand in its entry. When keys were used is not a change of rights.
    """
    gone = {change.name for change in changes if not isinstance(change, Put) and change.kind is Principal}
    return [
        origin.entry(now, kind, name, _both_of(registry, before, after))
        for kind, name, before, after in _records(registry, changes)
        if not (isinstance(before, Key | CertificateRule) and after is None and before.principal in gone)
    ]


def swept(tick: Tick, command: Redrive | Purge, answer: Swept) -> list[AuditRecord]:
    """How far the sweep is, whose begin and end have entries."""
    plan_progress(tick, command.sweep, answer.done)
    return []


def group_dropped(tick: Tick, command: DropGroup, _: object) -> list[AuditRecord]:
    return [command.origin.entry(tick.now, "queue", command.queue, {"group": (cut(command.group), None)})]


# Values in words


def _records(registry: Registry, changes: Sequence[Change]) -> Iterator[tuple[str, str, Record | None, Record | None]]:
    """Kind and name of each record that changes, and what it was and will be."""
    tables: Mapping[type, tuple[str, Mapping[str, Record]]] = {
        Role: ("role", registry.roles),
        Principal: ("principal", registry.principals),
        Key: ("key", registry.keys),
        CertificateRule: ("certificate", registry.certificates),
    }
    for change in changes:
        form, name, after = _taken_apart(change)
        if form is not LastUse:
            kind, table = tables[form]
            yield kind, name, table.get(name), after


def _taken_apart(change: Change) -> tuple[type, str, Record | None]:
    if isinstance(change, Put):
        return type(change.record), name_of(change.record), change.record
    return change.kind, change.name, None


def _both_of(registry: Registry, before: Record | None, after: Record | None) -> dict[str, Values]:
    old, new = _facts(before), _facts(after)
    if isinstance(before, Principal) and after is None:
        old["keys"] = _text([key.id for key in registry.keys.values() if key.principal == before.name])
        rules = _text([rule.id for rule in registry.certificates.values() if rule.principal == before.name])
        old |= {"certificates": rules} if rules else {}
    names = dict.fromkeys([*old, *new])
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def _facts(record: Record | None) -> dict[str, str]:
    """What is told of a role, a principal or a key."""
    match record:
        case Role():
            return {"grants": _text(record.grants)}
        case Principal():
            limits = _text([f"{name}={most}" for name, most in sorted(record.limits.items())])
            return {"roles": _text(record.roles)} | ({"limits": limits} if limits else {})
        case Key():
            return {"principal": record.principal, "expires_at": _moment(record.expires_at)}
        case CertificateRule():
            return {"principal": record.principal, "names": f"{record.field}:{record.pattern}"}
    return {}


def _both(name: str, before: str | None, after: str | None) -> dict[str, Values]:
    return {name: (before, after)} if before != after else {}


def _hidden(tick: Tick, value: str | None) -> str | None:
    return None if value is None else tick.state.audit.digest(value)


def _settings(record: QueueRecord) -> dict[str, str]:
    told = {each.name: _text(getattr(record, each.name)) for each in fields(record) if each.name not in _NOT_SETTINGS}
    if record.script:
        script = record.script.encode()
        told["script"] = f"sha256:{hashlib.sha256(script).hexdigest()}, {len(script)} bytes"
    return told


def _told(record: QueueRecord) -> dict[str, str]:
    """Settings without those that are as a queue has them by default."""
    defaults = {each.name: each.default for each in fields(record)}
    return {name: text for name, text in _settings(record).items() if getattr(record, name) != defaults[name]}


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple() | list():
            return cut(", ".join(map(str, value)))
    return cut(str(value))


def cut(text: str) -> str:
    """A value, no longer than it may be."""
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text)} characters)"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else "never"
