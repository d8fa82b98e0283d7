"""`fila config`: what can be set while the broker runs."""

from __future__ import annotations

import click

from fila.cli import output
from fila.cli.session import Session, pass_session, session_options


@click.group(
    epilog="""\b
Examples:
  fila config set pricing.tier gold
  fila config get pricing.tier
  fila config list throttle.
  fila config unset pricing.tier"""
)
def config() -> None:
    """Set, show and remove entries of the runtime configuration, which scripts read with fila.get(KEY)."""


@config.command(
    name="set",
    epilog="""\b
Examples:
  fila config set pricing.tier gold
  fila config set throttle.provider:aws rate=50,burst=100
  fila config set throttle.provider:aws 50.0,100.0          rate and burst""",
)
@click.argument("key")
@click.argument("value")
@session_options
@pass_session
def set_(session: Session, /, key: str, value: str) -> None:
    """Set KEY to VALUE, at once and over restarts."""
    with session.client() as client:
        client.set_config(key, value)
    if session.as_json:
        output.emit_json({"key": key, "value": value})
    else:
        click.echo(f"{output.printable(key)} = {output.printable(value)}")


@config.command(
    epilog="""\b
Examples:
  fila config get pricing.tier"""
)
@click.argument("key")
@session_options
@pass_session
def get(session: Session, /, key: str) -> None:
    """Show the value of KEY; exit code 1 when it is not set."""
    with session.client() as client:
        value = client.get_config(key)
    if value is None:
        raise click.ClickException(f'config key "{output.printable(key)}" is not set')
    if session.as_json:
        output.emit_json({"key": key, "value": value})
    else:
        click.echo(output.printable(value, keep="\n\t"))


@config.command(
    name="list",
    epilog="""\b
Examples:
  fila config list
  fila config list throttle. --json""",
)
@click.argument("prefix", default="")
@session_options
@pass_session
def list_config(session: Session, /, prefix: str) -> None:
    """List the entries whose keys begin with PREFIX."""
    with session.client() as client:
        entries = client.list_config(prefix)
    if session.as_json:
        output.emit_json([{"key": key, "value": value} for key, value in entries.items()])
    else:
        if entries:
            output.table(("KEY", "VALUE"), list(entries.items()))
        click.echo(f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}", err=True)


@config.command(
    epilog="""\b
Examples:
  fila config unset pricing.tier"""
)
@click.argument("key")
@session_options
@pass_session
def unset(session: Session, /, key: str) -> None:
    """Remove KEY. Removing what is not set is no error."""
    with session.client() as client:
        existed = client.delete_config(key)
    if session.as_json:
        output.emit_json({"key": key, "existed": existed})
    else:
        click.echo(f"{output.printable(key)} {'removed' if existed else 'was not set'}")
