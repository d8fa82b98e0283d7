"""The options that all commands share: address of the broker, timeout, JSON output.

The SDK is imported on first use, so that help and completion are fast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fila.cli import completing
from fila.cli.addresses import DEFAULT_ADDR, is_broker_address
from fila.cli.durations import Duration
from fila.cli.endpoint import Endpoint, endpoint_of
from fila.cli.output import printable

if TYPE_CHECKING:
    from fila.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEFAULT_TIMEOUT_S = 5.0


def _client(addr: str, timeout: float, **options: Any) -> Client:
    from fila.client import Client

    return Client(addr, timeout=timeout, **options)


@dataclass(slots=True)
class Session:
    """The shared options of one invocation. An option after the command overrides the same option before it."""

    addr: str | None = None
    context: str | None = None
    timeout: float = DEFAULT_TIMEOUT_S
    as_json: bool = False
    api_key_file: Path | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_server_name: str | None = None
    make_client: Callable[..., Client] = _client
    _endpoint: Endpoint | None = None

    def endpoint(self) -> Endpoint:
        """The broker that options, environment and contexts name. Raises ClickException."""
        if self._endpoint is None:
            self._endpoint = endpoint_of(self)
        return self._endpoint

    def client(self) -> Client:
        """A client for one command."""
        broker = self.endpoint()
        options = {"api_key_file": broker.api_key_file, "tls": broker.tls}
        given = {name: value for name, value in options.items() if value is not None}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            client = self.make_client(broker.addr, self.timeout, **given)
        for warning in warned:
            click.echo(f"Warning: {printable(str(warning.message))}", err=True)
        return client


pass_session = click.make_pass_decorator(Session, ensure=True)


def session_options(command: _Command) -> _Command:
    """Adds `--addr`, `--context`, `--api-key-file`, `--tls...`, `--timeout` and `--json` to a command or a group."""
    for option in reversed((*_BROKER_OPTIONS, _JSON)):
        command = option(command)
    return command


def json_option(command: _Command) -> _Command:
    """Adds `--json`, for a command that talks to no broker."""
    return _JSON(command)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    session = ctx.ensure_object(Session)
    if value and param.name is not None:
        setattr(session, param.name, value)


def _remember_addr(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        if not is_broker_address(value):
            raise click.BadParameter(f'"{printable(value)}" is not an address such as {DEFAULT_ADDR}', ctx, param)
        ctx.ensure_object(Session).addr = value


def _option(about: str, *names: str, **choices: Any) -> Callable[[_Command], _Command]:
    return click.option(*names, help=about, expose_value=False, **{"callback": _remember} | choices)


_JSON = _option("Print the answer as JSON.", "--json", "as_json", is_flag=True)
_BROKER_OPTIONS = (
    _option(
        f"The address of the broker (default: $FILA_ADDR, else that of a context, else {DEFAULT_ADDR}).",
        "--addr",
        metavar="HOST:PORT",
        callback=_remember_addr,
    ),
    _option(
        "The broker of this name (default: $FILA_CONTEXT, else the one of `fila context use`).",
        "--context",
        metavar="NAME",
        shell_complete=completing.context_names,
    ),
    _option(
        "Read the API key or token from FILE (default: $FILA_API_KEY, else the file $FILA_API_KEY_FILE).",
        "--api-key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
    ),
    _option("Connect with TLS. Implied by the other --tls options and by $FILA_TLS.", "--tls", is_flag=True),
    _option(
        "Trust the CAs in FILE instead of those of the system (default: $FILA_TLS_CA).",
        "--tls-ca",
        metavar="FILE",
    ),
    _option("Show this client certificate to the broker (default: $FILA_TLS_CERT).", "--tls-cert", metavar="FILE"),
    _option("The private key of --tls-cert (default: $FILA_TLS_KEY).", "--tls-key", metavar="FILE"),
    _option(
        "The name in the certificate of the broker, if it is not the host of --addr.",
        "--tls-server-name",
        metavar="NAME",
    ),
    _option(
        f"Wait at most TIME for an answer (default {DEFAULT_TIMEOUT_S:g}s).",
        "--timeout",
        type=Duration("s", bare="s", low_s=0.001),
        metavar="TIME",
    ),
)
