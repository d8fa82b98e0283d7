"""The command: shows what differs, and makes it so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila.cli import output
from fila.cli.asking import confirm
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.cli.apply.plan import Change
    from fila.client import Client

_COLOURS = {"+": "green", "~": "yellow", "-": "red"}


@click.command(
    epilog="""\b
Examples:
  fila apply queues.toml --dry-run
  fila apply queues.toml
  fila apply queues.toml --check            in CI: exit code 1 if the broker differs
  fila apply queues.toml --prune --yes

\b
The file:
  [queues.orders]
  fairness_header = "tenant"
  visibility_timeout_ms = "30s"
  script_file = "policy.lua"
\b
  [throttles."provider:aws"]
  rate = 50

docs/apply.md has all sections."""
)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--check", is_flag=True, help="Like --dry-run, with exit code 1 if something would change.")
@click.option(
    "--prune",
    is_flag=True,
    help="Remove throttles, configuration entries, roles and principals that their section of FILE lacks. Queues stay.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before something is removed.")
@session_options
@pass_session
def apply(session: Session, /, file: Path, dry_run: bool, check: bool, prune: bool, yes: bool) -> None:
    """Make queues, limits, configuration and rights as FILE says.

    Settings that FILE does not name stay as they are. Applying a file twice changes nothing the second time.
    """
    from fila.cli.apply.manifest import read
    from fila.cli.apply.plan import compare
    from fila.settings import SettingsError

    try:
        wanted = read(file)
    except SettingsError as error:
        raise click.ClickException(output.printable(str(error))) from error
    with session.client() as client:
        changes = compare(client, wanted, prune=prune)
        if not session.as_json:
            _show(changes)
        made = dry_run or check
        if not made:
            _confirm(changes, yes=yes)
            _make(client, changes)
    if session.as_json:
        output.emit_json({"changes": [change.as_json() for change in changes], "applied": not made})
    else:
        click.echo(_summary(changes, applied=not made))
    if check and changes:
        raise click.exceptions.Exit(1)


def _show(changes: list[Change]) -> None:
    for change in changes:
        first, *rest = (output.printable(line) for line in change.lines())
        click.echo(output.style(first, fg=_COLOURS[change.sign]))
        for line in rest:
            click.echo(line)


def _confirm(changes: list[Change], *, yes: bool) -> None:
    removed = sum(change.sign == "-" for change in changes)
    if removed and not yes:
        confirm(f"{removed:,} {'entry' if removed == 1 else 'entries'} will be removed. Go on?")


def _make(client: Client, changes: list[Change]) -> None:
    """One after another. Those before one that is refused are made; the same command goes on from there."""
    for done, change in enumerate(changes):
        try:
            change.make(client)
        except Exception:
            click.echo(
                f'Applied {done} of {len(changes)}; {change.kind} "{output.printable(change.name)}" failed:', err=True
            )
            raise


def _summary(changes: list[Change], *, applied: bool) -> str:
    if not changes:
        return "Nothing differs"
    counts = ", ".join(
        f"{count} {word}"
        for sign, word in (("+", "created"), ("~", "changed"), ("-", "removed"))
        if (count := sum(change.sign == sign for change in changes))
    )
    return f"Applied: {counts}" if applied else f"Would be {counts}. Nothing was changed"
