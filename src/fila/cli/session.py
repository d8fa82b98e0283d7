"""The options that all commands share: address of the broker, timeout, JSON output.

The SDK is imported on first use, so that help and completion are fast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fila.cli.durations import Duration

if TYPE_CHECKING:
    from fila.client import TLS, Client

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEFAULT_ADDR = "localhost:5555"
DEFAULT_TIMEOUT_S = 5.0


def _client(addr: str, timeout: float, **options: Any) -> Client:
    from fila.client import Client

    return Client(addr, timeout=timeout, **options)


@dataclass(slots=True)
class Session:
    """The shared options of one invocation. An option after the command overrides the same option before it."""

    addr: str = DEFAULT_ADDR
    timeout: float = DEFAULT_TIMEOUT_S
    as_json: bool = False
    api_key_file: Path | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_server_name: str | None = None
    make_client: Callable[..., Client] = _client

    def client(self) -> Client:
        """A client for one command."""
        options: dict[str, Any] = {} if self.api_key_file is None else {"api_key_file": self.api_key_file}
        tls = self.tls_options()
        if tls is not None:
            options["tls"] = tls
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            client = self.make_client(self.addr, self.timeout, **options)
        for warning in warned:
            click.echo(f"Warning: {warning.message}", err=True)
        return client

    def tls_options(self) -> TLS | None:
        """What the options ask for, with the environment where they say nothing; None: they ask for no TLS."""
        names = ("ca", "cert", "key", "server_name")
        given = {name: value for name in names if (value := getattr(self, f"tls_{name}")) is not None}
        if not (self.tls or given):
            return None
        from fila.client import TLS

        return replace(TLS.from_env() or TLS(), **given)


pass_session = click.make_pass_decorator(Session, ensure=True)


def session_options(command: _Command) -> _Command:
    """Adds `--addr`, `--api-key-file`, `--tls...`, `--timeout` and `--json` to a command."""
    return _add_session_options(command, addr_variable=None)


def global_options(group: _Command) -> _Command:
    """Adds the same options to the top group, where $FILA_ADDR applies too."""
    return _add_session_options(group, addr_variable="FILA_ADDR")


def _add_session_options(command: _Command, addr_variable: str | None) -> _Command:
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print the answer as JSON.", callback=_remember, expose_value=False
    )
    timeout = click.option(
        "--timeout",
        type=Duration("s", bare="s", low_s=0.001),
        metavar="TIME",
        help=f"Wait at most TIME for an answer (default {DEFAULT_TIMEOUT_S:g}s).",
        callback=_remember,
        expose_value=False,
    )
    addr = click.option(
        "--addr",
        metavar="HOST:PORT",
        envvar=addr_variable,
        help=f"The address of the broker (default: $FILA_ADDR, else {DEFAULT_ADDR}).",
        callback=_remember_addr,
        expose_value=False,
    )
    api_key_file = click.option(
        "--api-key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Read the API key or token from FILE (default: $FILA_API_KEY, else the file $FILA_API_KEY_FILE).",
        callback=_remember,
        expose_value=False,
    )
    return addr(api_key_file(_tls_options(timeout(as_json(command)))))


def _tls_options(command: _Command) -> _Command:
    files = (
        ("--tls-server-name", "NAME", "The name in the certificate of the broker, if it is not the host of --addr."),
        ("--tls-key", "FILE", "The private key of --tls-cert (default: $FILA_TLS_KEY)."),
        ("--tls-cert", "FILE", "Show this client certificate to the broker (default: $FILA_TLS_CERT)."),
        ("--tls-ca", "FILE", "Trust the CAs in FILE instead of those of the system (default: $FILA_TLS_CA)."),
    )
    for name, metavar, about in files:
        command = click.option(name, metavar=metavar, help=about, callback=_remember, expose_value=False)(command)
    about = "Connect with TLS. Implied by the other --tls options and by $FILA_TLS."
    return click.option("--tls", is_flag=True, help=about, callback=_remember, expose_value=False)(command)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    session = ctx.ensure_object(Session)
    if value and param.name is not None:
        setattr(session, param.name, value)


def _remember_addr(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise click.BadParameter(f'"{value}" is not an address such as {DEFAULT_ADDR}', ctx, param)
        ctx.ensure_object(Session).addr = value
