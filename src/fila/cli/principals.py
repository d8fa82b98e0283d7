"""`fila auth principal`: who has which roles and limits."""

from __future__ import annotations

import click

from fila.cli import output
from fila.cli.asking import confirm, yes_option
from fila.cli.session import Session, pass_session, session_options


@click.group(
    epilog="""\b
Examples:
  fila auth principal set billing --role producer:billing.** --role viewer
  fila auth principal list
  fila auth principal delete billing"""
)
def principal() -> None:
    """Change who has which roles."""


@principal.command(
    name="set",
    epilog="""\b
Examples:
  fila auth principal set billing --role producer:billing.** --role viewer
  fila auth principal set billing --role producer --limit messages_per_second=500
  fila auth principal set team-a --role operator:team-a.** --limit queues=20 --limit queue_max_bytes=2000000000""",
)
@click.argument("name")
@click.option(
    "--role", "roles", multiple=True, required=True, metavar="ROLE[:PATTERN]", help="A role of NAME. Repeatable."
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="LIMIT=N",
    help="Limit NAME: connections, open_calls, messages_per_second, bytes_per_second, queues, queue_max_depth or "
    "queue_max_bytes. Repeatable.",
)
@session_options
@pass_session
def set_principal(session: Session, /, name: str, roles: tuple[str, ...], limits: tuple[str, ...]) -> None:
    """Set all roles and limits of the principal NAME.

    The change applies at once, to open streams too.
    """
    numbers = dict(_limit(text) for text in limits)
    with session.client() as client:
        client.auth.set_principal(name, roles, limits=numbers)
    output.done(
        session.as_json, {"principal": name, "roles": list(roles), "limits": numbers}, f"{name}: {', '.join(roles)}"
    )


def _limit(text: str) -> tuple[str, int]:
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise click.BadParameter(f'"{text}" is not a limit such as open_calls=100', param_hint="--limit")
    return name, int(number)


@principal.command(
    name="list",
    epilog="""\b
Examples:
  fila auth principal list""",
)
@session_options
@pass_session
def list_principals(session: Session, /) -> None:
    """List all principals with their roles and limits."""
    with session.client() as client:
        principals = client.auth.list_principals()
    if session.as_json:
        output.emit_json(
            [{"name": each.name, "roles": list(each.roles), "limits": dict(each.limits)} for each in principals]
        )
    else:
        rows = [
            (each.name, ", ".join(each.roles), ", ".join(f"{name}={number}" for name, number in each.limits.items()))
            for each in principals
        ]
        output.table(("PRINCIPAL", "ROLES", "LIMITS"), rows)


@principal.command(
    epilog="""\b
Examples:
  fila auth principal delete billing
  fila auth principal delete billing --yes"""
)
@click.argument("name")
@yes_option
@session_options
@pass_session
def delete(session: Session, /, name: str, yes: bool) -> None:
    """Remove the principal NAME, all its keys and its certificate rules.

    The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Delete the principal "{output.printable(name)}", all its keys and its certificate rules?')
    with session.client() as client:
        revoked = client.auth.delete_principal(name)
    answer = {"principal": name, "keys_revoked": revoked}
    output.done(session.as_json, answer, f"{name} deleted, {output.count(revoked, 'key')} revoked")
