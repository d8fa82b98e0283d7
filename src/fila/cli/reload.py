"""Runs a command of ours again whenever a Python file changes. For development only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

_POLL_SECONDS = 0.3
#: Folders that hold no source of the user's.
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".tox"})

Files = frozenset[tuple[str, int]]


def run_reloading(arguments: Sequence[str], folder: Path) -> int:
    """Run `fila` with these arguments, and again after each change, until interrupted. Returns the last exit code.

    A run that fails, over a mistake that was just saved, is followed by the next change.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    files = python_files(folder)
    process = _start(arguments)
    try:
        while process.poll() != 0:
            time.sleep(_POLL_SECONDS)
            now = python_files(folder)
            if now != files:
                changed = min(path for path, _ in now ^ files)
                click.echo(f"Reloading: {changed} changed", err=True)
                _stop(process)
                files, process = now, _start(arguments)
        return 0
    except KeyboardInterrupt:
        return _stop(process)
    finally:
        signal.signal(signal.SIGTERM, before)
        _stop(process)


def python_files(folder: Path) -> Files:
    """Every Python file under the folder, with the time of its last change."""
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
    # A group of its own: Ctrl-C reaches it through us alone, so that it is told to stop once.
    return subprocess.Popen([sys.executable, "-m", "fila.cli.main", *arguments], start_new_session=True)  # noqa: S603


def _stop(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
