"""How far something long has come: a bar on a terminal, nothing elsewhere."""

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
    """How many bytes are to come, where that can be known."""
    try:
        about = os.fstat(source.fileno())
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


class Progress:
    """A bar below the lines that are written meanwhile.

    It is drawn on stdout when that is a terminal, together with what is written there, and else on stderr.
    """

    def __init__(self, total_bytes: int | None) -> None:
        self._messages = 0
        self._bar = _bar() if sys.stdout.isatty() or sys.stderr.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=total_bytes, messages="")

    def advance(self, *, messages: int, read: int) -> None:
        """So many more messages, from so many bytes of input, are durable."""
        self._messages += messages
        if self._bar is not None:
            self._bar.update(self._task, advance=read, messages=output.count(self._messages, "message"))

    def write(self, text: str) -> None:
        """Writes lines to stdout, above the bar when they share the terminal."""
        if self._bar is not None and sys.stdout.isatty():
            self._bar.console.print(text, soft_wrap=True)
        else:
            click.echo(text)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Counter:
    """A bar for messages of which about so many will be done. Nothing is written to stdout meanwhile."""

    def __init__(self, total: int) -> None:
        self._bar = _bar() if sys.stdout.isatty() or sys.stderr.isatty() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=total, messages="")

    def reach(self, done: int) -> None:
        """So many are done. May be called from another thread."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, messages=output.count(done, "message"))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Bar:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[messages]}"), TimeElapsedColumn())
    return Bar(*columns, console=output.console(stderr=not sys.stdout.isatty()), transient=True)
