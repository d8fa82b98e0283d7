"""The URL that says where a log is kept: `engine://[user@]host[:port][,host[:port]...]/name[?option=value&...]`.

A password never stands in it, since configuration is copied and logged: it comes from the file that the option
`password_file` names, or from the variable `FILA_LOG_PASSWORD`.
"""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from fila.replicas.log import LogError

PASSWORD_VARIABLE = "FILA_LOG_PASSWORD"  # noqa: S105  the name of it, not a password
APPEND_TIMEOUT_MS = 10_000
"""An engine elects a new leader within 3 to 9 s when it is set up as the documentation says."""

OPTIONS = frozenset({"append_timeout_ms", "password_file", "tls", "tls_ca", "tls_cert", "tls_key", "unsafe_one_copy"})
"""What every engine understands"""


class BadAddress(LogError):
    """The URL of a log is wrong. The text says what is."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL that has been understood. Holds no password."""

    engine: str
    hosts: tuple[tuple[str, int], ...]
    name: str
    user: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def servers(self) -> list[str]:
        """Each host with its port."""
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts]

    @property
    def append_timeout_s(self) -> float:
        """How long an append waits for its answer before it is in doubt."""
        return self.whole_number("append_timeout_ms", APPEND_TIMEOUT_MS, 1) / 1000

    @property
    def unsafe_one_copy(self) -> bool:
        """Whether the engine is taken as it is, although it may lose what it has acknowledged."""
        return self.flag("unsafe_one_copy")

    def flag(self, name: str) -> bool:
        """An option that is true or false; it is false when it is not there."""
        value = self.options.get(name, "false")
        if value not in {"true", "false"}:
            raise BadAddress(f"the option {name} of the log is {value!r}: it may be true or false")
        return value == "true"

    def whole_number(self, name: str, default: int, least: int) -> int:
        """An option that is a number."""
        value = self.options.get(name, str(default))
        if not re.fullmatch(r"\d{1,9}", value) or int(value) < least:
            raise BadAddress(f"the option {name} of the log is {value!r}: it may be a whole number from {least} on")
        return int(value)

    def password(self) -> str | None:
        """Read anew each time, so that a file may be replaced while the server runs."""
        path = self.options.get("password_file")
        return _content(path) if path is not None else os.environ.get(PASSWORD_VARIABLE)

    def tls(self) -> ssl.SSLContext | None:
        """What connections are encrypted with; None for none."""
        if not self.flag("tls"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.options.get("tls_ca"))
            if "tls_cert" in self.options:
                context.load_cert_chain(self.options["tls_cert"], self.options.get("tls_key"))
        except (OSError, ssl.SSLError) as cause:
            raise BadAddress(f"the certificates of the log cannot be read: {cause}") from cause
        return context


def parse(url: str, default_ports: Mapping[str, int]) -> Address:
    """`default_ports`: by engine, and so the engines that there are. Raises BadAddress."""
    match = re.fullmatch(r"([a-z]+)://([^/?]*)(?:/([^?]*))?(?:\?(.*))?", url)
    engine, netloc, path, query = match.groups(default="") if match else ("", "", "", "")
    if engine not in default_ports:
        known = ", ".join(f"{name}://" for name in default_ports)
        raise BadAddress(f"the log is kept at {engine or 'no engine'}://...: it may be one of {known}")
    user, _, hosts = netloc.rpartition("@")
    if ":" in user:
        raise BadAddress(
            f"the URL of the log holds a password: put it in a file (password_file) or {PASSWORD_VARIABLE}"
        )
    if not hosts:
        raise BadAddress(f"the URL of the log names no host: say {engine}://host:port/name")
    name = unquote(path)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise BadAddress(
            f"the log is called {name!r}: say {engine}://{hosts}/NAME, with letters, digits, '.', '_' and '-'"
        )
    port = default_ports[engine]
    return Address(
        engine, tuple(_host(host, port) for host in hosts.split(",")), name, unquote(user) or None, _options(query)
    )


def _host(text: str, default_port: int) -> tuple[str, int]:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/]+)(?::(\d{1,5}))?", text)
    port = int(match[2] or default_port) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise BadAddress(f"the URL of the log names {text!r}: a host is written as host, host:port or [address]:port")
    return match[1].strip("[]"), port


def _options(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as cause:
        raise BadAddress("the options of the log are written as ?name=value&name=value") from cause
    options = dict(pairs)
    if len(options) < len(pairs):
        raise BadAddress("an option of the log stands twice in its URL")
    return options


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or "it is not text"
        raise BadAddress(f"the password of the log cannot be read from {path}: {reason}") from cause
