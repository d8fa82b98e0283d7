"""`fila audit`: who changed what. Print entries of the audit, or write them to a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila.cli import completing, output
from fila.cli.draft import Draft
from fila.cli.durations import milliseconds
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import AuditChange, AuditEntry

_LAST = 20
_INDENT = " " * 10
_WIDTH = 50
"""Values that are longer together stand on two lines."""


@click.group(
    epilog="""\b
Examples:
  fila audit tail --follow
  fila audit tail --who billing --since 2h
  fila audit export changes.jsonl"""
)
def audit() -> None:
    """See who changed what.

    The audit has an entry for every change of queues, limits, settings, keys and rights, for every purge and redrive,
    and for every such call that was refused. It has no payloads and no secrets.
    """


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A time such as `2026-05-01T12:00`, in local time unless it has a zone, or how long ago: `2h`."""
    if value is None:
        return None
    with suppress(ValueError):
        return datetime.now(UTC) - timedelta(milliseconds=milliseconds(value))
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        wrong = f'"{output.printable(value)}" is neither a time such as 2026-05-01T12:00 nor how long ago, such as 2h'
        raise click.BadParameter(wrong, ctx, param) from error


def _chosen(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose entries."""
    options = (
        click.option("--who", metavar="PATTERN", help="Show only entries of these principals or ids of keys."),
        click.option("--action", metavar="PATTERN", help="Show only these actions, such as PauseQueue or '*Key'."),
        click.option(
            "--resource",
            metavar="[KIND:]PATTERN",
            help="Show only these resources, such as 'queue:orders.**', 'throttle:*' or 'key:**'.",
        ),
        click.option(
            "--queue",
            metavar="QUEUE",
            shell_complete=completing.queue_names,
            help="Show only entries about this queue and its dead-letter queue. The permission audit on it is enough.",
        ),
        click.option(
            "--since",
            callback=_moment,
            metavar="WHEN",
            help="Show only entries since WHEN: a time such as 2026-05-01T12:00, or how long ago, such as 2h.",
        ),
        click.option("--until", callback=_moment, metavar="WHEN", help="Show only entries before WHEN."),
        click.option("--refused", is_flag=True, default=None, help="Show only calls that were refused."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@audit.command(
    epilog="""\b
Examples:
  fila audit tail                         print the last 20 entries
  fila audit tail --follow
  fila audit tail --queue orders --since 7d --last 100
  fila audit tail --refused --json | jq .principal"""
)
@_chosen
@click.option("--last", type=click.IntRange(min=1), metavar="N", help=f"Print the last N entries (default {_LAST}).")
@click.option("--from", "from_seq", type=click.IntRange(min=1), metavar="N", help="Start at entry N.")
@click.option("--follow", "-f", is_flag=True, help="Continue with new entries until Ctrl-C.")
@session_options
@pass_session
def tail(session: Session, /, from_seq: int | None, last: int | None, follow: bool, **chosen: Any) -> None:
    """Print entries of the audit, oldest first."""
    if from_seq is not None and last is not None:
        raise click.UsageError("Give --from or --last, not both.")
    begin: dict[str, Any] = {"from_seq": from_seq} if from_seq is not None else {"last": last or _LAST}
    with session.client() as client:
        for entry in client.read_audit(**begin, follow=follow, **_given(chosen)):
            click.echo(output.to_json(as_json(entry)) if session.as_json else text(entry))


@audit.command(
    epilog="""\b
Examples:
  fila audit export changes.jsonl
  fila audit export rights.jsonl --resource 'principal:**' --since 30d
  fila audit export - --refused | jq .peer"""
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@_chosen
@session_options
@pass_session
def export(session: Session, /, file: Path, **chosen: Any) -> None:
    """Write entries of the audit to FILE, as JSON Lines.

    Each entry is one line, oldest first. FILE is created, or replaced, once it is complete. `-` is stdout.
    """
    with session.client() as client:
        lines = (output.to_json(as_json(entry)) for entry in client.read_audit(**_given(chosen)))
        if str(file) == "-":
            for line in lines:
                click.echo(line)
            return
        with Draft(file) as draft:
            written = _write(draft, lines)
            draft.replace(file)
    if session.as_json:
        output.emit_json({"file": str(file), "entries": written})
    else:
        click.echo(f"Wrote {'1 entry' if written == 1 else f'{written:,} entries'} to {file}")


def _given(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chosen.items() if value is not None}


def _write(file: Path, lines: Iterator[str]) -> int:
    written = 0
    with file.open("w", encoding="utf-8") as out:
        for line in lines:
            out.write(f"{line}\n")
            written += 1
    return written


def as_json(entry: AuditEntry) -> dict[str, Any]:
    """The entry without the fields that do not apply to it. The time is given twice: exact, and to be read."""
    changes = {change.name: {"before": change.before, "after": change.after} for change in entry.changes}
    told = {name: value for name, value in asdict(entry).items() if value not in (0, "", ()) and name != "changes"}
    return told | {"at": entry.at.isoformat(timespec="milliseconds")} | ({"changes": changes} if changes else {})


def text(entry: AuditEntry) -> str:
    """The entry as text: what was done, by whom, and a line for each value that changed."""
    action = output.style(f"{entry.action} {entry.stage}".rstrip(), bold=True)
    first = [f"{entry.seq:>8}", entry.at.strftime("%Y-%m-%d %H:%M:%S"), action]
    if entry.resource_kind:
        first.append(output.printable(f"{entry.resource_kind}:{entry.resource}"))
    if entry.outcome != "ok":
        first.append(output.style(output.printable(entry.outcome), fg="red"))
    if entry.times > 1:
        first.append(f"{entry.times:,} times")
    if entry.count or entry.stage == "end":
        first.append(output.count(entry.count, "message"))
    by = [f"{_INDENT}by {_who(entry)}", f"from {output.printable(entry.peer)}"]
    width = output.width_of(sys.stdout)
    lines = [output.folded(parts, gap=" ", indent=len(_INDENT), width=width) for parts in (first, by)]
    return "\n".join([*lines, *(f"{_INDENT}{_value(change, entry.stage)}" for change in entry.changes)])


def _who(entry: AuditEntry) -> str:
    """The principal, and what it has shown: the id of a key, or a certificate or token with its name."""
    if not entry.principal:
        return "a caller without a key"
    shown = entry.key_id if ":" in entry.key_id else f"key {entry.key_id}"
    return output.printable(f"{entry.principal} ({shown})" if entry.key_id else entry.principal)


def _short(value: str) -> str:
    """The beginning of a digest tells it from others; JSON has all of it."""
    return re.sub(r"(sha256:[0-9a-f]{16})[0-9a-f]+", r"\1...", value)


def _value(change: AuditChange, stage: str) -> str:
    """`name: before -> after`, or one of them where there is no other."""
    before, after = (None if value is None else _short(value) or '""' for value in (change.before, change.after))
    if before is None or stage == "begin":
        told = f"{change.name}: {after}"
    elif after is None:
        told = f"{change.name}: was {before}"
    elif len(before) + len(after) <= _WIDTH:
        told = f"{change.name}: {before} -> {after}"
    else:
        return f"{output.printable(f'{change.name}: {before}')}\n{_INDENT}  -> {output.printable(after)}"
    return output.printable(told)
