"""`fila auth role`: what a role allows."""

from __future__ import annotations

import click

from fila.cli import output
from fila.cli.asking import confirm, yes_option
from fila.cli.session import Session, pass_session, session_options


@click.group(
    epilog="""\b
Examples:
  fila auth role list
  fila auth role set shipping enqueue=orders.** consume=shipping.**
  fila auth role delete shipping"""
)
def role() -> None:
    """Change what a role allows."""


@role.command(
    name="set",
    epilog="""\b
Examples:
  fila auth role set shipping enqueue=orders.** consume=shipping.**
  fila auth role set tuner configure=throttle:provider.* browse=**
  fila auth role set auditor audit=server""",
)
@click.argument("name")
@click.argument("grants", nargs=-1, required=True, metavar="PERMISSION=PATTERN...")
@session_options
@pass_session
def set_role(session: Session, /, name: str, grants: tuple[str, ...]) -> None:
    """Set all grants of the role NAME.

    Permissions: enqueue, consume, browse, manage, configure, audit, admin. A pattern matches names of queues. For
    others write throttle:PATTERN, config:PATTERN or server. `*` matches within a segment of the name, `**` all
    segments that follow.
    """
    with session.client() as client:
        client.auth.set_role(name, grants)
    output.done(session.as_json, {"role": name, "grants": list(grants)}, f"{name}: {', '.join(grants)}")


@role.command(
    name="list",
    epilog="""\b
Examples:
  fila auth role list""",
)
@session_options
@pass_session
def list_roles(session: Session, /) -> None:
    """List all roles, built-in ones first."""
    with session.client() as client:
        roles = client.auth.list_roles()
    if session.as_json:
        output.emit_json(
            [{"name": each.name, "grants": list(each.grants), "built_in": each.built_in} for each in roles]
        )
    else:
        rows = [(each.name, "yes" if each.built_in else "", ", ".join(each.grants)) for each in roles]
        output.table(("ROLE", "BUILT IN", "GRANTS"), rows)


@role.command(
    name="delete",
    epilog="""\b
Examples:
  fila auth role delete shipping
  fila auth role delete shipping --yes""",
)
@click.argument("name")
@yes_option
@session_options
@pass_session
def delete_role(session: Session, /, name: str, yes: bool) -> None:
    """Remove the role NAME, which no principal may have.

    The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Delete the role "{output.printable(name)}"?')
    with session.client() as client:
        client.auth.delete_role(name)
    output.done(session.as_json, {"role": name}, f"{name} deleted")
