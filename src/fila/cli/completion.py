"""`fila completion`: the shell scripts that complete commands, options, names of queues and keys."""

from __future__ import annotations

import os

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class, split_arg_string

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FILA_COMPLETE"


@add_completion_class
class Bash(BashComplete):
    """Bash breaks words at colons, which throttle keys have: so we are given the line, and break it ourselves."""

    source_template = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} before= type value
    local word=${line##*[[:space:]]}
    word=${word#--*=}
    # Bash replaces what follows the last colon.
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then before=${word%%"${word##*:}"}; fi
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$before"}") ;;
        esac
    done < <(COMP_LINE=$line %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words behind the command, and the beginning of the next one."""
        line = os.environ.get("COMP_LINE", "")
        _, *words = split_arg_string(line) or [""]
        typed = words.pop() if words and not line[-1:].isspace() else ""
        return words, typed


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

    SHELL is bash, zsh or fish. With the script, the shell completes commands, options and their values, and the names
    of queues, throttle keys, configuration keys, fairness keys and contexts. Names are asked of the broker that the
    command line names; if it does not answer in a second, there are none.
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "fila", VARIABLE).source())
