"""`fila auth`: API keys, and the commands that have modules of their own: principals, roles, certificate rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila.cli import output
from fila.cli.asking import confirm, yes_option
from fila.cli.certificates import certificate
from fila.cli.durations import AGE_MS
from fila.cli.principals import principal
from fila.cli.roles import role
from fila.cli.session import Session, pass_session, session_options
from fila.cli.whoami import whoami

if TYPE_CHECKING:
    from datetime import datetime

    from fila.client import KeyInfo, NewKey


@click.group(
    epilog="""\b
Examples:
  fila auth init > admin.key
  fila auth key create billing --role producer:billing.** > billing.key
  fila auth key list
  fila auth certificate add billing --cn billing
  fila auth role set auditor audit=server
  fila auth whoami"""
)
def auth() -> None:
    """Manage API keys, certificate rules, principals and roles."""


auth.add_command(whoami)
auth.add_command(certificate)
auth.add_command(principal)
auth.add_command(role)


@auth.command(
    epilog="""\b
Examples:
  fila auth init > admin.key
  fila auth init --data-dir /var/lib/fila > admin.key"""
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write to the data directory of a stopped server. Also when all admin keys are lost.",
)
@session_options
@pass_session
def init(session: Session, /, data_dir: Path | None) -> None:
    """Create the first admin key.

    From then on every call needs a key. The key is printed once, to stdout; run this on the server's machine.
    """
    if data_dir is not None:
        key_id, token = _create_on_disk(data_dir)
    else:
        with session.client() as client:
            if client.auth.who_am_i().principal:
                raise click.ClickException("There are keys already. Create another with `fila auth key create`.")
            made = client.auth.create_key("admin", ["admin"])
        key_id, token = made.info.id, made.token
    _print_token(session, key_id, "admin", token)


def _create_on_disk(data_dir: Path) -> tuple[str, str]:
    try:
        from fila.server.first_key import create_admin_key
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"--data-dir needs the server's package ({error.name} is missing): pip install 'fila[server]'"
        ) from error
    return create_admin_key(data_dir)


@auth.group(
    epilog="""\b
Examples:
  fila auth key create billing --role producer:billing.** > billing.key
  fila auth key list
  fila auth key rotate billing-x7k2mp --overlap 1h > billing.key
  fila auth key revoke billing-x7k2mp"""
)
def key() -> None:
    """Create, list, rotate and revoke API keys."""


@key.command(
    epilog="""\b
Examples:
  fila auth key create billing --role producer:billing.** > billing.key
  fila auth key create ci --role admin --ttl 12h > ci.key"""
)
@click.argument("principal")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE[:PATTERN]",
    help="Give a new principal ROLE, on names that match PATTERN only. Repeatable.",
)
@click.option("--ttl", type=AGE_MS, default=0, metavar="TIME", help="Let the key expire after TIME, such as 30d.")
@session_options
@pass_session
def create(session: Session, /, principal: str, roles: tuple[str, ...], ttl: int) -> None:
    """Create a key of PRINCIPAL and print it once.

    PRINCIPAL is created with the given roles if it does not exist. Only the key goes to stdout.
    """
    with session.client() as client:
        made = client.auth.create_key(principal, roles, ttl_ms=ttl)
    _print_new(session, made)


@key.command(
    name="list",
    epilog="""\b
Examples:
  fila auth key list
  fila auth key list billing --json""",
)
@click.argument("principal", default="")
@session_options
@pass_session
def list_keys(session: Session, /, principal: str) -> None:
    """List all keys, or those of PRINCIPAL, without their secrets."""
    with session.client() as client:
        keys = client.auth.list_keys(principal)
    if session.as_json:
        output.emit_json([_key_json(each) for each in keys])
    elif keys:
        rows = [
            (each.id, each.principal, _moment(each.created_at), _moment(each.expires_at), _moment(each.last_used_at))
            for each in keys
        ]
        output.table(("KEY", "PRINCIPAL", "CREATED", "EXPIRES", "LAST USED"), rows)
    else:
        click.echo("There are no keys. Create the first with `fila auth init`.", err=True)


@key.command(
    epilog="""\b
Examples:
  fila auth key rotate billing-x7k2mp --overlap 1h > billing.key"""
)
@click.argument("key_id")
@click.option(
    "--overlap",
    type=AGE_MS,
    default="1h",
    metavar="TIME",
    help="Keep the old key valid for TIME (default 1h).",
)
@click.option("--ttl", type=AGE_MS, default=0, metavar="TIME", help="Let the new key expire after TIME.")
@session_options
@pass_session
def rotate(session: Session, /, key_id: str, overlap: int, ttl: int) -> None:
    """Replace the key KEY_ID by a new one, and print that once.

    Both keys are valid during the overlap. Clients that read the key from a file take up the new one by themselves.
    """
    with session.client() as client:
        made = client.auth.rotate_key(key_id, overlap_ms=overlap, ttl_ms=ttl)
    _print_new(session, made)


@key.command(
    epilog="""\b
Examples:
  fila auth key revoke billing-x7k2mp
  fila auth key revoke billing-x7k2mp --yes"""
)
@click.argument("key_id")
@yes_option
@session_options
@pass_session
def revoke(session: Session, /, key_id: str, yes: bool) -> None:
    """Remove the key KEY_ID at once.

    Its open calls end within a second. The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Revoke the key "{output.printable(key_id)}"?')
    with session.client() as client:
        client.auth.revoke_key(key_id)
    output.done(session.as_json, {"key": key_id}, f"{key_id} revoked")


def _print_new(session: Session, made: NewKey) -> None:
    _print_token(session, made.info.id, made.info.principal, made.token)


def _print_token(session: Session, key_id: str, principal_name: str, token: str) -> None:
    """Print a key, once: it alone goes to stdout, so that it can be redirected into a file."""
    if session.as_json:
        output.emit_json({"key": key_id, "principal": principal_name, "token": token})
        return
    click.echo(token)
    click.echo(f"Key {key_id} of {output.printable(principal_name)}. It is not shown again.", err=True)


def _key_json(each: KeyInfo) -> dict[str, str | None]:
    return {
        "key": each.id,
        "principal": each.principal,
        "created_at": each.created_at.isoformat(),
        "expires_at": each.expires_at.isoformat() if each.expires_at else None,
        "last_used_at": each.last_used_at.isoformat() if each.last_used_at else None,
    }


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at is not None else ""
