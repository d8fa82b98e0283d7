"""Commands that destroy something ask first: on a terminal. Elsewhere they need --yes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def yes_option(command: _Command) -> _Command:
    """Adds `--yes`, the one way to confirm without being asked."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str) -> None:
    """Asks for confirmation. Raises UsageError when stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{question} Cannot ask for confirmation, since stdin is not a terminal. Add --yes to confirm."
        )
    click.confirm(question, abort=True, err=True)
