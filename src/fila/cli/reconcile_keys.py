"""`fila reconcile key`: API keys of the reconciliation service, kept in its database."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output
from fila.cli.asking import confirm, yes_option
from fila.cli.durations import AGE_MS
from fila.cli.reconcile_options import load_config, service, service_options

if TYPE_CHECKING:
    from fila.reconcile.access.keys import ApiKey
    from fila.reconcile.store.keys import Keys

_AFFILIATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,127}")


def _affiliate(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and _AFFILIATE.fullmatch(value) is None:
        raise click.BadParameter("it is not an affiliate id", ctx, param)
    return value


_ttl = click.option(
    "--ttl", "ttl_ms", type=AGE_MS, metavar="TIME", help="Let the key expire after this time, such as 30d."
)


@click.group(
    epilog="""\b
Examples:
  fila reconcile key create --role operator > operator.key
  fila reconcile key create --affiliate ada --ttl 90d > ada.key
  fila reconcile key list
  fila reconcile key rotate ada-x7k2mpq --overlap 1h > ada.key
  fila reconcile key revoke ada-x7k2mpq"""
)
def key() -> None:
    """Create, list, rotate and revoke API keys.

    From the first key on, every request needs one. Keys are sent as `Authorization: Bearer KEY`.
    """


@key.command(
    epilog="""\b
Examples:
  fila reconcile key create --role operator > operator.key
  fila reconcile key create --affiliate ada --ttl 90d > ada.key"""
)
@click.option("--role", type=click.Choice(["operator", "viewer"]), help="Whose rights it has.")
@click.option("--affiliate", callback=_affiliate, metavar="ID", help="For reports of this affiliate alone.")
@_ttl
@service_options
def create(role: str | None, affiliate: str | None, ttl_ms: int | None, **where: Any) -> None:
    """Create a key and print it, once.

    Give either --role or --affiliate.
    """
    if (role is None) == (affiliate is None):
        raise click.UsageError("Give either --role or --affiliate.")
    with _keys(where) as (keys, now_ms):
        from fila.reconcile.access.rights import Role

        expires_at_ms = None if ttl_ms is None else now_ms + ttl_ms
        made = keys.create(Role(role or "affiliate"), affiliate, now_ms, expires_at_ms)
    _print(*made)


@key.command(
    "list",
    epilog="""\b
Examples:
  fila reconcile key list
  fila reconcile key list --json""",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@service_options
def list_keys(as_json: bool, **where: Any) -> None:
    """List all keys, without their secrets."""
    with _keys(where) as (keys, now_ms):
        rows = [_shown(each, now_ms) for each in keys.all()]
    if as_json:
        output.emit_json(rows)
    elif rows:
        names = ("id", "role", "affiliate_id", "state", "created_at", "expires_at", "last_used_at")
        titles = ("KEY", "ROLE", "AFFILIATE", "STATE", "CREATED", "EXPIRES", "LAST USE")
        output.table(titles, [tuple(row[name] or "-" for name in names) for row in rows])
    else:
        click.echo("No keys yet: the API serves this machine alone.", err=True)


@key.command(
    epilog="""\b
Examples:
  fila reconcile key rotate ada-x7k2mpq > ada.key
  fila reconcile key rotate ada-x7k2mpq --overlap 1h > ada.key"""
)
@click.argument("key_id")
@click.option(
    "--overlap",
    "overlap_ms",
    type=AGE_MS,
    default="24h",
    show_default=True,
    metavar="TIME",
    help="Accept the old key for this time.",
)
@_ttl
@service_options
def rotate(key_id: str, overlap_ms: int, ttl_ms: int | None, **where: Any) -> None:
    """Replace a key by a new one with the same rights, and print it, once."""
    with _keys(where) as (keys, now_ms):
        made = keys.rotate(key_id, now_ms, overlap_ms=overlap_ms, ttl_ms=ttl_ms)
    _print(*made)


@key.command(
    epilog="""\b
Examples:
  fila reconcile key revoke ada-x7k2mpq
  fila reconcile key revoke ada-x7k2mpq --yes"""
)
@click.argument("key_id")
@yes_option
@service_options
def revoke(key_id: str, yes: bool, **where: Any) -> None:
    """Refuse a key from the next request on.

    The command asks for confirmation unless --yes is given.
    """
    if not yes:
        confirm(f'Revoke the key "{output.printable(key_id)}"?')
    with _keys(where) as (keys, now_ms):
        keys.revoke(key_id, now_ms)
    click.echo(f"Revoked {key_id}", err=True)


@contextlib.contextmanager
def _keys(where: dict[str, Any]) -> Iterator[tuple[Keys, int]]:
    """The keys of the store that the options name, and the time."""
    config_path: Path | None = where["config_path"]
    with service(log_level="warning"):
        from fila.reconcile.service import clock_ms, open_store
        from fila.reconcile.store.keys import KeyNotFound

        config = load_config(config_path, where["store_url"], where["queue_url"], None)
        with contextlib.closing(open_store(config)) as store:
            try:
                yield store.keys, clock_ms()
            except KeyNotFound as error:
                raise click.ClickException(output.printable(str(error))) from error


def _print(made: ApiKey, token: str) -> None:
    whose = f" of affiliate {made.affiliate_id}" if made.affiliate_id else ""
    click.echo(f"Key {made.id}, role {made.role}{whose}. It is shown once:", err=True)
    click.echo(token)


def _shown(made: ApiKey, now_ms: int) -> dict[str, str | None]:
    return {
        "id": made.id,
        "role": str(made.role),
        "affiliate_id": made.affiliate_id,
        "state": made.state(now_ms),
        "created_at": _moment(made.created_at_ms),
        "expires_at": _moment(made.expires_at_ms),
        "last_used_at": _moment(made.last_used_at_ms),
    }


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else output.moment(datetime.fromtimestamp(at_ms / 1000, UTC))
