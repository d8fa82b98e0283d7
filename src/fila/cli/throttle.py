"""`fila throttle`: limits of throttle keys, which are entries `throttle.KEY` of the runtime configuration."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fila.cli import completing, output
from fila.cli.asking import confirm, yes_option
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client.throttle_limit import ThrottleLimit


@click.group(
    epilog="""\b
Examples:
  fila throttle set provider:aws --rate 50 --burst 100
  fila throttle set tenant:acme --max-in-flight 5
  fila throttle list
  fila throttle unset provider:aws"""
)
def throttle() -> None:
    """Limit deliveries by throttle key: rate and concurrency."""


@throttle.command(
    name="set",
    epilog="""\b
Examples:
  fila throttle set provider:aws --rate 50
  fila throttle set llm:tokens --rate 1500 --burst 90000
  fila throttle set tenant:acme --max-in-flight 5""",
)
@click.argument("key", shell_complete=completing.throttle_keys)
@click.option(
    "--rate",
    type=float,
    metavar="N",
    help="Add N tokens a second. Each delivery spends the cost of its message, 1 by default.",
)
@click.option(
    "--burst", type=float, metavar="N", help="Save up to N unused tokens (default: the tokens of one second)."
)
@click.option(
    "--max-in-flight", type=int, metavar="N", help="Allow at most N messages that are delivered and not yet settled."
)
@session_options
@pass_session
def set_(session: Session, /, key: str, rate: float | None, burst: float | None, max_in_flight: int | None) -> None:
    """Set the limit of the throttle key KEY.

    The limit applies at once and survives restarts. It replaces the previous limit of KEY as a whole.
    """
    from fila.client.throttle_limit import PREFIX, ThrottleLimit

    value = str(ThrottleLimit(rate, burst, max_in_flight))
    if not value:
        raise click.UsageError("Give --rate, --max-in-flight, or both.")
    with session.client() as client:
        client.set_config(PREFIX + key, value)
    if session.as_json:
        output.emit_json({"key": key, "limit": value})
    else:
        click.echo(f"{output.printable(key)}: {value}")


@throttle.command(
    name="list",
    epilog="""\b
Examples:
  fila throttle list
  fila throttle list provider: --json""",
)
@click.argument("prefix", default="", shell_complete=completing.throttle_keys)
@session_options
@pass_session
def list_throttles(session: Session, /, prefix: str) -> None:
    """List limits, of all keys or of those that begin with PREFIX."""
    from fila.client.throttle_limit import PREFIX, ThrottleLimit

    with session.client() as client:
        entries = client.list_config(PREFIX + prefix)
    limits = {key.removeprefix(PREFIX): ThrottleLimit.parse(value) for key, value in entries.items()}
    if session.as_json:
        output.emit_json([{"key": key, **_numbers(limit)} for key, limit in limits.items()])
    elif limits:
        parts = {"rate": "RATE", "burst": "BURST", "max_in_flight": "MAX IN FLIGHT", "others": "OTHERS"}
        if not any(limit.others for limit in limits.values()):
            del parts["others"]
        texts = {key: limit.texts() | {"others": limit.others} for key, limit in limits.items()}
        output.table(
            ("KEY", *parts.values()), [(key, *(each.get(part, "") for part in parts)) for key, each in texts.items()]
        )
    else:
        click.echo("No limits are set. Set one with `fila throttle set KEY --rate N`.", err=True)


@throttle.command(
    epilog="""\b
Examples:
  fila throttle unset provider:aws
  fila throttle unset provider:aws --yes"""
)
@click.argument("key", shell_complete=completing.throttle_keys)
@yes_option
@session_options
@pass_session
def unset(session: Session, /, key: str, yes: bool) -> None:
    """Remove the limit of the throttle key KEY.

    The command asks for confirmation unless --yes is given.
    """
    from fila.client.throttle_limit import PREFIX

    if not yes:
        confirm(f'Remove the limit of "{output.printable(key)}"?')
    with session.client() as client:
        existed = client.delete_config(PREFIX + key)
    if session.as_json:
        output.emit_json({"key": key, "existed": existed})
    else:
        click.echo(f"{output.printable(key)} {'is no longer limited' if existed else 'was not limited'}")


def _numbers(limit: ThrottleLimit) -> dict[str, object]:
    """The parts that are given, for JSON."""
    given = {name: value for name, value in asdict(limit).items() if value not in (None, "")}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in given.items()
    }
