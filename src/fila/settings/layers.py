"""Sections from layers of values: defaults, then files, then variables."""

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, cast

from fila.settings.errors import SettingsError, shown, unknown
from fila.settings.section import Section, refusal, rules


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    #: The file or the variable.
    origin: str


class Layers:
    """What was set for some sections. Each value is checked as it is added, and later ones replace earlier ones."""

    def __init__(self, sections: Mapping[str, type[Section]]) -> None:
        self._sections = dict(sections)
        self._rules = {name: rules(section) for name, section in sections.items()}
        self._given: dict[str, dict[str, _Given]] = {name: {} for name in sections}
        self._origins: list[str] = []

    def add_tables(self, tables: Mapping[str, object], origin: str = "") -> None:
        """Add sections of keys, as a TOML file has them. Raises SettingsError."""
        self._origins.append(origin)
        for name, table in tables.items():
            if name not in self._sections:
                _refuse(SettingsError, origin, unknown("section", repr(name), self._sections))
            error = self._sections[name].error
            if not isinstance(table, Mapping):
                _refuse(error, origin, f"{name} = {shown(table)}: expected a section, [{name}]")
            for key, value in table.items():
                if key not in self._rules[name]:
                    _refuse(error, origin, unknown("key", f"{name}.{key}", self._rules[name]))
                self._add(name, key, value, origin)

    def add_texts(self, texts: Mapping[str, str], names: Mapping[str, tuple[str, str]]) -> None:
        """Add variables: `names` says which section and key each of them sets. Others are left alone."""
        for variable, (name, key) in names.items():
            if variable in texts:
                value: object = texts[variable]
                with suppress(ValueError):  # then it stays the text, which the rule refuses and the message shows
                    value = self._rules[name][key].metadata["rule"].from_text(texts[variable])
                self._add(name, key, value, variable)

    def build(self, name: str, /, **fixed: object) -> Any:
        """The section: what was set, `fixed` fields that nobody can set, and defaults. Raises SettingsError."""
        section, given = self._sections[name], self._given[name]
        for key, each in self._rules[name].items():
            if each.default is MISSING and each.default_factory is MISSING and key not in given:
                expected = each.metadata["rule"].expected
                _refuse(section.error, self._origins[-1], f"{name}.{key} is missing: expected {expected}")
        try:
            return section(**{key: each.value for key, each in given.items()}, **fixed)
        except SettingsError as error:  # about several fields, or a fixed one
            _refuse(section.error, ", ".join({each.origin: None for each in given.values()}), str(error))

    def build_all(self) -> dict[str, Any]:
        """All sections, by name."""
        return {name: self.build(name) for name in self._sections}

    def _add(self, name: str, key: str, value: object, origin: str) -> None:
        each = self._rules[name][key]
        if not each.metadata["rule"].accepts(value):
            _refuse(self._sections[name].error, origin, refusal(f"{name}.{key}", value, each))
        fixed = tuple(value) if isinstance(value, list) else value  # whoever gave it cannot change it later
        self._given[name][key] = _Given(fixed, origin)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises SettingsError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {error.filename}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 text (at byte {error.start})") from error
    except ValueError as error:  # the text names the line; or a number of too many digits
        raise SettingsError(f"{path}: malformed TOML: {error}") from error


def section_types(tree: type) -> dict[str, type[Section]]:
    """The sections of a dataclass whose fields are sections."""
    return {each.name: cast("type[Section]", each.type) for each in fields(tree)}


def _refuse(error: type[SettingsError], origin: str, problem: str) -> NoReturn:
    raise error(f"{origin}: {problem}" if origin else problem)
