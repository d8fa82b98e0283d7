"""Restarts a `fila` command whenever a Python file changes. For development only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

_POLL_SECONDS = 0.3
#: SIGHUP comes when the terminal is closed, and only to this process: the child is in a session of its own.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: The exit code of a process that a signal ended is this plus the number of the signal, as in a shell.
_BY_SIGNAL = 128
#: Folders without source files of the user.
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".tox"})

Files = frozenset[tuple[str, int]]


def run_reloading(arguments: Sequence[str], folder: Path) -> int:
    """Run `fila` with these arguments, and again after each change, until a stop signal. Returns the last exit code.

    A run that fails, for example at a syntax error, is started again after the next change.
    """
    with _signals() as told:
        files = python_files(folder)
        process = _start(arguments)
        try:
            while process.poll() != 0 and not told:
                time.sleep(_POLL_SECONDS)
                now = python_files(folder)
                if now != files:
                    changed = min(path for path, _ in now ^ files)
                    click.echo(f"Reloading: {changed} changed", err=True)
                    _stop(process, told)
                    files = now
                    if not told:
                        process = _start(arguments)
        finally:
            code = _stop(process, told)
    return code


def python_files(folder: Path) -> Files:
    """The Python files under the folder, with their modification times."""
    found: set[tuple[str, int]] = set()
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            if name.endswith(".py"):
                path = Path(root, name)
                try:
                    found.add((str(path.relative_to(folder)), path.stat().st_mtime_ns))
                except OSError:
                    continue  # gone between two looks
    return frozenset(found)


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    # In its own session, so that Ctrl-C reaches it once, through us.
    return subprocess.Popen([sys.executable, "-m", "fila.cli.main", *arguments], start_new_session=True)  # noqa: S603


def _stop(process: subprocess.Popen[bytes], told: Sequence[int]) -> int:
    """End the run once its jobs are finished; after a second signal, at once. Returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    hurried = False
    while True:
        try:
            code = process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if len(told) > 1 and not hurried:
                hurried = True
                process.send_signal(signal.SIGINT if told[-1] == signal.SIGINT else signal.SIGTERM)
        else:
            return code if code >= 0 else _BY_SIGNAL - code


@contextmanager
def _signals() -> Iterator[Sequence[int]]:
    """Collects the stop signals that arrive, without interrupting the program.

    A signal that is ignored, as under nohup, stays ignored.
    """
    told: list[int] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in before.items() if handler != signal.SIG_IGN]
    try:
        for number in handled:
            signal.signal(number, lambda received, _frame: told.append(received))
        yield told
    finally:
        for number in handled:
            signal.signal(number, before[number])
