"""The `fila` command: its commands by section, and the one place that turns errors into messages and exit codes.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 no broker answers, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import click

from fila.cli.apply.command import apply
from fila.cli.archive import archive
from fila.cli.audit import audit
from fila.cli.auth import auth
from fila.cli.bench.command import bench
from fila.cli.completing import end_in_time
from fila.cli.completion import VARIABLE, completion
from fila.cli.config import config
from fila.cli.console import console
from fila.cli.consume import consume
from fila.cli.context.command import context
from fila.cli.dlq import dlq, redrive
from fila.cli.doctor.command import doctor
from fila.cli.enqueue import enqueue
from fila.cli.explain import explain
from fila.cli.hooks import hook
from fila.cli.journal import journal
from fila.cli.lake import checks, daily, maintain, verdicts
from fila.cli.output import printable, wants_colour
from fila.cli.ping import ping
from fila.cli.pipeline import pipeline
from fila.cli.queues import inspect, queue
from fila.cli.reconcile import reconcile
from fila.cli.session import Session, session_options
from fila.cli.stream import stream
from fila.cli.throttle import throttle
from fila.cli.top.command import top
from fila.cli.whatif import whatif
from fila.cli.worker import worker

INTERRUPTED = 130


class Refused(click.ClickException):
    """The command failed. The reason is printed as one line."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes `Error: ...` to stderr."""
        colour = wants_colour(sys.stderr)
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {self.message}", file=file, err=True, color=colour)


class Unreachable(Refused):
    """No broker answers."""

    exit_code = 3


class FilaGroup(click.Group):
    """The top group: lists its commands by section, and turns errors of the SDK into messages."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sections: dict[str, list[str]] = {}

    def add_section(self, title: str, *commands: click.Command, **renamed: click.Command) -> None:
        """Adds commands under a heading of the help, in this order. Keywords give a command another name."""
        named = {str(command.name): command for command in commands} | renamed
        self.sections[title] = list(named)
        for name, command in named.items():
            self.add_command(command, name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one list for each section."""
        width = max(map(len, self.commands))
        for title, names in self.sections.items():
            with formatter.section(title):
                rows = [(name, self.commands[name].get_short_help_str(formatter.width)) for name in names]
                formatter.write_dl([(f"{name:<{width}}", about) for name, about in rows])

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. No error leaves as a traceback."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _abandon_stdout()
            ctx.exit(0)
        except Exception as error:
            raise _failure(error, ctx.ensure_object(Session)) from error


def _failure(error: Exception, session: Session) -> Refused:
    from fila.client import errors

    match error:
        case errors.FilaTimeoutError():
            place = f"{_place(session)} within {session.timeout:g} s"
            return Unreachable(f"no answer from {place}. Is fila-server running?")
        case errors.UnavailableError():
            return Unreachable(f"no broker answers at {_place(session)}. Is fila-server running?")
        case errors.TLSError():
            return Refused(f"{error} ({session.endpoint().source})")
        case errors.FilaError() | OSError():
            return Refused(str(error))
        case _:
            return Refused(f"unexpected error {type(error).__name__}: {error}")


def _place(session: Session) -> str:
    broker = session.endpoint()
    return f"{broker.addr} ({broker.source})"


def _abandon_stdout() -> None:
    """The reader of stdout is gone: discard what the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=FilaGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  fila queue create orders --fairness-header tenant
  fila enqueue orders '{"item": 7}' -H tenant=acme
  fila consume orders --count 1
  fila --addr broker.example:5555 queue list
  fila --context prod queue list

\b
Which broker, in this order:
  1. --addr, or the context that --context names
  2. the environment variable FILA_ADDR
  3. the context that FILA_CONTEXT names
  4. the context in use: `fila context use NAME`
  5. localhost:5555

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 no broker answers, 130 interrupted.

Run `fila COMMAND --help` for the options and examples of a command.""",
)
@click.version_option(package_name="fila-client", message="fila %(version)s")
@session_options
def cli() -> None:
    """The command line of the Fila message broker."""


for _command in (stream, archive, whatif, daily, verdicts, checks, maintain):
    pipeline.add_command(_command)
cli.add_section("Messages", enqueue, consume, dlq, redrive)
cli.add_section("Queues", queue, stats=inspect)
cli.add_section("Operations", apply, console, top, explain, throttle, config, hook, journal, ping, bench)
cli.add_section("Security", auth, audit, doctor)
cli.add_section("Jobs", worker)
cli.add_section("Pipelines", pipeline, reconcile)
cli.add_section("Command line", context, completion)


def main() -> None:
    """Entry point of the console script, which is also asked what may come next on a command line."""
    if getattr(sys, "frozen", False):  # a program without a Python starts itself once more for other processes
        from multiprocessing import freeze_support

        freeze_support()
    if os.environ.get(VARIABLE):
        end_in_time()
    cli(prog_name="fila")


if __name__ == "__main__":
    main()
