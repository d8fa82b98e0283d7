"""What all commands share: where the broker is, how to answer, and the options that say so.

The SDK is imported on first use, so that help and completion need not pay for gRPC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fila.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEFAULT_ADDR = "localhost:5555"
DEFAULT_TIMEOUT_S = 5.0


def _client(addr: str, timeout: float) -> Client:
    from fila.client import Client

    return Client(addr, timeout=timeout)


@dataclass(slots=True)
class Session:
    """The choices of one invocation. An option after the command overrides the same one before it."""

    addr: str = DEFAULT_ADDR
    timeout: float = DEFAULT_TIMEOUT_S
    as_json: bool = False
    make_client: Callable[[str, float], Client] = _client

    def client(self) -> Client:
        """A connection for the calls of one command."""
        return self.make_client(self.addr, self.timeout)


pass_session = click.make_pass_decorator(Session, ensure=True)


def session_options(command: _Command) -> _Command:
    """Adds `--addr`, `--timeout` and `--json` to a command."""
    return _add_session_options(command, addr_variable=None)


def global_options(group: _Command) -> _Command:
    """The same before the command's name, where the environment is asked too."""
    return _add_session_options(group, addr_variable="FILA_ADDR")


def _add_session_options(command: _Command, addr_variable: str | None) -> _Command:
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Answer in JSON.", callback=_remember, expose_value=False
    )
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"How long to wait for an answer (default {DEFAULT_TIMEOUT_S:g}).",
        callback=_remember,
        expose_value=False,
    )
    addr = click.option(
        "--addr",
        metavar="HOST:PORT",
        envvar=addr_variable,
        help=f"The broker (default {DEFAULT_ADDR}, or $FILA_ADDR).",
        callback=_remember_addr,
        expose_value=False,
    )
    return addr(timeout(as_json(command)))


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
