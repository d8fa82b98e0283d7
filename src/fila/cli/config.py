"""`fila config`: entries of the runtime configuration."""

from __future__ import annotations

import click

from fila.cli import completing, output
from fila.cli.asking import confirm, yes_option
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
    """Change the runtime configuration of the broker.

    Scripts read an entry with fila.get(KEY). Throttle limits are entries named throttle.KEY.
    """


@config.command(
    name="set",
    epilog="""\b
Examples:
  fila config set pricing.tier gold
  fila config set throttle.provider:aws rate=50,burst=100""",
)
@click.argument("key", shell_complete=completing.config_keys)
@click.argument("value")
@session_options
@pass_session
def set_(session: Session, /, key: str, value: str) -> None:
    """Set KEY to VALUE.

    The change applies at once and survives restarts.
    """
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
@click.argument("key", shell_complete=completing.config_keys)
@session_options
@pass_session
def get(session: Session, /, key: str) -> None:
    """Print the value of KEY.

    The exit code is 1 when KEY is not set.
    """
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
@click.argument("prefix", default="", shell_complete=completing.config_keys)
@session_options
@pass_session
def list_config(session: Session, /, prefix: str) -> None:
    """List all entries, or those whose keys begin with PREFIX."""
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
  fila config unset pricing.tier
  fila config unset pricing.tier --yes"""
)
@click.argument("key", shell_complete=completing.config_keys)
@yes_option
@session_options
@pass_session
def unset(session: Session, /, key: str, yes: bool) -> None:
    """Remove KEY.

    Removing a key that is not set is not an error. The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Remove the entry "{output.printable(key)}"?')
    with session.client() as client:
        existed = client.delete_config(key)
    if session.as_json:
        output.emit_json({"key": key, "existed": existed})
    else:
        click.echo(f"{output.printable(key)} {'removed' if existed else 'was not set'}")
