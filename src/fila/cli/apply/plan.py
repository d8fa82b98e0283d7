"""What has to change so that a broker is as the file says: computed first, shown, then carried out.

Rules:
- A setting that the file does not name stays as it is. A throttle, a role and a principal are replaced as a whole.
- What the file does not have stays, unless pruning was asked for, and then only in the sections that the file has.
- Queues are never deleted: their messages would go with them.
- A plan for a broker that is as the file says is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fila.cli.apply.manifest import Manifest
from fila.client.errors import QueueNotFoundError
from fila.client.throttle_limit import PREFIX, ThrottleLimit
from fila.settings.hook_sources import HookSources

if TYPE_CHECKING:
    from fila.client import Client

_LONG = 60
"""Characters of a value that is shown; scripts are only counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a plan."""

    sign: str
    """`+` is created, `~` is changed, `-` is removed"""
    kind: str
    name: str
    fields: tuple[tuple[str, Any, Any], ...]
    """Name, old value, new value; None where there is none"""
    make: Callable[[Client], object]

    def lines(self) -> Iterator[str]:
        """What it does, for a reader."""
        yield f'{self.sign} {self.kind} "{self.name}"'
        for name, old, new in self.fields:
            if self.sign == "+":
                yield f"    {name} = {_shown(new)}"
            elif new is not None:
                yield f"    {name}: {_shown(old)} -> {_shown(new)}"

    def as_json(self) -> dict[str, Any]:
        fields = {name: {"old": old, "new": new} for name, old, new in self.fields}
        return {"change": self.sign, "kind": self.kind, "name": self.name, "fields": fields}


def compare(client: Client, wanted: Manifest, *, prune: bool) -> list[Change]:
    """Asks the broker about everything that the file names. Changes nothing."""
    found = [change for name, settings in wanted.queues.items() for change in _queue(client, name, settings)]
    found += _entries(client, wanted, prune=prune)
    if "roles" in wanted.sections:
        found += _roles(client, wanted, prune=prune)
    if "principals" in wanted.sections:
        found += _principals(client, wanted, prune=prune)
    return found


def _queue(client: Client, name: str, wanted: dict[str, Any]) -> Iterator[Change]:
    settings = {key: value for key, value in wanted.items() if key != "paused"}
    try:
        stats = client.queue_stats(name, max_keys=1)
    except QueueNotFoundError:
        fields = tuple((key, None, value) for key, value in settings.items())
        yield Change("+", "queue", name, fields, lambda client: client.create_queue(name, **settings))
        if wanted.get("paused"):
            yield _pause(name, paused=True)
        return
    now = {key: getattr(stats.config, key) for key in _as_kept(settings)}
    different = tuple((key, now[key], value) for key, value in _as_kept(settings).items() if now[key] != value)
    if different:
        changed = {key for key, _, _ in different}
        sources = {"on_enqueue", "on_failure"} if "script" in changed and "script" not in settings else set()
        given = {key: value for key, value in settings.items() if key in changed | sources}
        yield Change("~", "queue", name, different, lambda client: client.update_queue(name, **given))
    if "paused" in wanted and wanted["paused"] != stats.summary.paused:
        yield _pause(name, paused=wanted["paused"])


def _as_kept(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in the form in which the broker tells them: it has one script."""
    kept = {key: value for key, value in settings.items() if key not in {"on_enqueue", "on_failure"}}
    if settings.keys() & {"on_enqueue", "on_failure"}:
        kept["script"] = HookSources(settings.get("on_enqueue"), settings.get("on_failure")).script
    return kept


def _pause(name: str, *, paused: bool) -> Change:
    def make(client: Client) -> None:
        (client.pause_queue if paused else client.resume_queue)(name)

    return Change("~", "queue", name, (("paused", not paused, paused),), make)


def _entries(client: Client, wanted: Manifest, *, prune: bool) -> Iterator[Change]:
    """Throttles and other entries of the runtime configuration."""
    if not wanted.sections & {"throttles", "config"}:
        return
    entries = client.list_config()
    limits = {key.removeprefix(PREFIX): value for key, value in entries.items() if key.startswith(PREFIX)}
    others = {key: value for key, value in entries.items() if not key.startswith(PREFIX)}
    for kind, section, prefix, now, then in (
        ("throttle", "throttles", PREFIX, limits, wanted.throttles),
        ("config", "config", "", others, wanted.config),
    ):
        for name, value in then.items():
            if name not in now or not _same(kind, now[name], value):
                sign = "~" if name in now else "+"
                yield Change(sign, kind, name, (("value", now.get(name), value),), _setting(prefix + name, value))
        for name in now.keys() - then.keys() if prune and section in wanted.sections else ():
            yield Change("-", kind, name, (("value", now[name], None),), _unsetting(prefix + name))


def _same(kind: str, old: str, new: str) -> bool:
    return old == new or (kind == "throttle" and ThrottleLimit.parse(old) == ThrottleLimit.parse(new))


def _setting(key: str, value: str) -> Callable[[Client], object]:
    return lambda client: client.set_config(key, value)


def _unsetting(key: str) -> Callable[[Client], object]:
    return lambda client: client.delete_config(key)


def _roles(client: Client, wanted: Manifest, *, prune: bool) -> Iterator[Change]:
    now = {role.name: role for role in client.auth.list_roles() if not role.built_in}
    for name, grants in wanted.roles.items():
        old = now[name].grants if name in now else None
        if old is None or {_grant(each) for each in old} != {_grant(each) for each in grants}:
            yield _set_role("~" if name in now else "+", name, old, grants)
    for name in now.keys() - wanted.roles.keys() if prune else ():
        yield _drop_role(name, now[name].grants)


def _grant(text: str) -> str:
    """A grant in the form in which the broker tells it: a pattern without a kind is one of queues."""
    permission, _, pattern = text.partition("=")
    return text if ":" in pattern or pattern == "server" else f"{permission}=queue:{pattern}"


def _set_role(sign: str, name: str, old: tuple[str, ...] | None, grants: tuple[str, ...]) -> Change:
    return Change(sign, "role", name, (("grants", old, grants),), lambda client: client.auth.set_role(name, grants))


def _drop_role(name: str, old: tuple[str, ...]) -> Change:
    return Change("-", "role", name, (("grants", old, None),), lambda client: client.auth.delete_role(name))


def _principals(client: Client, wanted: Manifest, *, prune: bool) -> Iterator[Change]:
    now = {each.name: each for each in client.auth.list_principals()}
    for name, then in wanted.principals.items():
        old = now.get(name)
        fields = (
            ("roles", old and tuple(sorted(old.roles)), tuple(sorted(then.roles))),
            ("limits", old and dict(old.limits), dict(then.limits)),
        )
        different = tuple(each for each in fields if each[1] != each[2])
        if different:
            yield _set_principal("~" if old else "+", name, different, wanted)
    for name in now.keys() - wanted.principals.keys() if prune else ():
        yield Change("-", "principal", name, (("roles", now[name].roles, None),), _dropping(name))


def _set_principal(sign: str, name: str, fields: tuple[tuple[str, Any, Any], ...], wanted: Manifest) -> Change:
    then = wanted.principals[name]

    def make(client: Client) -> None:
        client.auth.set_principal(name, then.roles, limits=then.limits)

    return Change(sign, "principal", name, fields, make)


def _dropping(name: str) -> Callable[[Client], object]:
    return lambda client: client.auth.delete_principal(name)


def _shown(value: object) -> str:
    if isinstance(value, str):
        if "\n" in value or len(value) > _LONG:
            return f"{len(value.encode()):,} bytes"
        return f'"{value}"'
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {each}" for key, each in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
