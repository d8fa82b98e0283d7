"""`fila journal`: print the broker's journal, or write it to a Parquet file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila.cli import completing, output
from fila.cli.draft import Draft
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import JournalBatch, JournalEntry

_LAST = 20
_ROWS_PER_GROUP = 100_000
_INDENT = 9
"""As wide as the number of an entry, for lines that continue it."""
_COLOURS = {
    "acked": "green",
    "nacked": "yellow",
    "expired": "yellow",
    "returned": "yellow",
    "released": "yellow",
    "dead": "red",
    "dropped": "red",
}


@click.group(
    epilog="""\b
Examples:
  fila journal tail --follow
  fila journal tail --queue orders --last 100
  fila journal export history.parquet"""
)
def journal() -> None:
    """Read the journal of events.

    The journal has an entry for every event of messages, queues and settings. It has no payloads.
    """


@journal.command(
    epilog="""\b
Examples:
  fila journal tail                       print the last 20 entries
  fila journal tail --follow --queue orders
  fila journal tail --from 1 --json | jq 'select(.kind == "dead")'"""
)
@click.option(
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=completing.queue_names,
    help="Show only entries of this queue.",
)
@click.option("--from", "from_seq", type=click.IntRange(min=1), metavar="N", help="Start at entry N.")
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help=f"Start N entries before the end (default {_LAST})."
)
@click.option("--follow", "-f", is_flag=True, help="Continue with new entries until Ctrl-C.")
@session_options
@pass_session
def tail(session: Session, /, queue: str, from_seq: int | None, last: int | None, follow: bool) -> None:
    """Print entries of the journal, oldest first.

    With --queue, --last still counts the entries of all queues.
    """
    if from_seq is not None and last is not None:
        raise click.UsageError("Give --from or --last, not both.")
    with session.client() as client:
        client.list_queues()  # following waits for a missing broker; a wrong address should fail
        begin = {"from_seq": from_seq} if from_seq is not None else {"last": last or _LAST}
        with client.read_journal_batches(queue=queue, follow=follow, **begin) as batches:
            for batch in _noting_gaps(batches, from_seq or 0):
                for entry in batch.entries():
                    click.echo(output.to_json(as_json(entry)) if session.as_json else text(entry))


@journal.command(
    epilog="""\b
