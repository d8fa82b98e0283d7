"""How a platform is asked: data, so that a new platform is a section of a file and no code."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fila.reconcile.domain.models import MAX_NAME, METRICS
from fila.reconcile.platforms.addresses import is_http, refused_url
from fila.settings import Section, flag, mapping, text, whole_number

OBSERVED_AT = "observed_at"
_FIELDS = {name: name for name in (*METRICS, OBSERVED_AT)}


def _is_plain(value: str) -> bool:
    return value.isascii() and (value == "" or value.isprintable())


def _is_user(value: str) -> bool:
    return _is_plain(value) and ":" not in value


def _is_path(path: str) -> bool:
    return _is_plain(path) and "{post_id}" in path


def _are_fields(fields: Mapping[str, object]) -> bool:
    return set(fields) <= set(_FIELDS) and all(isinstance(value, str) and value for value in fields.values())


@dataclass(frozen=True, slots=True)
class Platform(Section):
    """One platform's HTTP interface."""

    name: str
    base_url: str = text(expected="an http:// or https:// address", accepts=is_http, secret=True)  # may hold one
    #: Sent as a bearer token; empty for none.
    token: str = text("", "printable ASCII text", _is_plain, secret=True)
    #: If set, `user` and `token` are sent as name and password (HTTP Basic) instead.
    user: str = text("", "printable ASCII text without a colon", _is_user)
    #: Whether it may have a loopback or private address, and any port: simulated platforms, or one of our own.
    internal: bool = flag(False)
    #: Where a post's figures are; `{post_id}` is filled in.
    path: str = text("/v1/posts/{post_id}/metrics", "a path with {post_id} in it", _is_path)
    #: Where in the answer each figure is, by names joined with dots; one that is left out has its own name.
    #: `observed_at` is ISO 8601 or milliseconds.
    fields: Mapping[str, str] = mapping(_FIELDS, f"a table from {', '.join(_FIELDS)} to names", _are_fields)
    #: For the whole question, however the answer trickles in.
    timeout_ms: int = whole_number(5_000, 1)
    max_answer_bytes: int = whole_number(64 * 1024, 1)

    def check(self) -> None:
        self.require(_is_plain(self.name) and 1 <= len(self.name) <= MAX_NAME, "a name of printable ASCII text")
        why = refused_url(self.base_url, internal=self.internal)
        hint = "" if self.internal else " (see internal = true)"
        self.require(why is None, f"another base_url for platform {self.name}: {why}{hint}")
        object.__setattr__(self, "fields", MappingProxyType(_FIELDS | dict(self.fields)))
