"""Progress of long operations: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import os
import stat
import sys
from io import BufferedIOBase
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from fila.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


def size_of(source: BufferedIOBase) -> int | None:
    """The size of a regular file; None for other inputs."""
    try:
        about = os.fstat(source.fileno())
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


class _Bar:
    """Drawn on stdout when that is a terminal, else on stderr; nothing when neither is one."""

    def __init__(self, total: int | None, label: str = "") -> None:
        self._bar = _new_bar(label) if sys.stdout.isatty() or sys.stderr.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=total, messages="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Progress(_Bar):
    """A bar over the bytes of an input, below the lines that are written meanwhile."""

    def __init__(self, total_bytes: int | None) -> None:
        super().__init__(total_bytes)
        self._messages = 0

    def advance(self, *, messages: int, read: int) -> None:
        """Count more messages as durable, which were made from so many bytes of input."""
        self._messages += messages
        if self._bar is not None:
            self._bar.update(self._task, advance=read, messages=output.count(self._messages, "message"))

    def write(self, text: str) -> None:
        """Writes lines to stdout, above the bar when they share the terminal."""
        if self._bar is not None and sys.stdout.isatty():
            self._bar.console.print(text, soft_wrap=True)
        else:
            click.echo(text)


class Counter(_Bar):
    """A bar over messages, of which there are about `total`. Nothing else is written to stdout meanwhile."""

    def reach(self, done: int) -> None:
        """Show how many are done. May be called from another thread."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, messages=output.count(done, "message"))


def _new_bar(label: str) -> Bar:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[messages]}"), TimeElapsedColumn())
    labelled = (TextColumn(label),) if label else ()
    return Bar(*labelled, *columns, console=output.console(stderr=not sys.stdout.isatty()), transient=True)