Examples:
  fila journal export history.parquet
  fila journal export today.parquet --from 120000 --to 250000
  fila journal export orders.parquet --queue orders"""
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "from_seq",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="The number of the first entry (default 1).",
)
@click.option(
    "--to",
    "to_seq",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of the last entry (default: the newest).",
)
@click.option(
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=completing.queue_names,
    help="Export only entries of this queue.",
)
@session_options
@pass_session
def export(session: Session, /, file: Path, from_seq: int, to_seq: int | None, queue: str) -> None:
    """Write entries of the journal to FILE, as Parquet.

    Each entry is one row. Times are nanoseconds since the epoch. FILE is created, or replaced, once it is complete.
    The command needs pyarrow: pip install 'fila-client[export]'.
    """
    if to_seq is not None and to_seq < from_seq:
        raise click.UsageError("--to must not be smaller than --from.")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise click.ClickException(
            "fila journal export needs the package pyarrow: pip install 'fila-client[export]'"
        ) from error
    schema = pa.schema([(name, pa.string() if kind is str else pa.int64()) for name, kind in _columns().items()])
    with session.client() as client, Draft(file) as draft:
        written = 0
        with (
            client.read_journal_batches(from_seq, queue=queue) as batches,
            _Progress() as advance,
            pq.ParquetWriter(draft, schema, compression="zstd") as writer,
        ):
            for columns in _groups(_noting_gaps(batches, from_seq), to_seq, advance):
                writer.write_table(pa.table(columns, schema=schema))
                written += len(columns["seq"])
        draft.replace(file)
    if session.as_json:
        output.emit_json({"file": str(file), "entries": written})
    else:
        click.echo(f"Wrote {output.count(written, 'entry') if written == 1 else f'{written:,} entries'} to {file}")


def as_json(entry: JournalEntry) -> dict[str, Any]:
    """The entry without the fields that do not apply to it."""
    return {name: value for name in entry.__slots__ if (value := getattr(entry, name)) not in {0, ""}}


def text(entry: JournalEntry) -> str:
    """The entry as text: number, time, kind, queue, and the other fields by name. One line, if the terminal is wide."""
    kind = output.style(f"{entry.kind:<10}", fg=_COLOURS.get(entry.kind))
    parts = [f"{entry.seq:>8}", entry.at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3], kind]
    parts.append(
        output.printable(entry.queue or "-") + (f" -> {output.printable(entry.target)}" if entry.target else "")
    )
    if entry.message_id:
        parts += [f"key={output.printable(entry.fairness_key)}", output.printable(entry.message_id)]
    for name in ("attempt", "size", "cause", "count"):
        value = getattr(entry, name)
        if value or (name == "count" and entry.kind in {"counted", "consumers", "deleted"}):
            parts.append(f"{name}={value}")
    if entry.cost > 1:
        parts.append(f"cost={entry.cost}")
    if entry.kind == "leased":
        parts.append(f"waited={(entry.at_ns - entry.enqueued_at_ns) / 1e6:.1f}ms")
    if entry.throttled_ns:
        parts.append(f"throttled={entry.throttled_ns / 1e6:.1f}ms")
    if entry.until_ns:
        until = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=entry.until_ns // 1000)
        parts.append(f"until={until:%H:%M:%S}")
    if entry.note:
        parts.append(output.printable(entry.note))
    return output.folded(parts, gap=" ", indent=_INDENT, width=output.width_of(sys.stdout))


def _columns() -> dict[str, type]:
    from fila.client import JournalEntry

    return {name: str if kind in {str, "str"} else int for name, kind in JournalEntry.__annotations__.items()}


def _noting_gaps(batches: Iterator[JournalBatch], start: int) -> Iterator[JournalBatch]:
    """The batches. Warns on stderr about entries that are missing, and about a journal that is off."""
    for number, batch in enumerate(batches):
        if not number and not batch.enabled:
            click.echo(
                "The journal is off. Set enabled = true under [journal] in the server's configuration.", err=True
            )
        if start and batch.first_available_seq > start:
            click.echo(f"Entries {start:,} to {batch.first_available_seq - 1:,} have been deleted.", err=True)
        start = batch.position
        yield batch


def _groups(batches: Iterator[JournalBatch], to_seq: int | None, advance: Any) -> Iterator[dict[str, list[Any]]]:
    """Columns of many entries at a time, up to entry `to_seq`."""
    gathered: dict[str, list[Any]] = {name: [] for name in _columns()}
    first = 0
    for batch in batches:
        end = batch.next_seq if to_seq is None else min(batch.next_seq, to_seq + 1)
        first = first or batch.position
        for name, column in batch.columns.items():
            gathered[name] += column
        advance(batch.position - first, end - first)
        past = to_seq is not None and batch.position > to_seq
        if past:
            count = sum(seq <= to_seq for seq in gathered["seq"]) if to_seq is not None else 0
            gathered = {name: column[:count] for name, column in gathered.items()}
        if gathered["seq"] and (past or len(gathered["seq"]) >= _ROWS_PER_GROUP):
            yield gathered
            gathered = {name: [] for name in gathered}
        if past:
            return
    if gathered["seq"]:
        yield gathered


class _Progress:
    """A bar on stderr when that is a terminal."""

    def __init__(self) -> None:
        console = output.console(stderr=True)
        self._bar = None
        if console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            self._bar = Progress(
                BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console, transient=True
            )
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Any:
        if self._bar is not None:
            self._bar.start()
        return self._advance

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _advance(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
