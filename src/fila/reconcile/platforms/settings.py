"""How a platform is asked: data, so that a new platform is a section of a file and no code."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self
from urllib.parse import urlsplit

from fila.reconcile.domain.models import MAX_NAME, METRICS
from fila.reconcile.domain.settings import MAX_NUMBER, SettingsError

OBSERVED_AT = "observed_at"


def _same_names() -> dict[str, str]:
    return {name: name for name in (*METRICS, OBSERVED_AT)}


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform's HTTP interface."""

    name: str
    base_url: str
    #: Sent as a bearer token; empty for none.
    token: str = field(default="", repr=False)
    #: Where a post's figures are; `{post_id}` is filled in.
    path: str = "/v1/posts/{post_id}/metrics"
    #: Where in the answer each figure is, by names joined with dots. `observed_at` is ISO 8601 or milliseconds.
    fields: Mapping[str, str] = field(default_factory=_same_names)
    #: For the whole question, however the answer trickles in.
    timeout_ms: int = 5_000
    max_answer_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, holds, expected in (
            ("name", _is_text(given["name"]) and 1 <= len(self.name) <= MAX_NAME, "a name"),
            ("base_url", _is_http(given["base_url"]), "an http:// or https:// address"),
            ("token", _is_text(given["token"]), "printable text"),
            ("path", _is_text(given["path"]) and "{post_id}" in self.path, "a path with {post_id} in it"),
            ("fields", _is_field_map(given["fields"]), f"a table from {', '.join(_same_names())} to names"),
            ("timeout_ms", _is_number(given["timeout_ms"]), f"a positive whole number up to {MAX_NUMBER:,}"),
            (
                "max_answer_bytes",
                _is_number(given["max_answer_bytes"]),
                f"a positive whole number up to {MAX_NUMBER:,}",
            ),
        ):
            if not holds:
                raise SettingsError(f"platform {self.name!r}: {name}: expected {expected}")

    @classmethod
    def from_mapping(cls, name: str, table: object) -> Self:
        """Read one `[platforms.name]` section."""
        if not isinstance(table, Mapping):
            raise SettingsError(f"platforms.{name} = {table!r}: expected a section, [platforms.{name}]")
        known = [each.name for each in fields(cls) if each.name != "name"]
        for key in table:
            if key not in known:
                raise SettingsError(f"unknown key platforms.{name}.{key}: expected one of {', '.join(known)}")
        if "base_url" not in table:
            raise SettingsError(f"platforms.{name}.base_url is missing")
        values: dict[str, Any] = dict(table)
        if isinstance(values.get("fields"), Mapping):
            values["fields"] = _same_names() | dict(values["fields"])
        return cls(name, **values)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and (value == "" or value.isprintable())


def _is_number(value: object) -> bool:
    return type(value) is int and 0 < value <= MAX_NUMBER


def _is_http(url: object) -> bool:
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _is_field_map(value: object) -> bool:
    names = {*METRICS, OBSERVED_AT}
    return isinstance(value, Mapping) and set(value) == names and all(isinstance(v, str) and v for v in value.values())
