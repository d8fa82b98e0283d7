"""Contexts: brokers by name. A context has no secret: an API key is named by its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from fila.cli.addresses import is_broker_address
from fila.settings import Section, SettingsError, flag, text

if TYPE_CHECKING:
    from fila.client import TLS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _is_path(value: str) -> bool:
    return value == "" or (value.startswith("/") and "\0" not in value)


def _path() -> Any:
    return text("", "an absolute path", _is_path)


@dataclass(frozen=True, slots=True)
class Context(Section):
    """A broker and how to connect to it. Empty text means that it is not set."""

    addr: str = text(expected="an address such as localhost:5555", accepts=is_broker_address)
    tls: bool = flag(False)
    tls_ca: str = _path()
    tls_cert: str = _path()
    tls_key: str = _path()
    tls_server_name: str = text("")
    api_key_file: str = _path()

    def check(self) -> None:
        self.require(bool(self.tls_cert) == bool(self.tls_key), "tls_cert and tls_key together")

    @property
    def secure(self) -> bool:
        """Whether it asks for TLS: one of its options is enough."""
        return self.tls or any((self.tls_ca, self.tls_cert, self.tls_server_name))

    def tls_options(self) -> TLS | None:
        """The same for the SDK."""
        if not self.secure:
            return None
        from fila.client import TLS

        names = ("ca", "cert", "key", "server_name")
        return TLS(**{name: getattr(self, f"tls_{name}") or None for name in names})

    def given(self) -> dict[str, str | bool]:
        """What is set, by name."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user, and the name of the one in use; empty: none is."""

    by_name: Mapping[str, Context] = field(default_factory=dict)
    use: str = ""

    def get(self, name: str) -> Context:
        """Raises SettingsError."""
        found = self.by_name.get(name)
        if found is None:
            raise SettingsError(f'there is no context "{name[:64]}": `fila context list` shows all')
        return found

    def using(self, name: str) -> Contexts:
        """The same with another one in use. Raises SettingsError."""
        if name:
            self.get(name)
        return replace(self, use=name)

    def with_one(self, name: str, context: Context) -> Contexts:
        """The same with one more, or with another one of that name. Raises SettingsError."""
        if not NAME.fullmatch(name):
            raise SettingsError(
                f'"{name[:64]}" is not a name: up to 64 letters, digits, ".", "_" and "-", a letter or digit first'
            )
        return replace(self, by_name={**self.by_name, name: context})

    def without(self, name: str) -> Contexts:
        """The same with one less; if it was in use, none is. Raises SettingsError."""
        self.get(name)
        left = {each: context for each, context in self.by_name.items() if each != name}
        return Contexts(left, "" if self.use == name else self.use)
