"""The file that says how a broker should be set up. Everything in it is checked before the broker is asked anything.

[queues.orders]
fairness_header = "tenant"
visibility_timeout_ms = "30s"
script_file = "policy.lua"

[throttles."provider:aws"]
rate = 50
burst = 100

[config]
"pricing.tier" = "gold"

[roles.shipping]
grants = ["enqueue=orders.**"]

[principals.billing]
roles = ["producer:billing.**"]
limits = { messages_per_second = 500 }
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_type_hints

from fila.cli.durations import milliseconds
from fila.client.queues import QueueSettings
from fila.client.throttle_limit import ThrottleLimit
from fila.settings import SettingsError, unknown

MOST_BYTES = 4 << 20
"""Of the file, and of each script that it names."""
_SOURCES = ("script", "on_enqueue", "on_failure")
_KINDS: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
_TOLD = {int: "a whole number", float: "a number", str: "a text"}
_LIMITS = ("rate", "burst", "max_in_flight")

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Principal:
    """Roles and limits of somebody who calls."""

    roles: tuple[str, ...]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the broker should have. A section that the file leaves out is empty."""

    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings by name; `paused` may be among them"""
    throttles: dict[str, str] = field(default_factory=dict)
    """Limits in the form in which the broker keeps them"""
    config: dict[str, str] = field(default_factory=dict)
    roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    principals: dict[str, Principal] = field(default_factory=dict)
    sections: frozenset[str] = frozenset()
    """Those that the file has, empty ones too"""


def read(path: Path) -> Manifest:
    """Raises SettingsError, with the file, the key and what is allowed."""
    try:
        tables = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: {error}") from error
    try:
        return _manifest(tables, path.parent)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def _manifest(tables: Table, folder: Path) -> Manifest:
    readers: dict[str, Callable[[str, Any], Any]] = {
        "queues": lambda where, value: _queue(where, _table(where, value), folder),
        "throttles": lambda where, value: _throttle(where, _table(where, value)),
        "config": _entry,
        "roles": lambda where, value: _role(where, _table(where, value)),
        "principals": lambda where, value: _principal(where, _table(where, value)),
    }
    for name in tables:
        if name not in readers:
            raise SettingsError(unknown("section", name, readers))
    found = {
        section: {name: read(f'{section}."{name}"', value) for name, value in _table(section, tables[section]).items()}
        for section, read in readers.items()
        if section in tables
    }
    return Manifest(**found, sections=frozenset(tables))


def _table(where: str, value: object) -> Table:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where} must be a table")
    return value


def _known(where: str, table: Table, names: list[str]) -> None:
    for name in table:
        if name not in names:
            raise SettingsError(unknown("key", f"{where}.{name}", names))


def _queue(where: str, table: Table, folder: Path) -> dict[str, Any]:
    hints = {name: get_args(kind)[0] for name, kind in get_type_hints(QueueSettings).items()}
    plain = [name for name in hints if name not in _SOURCES]
    _known(where, table, [*plain, *(f"{name}_file" for name in _SOURCES), "paused"])
    settings: dict[str, Any] = {}
    for name, value in table.items():
        place = f"{where}.{name}"
        if name == "paused":
            settings[name] = _typed(place, value, bool, "true or false")
        elif name.endswith("_file"):
            settings[name.removesuffix("_file")] = _text(folder / _typed(place, value, str, "a path"))
        elif name.endswith("_ms") and isinstance(value, str):
            settings[name] = _time(place, value)
        elif hints[name] in _KINDS:
            settings[name] = _typed(place, value, _KINDS[hints[name]], _TOLD[hints[name]])
        else:
            settings[name] = _texts(place, value)
    if "script" in settings and len(settings.keys() & set(_SOURCES)) > 1:
        raise SettingsError(f"{where}: give script_file, or on_enqueue_file and on_failure_file, not both")
    return settings


def _throttle(where: str, table: Table) -> str:
    _known(where, table, list(_LIMITS))
    for name, value in table.items():
        _typed(f"{where}.{name}", value, (int,) if name == "max_in_flight" else (int, float), "a number")
    if not table.keys() & {"rate", "max_in_flight"}:
        raise SettingsError(f"{where} needs rate, max_in_flight, or both")
    return str(ThrottleLimit(**table))


def _entry(where: str, value: object) -> str:
    return str(_typed(where, value, str, "a text"))


def _role(where: str, table: Table) -> tuple[str, ...]:
    _known(where, table, ["grants"])
    return _texts(f"{where}.grants", table.get("grants", []))


def _principal(where: str, table: Table) -> Principal:
    _known(where, table, ["roles", "limits"])
    limits = _table(f"{where}.limits", table.get("limits", {}))
    for name, value in limits.items():
        _typed(f"{where}.limits.{name}", value, int, "a whole number")
    return Principal(_texts(f"{where}.roles", table.get("roles", [])), dict(limits))


def _typed(where: str, value: object, kinds: type | tuple[type, ...], told: str) -> Any:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise SettingsError(f"{where} must be {told}")
    return value


def _texts(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{where} must be a list of texts")
    return tuple(value)


def _time(where: str, value: str) -> int:
    try:
        return round(milliseconds(value))
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise SettingsError(f"{path} has more than {MOST_BYTES} bytes")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
