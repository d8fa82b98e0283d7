"""Which broker a command talks to, and how. The one place that knows the precedence.

1. options: --addr, --api-key-file, --tls...
2. the context that --context names
3. environment variables: FILA_ADDR, FILA_API_KEY, FILA_API_KEY_FILE, FILA_TLS...
4. the context that FILA_CONTEXT names, else the one in use (`fila context use`)
5. localhost:5555, without TLS

A context goes with its own address: where --addr or FILA_ADDR names the broker, no context is used, so that the key of
one broker is not sent to another.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fila.cli.addresses import DEFAULT_ADDR, is_broker_address
from fila.cli.output import printable

if TYPE_CHECKING:
    from fila.cli.context.contexts import Context
    from fila.cli.session import Session
    from fila.client import TLS

ADDR_VARIABLE = "FILA_ADDR"
CONTEXT_VARIABLE = "FILA_CONTEXT"
_KEY_VARIABLES = ("FILA_API_KEY", "FILA_API_KEY_FILE")
_TLS_VARIABLES = ("FILA_TLS", "FILA_TLS_CA", "FILA_TLS_CERT", "FILA_TLS_KEY", "FILA_TLS_SERVER_NAME")
_TLS_OPTIONS = ("ca", "cert", "key", "server_name")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The broker of one command."""

    addr: str
    source: str
    """Where the address comes from, in words"""
    api_key_file: Path | None
    """None: as $FILA_API_KEY and $FILA_API_KEY_FILE say"""
    tls: TLS | Literal[False] | None
    """None: as $FILA_TLS and its siblings say; False: no TLS, whatever they say"""

    def export(self) -> None:
        """Say it by environment variables, for parts of this process and for children that read only those."""
        os.environ[ADDR_VARIABLE] = self.addr
        if self.api_key_file is not None:
            os.environ["FILA_API_KEY_FILE"] = str(self.api_key_file)
            os.environ.pop("FILA_API_KEY", None)  # which would go before the file
        if self.tls is None:
            return
        for variable in _TLS_VARIABLES:
            os.environ.pop(variable, None)
        os.environ["FILA_TLS"] = "true" if self.tls else "false"
        for name in _TLS_OPTIONS:
            value = getattr(self.tls, name, None)
            if value is not None:
                os.environ[f"FILA_TLS_{name.upper()}"] = value


def chosen_name(session: Session, in_use: str) -> str | None:
    """The name of the context that applies, if one does. `in_use` is the name that the file has."""
    if session.context is not None:
        return session.context
    if session.addr is not None or os.environ.get(ADDR_VARIABLE):
        return None
    return os.environ.get(CONTEXT_VARIABLE) or in_use or None


def endpoint_of(session: Session) -> Endpoint:
    """Raises ClickException."""
    if session.addr is not None and session.context is not None:
        raise click.UsageError("Give --addr or --context, not both.")
    name, context = _context_of(session)
    addr, source = _address(session, name, context)
    return Endpoint(addr, source, _key_file(session, context), _tls(session, context))


def _context_of(session: Session) -> tuple[str, Context | None]:
    if chosen_name(session, in_use="?") is None:
        return "", None  # whatever the file has in use: it is not even looked at
    from fila.cli.context import file
    from fila.settings import SettingsError

    try:
        known = file.read()
        name = chosen_name(session, in_use=known.use)
        return (name, known.get(name)) if name else ("", None)
    except SettingsError as error:
        raise click.ClickException(printable(f"{_asked_by(session)}{error}")) from error


def _asked_by(session: Session) -> str:
    return f"{CONTEXT_VARIABLE}: " if session.context is None and os.environ.get(CONTEXT_VARIABLE) else ""


def _address(session: Session, name: str, context: Context | None) -> tuple[str, str]:
    if session.addr is not None:
        return session.addr, "address from the command line"
    if context is not None:
        return context.addr, f'address from the context "{name}"'
    named = os.environ.get(ADDR_VARIABLE)
    if not named:
        return DEFAULT_ADDR, "default address"
    if not is_broker_address(named):
        raise click.UsageError(f'{ADDR_VARIABLE}: "{printable(named)}" is not an address such as {DEFAULT_ADDR}')
    return named, f"address from {ADDR_VARIABLE}"


def _key_file(session: Session, context: Context | None) -> Path | None:
    if session.api_key_file is not None:
        return session.api_key_file
    if context is None or not context.api_key_file:
        return None
    return Path(context.api_key_file) if _goes_first(session, _KEY_VARIABLES) else None


def _tls(session: Session, context: Context | None) -> TLS | Literal[False] | None:
    given = {name: value for name in _TLS_OPTIONS if (value := getattr(session, f"tls_{name}")) is not None}
    told = context is not None and _goes_first(session, _TLS_VARIABLES)
    base = context.tls_options() if context is not None and told else None
    if not (session.tls or given):
        return base or (False if told else None)
    from fila.client import TLS

    return replace(base or (None if told else TLS.from_env()) or TLS(), **given)


def _goes_first(session: Session, variables: tuple[str, ...]) -> bool:
    """Whether a context goes before these variables: when --context names it, or none of them is set."""
    return session.context is not None or not any(os.environ.get(variable) for variable in variables)
