"""The command line, from its own help."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress

import click

from fila.cli.main import cli
from fila.server.main import configure

WIDTH = 100


def page() -> str:
    """Every command with its options and examples."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Commands"
    yield "\nThe help of every command. [Command line](../cli.md) is the guide.\n"
    for path, command in commands(cli, ("fila",)):
        context = click.Context(command, info_name=" ".join(path), max_content_width=WIDTH, terminal_width=WIDTH)
        yield f"{'#' * min(len(path) + 1, 4)} {' '.join(path)}\n"
        yield f"```text\n{command.get_help(context)}\n```\n"
    yield "## fila-server\n"
    shown = io.StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        configure(["--help"])
    yield f"```text\n{shown.getvalue()}```"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, those that are hidden left out."""
    yield path, command
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            if not below.hidden:
                yield from commands(below, (*path, name))
