"""Access control in the store: roles, principals and keys, under names that no entry of the configuration can have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fila.auth import records
from fila.auth.keys import Key
from fila.auth.registry import Change, Put, Registry
from fila.broker.commands import ChangeAccess
from fila.broker.queues import limit_anew
from fila.broker.tick import Effect, Tick
from fila.core.errors import InvalidArgument, NotNow
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage

PREFIX: Final = "\0auth/"
"""Names of the runtime configuration contain no control characters."""


@dataclass(slots=True)
class AccessChanges(Effect):
    """Records of access control that are written or removed."""

    changes: Sequence[Change]

    def commit(self, tick: Tick) -> None:
        tick.state.access.apply(self.changes)
        tick.state.on_access(self.changes)
        if any(_may_limit(change) for change in self.changes):
            for queue in tick.state.queues.values():
                if queue.record.owner:
                    limit_anew(tick, queue)


def _may_limit(change: Change) -> bool:
    kind = type(change.record) if isinstance(change, Put) else change.kind
    return kind is records.Principal


def plan_access(tick: Tick, command: ChangeAccess) -> None:
    """Raises InvalidArgument, or NotNow for a change that would lock everybody out."""
    if not command.decided:
        _check(tick, command)
    write_changes(tick.batch, command.changes)
    tick.add(AccessChanges(command.changes))


def _check(tick: Tick, command: ChangeAccess) -> None:
    try:
        tick.state.access.check(command.changes, tick.now)
    except ValueError as cause:
        raise InvalidArgument(str(cause)) from cause
    except PermissionError as cause:
        raise NotNow(str(cause)) from cause


def write_changes(batch: Batch, changes: Sequence[Change]) -> None:
    for change in changes:
        if isinstance(change, Put):
            record = change.record
            key = _key(type(record), records.name_of(record))
            batch.put(Family.STATE, key, codec.setting(records.write(record)))
        else:
            batch.delete(Family.STATE, _key(change.kind, change.name))


def load_record(registry: Registry, name: str, text: str) -> None:
    """Take in what the store has under a name that begins with `PREFIX`. Raises ValueError."""
    kind, _, rest = name.removeprefix(PREFIX).partition("/")
    registry.apply([Put(records.read(kind, rest, text))])


def has_keys(store: Storage) -> bool:
    """Whether there is a key: one look, however many there are."""
    start = _key(Key, "").removesuffix(keys.name(""))
    return store.has_any(Family.STATE, start, keys.after(start))


def _key(kind: type[records.Record], name: str) -> bytes:
    return keys.name(f"{PREFIX}{records.kind_of(kind)}/{name}")
