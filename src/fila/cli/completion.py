"""`fila completion`: the shell script that completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Examples:
  eval "$(fila completion bash)"
  fila completion bash > ~/.local/share/bash-completion/completions/fila
  fila completion zsh > "${fpath[1]}/_fila"
  fila completion fish > ~/.config/fish/completions/fila.fish"""
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    SHELL is bash, zsh or fish. With the script, the shell completes commands, options and their values.
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "fila", "_FILA_COMPLETE").source())
